//! The time series of a server at one moment.

use crate::answer::{field, number};
use tidemark_server::resp::Value;

/// A series.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub(super) key: Vec<u8>,
    pub(super) points: u64,
    pub(super) bytes: u64,
    /// Points a second, after two readings.
    pub(super) rate: Option<f64>,
    /// Number of labels.
    pub(super) labels: usize,
}

/// All that is shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    pub(super) count: usize,
    /// Whether these are all series.
    pub(super) is_all: bool,
    pub(super) points: u64,
    pub(super) rate: Option<f64>,
    pub(super) bytes: u64,
    /// Those that are shown.
    pub(super) series: Vec<Series>,
}

impl Series {
    /// Reads the reply to `TS.INFO`; `None` if it describes no series.
    pub(super) fn of(key: &[u8], info: &Value) -> Option<Self> {
        let labels = field(info, "labels")?;
        Some(Self {
            key: key.to_vec(),
            points: number(info, "totalSamples")?,
            bytes: number(info, "memoryUsage")?,
            rate: None,
            labels: labels
                .as_pairs()
                .map_or_else(|| labels.as_elements().map_or(0, <[_]>::len), |pairs| pairs.len()),
        })
    }

    /// Returns the memory of a point.
    pub(super) fn bytes_per_point(&self) -> Option<f64> {
        (self.points > 0).then(|| self.bytes as f64 / self.points as f64)
    }
}
