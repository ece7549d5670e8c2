//! A background thread for asynchronous clients, for blocking callers.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;

/// A thread with a runtime of its own. Calls may come from any thread, including one of another
/// runtime.
///
/// Connections are also served between calls: a client that does not answer pings is disconnected.
#[derive(Debug)]
pub(crate) struct Runner {
    handle: Handle,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

/// The deadline has passed.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {0:?}")]
pub(crate) struct Late(Duration);

impl Runner {
    pub(crate) fn start(name: &str) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let work = move || runtime.block_on(stopped.notified());
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
        Ok(Self { handle, stop, thread: Some(thread) })
    }

    /// Waits for `future` until `deadline`, and then drops it.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        deadline: Duration,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Late> {
        let (answer, answered) = sync_channel(1);
        self.handle.spawn(async move {
            // The receiver is still waiting, and the channel has room.
            let _ = answer.send(tokio::time::timeout(deadline, future).await);
        });
        match answered.recv() {
            Ok(Ok(answer)) => Ok(answer),
            // Also if the future has panicked, which means that no answer will come.
            Ok(Err(_)) | Err(_) => Err(Late(deadline)),
        }
    }

    /// Runs `future` in the background; it ends with this runner at the latest.
    #[cfg(feature = "nats")]
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(future);
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_from_within_a_runtime_is_answered() {
        let runner = Runner::start("test").expect("a thread");
        let outer = Builder::new_current_thread().build().expect("a runtime");
        assert_eq!(outer.block_on(async { runner.run(Duration::from_mins(1), async { 7 }).ok() }), Some(7));
    }

    #[test]
    fn what_does_not_come_is_given_up() {
        let runner = Runner::start("test").expect("a thread");
        assert!(runner.run(Duration::from_millis(1), std::future::pending::<()>()).is_err());
        assert!(runner.run(Duration::from_mins(1), async { panic!("as a client might") }).is_err());
        assert_eq!(runner.run(Duration::from_mins(1), async { 7 }).ok(), Some(7));
    }
}
