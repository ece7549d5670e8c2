//! A benchmark with its results.

use super::benchmark::{Benchmark, Quantity};
use super::group::Group;
use super::options::Mode;
use super::runner::Outcome;
use super::series::Series;

/// Results of a benchmark, and how they were measured.
pub(crate) struct Row<'a> {
    pub(crate) benchmark: &'a Benchmark,
    pub(crate) outcome: Outcome,
    pub(crate) mode: Mode,
    /// The group that it was measured in turns with.
    pub(crate) group: Option<Group>,
}

impl Row<'_> {
    /// Returns all results in the reported units; the benchmark's main metric first.
    pub(crate) fn series(&self) -> Vec<Series> {
        let mut all = self.times();
        if self.is_throughput()
            && let Some(first) = all.first_mut()
        {
            first.samples.iter_mut().flatten().for_each(|sample| *sample = 1e9 / *sample);
            "ops/s".clone_into(&mut first.unit);
            first.target = None;
        }
        all
    }

    /// Returns the same series as times, even if throughput is reported.
    pub(crate) fn times(&self) -> Vec<Series> {
        let mode = self.mode_word();
        let series = |label: Option<&str>, unit: &str, samples: &[Vec<f64>]| Series {
            benchmark: self.benchmark.name().to_owned(),
            label: label.map(str::to_owned),
            mode,
            unit: unit.to_owned(),
            samples: samples.to_vec(),
            target: self.benchmark.target().filter(|_| label.is_none()),
        };
        let unit = match self.benchmark.quantity() {
            Quantity::Amount(unit) => unit,
            Quantity::Time | Quantity::Latency => "ns/op",
        };
        let mut all = vec![series(None, unit, &self.outcome.samples)];
        all.extend(self.outcome.others.iter().map(|one| series(Some(&one.label), &one.unit, &one.samples)));
        all
    }

    /// Returns JMH's name of the mode: amounts are single-shot, latencies are sampled.
    pub(crate) fn mode_word(&self) -> &'static str {
        match self.benchmark.quantity() {
            Quantity::Time => self.mode.word(),
            Quantity::Latency => "sample",
            Quantity::Amount(_) => Mode::SingleShot.word(),
        }
    }

    fn is_throughput(&self) -> bool {
        self.mode == Mode::Throughput && self.benchmark.quantity() == Quantity::Time
    }
}
