//! Who waits for a circuit to get as far as a ticket.

use std::collections::BTreeMap;
use std::iter;
use std::task::Waker;
use tidemark_barrier as barrier;

use crate::execution::context::call_outside;
use crate::sync::thread::{self, Thread};
use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering, fence, hint, lock};

/// How often a waiting thread looks before it parks: some ten microseconds, about what parking and being woken costs.
const LOOKS: u32 = if cfg!(loom) { 0 } else { 400 };

/// Threads and tasks that wait, each for a ticket. What is looked at for each entry comes first, and the list, which seldom is, last.
#[repr(C)]
pub(crate) struct Waiters {
    /// The lowest ticket that anybody waits for; `u64::MAX` if nobody waits.
    lowest: AtomicU64,
    /// How many threads wait, also before they have registered.
    watching: AtomicU32,
    list: Mutex<List>,
}

struct List {
    entries: BTreeMap<Place, Who>,
    next_number: u64,
}

/// Where somebody is in the list: by the ticket that is waited for, then by who came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    target: u64,
    number: u64,
}

enum Who {
    Thread(Thread),
    Task(Waker),
}

/// Parks for so long at most that who did so in vain may as well pay for a barrier that interrupts all processors. Most who wait
/// are woken before.
#[cfg(not(loom))]
fn doze() {
    thread::park_timeout(std::time::Duration::from_millis(1));
}

#[cfg(loom)]
fn doze() {}

impl Waiters {
    pub(crate) fn new() -> Self {
        let list = List { entries: BTreeMap::new(), next_number: 0 };
        Self { lowest: AtomicU64::new(u64::MAX), watching: AtomicU32::new(0), list: Mutex::new(list) }
    }

    /// Blocks until `is_done`, which becomes true no later than a call of [`Waiters::wake`] with `target` or more. `is_seen` is
    /// what may be looked at often, and may be late to tell.
    pub(crate) fn wait(&self, target: u64, is_seen: impl Fn() -> bool, is_done: impl Fn() -> bool) {
        self.watching.fetch_add(1, Ordering::Relaxed);
        self.wait_watching(target, is_seen, is_done);
        self.watching.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether anybody waits. May be late to tell.
    pub(crate) fn is_watched(&self) -> bool {
        self.watching.load(Ordering::Relaxed) > 0 || self.lowest.load(Ordering::Relaxed) != u64::MAX
    }

    /// Whether somebody waits for a ticket up to this one, who has registered. May be late to tell.
    #[inline]
    pub(crate) fn is_due(&self, ticket: u64) -> bool {
        self.lowest.load(Ordering::Relaxed) <= ticket
    }

    fn wait_watching(&self, target: u64, is_seen: impl Fn() -> bool, is_done: impl Fn() -> bool) {
        for _ in 0..LOOKS {
            if is_seen() {
                return;
            }
            hint::spin_loop();
        }
        let mut place = None;
        let mut has_barrier = false;
        loop {
            // Registered first, then looked: in one order with `wake`, which looks after something was done.
            let mine = *place.get_or_insert_with(|| self.add(target, Who::Thread(thread::current())));
            if is_done() {
                self.remove(mine);
                return;
            }
            if has_barrier {
                thread::park();
            } else {
                doze();
            }
            if !self.is_waiting(mine) {
                (place, has_barrier) = (None, false);
                if is_done() {
                    return;
                }
            } else if !has_barrier {
                // Only now it is in one order with what a circuit's context says with an ordinary store before it looks here.
                barrier::heavy();
                has_barrier = true;
            }
        }
    }

    /// Has the task woken by a call of [`Waiters::wake`] with `target` or more, instead of where it was in the list before.
    pub(crate) fn wake_later(&self, target: u64, waker: &Waker, before: Option<Place>) -> Place {
        if let Some(before) = before {
            self.remove(before);
        }
        let place = self.add(target, Who::Task(waker.clone()));
        // A task cannot look again on its own, as a thread does.
        barrier::heavy();
        place
    }

    fn add(&self, target: u64, who: Who) -> Place {
        let mut list = lock(&self.list);
        let place = Place { target, number: list.next_number };
        list.next_number += 1;
        list.entries.insert(place, who);
        self.lowest.fetch_min(target, Ordering::SeqCst);
        // Whoever registers looks next, and what it looks at may be an ordinary load.
        fence(Ordering::SeqCst);
        place
    }

    /// Takes somebody out of the list, who may have been woken and be in it no more.
    pub(crate) fn remove(&self, place: Place) {
        let mut list = lock(&self.list);
        let removed = list.entries.remove(&place);
        self.note_lowest(&mut list);
        drop(list);
        // A waker may be the last to know a task, which may wait for this circuit as well.
        drop(removed);
    }

    fn is_waiting(&self, place: Place) -> bool {
        lock(&self.list).entries.contains_key(&place)
    }

    fn note_lowest(&self, list: &mut List) {
        if list.entries.is_empty() {
            // A map keeps the room that its last entry had, which is as much as an idle circuit.
            list.entries = BTreeMap::new();
        }
        let lowest = list.entries.first_key_value().map_or(u64::MAX, |(place, _)| place.target);
        self.lowest.store(lowest, Ordering::SeqCst);
    }

    /// Wakes who waits for a ticket up to `done`. What they look at was changed before, with sequential consistency or ahead of
    /// a light barrier.
    #[inline]
    pub(crate) fn wake(&self, done: u64) {
        let lowest = self.lowest.load(Ordering::SeqCst);
        if lowest <= done && lowest != u64::MAX {
            self.wake_registered(done);
        }
    }

    #[cold]
    fn wake_registered(&self, done: u64) {
        let mut list = lock(&self.list);
        // Most often there is one, which needs no list.
        let (first, mut others) = (list.pop_due(done), Vec::new());
        others.extend(iter::from_fn(|| list.pop_due(done)));
        self.note_lowest(&mut list);
        drop(list);
        // Threads first: what a waker does may have to wait for one of them, and nobody else will wake it any more.
        let unpark = |who| match who {
            Who::Thread(thread) => {
                thread.unpark();
                None
            }
            Who::Task(waker) => Some(waker),
        };
        let first = first.and_then(unpark);
        let others: Vec<Waker> = others.into_iter().filter_map(unpark).collect();
        // Code of others, which is not the circuit's.
        first.into_iter().chain(others).for_each(|waker| call_outside(|| waker.wake()));
    }
}

impl List {
    /// Takes out the first who waits for a ticket up to this one.
    fn pop_due(&mut self, done: u64) -> Option<Who> {
        let first = self.entries.first_entry()?;
        (first.key().target <= done).then(|| first.remove())
    }
}
