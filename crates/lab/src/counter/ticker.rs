//! A thread that repeats an action.

use anyhow::anyhow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

/// Repeats an action at an interval until it is stopped or dropped.
pub(super) struct Ticker {
    is_over: Arc<AtomicBool>,
    thread: Thread,
    handle: Mutex<Option<JoinHandle<()>>>,
}

impl Ticker {
    /// Starts the thread; the first action is one interval from now.
    pub(super) fn start(every: Duration, mut act: impl FnMut() + Send + 'static) -> anyhow::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let handle = {
            let is_over = Arc::clone(&is_over);
            std::thread::Builder::new().spawn(move || {
                loop {
                    std::thread::park_timeout(every);
                    if is_over.load(Relaxed) {
                        return;
                    }
                    act();
                }
            })?
        };
        let thread = handle.thread().clone();
        Ok(Ticker { is_over, thread, handle: Mutex::new(Some(handle)) })
    }

    /// Stops and waits for the last action to end.
    pub(super) fn stop(&self) -> anyhow::Result<()> {
        self.is_over.store(true, Relaxed);
        self.thread.unpark();
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner).take();
        handle
            .map_or(Ok(()), JoinHandle::join)
            .map_err(|_| anyhow!("a thread in the background has panicked"))
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        // A caller interested in a panic has called `stop`.
        let _ = self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::Ticker;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn it_does_not_wait_for_its_time_in_order_to_end() {
        let (acted, acts) = mpsc::channel();
        let never = Duration::from_hours(24);
        let ticker = Ticker::start(never, move || acted.send(()).unwrap()).unwrap();
        ticker.stop().unwrap();
        // The sender was dropped with the thread, and the channel is empty.
        assert!(acts.recv().is_err());
    }

    #[test]
    fn a_ticker_acts_and_reports_a_panic() {
        let (acted, acts) = mpsc::channel();
        let ticker = Ticker::start(Duration::from_micros(1), move || acted.send(()).unwrap()).unwrap();
        (0..3).for_each(|_| acts.recv().unwrap());
        // Without a receiver, the next action panics.
        drop(acts);
        while ticker.handle.lock().unwrap().as_ref().is_some_and(|handle| !handle.is_finished()) {
            std::thread::yield_now();
        }
        assert!(ticker.stop().is_err());
    }
}
