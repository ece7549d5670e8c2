//! Who waits for whom: a wait that would close a circle is refused, because it would never end.
//!
//! A receptor that waits keeps its circuit from going on. So does everything that its thread is in the middle of: a receptor may have
//! had another circuit run on its own thread, whose receptor waits. What waits from inside of circuits is noted here for as long as
//! it does; what waits from outside keeps no circuit from anything and never comes here.
//!
//! All is done under one lock, so of those that would close a circle at the same time the last one finds it.

use std::collections::{BTreeMap, BTreeSet};
use std::ptr::{self, NonNull};

use super::state::Machine;
use crate::error::ContextError;
use crate::execution::context;
use crate::sync::{Mutex, lock};

#[cfg(not(loom))]
static WAITS: Mutex<Waits> = Mutex::new(Waits::new());

#[cfg(loom)]
loom::lazy_static! {
    static ref WAITS: Mutex<Waits> = Mutex::new(Waits::new());
}

/// All waits of the process.
struct Waits {
    /// The circuits that threads are in the context of which wait, by their addresses.
    held: BTreeMap<usize, Held>,
    /// The number of the next wait.
    next: u64,
}

/// What keeps a circuit from going on.
#[derive(Default)]
struct Held {
    /// The circuit that the same thread has gone on to from inside of this one, if it waits in there.
    within: Option<usize>,
    /// What the thread waits for in this very context: most often one thing. While it does it may be called back, and wait for
    /// another.
    waits: Vec<Wait>,
}

/// What is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    /// That everything below this ticket is done.
    Done(u64),
    /// That there is room for one more emission.
    Room,
}

struct Wait {
    number: u64,
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

impl Waits {
    const fn new() -> Self {
        Self { held: BTreeMap::new(), next: 0 }
    }

    /// Notes for each circuit that this thread is in the context of, but the innermost, where it has gone on to. Those behind one of
    /// which that is known are known too. Returns of how many it was not.
    fn link_here(&mut self) -> usize {
        let (mut inner, mut links) = (None, 0);
        Machine::each_entered_here(|machine| {
            let outer = address(machine);
            if let Some(inner) = inner {
                let held = self.held.entry(outer).or_default();
                if held.within.is_some() {
                    assert_eq!(held.within, Some(inner), "who is waited for inside of it has not returned");
                    return true;
                }
                held.within = Some(inner);
                links += 1;
            }
            inner = Some(outer);
            false
        });
        links
    }

    /// Takes back what [`Waits::link_here`] has noted in the same context.
    fn unlink_here(&mut self, links: usize) {
        let mut left = links;
        let mut is_outer = false;
        Machine::each_entered_here(|machine| {
            if std::mem::replace(&mut is_outer, true) && left > 0 {
                left -= 1;
                self.change(address(machine), |held| held.within = None);
            }
            left == 0
        });
        assert_eq!(left, 0, "of {links} links, the context in which they were made is the same");
    }

    /// Changes what is known of a circuit, and forgets it if that is nothing.
    fn change(&mut self, circuit: usize, change: impl FnOnce(&mut Held)) {
        let held = self.held.get_mut(&circuit).expect("a circuit is known as long as it waits");
        change(held);
        if held.within.is_none() && held.waits.is_empty() {
            self.held.remove(&circuit);
        }
    }

    /// Whether this thread is waited for by the circuit, directly or not. Where it is in was noted.
    fn closes_circle(&self, awaited: &Machine) -> bool {
        innermost_here().is_some_and(|own| self.is_kept_by(address(awaited), own))
    }

    /// Whether the circuit cannot go on before the other one does.
    fn is_kept_by(&self, circuit: usize, other: usize) -> bool {
        let (mut reached, mut next) = (BTreeSet::new(), vec![circuit]);
        while let Some(at) = next.pop() {
            if at == other {
                return true;
            }
            if let Some(held) = self.held.get(&at)
                && reached.insert(at)
            {
                let awaited =
                    held.waits.iter().filter(|wait| wait.goes_on()).map(|wait| wait.awaited.as_ptr().addr());
                next.extend(awaited.chain(held.within));
            }
        }
        false
    }
}

fn address(machine: &Machine) -> usize {
    ptr::from_ref(machine).addr()
}

/// The innermost circuit that this thread is in the context of.
fn innermost_here() -> Option<usize> {
    Machine::entered_here().map(address)
}

/// A wait, for as long as this is there: in the context that it was begun in.
pub(super) struct Waiting<'a> {
    awaited: &'a Machine,
    number: u64,
    links: usize,
}

impl<'a> Waiting<'a> {
    /// Notes that the caller waits from here on. None if it does from outside of all circuits; an error if it would for ever.
    #[inline]
    pub(super) fn begin(awaited: &'a Machine, until: Until) -> Result<Option<Self>, ContextError> {
        if context::is_within_any() { Self::begin_inside(awaited, until).map(Some) } else { Ok(None) }
    }

    #[cold]
    fn begin_inside(awaited: &'a Machine, until: Until) -> Result<Self, ContextError> {
        let mut waits = lock(&WAITS);
        let links = waits.link_here();
        if waits.closes_circle(awaited) {
            waits.unlink_here(links);
            return Err(ContextError::CIRCLE);
        }
        let number = waits.next;
        waits.next += 1;
        let own = innermost_here().expect("the caller is inside");
        let wait = Wait { number, awaited: NonNull::from(awaited), until };
        waits.held.entry(own).or_default().waits.push(wait);
        Ok(Self { awaited, number, links })
    }

    /// Whether others have closed a circle meanwhile, at a moment when it did not look like one.
    pub(super) fn is_in_circle(&self) -> bool {
        lock(&WAITS).closes_circle(self.awaited)
    }

    /// Refuses what would be a wait for ever, before anything is done.
    pub(super) fn check(awaited: &Machine) -> Result<(), ContextError> {
        if !context::is_within_any() {
            return Ok(());
        }
        let mut waits = lock(&WAITS);
        let links = waits.link_here();
        let is_circle = waits.closes_circle(awaited);
        waits.unlink_here(links);
        if is_circle { Err(ContextError::CIRCLE) } else { Ok(()) }
    }
}

/// Takes the wait out of the list, also if it ends by a panic.
impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waits = lock(&WAITS);
        let own = innermost_here().expect("the context in which the wait began is the same");
        waits.change(own, |held| held.waits.retain(|wait| wait.number != self.number));
        waits.unlink_here(self.links);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    use super::*;
    use crate::circuit::{Circuit, RunBy};
    use crate::execution::bounds::Overflow;

    /// Here, because nobody else can tell what is noted.
    #[test]
    fn a_wait_is_noted_until_it_ends_also_by_a_panic() {
        let built = || Circuit::builder().run_by(RunBy::Owner).build().expect("valid");
        let (waits, awaited) = (built(), built());
        let of_awaited = || {
            let machine = NonNull::from(&**awaited.machine());
            let waits = lock(&WAITS);
            waits.held.values().flat_map(|held| &held.waits).filter(|wait| wait.awaited == machine).count()
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
                .held
                .values()
                .flat_map(|held| &held.waits)
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
        let asks_from_awaited =
            || lock(&WAITS).is_kept_by(address(waits.machine()), address(awaited.machine()));
        assert!(asks_from_awaited());
        awaited.close();
        assert!(!asks_from_awaited());
        drop((waiting, running));
    }
}
