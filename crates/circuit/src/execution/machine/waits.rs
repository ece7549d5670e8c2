//! Deadlock detection: a wait that would close a circle is refused, because it would never end.
//!
//! A receptor that waits blocks its circuit. It also blocks every circuit whose context its thread
//! is in further out: a receptor may run another circuit on its own thread, whose receptor waits.
//! Waits from inside circuits are recorded here while they last. Waits from outside block no
//! circuit and are not recorded.
//!
//! One lock guards everything. So of several waits that close a circle concurrently, the last one
//! detects it.

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
    /// The circuits in whose contexts waiting threads are, by address.
    held: BTreeMap<usize, Held>,
    /// Number of the next wait.
    next: u64,
}

/// What blocks a circuit.
#[derive(Default)]
struct Held {
    /// The circuit that the same thread runs inside this one, if it waits in there.
    within: Option<usize>,
    /// What the thread waits for in this very context: usually one thing. During a wait the thread
    /// may be called back and begin another.
    waits: Vec<Wait>,
}

/// Condition of a wait.
#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    /// Everything below this ticket is done.
    Done(u64),
    /// There is room for one more emission.
    Room,
}

struct Wait {
    number: u64,
    awaited: NonNull<Machine>,
    until: Until,
}

// SAFETY: a machine may be read on any thread.
unsafe impl Send for Wait {}

impl Wait {
    /// Returns whether the wait continues. May be stale: the awaited circuit may have just got
    /// there.
    fn goes_on(&self) -> bool {
        // SAFETY: the waiting thread borrows the machine for as long as the wait is in the list.
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

    /// Links each circuit that this thread is in the context of to the one inside it. Stops at the
    /// first that is already linked: those further out are linked too. Returns the number of new
    /// links.
    fn link_here(&mut self) -> usize {
        let (mut inner, mut links) = (None, 0);
        Machine::each_entered_here(|machine| {
            let outer = address(machine);
            if let Some(inner) = inner {
                let held = self.held.entry(outer).or_default();
                if held.within.is_some() {
                    assert_eq!(held.within, Some(inner), "the inner circuit's wait has not returned");
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

    /// Removes the links that [`Waits::link_here`] made in the same context.
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

    /// Changes the entry of a circuit, and removes it when it is empty.
    fn change(&mut self, circuit: usize, change: impl FnOnce(&mut Held)) {
        let held = self.held.get_mut(&circuit).expect("a circuit is known as long as it waits");
        change(held);
        if held.within.is_none() && held.waits.is_empty() {
            self.held.remove(&circuit);
        }
    }

    /// Returns whether the awaited circuit waits for this thread, directly or not. This thread must
    /// be linked.
    fn closes_circle(&self, awaited: &Machine) -> bool {
        innermost_here().is_some_and(|own| self.is_kept_by(address(awaited), own))
    }

    /// Returns whether the circuit is blocked until the other one continues.
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

/// A recorded wait. Dropped in the context in which it began.
pub(super) struct Waiting<'a> {
    awaited: &'a Machine,
    number: u64,
    links: usize,
}

impl<'a> Waiting<'a> {
    /// Records that the caller waits. None if it waits from outside all circuits; an error if the
    /// wait would never end.
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

    /// Returns whether other waits have closed a circle since this one began.
    pub(super) fn is_in_circle(&self) -> bool {
        lock(&WAITS).closes_circle(self.awaited)
    }

    /// Refuses a wait that would never end, before anything is done.
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

/// Removes the wait from the list, also when it ends by a panic.
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

    /// A unit test because the list is private.
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
        let running = waits.machine().enter().expect("no other thread is inside");
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
        let running = waits.machine().enter().expect("no other thread is inside");
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
    fn a_thread_waiting_for_room_resumes_when_the_circuit_closes() {
        let builder = || Circuit::builder().run_by(RunBy::Owner);
        let (waits, awaited) = (
            builder().build().expect("valid"),
            builder().bounded(1, Overflow::Reject).build().expect("valid"),
        );
        awaited.discard().expect("open").emit(1);
        let running = waits.machine().enter().expect("no other thread is inside");
        let waiting = Waiting::begin(awaited.machine(), Until::Room).expect("no circle");
        // The awaited circuit's context is only a place to ask from, so one thread serves for both.
        let asks_from_awaited =
            || lock(&WAITS).is_kept_by(address(waits.machine()), address(awaited.machine()));
        assert!(asks_from_awaited());
        awaited.close();
        assert!(!asks_from_awaited());
        drop((waiting, running));
    }
}
