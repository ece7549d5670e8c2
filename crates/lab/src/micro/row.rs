//! A benchmark with what was measured of it.

use super::benchmark::{Benchmark, Quantity};
use super::group::Group;
use super::options::Mode;
use super::runner::Outcome;
use super::series::Series;

/// What was measured of a benchmark, and how.
pub(crate) struct Row<'a> {
    pub(crate) benchmark: &'a Benchmark,
    pub(crate) outcome: Outcome,
    pub(crate) mode: Mode,
    /// With which others it was measured in turns.
    pub(crate) group: Option<Group>,
}

impl Row<'_> {
    /// All that was found, in the units that are reported; first what the benchmark measures.
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

    /// The same, with times also where throughput is reported.
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

    /// The mode as JMH calls it: amounts are always looked at once, and latencies are those of each value.
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
