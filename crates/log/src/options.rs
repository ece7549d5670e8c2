//! Options of a log: durability, sizes, retention.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::{Clock, Format};

/// Options to open a log with. Sizes are in bytes.
#[derive(Clone, Debug)]
pub struct Options {
    /// When appended records become durable without a request.
    pub durability: Durability,
    /// Format of new segments; existing ones are read in their own.
    pub format: Format,
    /// Size of a segment file; a record that does not fit gets a larger one.
    pub segment_bytes: u64,
    /// The next record closes a segment that is older than this.
    pub segment_age: Option<Duration>,
    /// How much released history to keep.
    pub retention: Retention,
    /// Appenders wait while this much is accepted and not yet written.
    pub buffer_bytes: usize,
    /// Records are refused when a storage call, or an appender's wait for space, has taken this
    /// long. They are accepted again when it ends.
    pub stall_after: Duration,
    /// Largest payload.
    pub max_record_bytes: usize,
    /// Number of released segments kept for reuse.
    pub recycle: usize,
    /// How much `open` verifies before it returns.
    pub verify: Verify,
    /// Seed of the segments' salts. Leave it `None` outside simulations: only an unknown salt makes
    /// it impossible for a payload to look like a frame.
    pub seed: Option<u64>,
    /// Source of time. Tests move a [`ManualClock`](crate::ManualClock).
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            format: Format::default(),
            segment_bytes: 64 << 20,
            segment_age: None,
            retention: Retention::default(),
            buffer_bytes: 64 << 20,
            stall_after: Self::STALL_AFTER,
            max_record_bytes: 1 << 30,
            recycle: 2,
            verify: Verify::default(),
            seed: None,
            clock: Clock::System,
        }
    }
}

impl Options {
    /// Smallest accepted segment.
    pub const SEGMENT_BYTES_MIN: u64 = 8 << 10;
    /// Default `stall_after`: longer than a sync takes on a disk that is merely slow.
    pub const STALL_AFTER: Duration = Duration::from_secs(10);
    /// Largest `max_record_bytes`; keeps every frame's length in 31 bits.
    pub const RECORD_BYTES_MAX: usize = 1 << 30;

    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.segment_bytes < Self::SEGMENT_BYTES_MIN {
            return Err("segment_bytes must be at least 8192");
        }
        if self.max_record_bytes > Self::RECORD_BYTES_MAX {
            return Err("max_record_bytes must be at most 1073741824");
        }
        if self.buffer_bytes == 0 {
            return Err("buffer_bytes must not be 0");
        }
        Ok(())
    }
}

/// Records that the log keeps although it may drop them. A limit that is `None` does not apply;
/// with neither limit the log keeps only what no snapshot covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Minimum bytes of covered segments to keep.
    pub bytes: Option<u64>,
    /// Keep covered segments whose records are younger than this.
    pub age: Option<Duration>,
    /// Full snapshots to keep, and as many incremental ones based on them. The log always reaches
    /// back to the oldest full one.
    pub keep_snapshots: usize,
}

impl Default for Retention {
    fn default() -> Self {
        Self { bytes: None, age: None, keep_snapshots: 2 }
    }
}

/// How much of the log `open` verifies. The rest is verified when it is replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Every segment, in parallel.
    #[default]
    All,
    /// Every header, and the records of the last segment.
    Tail,
}

/// When an appended record becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// As soon as a caller requests it; the appender is expected to wait before it replies.
    Always,
    /// At most this long after the append; a power failure may lose one interval.
    Interval(Duration),
    /// When the operating system writes it back.
    Off,
}

impl Durability {
    /// Interval when none is given.
    pub const DEFAULT_INTERVAL: Duration = Duration::from_millis(50);
}

impl Default for Durability {
    fn default() -> Self {
        Self::Interval(Self::DEFAULT_INTERVAL)
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => f.write_str("always"),
            Self::Interval(interval) => write!(f, "interval:{}ms", interval.as_millis()),
            Self::Off => f.write_str("off"),
        }
    }
}

impl FromStr for Durability {
    type Err = ParseDurabilityError;

    /// Parses `always`, `off`, `interval`, `interval:50ms` and `interval:2s`.
    fn from_str(text: &str) -> Result<Self, ParseDurabilityError> {
        let error = || ParseDurabilityError { text: text.to_owned() };
        match text {
            "always" => Ok(Self::Always),
            "off" => Ok(Self::Off),
            "interval" => Ok(Self::default()),
            _ => {
                let value = text.strip_prefix("interval:").ok_or_else(error)?;
                let interval = if let Some(millis) = value.strip_suffix("ms") {
                    Duration::from_millis(millis.parse().map_err(|_| error())?)
                } else {
                    let seconds = value.strip_suffix('s').ok_or_else(error)?;
                    Duration::from_secs(seconds.parse().map_err(|_| error())?)
                };
                if interval.is_zero() || interval > Duration::from_hours(1) {
                    return Err(error());
                }
                Ok(Self::Interval(interval))
            }
        }
    }
}

/// Error for a text that is no durability mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown durability '{text}'; use always, interval, interval:<1ms to 1h>, or off")]
pub struct ParseDurabilityError {
    text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durability_reads_what_it_prints() {
        for durability in [Durability::Always, Durability::Off, Durability::default()] {
            assert_eq!(durability.to_string().parse(), Ok(durability));
        }
        assert_eq!("interval:2s".parse(), Ok(Durability::Interval(Duration::from_secs(2))));
    }

    #[test]
    fn durability_refuses_nonsense() {
        for text in
            ["", "sometimes", "interval:", "interval:ms", "interval:0ms", "interval:-1ms", "interval:2h"]
        {
            assert!(text.parse::<Durability>().is_err(), "{text}");
        }
    }
}
