//! A few threads for any number of circuits. A circuit without work costs them nothing.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::num::NonZeroUsize;
use std::sync::OnceLock;

use super::pace;
use crate::error::{ArgumentError, Error};
use crate::machine::{MachineRef, Progress};
use crate::sync::{Arc, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, hint, lock, thread, wait};

/// How many entries a circuit may handle before others get their turn.
const TURN: usize = 1024;

/// How often a thread looks for work before it sleeps: some ten microseconds.
const LOOKS: u32 = if cfg!(loom) { 0 } else { 400 };

/// Threads that run circuits. Clones are the same pool; its threads end when no clone and no circuit uses it any more.
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

/// What the users of a pool share; its threads have only what is inside.
struct Owner(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
    /// How many circuits are queued, for a look without the lock.
    queued: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    circuits: VecDeque<MachineRef>,
    sleeping: usize,
    ended: bool,
}

impl ThreadPool {
    /// A pool with this many threads. Fails if that is none, or the system gives no thread.
    pub fn new(threads: usize) -> Result<Self, Error> {
        if threads == 0 {
            let message = "the number of threads is 0; it must be at least 1";
            return Err(ArgumentError::new("new", message).into());
        }
        Ok(Self::start(threads)?)
    }

    fn start(threads: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue::default()),
            work: Condvar::new(),
            queued: AtomicUsize::new(0),
        });
        let pool = Self(Arc::new(Owner(Arc::clone(&shared))));
        for number in 0..threads {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name(format!("circuits-{number}")).spawn(move || shared.work())?;
        }
        Ok(pool)
    }

    /// The pool of circuits that were given no driver: a thread for each processor.
    pub(crate) fn global() -> io::Result<&'static Self> {
        static GLOBAL: OnceLock<ThreadPool> = OnceLock::new();
        if let Some(pool) = GLOBAL.get() {
            return Ok(pool);
        }
        let pool = Self::start(std::thread::available_parallelism().map_or(1, NonZeroUsize::get))?;
        Ok(GLOBAL.get_or_init(|| pool))
    }

    /// Has the circuit run. It is in the queue at most once: only who ends its idleness comes here.
    pub(crate) fn schedule(&self, machine: MachineRef) {
        self.0.0.push(machine);
    }
}

/// Whether both are the same pool.
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

    fn push(&self, machine: MachineRef) {
        let mut queue = self.lock();
        queue.circuits.push_back(machine);
        self.queued.store(queue.circuits.len(), Ordering::Relaxed);
        let wake = queue.sleeping > 0;
        drop(queue);
        if wake {
            self.work.notify_one();
        }
    }

    fn work(&self) {
        while let Some(machine) = self.next() {
            self.run(machine);
        }
    }

    /// The next circuit with work; none when the pool has ended.
    fn next(&self) -> Option<MachineRef> {
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

    fn run(&self, machine: MachineRef) {
        loop {
            let Some(mut running) = machine.enter() else {
                // A receptor that waits for it runs it in its place, for however long, or somebody closes it.
                if machine.put_off() {
                    return;
                }
                continue;
            };
            let before = running.handled();
            let progress = running.run_published(TURN);
            let batch = running.handled().wrapping_sub(before);
            drop(running);
            // A lane's producer may have more at any time: that is no reason to keep the others waiting.
            let is_wanted = self.is_wanted();
            let has_more = progress == Progress::More || is_wanted && machine.has_work();
            if has_more && is_wanted {
                return self.push(machine);
            }
            if has_more {
                continue;
            }
            if !is_wanted {
                pace::gather(&machine, batch);
            }
            if self.linger(&machine) {
                continue;
            }
            if let Some(mut running) = machine.enter() {
                running.shrink();
            }
            if machine.go_idle() {
                return;
            }
            // Perhaps somebody is between claiming a place and filling it, and the system has taken its processor away.
            if self.is_wanted() {
                return self.push(machine);
            }
            hint::spin_loop();
        }
    }

    /// Whether another circuit waits for a thread.
    fn is_wanted(&self) -> bool {
        self.queued.load(Ordering::Relaxed) > 0
    }

    /// Looks for a while whether more comes for this circuit: who has just waited for it often goes on, and then need not wake
    /// anybody.
    fn linger(&self, machine: &MachineRef) -> bool {
        for _ in 0..LOOKS {
            if machine.has_work() {
                return true;
            }
            if self.is_wanted() || machine.is_abandoned() {
                return false;
            }
            hint::spin_loop();
        }
        false
    }
}
