//! A time limit for waits: a lost wake-up is a failure with a name, not a run that never ends.

use std::io::{self, Write};
use std::panic::Location;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use std::{process, thread};

/// Longer than any test takes, even on a busy machine.
const LIMIT: Duration = Duration::from_mins(3);

/// Ends the process with the name of the test, unless it is dropped in time.
pub(crate) struct Limit {
    _watched: Sender<()>,
}

impl Limit {
    /// Starts the limit for the calling test.
    #[track_caller]
    pub(crate) fn new() -> Self {
        let (watched, watcher) = mpsc::channel::<()>();
        let (place, test) = (Location::caller(), thread::current());
        thread::spawn(move || {
            if watcher.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
                let test = test.name().unwrap_or("a test");
                // Written past the capture of tests' output, which would hide it.
                let text = format!("\ntest {test} hangs: the limit of {place} is over after {LIMIT:?}\n");
                let _ = io::stderr().write_all(text.as_bytes());
                process::exit(101);
            }
        });
        Self { _watched: watched }
    }
}

/// Waits until the condition holds; a test that waits for too long fails.
#[track_caller]
pub(crate) fn wait_until(mut is_so: impl FnMut() -> bool, what: &str) {
    let end = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < end, "waited in vain until {what}");
        thread::yield_now();
    }
}
