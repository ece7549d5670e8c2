//! How counters by name are kept.

use super::settings::Settings;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Says what a counter is, by its name.
pub type SettingsOf = Arc<dyn Fn(&[u8]) -> Settings + Send + Sync>;

/// Limits and times of counters by name.
#[derive(Clone)]
pub struct Options {
    /// Under which name commits are made. One process at a time may write under a name; the one that opened last has it. `counters`
    /// by default: give each process of a fleet a name that it keeps through restarts.
    pub writer: String,
    /// What each counter is, by its name, when it comes into memory: at its first use, and again at the next one after it has been idle.
    /// All are [`Settings::default`] by default. It must not use the counters.
    pub settings: SettingsOf,
    /// How often thresholds (`low`) are looked at while something is uncommitted. 10 ms by default.
    pub interval: Duration,
    /// Changes in one batch, and names in one load, at least 1. 1,000 by default; stores may have limits of their own for batches.
    pub max_batch: usize,
    /// Counters in memory. 10 million by default, of some 60 bytes each. With as many, one that nobody uses is put away for each new one.
    pub max_keys: usize,
    /// Bytes of a name, at most 65,535. 512 by default.
    pub max_name: usize,
    /// A counter that nobody has used for so long is put away, to be loaded when somebody does. An hour by default; `None`: only
    /// when there are too many.
    pub idle: Option<Duration>,
    /// How long a caller waits for the store at most, and how long closing them does. 10 s by default. Of a call with many names, all of them.
    pub patience: Duration,
    /// The pauses before the store is asked again that has not answered, which double from the first to the longest.
    /// 10 ms and 1 s by default.
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
