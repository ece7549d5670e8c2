//! Threads that run the workers: one per worker, and a stand-in that takes over when a thread
//! blocks on the disk.
//!
//! A worker's thread writes and syncs its turn's changes itself where that is quick, because a
//! handover to another thread takes longer. Meanwhile the worker is *lent*. If the disk hangs, the
//! stand-in takes the worker and continues its turns; the blocked thread becomes the stand-in when
//! it returns. One stand-in suffices, because only one thread at a time writes or syncs the log.
//!
//! ```text
//! thread 0:  turn ─ lend ─ fdatasync ……………………… returns, its worker is gone ─► stands in
//! stand-in:         dozing ─► ticking ─ takes worker 0 ─ turn ─ turn ─ …
//! ```

use crate::net::event_loop::EventLoop;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidemark_log::Clock;

/// Time on the disk after which the stand-in takes the worker: longer than a quick sync, shorter
/// than a noticeable delay.
const PATIENCE: Duration = Duration::from_millis(10);

/// A worker whose thread is at the disk.
struct Lent {
    worker: Box<EventLoop>,
    since: Instant,
}

/// State shared by the threads of all workers and the stand-in.
pub(crate) struct EventLoopThreads {
    clock: Clock,
    /// One per worker.
    lent: Vec<Mutex<Option<Lent>>>,
    /// A worker was lent since the stand-in last looked.
    has_lent: AtomicBool,
    /// The stand-in sleeps until it is notified.
    is_dozing: AtomicBool,
    /// Workers that have not ended.
    left: AtomicUsize,
    stand_in: Mutex<()>,
    woken: Condvar,
}

impl EventLoopThreads {
    pub(crate) fn new(workers: usize, clock: &Clock) -> Arc<EventLoopThreads> {
        Arc::new(EventLoopThreads {
            clock: clock.clone(),
            lent: (0..workers).map(|_| Mutex::default()).collect(),
            has_lent: AtomicBool::new(false),
            is_dozing: AtomicBool::new(false),
            left: AtomicUsize::new(workers),
            stand_in: Mutex::default(),
            woken: Condvar::new(),
        })
    }

    /// Runs a worker until it ends. Without a worker, stands in until all have ended.
    pub(crate) fn run(&self, mut worker: Option<Box<EventLoop>>) -> io::Result<()> {
        loop {
            worker = match worker {
                None => match self.await_absence() {
                    None => return Ok(()),
                    taken => taken,
                },
                Some(worker) => {
                    let leaving = Leaving(self);
                    let stayed = self.run_while_it_stays(worker);
                    if !matches!(stayed, Ok(Stayed::No)) {
                        return stayed.map(drop);
                    }
                    std::mem::forget(leaving);
                    None
                }
            }
        }
    }

    /// Runs a worker until it ends or is taken over.
    fn run_while_it_stays(&self, mut worker: Box<EventLoop>) -> io::Result<Stayed> {
        loop {
            if let Some(task) = worker.begin_turn()? {
                let (index, shared) = (worker.index(), worker.shared());
                let log = shared.engine.log();
                self.lend(index, worker);
                task.run(log);
                match self.take_back(index) {
                    None => return Ok(Stayed::No),
                    Some(own) => worker = own,
                }
            }
            worker.end_turn();
            if worker.is_done() {
                return Ok(Stayed::Yes);
            }
        }
    }

    fn lend(&self, index: usize, worker: Box<EventLoop>) {
        *lock(&self.lent[index]) = Some(Lent { worker, since: self.clock.now() });
        self.has_lent.store(true, Ordering::SeqCst);
        if self.is_dozing.swap(false, Ordering::SeqCst) {
            drop(lock(&self.stand_in));
            self.woken.notify_all();
        }
    }

    /// Takes back the worker, unless it was taken over.
    fn take_back(&self, index: usize) -> Option<Box<EventLoop>> {
        lock(&self.lent[index]).take().map(|lent| lent.worker)
    }

    /// Waits until a thread is at the disk for too long, and takes its worker; `None` when all have
    /// ended.
    fn await_absence(&self) -> Option<Box<EventLoop>> {
        let mut resting = lock(&self.stand_in);
        while self.left.load(Ordering::SeqCst) > 0 {
            for lent in &self.lent {
                let late = lock(lent).take_if(|lent| self.clock.elapsed(lent.since) >= PATIENCE);
                if let Some(late) = late {
                    return Some(late.worker);
                }
            }
            // Store the flag, then check for lent workers; `lend` stores the worker, then checks
            // the flag. So one side sees the other.
            self.is_dozing.store(true, Ordering::SeqCst);
            let is_busy = self.has_lent.swap(false, Ordering::SeqCst)
                || self.lent.iter().any(|lent| lock(lent).is_some());
            resting = if is_busy {
                self.is_dozing.store(false, Ordering::SeqCst);
                self.woken.wait_timeout(resting, PATIENCE).unwrap_or_else(PoisonError::into_inner).0
            } else {
                self.woken.wait(resting).unwrap_or_else(PoisonError::into_inner)
            };
        }
        None
    }
}

/// Whether the thread still had the worker at its end.
enum Stayed {
    Yes,
    No,
}

/// Counts off a worker that ends, also by a panic.
struct Leaving<'a>(&'a EventLoopThreads);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.left.fetch_sub(1, Ordering::SeqCst);
        drop(lock(&self.0.stand_in));
        self.0.woken.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
