//! Who waits for whom: a wait that would close a circle is refused, because it would never end.
//!
//! A receptor that waits keeps its circuit from going on. So does everything that its thread is in the middle of: a receptor may have
//! had another circuit run on its own thread, whose receptor waits. What waits from inside of circuits is noted here for as long as
//! it does; what waits from outside keeps no circuit from anything and never comes here.
//!
//! All is done under one lock, so of those that would close a circle at the same time the last one finds it.

use std::collections::HashSet;
use std::ptr::{self, NonNull};

use super::Machine;
use crate::context;
use crate::error::ContextError;
use crate::sync::{Mutex, lock};

#[cfg(not(loom))]
static WAITS: Mutex<Waits> = Mutex::new(Waits::new());

#[cfg(loom)]
loom::lazy_static! {
    static ref WAITS: Mutex<Waits> = Mutex::new(Waits::new());
}

/// All waits of the process.
struct Waits {
    all: Vec<Wait>,
    /// The number of the next one.
    next: u64,
}

impl Waits {
    const fn new() -> Self {
        Self { all: Vec::new(), next: 0 }
    }
}

/// What is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    /// That everything below this ticket is done.
    Done(u64),
    /// That there is room for one more emission.
    Room,
}

/// A thread that waits inside of circuits.
struct Wait {
    number: u64,
    /// The circuits that cannot go on meanwhile, which the thread is in the context of. Known by their addresses.
    held: HashSet<usize>,
    awaited: NonNull<Machine>,
    until: Until,
}

// SAFETY: a machine may be looked at from any thread.
unsafe impl Send for Wait {}

impl Wait {
    /// Whether it goes on, as far as anybody knows: the awaited circuit may just have got there.
    fn goes_on(&self) -> bool {
        // SAFETY: who waits borrows the machine for as long as the wait is in the list.
        let awaited = unsafe { self.awaited.as_ref() };
        match self.until {
            Until::Done(ticket) => !awaited.is_finished(ticket),
            Until::Room => {
                awaited.bounds.as_ref().is_some_and(|bounds| !awaited.is_closed() && bounds.is_full())
            }
        }
    }
}

/// A wait, for as long as this is there.
pub(super) struct Waiting<'a> {
    awaited: &'a Machine,
    number: u64,
}

impl<'a> Waiting<'a> {
    /// Notes that the caller waits from here on. None if it does from outside of all circuits; an error if it would for ever.
    #[inline]
    pub(super) fn begin(awaited: &'a Machine, until: Until) -> Result<Option<Self>, ContextError> {
        if context::is_within_any() { Self::begin_inside(awaited, until).map(Some) } else { Ok(None) }
    }

    #[cold]
    fn begin_inside(awaited: &'a Machine, until: Until) -> Result<Self, ContextError> {
        let held = held_here();
        let mut waits = lock(&WAITS);
        if closes_circle(&waits.all, &held, awaited) {
            return Err(ContextError::CIRCLE);
        }
        let number = waits.next;
        waits.next += 1;
        waits.all.push(Wait { number, held, awaited: NonNull::from(awaited), until });
        Ok(Self { awaited, number })
    }

    /// Whether others have closed a circle meanwhile, at a moment when it did not look like one.
    pub(super) fn is_in_circle(&self) -> bool {
        closes_circle(&lock(&WAITS).all, &held_here(), self.awaited)
    }

    /// Refuses what would be a wait for ever, before anything is done.
    pub(super) fn check(awaited: &Machine) -> Result<(), ContextError> {
        let is_circle = context::is_within_any() && closes_circle(&lock(&WAITS).all, &held_here(), awaited);
        if is_circle { Err(ContextError::CIRCLE) } else { Ok(()) }
    }
}

/// Takes the wait out of the list, also if it ends by a panic.
impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waits = lock(&WAITS);
        let mine = waits.all.iter().position(|wait| wait.number == self.number);
        debug_assert!(mine.is_some(), "it was noted");
        if let Some(mine) = mine {
            waits.all.swap_remove(mine);
        }
    }
}

/// The circuits that this thread is in the context of.
fn held_here() -> HashSet<usize> {
    let mut held = HashSet::new();
    Machine::each_entered_here(|machine| {
        held.insert(ptr::from_ref(machine).addr());
        false
    });
    held
}

/// Whether this or what it waits for, directly or not, waits for one of those that are held.
fn closes_circle(waits: &[Wait], held: &HashSet<usize>, awaited: &Machine) -> bool {
    let mut reached = vec![ptr::from_ref(awaited).addr()];
    let mut next = 0;
    while let Some(&at) = reached.get(next) {
        if held.contains(&at) {
            return true;
        }
        next += 1;
        for wait in waits.iter().filter(|wait| wait.held.contains(&at) && wait.goes_on()) {
            let behind = wait.awaited.as_ptr().addr();
            if !reached.contains(&behind) {
                reached.push(behind);
            }
        }
    }
    false
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    use super::*;
    use crate::bounds::Overflow;
    use crate::circuit::{Circuit, RunBy};

    /// Here, because nobody else can tell what is noted.
    #[test]
    fn a_wait_is_noted_until_it_ends_also_by_a_panic() {
        let built = || Circuit::builder().run_by(RunBy::Owner).build().expect("valid");
        let (waits, awaited) = (built(), built());
        let of_awaited = || {
            let machine = NonNull::from(&**awaited.machine());
            lock(&WAITS).all.iter().filter(|wait| wait.awaited == machine).count()
        };
        assert!(matches!(Waiting::begin(awaited.machine(), Until::Done(1)), Ok(None)), "it is outside");
        let running = waits.machine().enter().expect("nobody else is here");
        let waiting = Waiting::begin(awaited.machine(), Until::Done(1)).expect("no circle");
        assert_eq!((waiting.is_some(), of_awaited()), (true, 1));
        drop(waiting);
        assert_eq!(of_awaited(), 0);
        let thrown = catch_unwind(AssertUnwindSafe(|| {
            let _waiting = Waiting::begin(awaited.machine(), Until::Done(1)).expect("no circle");
            assert_eq!(of_awaited(), 1);
            resume_unwind(Box::new(()));
        }));
        assert!(thrown.is_err() && of_awaited() == 0);
        assert!(matches!(Waiting::begin(waits.machine(), Until::Room), Err(error) if error.is_circle()));
        drop(running);
    }

    #[test]
    fn waits_for_the_same_from_the_same_place_are_two() {
        let built = || Circuit::builder().run_by(RunBy::Owner).build().expect("valid");
        let (waits, awaited) = (built(), built());
        let running = waits.machine().enter().expect("nobody else is here");
        let outer = Waiting::begin(awaited.machine(), Until::Done(7)).expect("no circle");
        drop(Waiting::begin(awaited.machine(), Until::Done(1)).expect("no circle"));
        let left = |until| {
            let machine = NonNull::from(&**awaited.machine());
            let waits = lock(&WAITS);
            waits
                .all
                .iter()
                .filter(|wait| wait.awaited == machine)
                .any(|wait| matches!(wait.until, Until::Done(at) if at == until))
        };
        assert!(left(7) && !left(1));
        drop((outer, running));
    }

    #[test]
    fn who_waits_for_room_goes_on_when_the_circuit_is_closed() {
        let builder = || Circuit::builder().run_by(RunBy::Owner);
        let (waits, awaited) = (
            builder().build().expect("valid"),
            builder().bounded(1, Overflow::Reject).build().expect("valid"),
        );
        awaited.discard().expect("open").emit(1);
        let running = waits.machine().enter().expect("nobody else is here");
        let waiting = Waiting::begin(awaited.machine(), Until::Room).expect("no circle");
        // The awaited circuit's context is no more than a place to ask from, so one thread will do for both.
        let held = HashSet::from([ptr::from_ref::<Machine>(awaited.machine()).addr()]);
        let asks_from_awaited = || closes_circle(&lock(&WAITS).all, &held, waits.machine());
        assert!(asks_from_awaited());
        awaited.close();
        assert!(!asks_from_awaited());
        drop((waiting, running));
    }
}
