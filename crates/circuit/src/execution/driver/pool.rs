//! Circuits that wait for a thread of a pool, in order.

use std::collections::VecDeque;
use std::fmt;

use crate::execution::machine::HandedOver;
use crate::sync::{Arc, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, hint, lock, wait};

/// How often a thread polls for work before it sleeps: about ten microseconds.
pub(super) const LOOKS: u32 = if cfg!(loom) { 0 } else { 400 };

/// Threads that run circuits. Clones are the same pool; its threads end when no clone and no
/// circuit uses it any more.
///
/// ```
/// use tidemark_circuit::ThreadPool;
///
/// let pool = ThreadPool::new(2)?;
/// assert!(ThreadPool::new(0).is_err());
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
#[derive(Clone)]
pub struct ThreadPool(Arc<Owner>);

/// Shared by the users of a pool; its threads have only the inner part.
struct Owner(Arc<Shared>);

/// Work queue of a pool's threads.
pub(super) struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
    /// Number of queued circuits, for checks without the lock.
    queued: AtomicUsize,
}

impl Default for Shared {
    fn default() -> Self {
        Self { queue: Mutex::new(Queue::default()), work: Condvar::new(), queued: AtomicUsize::new(0) }
    }
}

#[derive(Default)]
struct Queue {
    /// Empty when dropped: a queued circuit keeps its pool, whose threads do not end while one is
    /// queued.
    circuits: VecDeque<HandedOver>,
    sleeping: usize,
    ended: bool,
}

impl ThreadPool {
    /// The pool whose threads take their work from `shared`.
    pub(super) fn of(shared: Arc<Shared>) -> Self {
        Self(Arc::new(Owner(shared)))
    }

    /// Schedules the circuit. It is queued at most once: only the thread that clears its idle flag
    /// calls this.
    pub(crate) fn schedule(&self, machine: HandedOver) {
        self.0.0.push(machine);
    }
}

/// Two are equal if they are the same pool.
impl PartialEq for ThreadPool {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ThreadPool {}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queued = self.0.0.queued.load(Ordering::Relaxed);
        f.debug_struct("ThreadPool").field("queued", &queued).finish_non_exhaustive()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.work.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    pub(super) fn push(&self, machine: HandedOver) {
        let mut queue = self.lock();
        queue.circuits.push_back(machine);
        self.queued.store(queue.circuits.len(), Ordering::Relaxed);
        let wake = queue.sleeping > 0;
        drop(queue);
        if wake {
            self.work.notify_one();
        }
    }

    /// Waits for the next circuit with work; none when the pool has ended.
    pub(super) fn next(&self) -> Option<HandedOver> {
        for _ in 0..LOOKS {
            if self.is_wanted() {
                break;
            }
            hint::spin_loop();
        }
        let mut queue = self.lock();
        loop {
            if let Some(machine) = queue.circuits.pop_front() {
                self.queued.store(queue.circuits.len(), Ordering::Relaxed);
                return Some(machine);
            }
            if queue.ended {
                return None;
            }
            queue.sleeping += 1;
            queue = wait(&self.work, queue);
            queue.sleeping -= 1;
        }
    }

    /// Returns whether another circuit waits for a thread.
    pub(super) fn is_wanted(&self) -> bool {
        self.queued.load(Ordering::Relaxed) > 0
    }
}
