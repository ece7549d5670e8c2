//! What a transfer waits for: time, and work on files.

use std::ops::Add;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};

/// The runtime that a transfer waits on: that of tokio, or that of a simulation.
pub(crate) trait Waiting: 'static {
    /// A time of its clock.
    type Instant: Copy + Ord + Add<Duration, Output = Self::Instant> + Send;

    /// Returns the time of now.
    fn now() -> Self::Instant;

    /// Waits until a time.
    fn sleep_until(time: Self::Instant) -> impl Future<Output = ()> + Send;

    /// Runs work that may wait for the disk; `None` if the runtime ends. Passes a panic on.
    fn run_blocking<R: Send + 'static>(
        work: impl FnOnce() -> R + Send + 'static,
    ) -> impl Future<Output = Option<R>> + Send;
}

/// The runtime of tokio.
pub(crate) struct OnTokio;

impl Waiting for OnTokio {
    type Instant = Instant;

    fn now() -> Instant {
        Instant::now()
    }

    fn sleep_until(time: Instant) -> impl Future<Output = ()> + Send {
        sleep_until(time)
    }

    async fn run_blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Option<R> {
        match spawn_blocking(work).await {
            Ok(result) => Some(result),
            Err(error) if error.is_cancelled() => None,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}
