//! Options of counters by name.

use super::settings::Settings;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Function that returns the settings of a counter by its name.
pub type SettingsOf = Arc<dyn Fn(&[u8]) -> Settings + Send + Sync>;

/// Limits and times of counters by name.
#[derive(Clone)]
pub struct Options {
    /// Name under which commits are made. One process at a time may write under a name; the last
    /// one to open it owns it. `counters` by default. Give each process of a fleet a name that it
    /// keeps across restarts.
    pub writer: String,
    /// Settings of a counter, called with its name whenever it is loaded: at its first use, and at
    /// the next use after an eviction. [`Settings::default`] for all by default. Must not use the
    /// counters.
    pub settings: SettingsOf,
    /// Interval between checks of the thresholds (`low`) while anything is uncommitted. 10 ms by
    /// default.
    pub interval: Duration,
    /// Most changes in one batch and names in one load, at least 1. 1,000 by default; stores may
    /// have lower limits for batches.
    pub max_batch: usize,
    /// Most counters in memory. 10 million by default, of some 60 bytes each. At the limit, an
    /// unused one is evicted for each new one.
    pub max_keys: usize,
    /// Longest name in bytes, at most 65,535. 512 by default.
    pub max_name: usize,
    /// A counter that is unused for this long is evicted, and loaded at its next use. An hour by
    /// default; `None` evicts only at `max_keys`.
    pub idle: Option<Duration>,
    /// Longest time that a call waits for the store, however many names it has; also for closing.
    /// 10 s by default.
    pub patience: Duration,
    /// Pauses between retries of a store that does not answer, which double from the first to the
    /// longest. 10 ms and 1 s by default.
    pub backoff: (Duration, Duration),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            writer: "counters".into(),
            settings: Arc::new(|_| Settings::default()),
            interval: Duration::from_millis(10),
            max_batch: 1_000,
            max_keys: 10_000_000,
            max_name: 512,
            idle: Some(Duration::from_hours(1)),
            patience: Duration::from_secs(10),
            backoff: (Duration::from_millis(10), Duration::from_secs(1)),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Options")
            .field("writer", &self.writer)
            .field("interval", &self.interval)
            .field("max_batch", &self.max_batch)
            .field("max_keys", &self.max_keys)
            .field("max_name", &self.max_name)
            .field("idle", &self.idle)
            .field("patience", &self.patience)
            .field("backoff", &self.backoff)
            .finish_non_exhaustive()
    }
}
