//! Comparison of two result files: the ratios and their confidence.

use super::jmh::{Entry, Metric};
use crate::statistics::{Ratio, geometric_mean};
use anyhow::{Context, anyhow};
use serde_json::error::Category;
use std::fmt;
use std::fs;
use std::path::Path;

/// The benchmarks that two runs have in common, and those that only one has.
pub(crate) struct Comparison {
    pairs: Vec<Pair>,
    only_a: Vec<String>,
    only_b: Vec<String>,
}

struct Pair {
    name: String,
    unit: String,
    /// The geometric means; [`Pair::ratio`] is their ratio.
    a: f64,
    b: f64,
    has_zeros: bool,
    ratio: Option<Ratio>,
}

impl Comparison {
    /// Reads two result files.
    pub(crate) fn read(a: &Path, b: &Path) -> anyhow::Result<Self> {
        Self::new(&read(a)?, &read(b)?).with_context(|| {
            format!("{} and {} have no benchmark, mode and unit in common", a.display(), b.display())
        })
    }

    fn new(a: &[Entry], b: &[Entry]) -> Option<Self> {
        let (a, b) = (named_metrics(a), named_metrics(b));
        let only = |these: &[NamedMetric<'_>], those: &[NamedMetric<'_>]| {
            let missing = these.iter().filter(|one| !those.iter().any(|other| one.key() == other.key()));
            missing.map(|one| format!("{} ({}, {})", one.name, one.mode, one.metric.score_unit)).collect()
        };
        let pairs: Vec<Pair> = a
            .iter()
            .filter_map(|one| Some(Pair::new(one, b.iter().find(|other| one.key() == other.key())?)))
            .collect();
        (!pairs.is_empty()).then(|| Comparison { only_a: only(&a, &b), only_b: only(&b, &a), pairs })
    }
}

/// A metric with its name.
struct NamedMetric<'a> {
    name: String,
    mode: &'a str,
    metric: &'a Metric,
}

impl NamedMetric<'_> {
    fn key(&self) -> (&str, &str, &str) {
        (&self.name, self.mode, &self.metric.score_unit)
    }
}

fn named_metrics(entries: &[Entry]) -> Vec<NamedMetric<'_>> {
    let mut all = Vec::new();
    for entry in entries {
        all.extend(entry.metrics().map(|(name, metric)| NamedMetric { name, mode: &entry.mode, metric }));
    }
    all
}

impl Pair {
    fn new(a: &NamedMetric<'_>, b: &NamedMetric<'_>) -> Self {
        let (samples_a, samples_b) = (a.metric.samples(), b.metric.samples());
        Pair {
            name: a.name.clone(),
            unit: a.metric.score_unit.clone(),
            a: geometric_mean(&samples_a),
            b: geometric_mean(&samples_b),
            has_zeros: samples_a.iter().chain(&samples_b).any(|sample| *sample == 0.0),
            ratio: Ratio::of_runs(&samples_b, &samples_a),
        }
    }

    /// Returns the conclusion from the ratio, if it allows one.
    fn verdict(&self) -> &'static str {
        let more_is_better = self.unit.starts_with("ops/");
        match &self.ratio {
            Some(ratio) if ratio.low > 1.0 => {
                if more_is_better {
                    "B is better"
                } else {
                    "A is better"
                }
            }
            Some(ratio) if ratio.high < 1.0 => {
                if more_is_better {
                    "A is better"
                } else {
                    "B is better"
                }
            }
            Some(_) => "no difference shown",
            None if self.a.total_cmp(&self.b).is_eq() => "the same",
            None if self.has_zeros => "a sample is 0",
            None => "too few samples",
        }
    }
}

fn read(file: &Path) -> anyhow::Result<Vec<Entry>> {
    let path = file.display();
    let bytes = fs::read(file).with_context(|| format!("cannot read {path}"))?;
    anyhow::ensure!(!bytes.is_empty(), "{path} is empty; measure again with -rff {path}");
    let entries: Vec<Entry> = serde_json::from_slice(&bytes).map_err(|error| match error.classify() {
        Category::Eof => {
            anyhow!("{path} is cut off; take a whole copy, or measure again with -rff {path}: {error}")
        }
        _ => anyhow!("{path} is no result file, as -rff FILE or JMH's -rf json writes them: {error}"),
    })?;
    anyhow::ensure!(!entries.is_empty(), "{path} has no results; measure again with -rff {path}");
    Ok(entries)
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.pairs.iter().map(|pair| pair.name.len()).max().unwrap_or(0).max("Benchmark".len());
        writeln!(
            out,
            "{:width$}  {:>14}  {:>14}  {:9}  {:>9}  {:21}",
            "Benchmark", "A, geo. mean", "B, geo. mean", "Units", "B / A", "95 % confidence"
        )?;
        for pair in &self.pairs {
            let Pair { name, unit, a, b, .. } = pair;
            let (estimate, interval) = match &pair.ratio {
                Some(ratio) => (ratio.estimate, format!("{:.3} to {:.3}", ratio.low, ratio.high)),
                None => (b / a, String::new()),
            };
            let verdict = pair.verdict();
            // A zero has no ratio to a zero.
            let estimate = if estimate.is_finite() { format!("{estimate:.3}") } else { "-".to_owned() };
            writeln!(
                out,
                "{name:width$}  {a:>14.3}  {b:>14.3}  {unit:9}  {estimate:>9}  {interval:21}  {verdict}"
            )?;
        }
        for (which, only) in [("A", &self.only_a), ("B", &self.only_b)] {
            if !only.is_empty() {
                writeln!(out, "Only in {which}: {}", only.join(", "))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Comparison;
    use crate::micro::jmh::entries;
    use crate::micro::options::{Mode, Plan};
    use crate::micro::test_report::{benchmark, report, row};

    fn compare(mode: Mode, a: &[(&str, &[f64])], b: &[(&str, &[f64])]) -> Option<String> {
        let run = |rows: &[(&str, &[f64])]| {
            let benchmarks: Vec<_> = rows.iter().map(|(name, _)| benchmark(name)).collect();
            let rows =
                benchmarks.iter().zip(rows).map(|(one, (_, samples))| row(one, mode, samples)).collect();
            entries(&report(rows), &Plan::quick())
        };
        Comparison::new(&run(a), &run(b)).map(|comparison| comparison.to_string())
    }

    #[test]
    fn the_ratio_comes_with_its_spread_and_what_it_means() {
        let a: &[(&str, &[f64])] =
            &[("P.fast", &[1.0, 1.01, 0.99]), ("P.same", &[1.0, 2.0]), ("P.a", &[1.0])];
        let b: &[(&str, &[f64])] =
            &[("P.same", &[2.0, 1.0]), ("P.fast", &[2.0, 2.02, 1.98]), ("P.b", &[1.0])];
        let text = compare(Mode::AverageTime, a, b).unwrap();
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        assert!(line("P.fast").contains(" 2.000  1.9") && line("P.fast").ends_with("A is better"), "{text}");
        assert!(line("P.same").ends_with("no difference shown"), "{text}");
        assert!(text.ends_with("Only in A: P.a (avgt, ns/op)\nOnly in B: P.b (avgt, ns/op)\n"), "{text}");
        // Twice the time is half the throughput, which is worse as well.
        let text = compare(Mode::Throughput, a, b).unwrap();
        assert!(text.contains(" 0.500  ") && text.contains("A is better"), "{text}");
    }

    #[test]
    fn the_ratio_is_that_of_the_columns() {
        let a: &[(&str, &[f64])] = &[("P.a", &[1.0, 4.0]), ("P.zero", &[0.0, 4.0]), ("P.gone", &[2.0, 2.0])];
        let b: &[(&str, &[f64])] = &[("P.a", &[4.0, 4.0]), ("P.zero", &[1.0, 4.0]), ("P.gone", &[0.0, 2.0])];
        let text = compare(Mode::AverageTime, a, b).unwrap();
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        let words = |name: &str| line(name).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert!(line("Benchmark").contains("A, geo. mean    B, geo. mean"), "{text}");
        assert_eq!(words("P.a")[..5], ["P.a", "2.000", "4.000", "ns/op", "2.000"], "{text}");
        // A zero makes the mean zero, and no ratio to it exists.
        assert_eq!(words("P.zero")[..5], ["P.zero", "0.000", "2.000", "ns/op", "-"], "{text}");
        assert_eq!(words("P.gone")[..5], ["P.gone", "2.000", "0.000", "ns/op", "0.000"], "{text}");
        assert!(
            line("P.zero").ends_with("a sample is 0") && line("P.gone").ends_with("a sample is 0"),
            "{text}"
        );
    }

    #[test]
    fn one_sample_each_gives_a_ratio_without_a_verdict_and_nothing_in_common_is_no_comparison() {
        let text = compare(Mode::SingleShot, &[("P.a", &[2.0])], &[("P.a", &[3.0])]).unwrap();
        assert!(text.contains(" 1.500  ") && text.contains("too few samples"), "{text}");
        assert!(compare(Mode::SingleShot, &[("P.a", &[2.0])], &[("P.b", &[3.0])]).is_none());
    }
}
