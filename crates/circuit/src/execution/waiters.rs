//! Threads and tasks that wait for a circuit to reach a ticket.

use std::collections::BTreeMap;
use std::iter;
use std::task::Waker;
use tidemark_barrier as barrier;

use crate::execution::context::call_outside;
use crate::sync::thread::{self, Thread};
use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering, fence, hint, lock};

/// How often a waiting thread polls before it parks: about ten microseconds, the cost of parking
/// and waking up.
const LOOKS: u32 = if cfg!(loom) { 0 } else { 400 };

/// Threads and tasks that each wait for a ticket. The words that are read for each entry come
/// first, the rarely used list last.
#[repr(C)]
pub(crate) struct Waiters {
    /// Lowest ticket that is waited for; `u64::MAX` if there are no waiters.
    lowest: AtomicU64,
    /// Number of threads that wait, including those that have not registered yet.
    watching: AtomicU32,
    list: Mutex<List>,
}

struct List {
    entries: BTreeMap<WaiterKey, WaiterHandle>,
    next_number: u64,
}

/// Position in the list: by ticket, then by order of registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WaiterKey {
    target: u64,
    number: u64,
}

enum WaiterHandle {
    Thread(Thread),
    Task(Waker),
}

/// Parks for a limited time. A thread that is not woken by then can afford a barrier that
/// interrupts all processors; most waiters are woken before.
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

    /// Blocks until `is_done`, which becomes true no later than a call of [`Waiters::wake`] with
    /// `target` or more. `is_seen` is the condition to poll: cheap to read often, and possibly
    /// stale.
    pub(crate) fn wait(&self, target: u64, is_seen: impl Fn() -> bool, is_done: impl Fn() -> bool) {
        self.watching.fetch_add(1, Ordering::Relaxed);
        self.wait_watching(target, is_seen, is_done);
        self.watching.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns whether there are waiters. May be stale.
    pub(crate) fn is_watched(&self) -> bool {
        self.watching.load(Ordering::Relaxed) > 0 || self.lowest.load(Ordering::Relaxed) != u64::MAX
    }

    /// Returns whether a registered waiter waits for a ticket up to this one. May be stale.
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
            // Registered first, then checked; `wake` checks for waiters after the work is done. So
            // one of them sees the other.
            let mine =
                *place.get_or_insert_with(|| self.add(target, WaiterHandle::Thread(thread::current())));
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
                // The context publishes its progress with a plain store before it checks for
                // waiters. The heavy barrier orders the registration with that; without it a
                // wake-up may be missed, which is why the first sleep is limited.
                barrier::heavy();
                has_barrier = true;
            }
        }
    }

    /// Registers the task to be woken by a call of [`Waiters::wake`] with `target` or more, in
    /// place of `before`.
    pub(crate) fn wake_later(&self, target: u64, waker: &Waker, before: Option<WaiterKey>) -> WaiterKey {
        if let Some(before) = before {
            self.remove(before);
        }
        let place = self.add(target, WaiterHandle::Task(waker.clone()));
        // A task cannot wake up to check again, as a thread does, so it needs the barrier
        // immediately.
        barrier::heavy();
        place
    }

    fn add(&self, target: u64, handle: WaiterHandle) -> WaiterKey {
        let mut list = lock(&self.list);
        let place = WaiterKey { target, number: list.next_number };
        list.next_number += 1;
        list.entries.insert(place, handle);
        self.lowest.fetch_min(target, Ordering::SeqCst);
        // The caller checks its condition next, perhaps with a plain load: the fence orders that
        // after the registration.
        fence(Ordering::SeqCst);
        place
    }

    /// Removes a waiter, which may have been woken and removed already.
    pub(crate) fn remove(&self, place: WaiterKey) {
        let mut list = lock(&self.list);
        let removed = list.entries.remove(&place);
        self.note_lowest(&mut list);
        drop(list);
        // Dropped without the lock: the waker may be the last reference to a task that waits for
        // this circuit as well.
        drop(removed);
    }

    fn is_waiting(&self, place: WaiterKey) -> bool {
        lock(&self.list).entries.contains_key(&place)
    }

    fn note_lowest(&self, list: &mut List) {
        if list.entries.is_empty() {
            // An empty map keeps the memory of its last entry, which is as much as an idle circuit
            // takes.
            list.entries = BTreeMap::new();
        }
        let lowest = list.entries.first_key_value().map_or(u64::MAX, |(place, _)| place.target);
        self.lowest.store(lowest, Ordering::SeqCst);
    }

    /// Wakes the waiters for tickets up to `done`. The caller has changed what they check before:
    /// with sequential consistency, or with a plain store followed by a light barrier.
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
        // Usually there is one, which needs no vector.
        let (first, mut others) = (list.pop_due(done), Vec::new());
        others.extend(iter::from_fn(|| list.pop_due(done)));
        self.note_lowest(&mut list);
        drop(list);
        // Threads first: a waker may wait for one of them, and they are no longer registered, so
        // nothing else would wake them.
        let unpark = |handle| match handle {
            WaiterHandle::Thread(thread) => {
                thread.unpark();
                None
            }
            WaiterHandle::Task(waker) => Some(waker),
        };
        let first = first.and_then(unpark);
        let others: Vec<Waker> = others.into_iter().filter_map(unpark).collect();
        // Wakers are code outside of the circuit.
        first.into_iter().chain(others).for_each(|waker| call_outside(|| waker.wake()));
    }
}

impl List {
    /// Removes the first waiter for a ticket up to this one.
    fn pop_due(&mut self, done: u64) -> Option<WaiterHandle> {
        let first = self.entries.first_entry()?;
        (first.key().target <= done).then(|| first.remove())
    }
}
