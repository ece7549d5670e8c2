//! Limit of the time that one connection occupies its worker.

use std::time::{Duration, Instant};
use tidemark_log::Clock;

/// Time after which a connection's pipeline yields to other connections, within at most
/// [`BETWEEN_LOOKS`] more commands.
pub(crate) const TURN: Duration = Duration::from_millis(1);

/// Commands between two reads of the clock. The clock is read after each slow command; for quick
/// ones that would cost a twentieth.
const BETWEEN_LOOKS: u32 = 16;

/// Measures the commands that a connection runs in one turn. A connection that sends one command at
/// a time never reads the clock.
pub(crate) struct TimeSlice {
    turn: Duration,
    began: Option<Instant>,
    run: u32,
    next_look: u32,
}

impl TimeSlice {
    /// Creates a slice that begins with the next command.
    pub(crate) fn new(turn: Duration) -> TimeSlice {
        TimeSlice { turn, began: None, run: 0, next_look: 2 }
    }

    /// Notes that a command has run. Returns whether the slice is over.
    pub(crate) fn is_over(&mut self, clock: &Clock) -> bool {
        self.run += 1;
        if self.run < self.next_look {
            return false;
        }
        let now = clock.now();
        let Some(began) = self.began else {
            (self.began, self.next_look) = (Some(now), self.run + 1);
            return false;
        };
        let taken = now.saturating_duration_since(began);
        // The first two commands ran before the clock was read.
        let each = taken / (self.run - 2).max(1);
        let is_quick = each * (4 * BETWEEN_LOOKS) < self.turn;
        self.next_look = self.run + if is_quick { BETWEEN_LOOKS } else { 1 };
        taken >= self.turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_without_time_is_over_at_the_third_command() {
        let mut time_slice = TimeSlice::new(Duration::ZERO);
        assert_eq!(
            [
                time_slice.is_over(&Clock::System),
                time_slice.is_over(&Clock::System),
                time_slice.is_over(&Clock::System)
            ],
            [false, false, true]
        );
    }

    #[test]
    fn quick_commands_read_the_clock_rarely() {
        let mut time_slice = TimeSlice::new(Duration::from_hours(1));
        let mut looks = 0;
        for _ in 0..1600 {
            let before = time_slice.next_look;
            assert!(!time_slice.is_over(&Clock::System));
            looks += u32::from(time_slice.next_look != before);
        }
        assert!((100..=102).contains(&looks), "{looks}");
    }
}
