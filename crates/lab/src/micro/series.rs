//! Samples of one metric of a benchmark, and their statistics.

use crate::statistics::{self, Spread};

/// Samples of one metric of a benchmark.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    pub(crate) benchmark: String,
    /// Name of the metric; `None` for the benchmark's main metric.
    pub(crate) label: Option<String>,
    pub(crate) mode: &'static str,
    pub(crate) unit: String,
    /// Samples by fork.
    pub(crate) samples: Vec<Vec<f64>>,
    /// Highest acceptable value.
    pub(crate) target: Option<f64>,
}

/// Statistics of a benchmark's samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) count: usize,
    pub(crate) score: f64,
    /// Half of the 99.9 % confidence interval.
    pub(crate) error: Option<f64>,
    pub(crate) spread: Spread,
}

impl Series {
    /// Returns the benchmark's name, with the metric's name if it is not the main one.
    pub(crate) fn full_name(&self) -> String {
        match &self.label {
            Some(label) => format!("{}:{label}", self.benchmark),
            None => self.benchmark.clone(),
        }
    }

    pub(crate) fn summary(&self) -> Summary {
        Summary::of(&self.samples.concat())
    }

    /// Returns the best sample: for throughput the largest.
    pub(crate) fn best(&self) -> f64 {
        let spread = self.summary().spread;
        if self.unit == "ops/s" { spread.max } else { spread.min }
    }
}

impl Summary {
    pub(crate) fn of(samples: &[f64]) -> Self {
        Summary {
            count: samples.len(),
            score: statistics::mean(samples),
            error: statistics::error_999(samples),
            spread: Spread::of(samples),
        }
    }
}
