//! Frees large values on a background thread, so that the command that removes one does not hold
//! its shard and thread for a million deallocations.

use std::any::Any;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};

/// Values handed to the background thread.
static GIVEN: AtomicU64 = AtomicU64::new(0);
/// Values that it has freed.
static FREED: AtomicU64 = AtomicU64::new(0);

/// Garbage, with the number of its values.
type Garbage = (u64, Box<dyn Any + Send>);

/// Totals of the process's background thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reclaimed {
    /// Values that were freed.
    pub freed: u64,
    /// Values that wait to be freed.
    pub pending: u64,
}

/// Frees `garbage`, which contains `values` values, on the process's background thread. The garbage
/// was allocated already, so the queue adds no memory. If no thread can be started, the caller
/// frees it.
pub(crate) fn reclaim(garbage: impl Send + 'static, values: u64) {
    /// One queue for all engines of a process; it holds no engine's state.
    static QUEUE: OnceLock<Option<Sender<Garbage>>> = OnceLock::new();
    let queue = QUEUE.get_or_init(|| {
        let (sender, receiver) = channel::<Garbage>();
        let work = move || {
            for (values, garbage) in receiver {
                drop(garbage);
                FREED.fetch_add(values, Relaxed);
            }
        };
        std::thread::Builder::new().name("tidemark-free".into()).spawn(work).ok().map(|_| sender)
    });
    if let Some(queue) = queue {
        GIVEN.fetch_add(values, Relaxed);
        // The thread normally lives as long as the process. If it has ended, the garbage is
        // returned and freed here.
        if queue.send((values, Box::new(garbage))).is_err() {
            FREED.fetch_add(values, Relaxed);
        }
    }
}

/// Totals so far, over all engines of the process.
pub(crate) fn reclaimed() -> Reclaimed {
    let freed = FREED.load(Relaxed);
    Reclaimed { freed, pending: GIVEN.load(Relaxed).saturating_sub(freed) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;
    use std::time::{Duration, Instant};

    #[test]
    fn garbage_is_freed_by_another_thread() {
        struct Garbage(std::sync::mpsc::SyncSender<std::thread::ThreadId>);
        impl Drop for Garbage {
            fn drop(&mut self) {
                self.0.send(std::thread::current().id()).expect("the test waits");
            }
        }
        let (sender, freed_by) = sync_channel(2);
        let before = reclaimed();
        reclaim(Garbage(sender.clone()), 2);
        reclaim(Garbage(sender), 3);
        for _ in 0..2 {
            assert_ne!(freed_by.recv().expect("it is freed"), std::thread::current().id());
        }
        // Other tests of the process may free values too.
        let deadline = Instant::now() + Duration::from_mins(1);
        while reclaimed().freed < before.freed + 5 {
            assert!(Instant::now() < deadline, "{:?} after {before:?}", reclaimed());
            std::thread::yield_now();
        }
    }
}
