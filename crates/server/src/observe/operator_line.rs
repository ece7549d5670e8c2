//! Lines on standard error for the operator; those about what clients cause are rate-limited.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
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

/// Lines of many kinds, each of which may come again and again: it is written when it comes first, and then ever
/// more rarely, while it goes on.
#[derive(Debug)]
pub(crate) struct RepeatedLines {
    clock: Clock,
    kinds: HashMap<String, Repetition>,
}

/// A line that was written.
#[derive(Debug)]
struct Repetition {
    /// When it came last.
    came: Instant,
    /// When it may be written next.
    next: Instant,
    /// Time between the last line and the next.
    pause: Duration,
    /// How often it was left out since.
    left_out: u64,
}

impl RepeatedLines {
    /// Shortest and longest time between two lines of a kind.
    const PAUSE_MIN: Duration = Duration::from_secs(10);
    const PAUSE_MAX: Duration = Duration::from_secs(640);
    /// Time without a line of a kind after which it counts as new.
    const FORGOTTEN: Duration = Duration::from_mins(2);
    /// Most kinds that are known; of more, the one that came longest ago is forgotten.
    const KINDS_MAX: usize = 64;

    /// Creates a list without lines.
    pub(crate) fn new(clock: &Clock) -> RepeatedLines {
        RepeatedLines { clock: clock.clone(), kinds: HashMap::new() }
    }

    /// Writes a line of the kind `kind`, with the number of those that were left out, or leaves it out.
    pub(crate) fn write(&mut self, kind: &str, line: &str) {
        if let Some(left_out) = self.turn(kind) {
            match left_out {
                0 => say(line),
                count => say(&format!("{line} ({count} like it since the last line)")),
            }
        }
    }

    /// Number of lines left out before this one; `None` if this one is left out too.
    fn turn(&mut self, kind: &str) -> Option<u64> {
        let now = self.clock.now();
        self.kinds.retain(|_, known| now.saturating_duration_since(known.came) < Self::FORGOTTEN);
        if let Some(known) = self.kinds.get_mut(kind) {
            known.came = now;
            if now < known.next {
                known.left_out += 1;
                return None;
            }
            known.pause = (known.pause * 4).min(Self::PAUSE_MAX);
            known.next = now + known.pause;
            return Some(std::mem::take(&mut known.left_out));
        }
        if self.kinds.len() >= Self::KINDS_MAX {
            let oldest = self.kinds.iter().min_by_key(|(_, known)| known.came).map(|(kind, _)| kind.clone());
            oldest.and_then(|oldest| self.kinds.remove(&oldest));
        }
        let pause = Self::PAUSE_MIN;
        let first = Repetition { came: now, next: now + pause, pause, left_out: 0 };
        self.kinds.insert(kind.to_owned(), first);
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_log::ManualClock;

    #[test]
    fn a_line_that_goes_on_and_on_is_written_ever_more_rarely() {
        let manual = ManualClock::new();
        let mut lines = RepeatedLines::new(&Clock::from(&manual));
        let mut written = Vec::new();
        // Twice a second, for half an hour.
        for half in 0..3600 {
            if let Some(left_out) = lines.turn("refused") {
                written.push((half / 2, left_out));
            }
            manual.advance(Duration::from_millis(500));
        }
        assert_eq!(written, [(0, 0), (10, 19), (50, 79), (210, 319), (850, 1279), (1490, 1279)]);
        assert_eq!(lines.turn("another"), Some(0), "each kind has its own time");
        manual.advance(RepeatedLines::FORGOTTEN);
        assert_eq!(lines.turn("refused"), Some(0), "it had ended");
    }

    #[test]
    fn no_more_kinds_of_lines_are_known_than_the_limit() {
        let mut lines = RepeatedLines::new(&Clock::System);
        for kind in 0..3 * RepeatedLines::KINDS_MAX {
            assert_eq!(lines.turn(&kind.to_string()), Some(0));
            assert!(lines.kinds.len() <= RepeatedLines::KINDS_MAX);
        }
    }

    #[test]
    fn lines_are_rare_and_say_how_many_were_left_out() {
        let line = OperatorLine::every(10, &Clock::System);
        assert_eq!(line.turn(0), Some(0));
        assert_eq!((line.turn(0), line.turn(9)), (None, None));
        assert_eq!(line.turn(10), Some(2));
        assert_eq!((line.turn(11), line.turn(30)), (None, Some(1)));
    }
}
