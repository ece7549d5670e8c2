//! A limit for what waits: a wake-up that got lost is a failure with a name, not a run that never ends.

use std::io::{self, Write};
use std::panic::Location;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use std::{process, thread};

/// What no test takes, not even on a machine that has other things to do.
const LIMIT: Duration = Duration::from_mins(3);

/// Ends the process, and says which test it was, unless this is dropped in time.
pub(crate) struct Limit {
    _watched: Sender<()>,
}

impl Limit {
    /// Begins to count for the test that calls this.
    #[track_caller]
    pub(crate) fn new() -> Self {
        let (watched, watcher) = mpsc::channel::<()>();
        let (place, test) = (Location::caller(), thread::current());
        thread::spawn(move || {
            if watcher.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
                let test = test.name().unwrap_or("a test");
                // Past the capture of tests' output, which nobody would ever see.
                let text = format!("\ntest {test} hangs: the limit of {place} is over after {LIMIT:?}\n");
                let _ = io::stderr().write_all(text.as_bytes());
                process::exit(101);
            }
        });
        Self { _watched: watched }
    }
}

/// Waits until it is so; a test for which that takes too long has failed.
#[track_caller]
pub(crate) fn wait_until(mut is_so: impl FnMut() -> bool, what: &str) {
    let end = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < end, "waited in vain until {what}");
        thread::yield_now();
    }
}
