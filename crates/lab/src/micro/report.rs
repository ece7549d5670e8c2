//! The report of a run: a table as JMH prints it, statistics of the samples, and ratios to peers.

use super::ratios::{RatioLine, Ratios};
use super::row::Row;
use super::series::{Series, Summary};
use crate::machine::Machine;
use crate::report::{Contents, Figures, Measured, Results, Verdict};
use crate::statistics::{Ratio, Spread};
use std::fmt;
use std::time::SystemTime;

/// A benchmark that has failed.
pub(crate) struct Failure {
    pub(crate) name: String,
    pub(crate) why: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} failed: {}", self.name, self.why)
    }
}

/// All results of a run.
pub(crate) struct MicroResults<'a> {
    pub(crate) start: SystemTime,
    pub(crate) end: SystemTime,
    pub(crate) is_interrupted: bool,
    pub(crate) rows: Vec<Row<'a>>,
    pub(crate) failures: Vec<Failure>,
    pub(crate) machine: Machine,
    pub(crate) verbose: bool,
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

impl Line {
    fn of(series: &Series) -> Self {
        let summary = series.summary();
        Line {
            name: series.full_name(),
            mode: series.mode,
            count: summary.count.to_string(),
            score: number(summary.score),
            error: summary.error.map(|error| format!("± {}", number(error))).unwrap_or_default(),
            unit: series.unit.clone(),
            median: number(summary.spread.median),
            min: number(series.best()),
            target: series.target.map(number).unwrap_or_default(),
        }
    }
}

/// Formats a figure with as many digits as are useful.
pub(crate) fn number(figure: f64) -> String {
    match figure.abs() {
        size if size >= 1e6 => format!("{figure:.0}"),
        size if size >= 1e3 => format!("{figure:.1}"),
        _ => format!("{figure:.3}"),
    }
}

impl Results for MicroResults<'_> {
    fn contents(&self) -> Contents {
        let mut figures = Figures::default();
        for row in &self.rows {
            figures.add_of(row.benchmark.name(), |figures| {
                for series in row.series() {
                    let Summary { count, score, spread, .. } = series.summary();
                    let name = series.label.as_deref().unwrap_or("score");
                    if let Some(figure) = figures.add_spread(name, &series.unit, spread, count) {
                        figure.mean = score.number();
                    }
                }
            });
        }
        for Ratios { baseline, lines, .. } in Ratios::of(&self.rows) {
            let name = format!("ratio_to_{baseline}");
            for RatioLine { name: of, spread, ratio } in lines.into_iter().flatten() {
                figures.add_of(&of, |figures| add_ratio(&name, spread, ratio, figures));
            }
        }
        let failed = self.failures.iter().map(Failure::to_string);
        Contents {
            start: self.start,
            end: self.end,
            interrupted: self.is_interrupted,
            machine: self.machine.clone(),
            servers: Vec::new(),
            figures,
            notes: Vec::new(),
            verdict: Verdict::unless(failed.collect()),
        }
    }
}

/// Adds the median of the rounds' ratios, with the confidence of their mean if there is one.
fn add_ratio(name: &str, spread: Spread, ratio: Option<Ratio>, figures: &mut Figures) {
    let Some(figure) = figures.add(name, "ratio", spread.median) else { return };
    figure.min = spread.min.number();
    figure.max = spread.max.number();
    if let Some(Ratio { estimate, low, high, rounds }) = ratio {
        figure.count = Some(rounds as u64);
        figure.mean = estimate.number();
        figure.low = low.number();
        figure.high = high.number();
    }
}

impl fmt::Display for MicroResults<'_> {
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
            lines.extend(found.iter().map(Line::of).zip(measures));
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
mod tests {
    use super::MicroResults;
    use crate::micro::options::Mode;
    use crate::micro::runner::Finding;
    use crate::micro::test_report::{benchmark, report, row};

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
        let verbose = MicroResults { verbose: true, ..report }.to_string();
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
