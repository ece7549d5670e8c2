//! Lines on standard error for the operator; those about what clients cause are rate-limited.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tidemark_log::Clock;

/// Writes a line to the operator.
pub(crate) fn say(line: &str) {
    // Standard error may be closed.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A kind of line that is written at most once per interval.
#[derive(Debug)]
pub(crate) struct OperatorLine {
    clock: Clock,
    began: Instant,
    pause_s: u64,
    /// When the next line may be written, in seconds after `began`.
    next_s: AtomicU64,
    /// Lines suppressed since the last one.
    left_out: AtomicU64,
}

impl OperatorLine {
    /// Creates a line that is written at most once in `pause_s` seconds.
    pub(crate) fn every(pause_s: u64, clock: &Clock) -> OperatorLine {
        OperatorLine {
            clock: clock.clone(),
            began: clock.now(),
            pause_s,
            next_s: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
        }
    }

    /// Writes the line with the number of suppressed ones, or suppresses it.
    pub(crate) fn write(&self, line: impl FnOnce() -> String) {
        if let Some(left_out) = self.turn(self.clock.elapsed(self.began).as_secs()) {
            let more = match left_out {
                0 => String::new(),
                count => format!(" ({count} like it since the last line)"),
            };
            // Standard error may be closed.
            let _ = writeln!(std::io::stderr(), "{}{more}", line());
        }
    }

    /// Number of lines suppressed before this one; `None` if this one is suppressed too.
    fn turn(&self, now_s: u64) -> Option<u64> {
        let due = self.next_s.load(Ordering::Relaxed);
        let next = now_s + self.pause_s;
        let is_mine = due <= now_s
            && self.next_s.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_mine {
            return Some(self.left_out.swap(0, Ordering::Relaxed));
        }
        self.left_out.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_rare_and_say_how_many_were_left_out() {
        let line = OperatorLine::every(10, &Clock::System);
        assert_eq!(line.turn(0), Some(0));
        assert_eq!((line.turn(0), line.turn(9)), (None, None));
        assert_eq!(line.turn(10), Some(2));
        assert_eq!((line.turn(11), line.turn(30)), (None, Some(1)));
    }
}
