//! The samples of one thing that was found of a benchmark, and what they say.

use crate::statistics::{self, Spread};

/// Samples of one thing that was found of a benchmark.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    pub(crate) benchmark: String,
    /// What it is, if it is not what the benchmark measures first.
    pub(crate) label: Option<String>,
    pub(crate) mode: &'static str,
    pub(crate) unit: String,
    /// For each fork.
    pub(crate) samples: Vec<Vec<f64>>,
    /// What it should be at most.
    pub(crate) target: Option<f64>,
}

/// What the samples of a benchmark say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) count: usize,
    pub(crate) score: f64,
    /// Half of the 99.9 % confidence interval.
    pub(crate) error: Option<f64>,
    pub(crate) spread: Spread,
}

impl Series {
    /// The benchmark's name, and what it is if it is not what that measures first.
    pub(crate) fn full_name(&self) -> String {
        match &self.label {
            Some(label) => format!("{}:{label}", self.benchmark),
            None => self.benchmark.clone(),
        }
    }

    pub(crate) fn summary(&self) -> Summary {
        Summary::of(&self.samples.concat())
    }

    /// The best sample: of a throughput the greatest.
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
