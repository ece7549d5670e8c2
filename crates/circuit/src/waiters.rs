//! Who waits for a circuit to get as far as a ticket.

use std::task::Waker;

use crate::barrier;
use crate::context::call_outside;
use crate::sync::thread::{self, Thread};
use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering, fence, hint, lock};

/// How often a waiting thread looks before it parks: some ten microseconds, about what parking and being woken costs.
const LOOKS: u32 = if cfg!(loom) { 0 } else { 400 };

/// Threads and tasks that wait, each for a ticket.
pub(crate) struct Waiters {
    /// The lowest ticket that anybody waits for; `u64::MAX` if nobody waits.
    lowest: AtomicU64,
    /// How many threads wait, also before they have registered.
    watching: AtomicU32,
    list: Mutex<List>,
}

struct List {
    entries: Vec<Entry>,
    next_id: u64,
}

struct Entry {
    id: u64,
    target: u64,
    who: Who,
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
        let list = List { entries: Vec::new(), next_id: 0 };
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
        let mut id = None;
        let mut has_barrier = false;
        loop {
            // Registered first, then looked: in one order with `wake`, which looks after something was done.
            let mine = *id.get_or_insert_with(|| self.add(target, Who::Thread(thread::current())));
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
                (id, has_barrier) = (None, false);
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

    /// Has the task woken by a call of [`Waiters::wake`] with `target` or more, instead of the entry that it had before.
    pub(crate) fn wake_later(&self, target: u64, waker: &Waker, before: Option<u64>) -> u64 {
        if let Some(before) = before {
            self.remove(before);
        }
        let id = self.add(target, Who::Task(waker.clone()));
        // A task cannot look again on its own, as a thread does.
        barrier::heavy();
        id
    }

    fn add(&self, target: u64, who: Who) -> u64 {
        let mut list = lock(&self.list);
        let id = list.next_id;
        list.next_id += 1;
        list.entries.push(Entry { id, target, who });
        self.lowest.fetch_min(target, Ordering::SeqCst);
        // Whoever registers looks next, and what it looks at may be an ordinary load.
        fence(Ordering::SeqCst);
        id
    }

    pub(crate) fn remove(&self, id: u64) {
        let mut list = lock(&self.list);
        let index = list.entries.iter().position(|entry| entry.id == id);
        let removed = index.map(|index| list.entries.swap_remove(index));
        self.note_lowest(&list);
        drop(list);
        // A waker may be the last to know a task, which may wait for this circuit as well.
        drop(removed);
    }

    fn is_waiting(&self, id: u64) -> bool {
        let list = lock(&self.list);
        list.entries.iter().any(|entry| entry.id == id)
    }

    fn note_lowest(&self, list: &List) {
        let lowest = list.entries.iter().map(|entry| entry.target).min();
        self.lowest.store(lowest.unwrap_or(u64::MAX), Ordering::SeqCst);
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
        let mut woken = list.entries.extract_if(.., |entry| entry.target <= done);
        // Most often there is one, which needs no list.
        let (first, others) = (woken.next(), woken.collect::<Vec<_>>());
        self.note_lowest(&list);
        drop(list);
        for entry in first.into_iter().chain(others) {
            match entry.who {
                Who::Thread(thread) => thread.unpark(),
                // Code of others, which is not the circuit's.
                Who::Task(waker) => call_outside(|| waker.wake()),
            }
        }
    }
}
