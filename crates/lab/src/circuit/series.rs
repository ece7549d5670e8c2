//! The samples of one thing that was found of a benchmark, and what they say.

use crate::statistics::{self, Spread};

/// Samples of one thing that was found of a benchmark.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Series {
    pub(super) benchmark: String,
    /// What it is, if it is not what the benchmark measures first.
    pub(super) label: Option<String>,
    pub(super) mode: &'static str,
    pub(super) unit: String,
    /// For each fork.
    pub(super) samples: Vec<Vec<f64>>,
    /// What it should be at most.
    pub(super) target: Option<f64>,
}

/// What the samples of a benchmark say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Summary {
    pub(super) count: usize,
    pub(super) score: f64,
    /// Half of the 99.9 % confidence interval.
    pub(super) error: Option<f64>,
    pub(super) spread: Spread,
}

impl Series {
    /// The benchmark's name, and what it is if it is not what that measures first.
    pub(super) fn full_name(&self) -> String {
        match &self.label {
            Some(label) => format!("{}:{label}", self.benchmark),
            None => self.benchmark.clone(),
        }
    }

    pub(super) fn summary(&self) -> Summary {
        Summary::of(&self.samples.concat())
    }

    /// The best sample: of a throughput the greatest.
    pub(super) fn best(&self) -> f64 {
        let spread = self.summary().spread;
        if self.unit == "ops/s" { spread.max } else { spread.min }
    }
}

impl Summary {
    pub(super) fn of(samples: &[f64]) -> Self {
        Summary {
            count: samples.len(),
            score: statistics::mean(samples),
            error: statistics::error_999(samples),
            spread: Spread::of(samples),
        }
    }
}
