//! How far a run is, on standard error.

use std::fmt::{self, Display, Formatter};
use std::io::{IsTerminal, Write, stderr};
use std::time::Duration;

/// The line of a terminal that says how far a run is, renewed in place; elsewhere a line for each phase.
///
/// Nothing here asks for memory: what a run allocates may be counted meanwhile.
#[derive(Debug)]
pub(crate) struct Progress {
    is_terminal: bool,
    phase: &'static str,
    is_shown: bool,
}

/// Behind it the terminal clears the line.
const CLEAR: &str = "\r\x1b[K";

impl Progress {
    pub(crate) fn new() -> Self {
        Progress { is_terminal: stderr().is_terminal(), phase: "", is_shown: false }
    }

    /// Says that a phase has begun, and what has been done of it; once if that is no terminal.
    pub(crate) fn show(&mut self, phase: &'static str, done: impl Display) {
        // A closed standard error must not end a measurement.
        if self.is_terminal {
            let _ = write!(stderr(), "{CLEAR}{phase} {done}");
            self.is_shown = true;
        } else if self.phase != phase {
            let _ = writeln!(stderr(), "{phase}");
        }
        self.phase = phase;
    }

    /// Makes room for other lines.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let _ = write!(stderr(), "{CLEAR}");
        }
    }
}

/// Clears the line, so that an error message starts on an empty one.
impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Seconds of a phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seconds {
    pub(crate) done: Duration,
    pub(crate) of: Duration,
}

impl Display for Seconds {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{:.0} of {:.0} s", self.done.as_secs_f64(), self.of.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::Seconds;
    use std::time::Duration;

    #[test]
    fn seconds_are_whole() {
        let seconds = Seconds { done: Duration::from_millis(1_999), of: Duration::from_secs(30) };
        assert_eq!(seconds.to_string(), "2 of 30 s");
    }
}
