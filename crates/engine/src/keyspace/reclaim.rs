//! Frees large values on a thread of its own, so that the command that removes one does not keep its shard and its thread
//! for as long as a million elements take.

use std::any::Any;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

/// Frees something later, on the process's thread for that. What waits to be freed was all there before, so memory never
/// grows by it. Where no thread can be had, the caller frees it.
pub(crate) fn reclaim(garbage: impl Send + 'static) {
    /// One for all engines of a process: it has nothing of any of them.
    static QUEUE: OnceLock<Option<Sender<Box<dyn Any + Send>>>> = OnceLock::new();
    let queue = QUEUE.get_or_init(|| {
        let (sender, receiver) = channel();
        let work = move || receiver.into_iter().for_each(drop);
        std::thread::Builder::new().name("tidemark-free".into()).spawn(work).ok().map(|_| sender)
    });
    if let Some(queue) = queue {
        // The thread ends with the process only; if it has not begun, the garbage comes back and is freed here.
        drop(queue.send(Box::new(garbage)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn garbage_is_freed_by_another_thread() {
        struct Garbage(std::sync::mpsc::SyncSender<std::thread::ThreadId>);
        impl Drop for Garbage {
            fn drop(&mut self) {
                self.0.send(std::thread::current().id()).expect("the test waits");
            }
        }
        let (sender, freed_by) = sync_channel(2);
        reclaim(Garbage(sender.clone()));
        reclaim(Garbage(sender));
        for _ in 0..2 {
            assert_ne!(freed_by.recv().expect("it is freed"), std::thread::current().id());
        }
    }
}
