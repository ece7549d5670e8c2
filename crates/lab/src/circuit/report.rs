//! What a run says: a table as JMH prints it, with what else the samples tell, and the ratios of peers.

use super::benchmark::{Benchmark, Quantity};
use super::options::Mode;
use super::ratios::{Group, RatioLine, Ratios};
use super::runner::Outcome;
use crate::machine::Machine;
use crate::statistics::{self, Ratio, Spread};
use std::fmt;

/// What the samples of a benchmark say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Summary {
    pub(super) count: usize,
    pub(super) score: f64,
    /// Half of the 99.9 % confidence interval.
    pub(super) error: Option<f64>,
    pub(super) spread: Spread,
}

/// A benchmark with what was measured of it.
pub(super) struct Row<'a> {
    pub(super) benchmark: &'a Benchmark,
    pub(super) outcome: Outcome,
    pub(super) mode: Mode,
    /// With which others it was measured in turns.
    pub(super) group: Option<Group>,
}

/// A benchmark that has failed.
pub(super) struct Failure {
    pub(super) name: String,
    pub(super) why: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} failed: {}", self.name, self.why)
    }
}

/// All that a run has found.
pub(super) struct Report<'a> {
    pub(super) rows: Vec<Row<'a>>,
    pub(super) failures: Vec<Failure>,
    pub(super) machine: Machine,
    pub(super) verbose: bool,
}

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

/// A line of the table.
#[derive(Default)]
struct Line {
    name: String,
    mode: &'static str,
    count: String,
    score: String,
    error: String,
    unit: String,
    median: String,
    min: String,
    target: String,
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

impl Row<'_> {
    /// All that was found, in the units that are reported; first what the benchmark measures.
    pub(super) fn series(&self) -> Vec<Series> {
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
    pub(super) fn times(&self) -> Vec<Series> {
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
    pub(super) fn mode_word(&self) -> &'static str {
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

    fn line(&self) -> Line {
        let summary = self.summary();
        Line {
            name: self.full_name(),
            mode: self.mode,
            count: summary.count.to_string(),
            score: number(summary.score),
            error: summary.error.map(|error| format!("± {}", number(error))).unwrap_or_default(),
            unit: self.unit.clone(),
            median: number(summary.spread.median),
            min: number(self.best()),
            target: self.target.map(number).unwrap_or_default(),
        }
    }
}

/// A figure with as many digits as one may want to see of it.
pub(super) fn number(figure: f64) -> String {
    match figure.abs() {
        size if size >= 1e6 => format!("{figure:.0}"),
        size if size >= 1e3 => format!("{figure:.1}"),
        _ => format!("{figure:.3}"),
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { cores, processor, kernel } = &self.machine;
        writeln!(out, "# {cores} cores, {processor}, {kernel}")?;
        let heading = Line {
            name: "Benchmark".to_owned(),
            mode: "Mode",
            count: "Cnt".to_owned(),
            score: "Score".to_owned(),
            error: "Error".to_owned(),
            unit: "Units".to_owned(),
            median: "Median".to_owned(),
            min: "Best".to_owned(),
            target: "Target".to_owned(),
        };
        let mut lines = vec![(heading, None)];
        for row in &self.rows {
            let found = row.series();
            let measures = std::iter::once(Some(row.benchmark.measures())).chain(std::iter::repeat(None));
            lines.extend(found.iter().map(Series::line).zip(measures));
        }
        let width = |column: fn(&Line) -> &str| {
            lines.iter().map(|(line, _)| column(line).chars().count()).max().unwrap_or(0)
        };
        let name = width(|line| &line.name);
        let widths = [
            width(|line| line.mode),
            width(|line| &line.count),
            width(|line| &line.score),
            width(|line| &line.error),
            width(|line| &line.median),
            width(|line| &line.min),
            width(|line| &line.target),
        ];
        let [mode, count, score, error, median, min, target] = widths;
        let unit = width(|line| &line.unit);
        for (line, measures) in &lines {
            let text = format!(
                "{:name$}  {:>mode$}  {:>count$}  {:>score$}  {:>error$}  {:unit$}  {:>median$}  {:>min$}  {:>target$}",
                line.name,
                line.mode,
                line.count,
                line.score,
                line.error,
                line.unit,
                line.median,
                line.min,
                line.target
            );
            writeln!(out, "{}", text.trim_end())?;
            if let Some(measures) = measures.filter(|_| self.verbose) {
                writeln!(out, "    measures: {measures}")?;
            }
        }
        self.failures.iter().try_for_each(|failure| writeln!(out, "{failure}"))?;
        Ratios::of(&self.rows).iter().try_for_each(|ratios| write!(out, "\n{ratios}"))
    }
}

impl fmt::Display for Ratios {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ratios { group, baseline, lines } = self;
        let Some(lines) = lines else {
            return writeln!(
                out,
                "No ratios of {group}: there are no figures of {baseline}, which they are over"
            );
        };
        writeln!(out, "Times of {group}, in turns, over that of {baseline}: median, smallest and largest")?;
        let width = lines.iter().map(|line| line.name.len()).max().unwrap_or(0);
        for RatioLine { name, spread: Spread { median, min, max }, ratio } in lines {
            write!(out, "  {name:width$}  {median:8.3}  ({min:.3} to {max:.3}")?;
            match ratio {
                Some(Ratio { low, high, rounds, .. }) => {
                    writeln!(out, "; 95 % confidence of the mean {low:.3} to {high:.3}, {rounds} rounds)")?;
                }
                None => writeln!(out, ")")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Report, Row};
    use crate::circuit::benchmark::{Benchmark, each};
    use crate::circuit::options::Mode;
    use crate::circuit::ratios::Group;
    use crate::circuit::runner::{Finding, Outcome};
    use crate::machine::Machine;

    pub(crate) fn benchmark(name: &str) -> Benchmark {
        Benchmark::new(name, format!("what {name} measures"), |_| each(|_| ()))
    }

    pub(crate) fn row<'a>(benchmark: &'a Benchmark, mode: Mode, samples: &[f64]) -> Row<'a> {
        let outcome = Outcome {
            name: benchmark.name().to_owned(),
            samples: vec![samples.to_vec()],
            ..Outcome::default()
        };
        let group = benchmark.group().map(|name| Group { name: name.to_owned(), baseline: "P.a".to_owned() });
        Row { benchmark, outcome, mode, group }
    }

    pub(crate) fn report(rows: Vec<Row<'_>>) -> Report<'_> {
        let machine = Machine { cores: 2, processor: "a processor".into(), kernel: "a kernel".into() };
        Report { rows, failures: Vec::new(), machine, verbose: false }
    }

    #[test]
    fn the_table_is_jmhs_with_three_columns_more() {
        let (first, second) = (benchmark("PipeOps.emit").at_most(2.5), benchmark("NameOps.name_depth"));
        let mut with_allocations = row(&second, Mode::AverageTime, &[2_000.0]);
        with_allocations.outcome.others = vec![Finding::new("gc.alloc.rate.norm", "B/op", vec![48.0])];
        let report = report(vec![row(&first, Mode::AverageTime, &[1.0, 2.0, 3.0]), with_allocations]);
        let expected = "\
# 2 cores, a processor, a kernel
Benchmark                              Mode  Cnt   Score     Error  Units  Median    Best  Target
PipeOps.emit                           avgt    3   2.000  ± 18.244  ns/op   2.000   1.000   2.500
NameOps.name_depth                     avgt    1  2000.0            ns/op  2000.0  2000.0
NameOps.name_depth:gc.alloc.rate.norm  avgt    1  48.000            B/op   48.000  48.000
";
        assert_eq!(report.to_string(), expected);
        let verbose = Report { verbose: true, ..report }.to_string();
        assert!(verbose.contains("2.500\n    measures: what PipeOps.emit measures\n"), "{verbose}");
    }

    #[test]
    fn latencies_are_of_a_mode_of_their_own_and_their_percentiles_are_compared() {
        let [a, b] = ["P.a", "P.b"].map(|name| benchmark(name).of_latencies().in_group("late"));
        let row = |benchmark, p99: f64| {
            let mut row = row(benchmark, Mode::Throughput, &[10.0]);
            row.outcome.others = vec![Finding::new("p99", "ns/op", vec![p99, p99])];
            row
        };
        let text = report(vec![row(&a, 100.0), row(&b, 300.0)]).to_string();
        assert!(text.contains("P.a:p99    sample    2  100.000"), "{text}");
        assert!(text.contains("P.b:p99     3.000  (3.000 to 3.000;"), "{text}");
    }

    #[test]
    fn a_throughput_is_operations_in_a_second_and_has_no_target_in_nanoseconds() {
        let benchmark = benchmark("A.a").at_most(2.0);
        let text = report(vec![row(&benchmark, Mode::Throughput, &[10.0])]).to_string();
        assert!(text.contains("thrpt") && text.contains("100000000         ops/s"), "{text}");
        assert!(!text.contains("2.000"), "{text}");
    }

    #[test]
    fn a_group_is_compared_with_its_first_round_by_round() {
        let [a, b, c] = ["P.a", "P.b", "P.c"].map(|name| benchmark(name).in_group("sending"));
        let rows = vec![
            row(&a, Mode::AverageTime, &[1.0, 10.0]),
            row(&b, Mode::AverageTime, &[2.0, 20.0]),
            row(&c, Mode::AverageTime, &[0.5, 5.0]),
        ];
        let text = report(rows).to_string();
        assert!(text.contains("Times of sending, in turns, over that of P.a:"), "{text}");
        let expected =
            "P.b     2.000  (2.000 to 2.000; 95 % confidence of the mean 2.000 to 2.000, 2 rounds)";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("P.c     0.500  "), "{text}");
    }
}
