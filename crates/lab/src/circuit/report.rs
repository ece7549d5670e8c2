//! What a run says: a table as JMH prints it, with what else the samples tell, and the ratios of peers.

use super::benchmark::{Benchmark, Quantity};
use super::options::Mode;
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
}

/// All rows of a run.
pub(super) struct Report<'a> {
    pub(super) rows: Vec<Row<'a>>,
    pub(super) machine: Machine,
    pub(super) verbose: bool,
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
    /// The samples of each fork in the unit that is reported.
    pub(super) fn samples(&self) -> Vec<Vec<f64>> {
        let reported = |sample: &f64| if self.is_throughput() { 1e9 / sample } else { *sample };
        self.outcome.samples.iter().map(|fork| fork.iter().map(reported).collect()).collect()
    }

    pub(super) fn unit(&self) -> &'static str {
        match self.benchmark.quantity() {
            Quantity::Amount(unit) => unit,
            Quantity::Time if self.is_throughput() => "ops/s",
            Quantity::Time => "ns/op",
        }
    }

    /// The mode as reported: amounts are always looked at once.
    pub(super) fn mode(&self) -> Mode {
        if self.benchmark.quantity() == Quantity::Time { self.mode } else { Mode::SingleShot }
    }

    pub(super) fn summary(&self) -> Summary {
        Summary::of(&self.samples().concat())
    }

    fn is_throughput(&self) -> bool {
        self.mode == Mode::Throughput && self.benchmark.quantity() == Quantity::Time
    }

    fn line(&self) -> Line {
        let summary = self.summary();
        // A throughput's worst sample is its smallest, so that its counterpart to the least time is the greatest.
        let best = if self.is_throughput() { summary.spread.max } else { summary.spread.min };
        let target = self.benchmark.target().filter(|_| !self.is_throughput());
        Line {
            name: self.benchmark.name().to_owned(),
            mode: self.mode().word(),
            count: summary.count.to_string(),
            score: number(summary.score),
            error: summary.error.map(|error| format!("± {}", number(error))).unwrap_or_default(),
            unit: self.unit().to_owned(),
            median: number(summary.spread.median),
            min: number(best),
            target: target.map(number).unwrap_or_default(),
        }
    }

    fn allocation_lines(&self) -> impl Iterator<Item = Line> {
        let name = self.benchmark.name();
        let figures = self.outcome.allocated.map(|allocated| {
            [
                (allocated.bytes, "gc.alloc.rate.norm", "B/op"),
                (allocated.allocations, "gc.alloc.count.norm", "allocs/op"),
            ]
        });
        let mode = self.mode().word();
        figures.into_iter().flatten().map(move |(figure, what, unit)| Line {
            name: format!("{name}:{what}"),
            mode,
            score: number(figure),
            unit: unit.to_owned(),
            ..Line::default()
        })
    }
}

/// A figure with as many digits as one may want to see of it.
fn number(figure: f64) -> String {
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
            lines.push((row.line(), Some(row.benchmark.measures())));
            lines.extend(row.allocation_lines().map(|line| (line, None)));
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
        self.write_ratios(out)
    }
}

impl Report<'_> {
    /// What the others of each group took for what its first took.
    fn write_ratios(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut group = None;
        for (index, row) in self.rows.iter().enumerate() {
            let Some(name) = row.benchmark.group().filter(|name| group != Some(*name)) else { continue };
            group = Some(name);
            let in_group = |other: &&Row<'_>| other.benchmark.group() == Some(name);
            let others: Vec<_> = self.rows.iter().skip(index + 1).filter(in_group).collect();
            if others.is_empty() {
                continue;
            }
            writeln!(out, "\nTimes of {name}, in turns, over that of {}:", row.benchmark.name())?;
            let width = others.iter().map(|other| other.benchmark.name().len()).max().unwrap_or(0);
            for other in others {
                let pairs: Vec<_> =
                    other.outcome.samples.concat().into_iter().zip(row.outcome.samples.concat()).collect();
                write!(out, "  {:width$}  ", other.benchmark.name())?;
                match Ratio::of(&pairs) {
                    Some(Ratio { estimate, low, high, rounds }) => writeln!(
                        out,
                        "{estimate:8.3}  (95 % confidence {low:.3} to {high:.3}, {rounds} rounds)"
                    )?,
                    None => writeln!(out, "not known from one round")?,
                }
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
    use crate::circuit::runner::{Outcome, PerOperation};
    use crate::machine::Machine;

    pub(crate) fn benchmark(name: &str) -> Benchmark {
        Benchmark::new(name, format!("what {name} measures"), |_| each(|_| ()))
    }

    pub(crate) fn row<'a>(benchmark: &'a Benchmark, mode: Mode, samples: &[f64]) -> Row<'a> {
        let outcome =
            Outcome { name: benchmark.name().to_owned(), samples: vec![samples.to_vec()], allocated: None };
        Row { benchmark, outcome, mode }
    }

    pub(crate) fn report(rows: Vec<Row<'_>>) -> Report<'_> {
        let machine = Machine { cores: 2, processor: "a processor".into(), kernel: "a kernel".into() };
        Report { rows, machine, verbose: false }
    }

    #[test]
    fn the_table_is_jmhs_with_three_columns_more() {
        let (first, second) = (benchmark("PipeOps.emit").at_most(2.5), benchmark("NameOps.name_depth"));
        let mut with_allocations = row(&second, Mode::AverageTime, &[2_000.0]);
        with_allocations.outcome.allocated = Some(PerOperation { allocations: 1.0, bytes: 48.0 });
        let report = report(vec![row(&first, Mode::AverageTime, &[1.0, 2.0, 3.0]), with_allocations]);
        let expected = "\
# 2 cores, a processor, a kernel
Benchmark                               Mode  Cnt   Score     Error  Units      Median    Best  Target
PipeOps.emit                            avgt    3   2.000  ± 18.244  ns/op       2.000   1.000   2.500
NameOps.name_depth                      avgt    1  2000.0            ns/op      2000.0  2000.0
NameOps.name_depth:gc.alloc.rate.norm   avgt       48.000            B/op
NameOps.name_depth:gc.alloc.count.norm  avgt        1.000            allocs/op
";
        assert_eq!(report.to_string(), expected);
        let verbose = Report { verbose: true, ..report }.to_string();
        assert!(verbose.contains("2.500\n    measures: what PipeOps.emit measures\n"), "{verbose}");
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
        assert!(text.contains("P.b     2.000  (95 % confidence 2.000 to 2.000, 2 rounds)"), "{text}");
        assert!(text.contains("P.c     0.500  "), "{text}");
    }
}
