//! A worker's timers.
//!
//! A timer is never cancelled. A stale one, whose wait has ended or whose client has disconnected,
//! is dropped when it fires, or with all other stale timers once they are the majority.

use crate::net::connection_id::ConnectionId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// Number of stale timers that is tolerated.
const SPARE: usize = 64;

/// Timers ordered by time.
#[derive(Debug, Default)]
pub(crate) struct Timers(BinaryHeap<Reverse<(Instant, usize, u64)>>);

impl Timers {
    /// Sets a timer for a connection. `live` is the number of connections, each with one valid
    /// timer; `counts` returns whether a timer is that one. Memory is O(`live`), however often
    /// timers are set. O(log n), amortized.
    pub(crate) fn set(
        &mut self,
        at: Instant,
        connection_id: ConnectionId,
        live: usize,
        counts: impl Fn(Instant, ConnectionId) -> bool,
    ) {
        self.0.push(Reverse((at, connection_id.slot, connection_id.client)));
        if self.0.len() > 2 * live + SPARE {
            self.0.retain(|Reverse((at, slot, client))| {
                counts(*at, ConnectionId { slot: *slot, client: *client })
            });
            self.0.shrink_to(2 * live + SPARE);
        }
    }

    /// The earliest time.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((at, _, _))| *at)
    }

    /// Takes a timer that is due.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<ConnectionId> {
        if self.next().is_none_or(|at| at > now) {
            return None;
        }
        self.0.pop().map(|Reverse((_, slot, client))| ConnectionId { slot, client })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn timers_fire_in_order_and_not_before_their_time() {
        let (mut timers, start) = (Timers::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        for (slot, seconds) in [(0, 3), (1, 1), (2, 2)] {
            timers.set(after(seconds), ConnectionId { slot, client: 7 }, 3, |_, _| true);
        }
        assert_eq!(timers.next(), Some(after(1)));
        assert_eq!(timers.take_due(after(0)), None);
        let due: Vec<usize> = std::iter::from_fn(|| timers.take_due(after(2)))
            .map(|connection_id| connection_id.slot)
            .collect();
        assert_eq!(due, [1, 2]);
        assert_eq!(timers.next(), Some(after(3)));
    }

    #[test]
    fn waits_that_ended_long_before_their_time_leave_nothing() {
        let (mut timers, later) = (Timers::default(), Instant::now() + Duration::from_hours(10_000));
        // Clients with long waits come and go, one after another; one client stays.
        let staying = ConnectionId { slot: 9, client: 0 };
        timers.set(later, staying, 1, |_, _| true);
        for client in 1..10_000 {
            let waiting = ConnectionId { slot: 0, client };
            timers.set(later, waiting, 2, |_, connection_id| {
                connection_id == staying || connection_id == waiting
            });
            assert!(timers.0.len() <= 2 * 2 + SPARE);
        }
        let left: Vec<ConnectionId> = std::iter::from_fn(|| timers.take_due(later)).collect();
        assert!(left.contains(&staying) && left.contains(&ConnectionId { slot: 0, client: 9_999 }));
    }
}
