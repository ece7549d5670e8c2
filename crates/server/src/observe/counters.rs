//! Counters that cost the writer one addition; readers sum them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A number that one thread increases and all threads read.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds `count`. A plain load and store, because only one thread writes.
    #[inline]
    pub(crate) fn add(&self, count: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters of one worker. Aligned to avoid false sharing.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    pub(crate) commands: Counter,
    pub(crate) connections: Counter,
    pub(crate) refused_connections: Counter,
    pub(crate) received_bytes: Counter,
    pub(crate) sent_bytes: Counter,
    /// Clients disconnected because they did not read.
    pub(crate) slow_readers: Counter,
    /// Clients disconnected because all clients together used too much memory.
    pub(crate) evicted_clients: Counter,
    /// Clients disconnected for their input: protocol errors, overlong or unfinished requests.
    pub(crate) protocol_errors: Counter,
    /// Turns of the event loop.
    pub(crate) turns: Counter,
    /// Emissions of watched reads written to clients.
    pub(crate) emissions: Counter,
    /// Changes written to clients that follow the log.
    pub(crate) changes: Counter,
}

/// Sums over all workers.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Totals {
    pub(crate) commands: u64,
    pub(crate) connections: u64,
    pub(crate) refused_connections: u64,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) slow_readers: u64,
    pub(crate) evicted_clients: u64,
    pub(crate) protocol_errors: u64,
    pub(crate) turns: u64,
    pub(crate) emissions: u64,
    pub(crate) changes: u64,
}

impl Totals {
    /// Sums the workers' counters.
    pub(crate) fn of(workers: &[Counters]) -> Totals {
        workers.iter().fold(Totals::default(), |sum, counters| Totals {
            commands: sum.commands + counters.commands.get(),
            connections: sum.connections + counters.connections.get(),
            refused_connections: sum.refused_connections + counters.refused_connections.get(),
            received_bytes: sum.received_bytes + counters.received_bytes.get(),
            sent_bytes: sum.sent_bytes + counters.sent_bytes.get(),
            slow_readers: sum.slow_readers + counters.slow_readers.get(),
            evicted_clients: sum.evicted_clients + counters.evicted_clients.get(),
            protocol_errors: sum.protocol_errors + counters.protocol_errors.get(),
            turns: sum.turns + counters.turns.get(),
            emissions: sum.emissions + counters.emissions.get(),
            changes: sum.changes + counters.changes.get(),
        })
    }

    /// Difference from `earlier`.
    pub(crate) fn since(self, earlier: Totals) -> Totals {
        Totals {
            commands: self.commands.saturating_sub(earlier.commands),
            connections: self.connections.saturating_sub(earlier.connections),
            refused_connections: self.refused_connections.saturating_sub(earlier.refused_connections),
            received_bytes: self.received_bytes.saturating_sub(earlier.received_bytes),
            sent_bytes: self.sent_bytes.saturating_sub(earlier.sent_bytes),
            slow_readers: self.slow_readers.saturating_sub(earlier.slow_readers),
            evicted_clients: self.evicted_clients.saturating_sub(earlier.evicted_clients),
            protocol_errors: self.protocol_errors.saturating_sub(earlier.protocol_errors),
            turns: self.turns.saturating_sub(earlier.turns),
            emissions: self.emissions.saturating_sub(earlier.emissions),
            changes: self.changes.saturating_sub(earlier.changes),
        }
    }
}

/// Recent rates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rates {
    since: Instant,
    before: Totals,
    shown: PerSecond,
}

/// Commands and bytes per second.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct PerSecond {
    pub(crate) commands: f64,
    pub(crate) received_bytes: f64,
    pub(crate) sent_bytes: f64,
}

impl Rates {
    /// Shortest interval of an average.
    const SHORTEST: Duration = Duration::from_secs(1);

    pub(crate) fn new(now: Instant) -> Rates {
        Rates { since: now, before: Totals::default(), shown: PerSecond::default() }
    }

    /// Returns the averages since the last update. Within a second of it, returns its result.
    pub(crate) fn update(&mut self, now: Instant, totals: Totals) -> PerSecond {
        let elapsed = now.saturating_duration_since(self.since);
        if elapsed >= Self::SHORTEST {
            let (done, seconds) = (totals.since(self.before), elapsed.as_secs_f64());
            self.shown = PerSecond {
                commands: done.commands as f64 / seconds,
                received_bytes: done.received_bytes as f64 / seconds,
                sent_bytes: done.sent_bytes as f64 / seconds,
            };
            (self.since, self.before) = (now, totals);
        }
        self.shown
    }
}

/// Error replies by code.
#[derive(Debug, Default)]
pub(crate) struct ErrorCounts(Mutex<BTreeMap<String, u64>>);

impl ErrorCounts {
    /// Most codes counted separately. A safeguard: codes are words of this program.
    const CODES_LIMIT: usize = 128;

    /// Counts an error by the first word of its text.
    pub(crate) fn count(&self, text: &[u8]) {
        let end = text.iter().position(|byte| *byte == b' ' || *byte == b'\r').unwrap_or(text.len());
        let code = String::from_utf8_lossy(text.get(..end).unwrap_or_default());
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() < Self::CODES_LIMIT || counts.contains_key(&*code) {
            *counts.entry(code.into_owned()).or_default() += 1;
        }
    }

    /// Returns all codes with their counts.
    pub(crate) fn all(&self) -> BTreeMap<String, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Resets all counts.
    pub(crate) fn reset(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_averages_of_a_second_at_least() {
        let start = Instant::now();
        let mut rates = Rates::new(start);
        let totals = |commands| Totals { commands, ..Totals::default() };
        let mut at =
            |ms, commands| rates.update(start + Duration::from_millis(ms), totals(commands)).commands;
        let rates =
            [at(999, 50), at(2_000, 50), at(2_500, 90), at(4_000, 90)].map(|rate| rate.round() as u64);
        assert_eq!(rates, [0, 25, 25, 20]);
    }
}
