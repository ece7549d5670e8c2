//! Output in the format of Go's benchmarks, for tools that read it: `--go`.
//!
//! ```text
//! BenchmarkDrawWithCallback-2     12000000          41.20 ns/op         0.000 allocs/draw  24271845 draws/sec
//! ```
//!
//! There is a line for each iteration, as with `go test -count`: tools that compare Go's benchmarks
//! need several.

use super::benchmark::Quantity;
use super::report::{Failure, MicroResults};
use super::row::Row;
use super::runner::Finding;
use crate::machine::Machine;
use std::fmt;

/// A report in Go's format.
pub(crate) struct GoLines<'a>(pub(crate) &'a MicroResults<'a>);

impl fmt::Display for GoLines<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MicroResults { rows, failures, machine: Machine { cores, processor, .. }, .. } = self.0;
        writeln!(out, "goos: {}\ngoarch: {}\ncpu: {processor}", std::env::consts::OS, go_architecture())?;
        let name = |row: &Row<'_>| format!("Benchmark{}-{cores}", short_name(row.benchmark.name()));
        let width = rows.iter().map(|row| name(row).len()).max().unwrap_or(0);
        for row in rows {
            let forks = row.outcome.samples.iter().zip(&row.outcome.operations);
            for (fork, (samples, operations)) in forks.enumerate() {
                for (number, (sample, operations)) in samples.iter().zip(operations).enumerate() {
                    write!(out, "{:width$}\t{operations:>8}", name(row))?;
                    let found = |finding: &Finding| value_of(finding, fork, number);
                    metrics(row, *sample, found)
                        .iter()
                        .try_for_each(|(unit, value)| write!(out, "\t{} {unit}", padded(*value)))?;
                    writeln!(out)?;
                }
            }
        }
        for Failure { name, why } in failures {
            writeln!(out, "--- FAIL: Benchmark{}\n    {why}", short_name(name))?;
        }
        writeln!(out, "{}", if failures.is_empty() { "PASS" } else { "FAIL" })
    }
}

/// Returns the name without its suite, which Go's format does not have.
fn short_name(name: &str) -> &str {
    name.split_once('.').map_or(name, |(_, benchmark)| benchmark)
}

/// Returns Go's name of the processor architecture.
fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Returns the finding of an iteration, or the single one of its fork.
fn value_of(finding: &Finding, fork: usize, number: usize) -> Option<f64> {
    let samples = finding.samples.get(fork)?;
    samples.get(number).or_else(|| samples.last()).copied()
}

/// Returns values with units: the benchmark's main metric first, then the others by name, as in Go.
fn metrics(row: &Row<'_>, sample: f64, found: impl Fn(&Finding) -> Option<f64>) -> Vec<(String, f64)> {
    let (benchmark, operation) = (row.benchmark, row.benchmark.operation());
    let mut others = Vec::new();
    let first = match benchmark.quantity() {
        Quantity::Amount(unit) => unit,
        Quantity::Latency => "ns/op",
        Quantity::Time => {
            others.push((format!("{operation}s/sec"), 1e9 / sample));
            "ns/op"
        }
    };
    let unit = |finding: &Finding| match (finding.label.as_str(), finding.unit.as_str()) {
        ("gc.alloc.rate.norm", _) => format!("bytes/{operation}"),
        ("gc.alloc.count.norm", _) => format!("allocs/{operation}"),
        (label, "ns/op") => format!("{label}-ns"),
        (label, "ops/s") => format!("{label}/sec"),
        (label, _) => label.to_owned(),
    };
    others.extend(row.outcome.others.iter().filter_map(|one| Some((unit(one), found(one)?))));
    others.sort_by(|(a, _), (b, _)| a.cmp(b));
    std::iter::once((first.to_owned(), sample)).chain(others).collect()
}

/// Formats a value with at least four digits, with aligned decimal points.
fn padded(value: f64) -> String {
    match value.abs() {
        size if size == 0.0 || size >= 999.95 => format!("{value:>10.0}"),
        size if size >= 99.995 => format!("{value:>12.1}"),
        size if size >= 9.9995 => format!("{value:>13.2}"),
        size if size >= 0.999_95 => format!("{value:>14.3}"),
        size if size >= 0.099_995 => format!("{value:>15.4}"),
        size if size >= 0.009_999_5 => format!("{value:>16.5}"),
        _ => format!("{value:>17.6}"),
    }
}

#[cfg(test)]
mod tests {
    use super::GoLines;
    use crate::micro::options::Mode;
    use crate::micro::report::{Failure, MicroResults};
    use crate::micro::runner::Finding;
    use crate::micro::test_report::{benchmark, report, row};

    #[test]
    fn there_is_a_line_for_each_iteration_with_pairs_of_value_and_unit() {
        let benchmark = benchmark("PoolOps.PoolDrawWithBasicWALCallback").of("draw");
        let mut row = row(&benchmark, Mode::Throughput, &[40.0, 3490.0]);
        row.outcome.operations = vec![vec![1_000_000, 405_006]];
        row.outcome.others = vec![
            Finding::new("wal_bytes/draw", "B", vec![2.5, 1.25]),
            Finding::new("wal_file_size", "B", vec![2_500_000.0, 8_288_895.0]),
            Finding::new("gc.alloc.rate.norm", "B/op", vec![0.0]),
            Finding::new("gc.alloc.count.norm", "allocs/op", vec![0.001]),
        ];
        let text = GoLines(&report(vec![row])).to_string();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[2], ["cpu:", "a", "processor"]);
        let name = "BenchmarkPoolDrawWithBasicWALCallback-2";
        assert_eq!(
            lines[3].join(" "),
            format!(
                "{name} 1000000 40.00 ns/op 0.001000 allocs/draw 0 bytes/draw 25000000 draws/sec 2.500 wal_bytes/draw \
                 2500000 wal_file_size"
            )
        );
        assert_eq!(
            lines[4].join(" "),
            format!(
                "{name} 405006 3490 ns/op 0.001000 allocs/draw 0 bytes/draw 286533 draws/sec 1.250 wal_bytes/draw \
                 8288895 wal_file_size"
            )
        );
        assert_eq!(lines[5], ["PASS"]);
    }

    #[test]
    fn percentiles_are_nanoseconds_amounts_have_their_unit_and_failures_are_reported() {
        let (late, amount) = (benchmark("P.late").of_latencies(), benchmark("P.memory").in_unit("B/item"));
        let mut rows =
            vec![row(&late, Mode::AverageTime, &[900.0]), row(&amount, Mode::AverageTime, &[30.5])];
        rows[0].outcome.operations = vec![vec![9]];
        rows[1].outcome.operations = vec![vec![1]];
        rows[0].outcome.others =
            vec![Finding::new("p99", "ns/op", vec![7.0]), Finding::new("rate", "ops/s", vec![8.0])];
        let failures = vec![Failure { name: "P.lost".to_owned(), why: "it did not arrive".to_owned() }];
        let text = GoLines(&MicroResults { failures, ..report(rows) }).to_string();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().skip(3).map(words).collect();
        assert_eq!(
            lines,
            [
                "Benchmarklate-2 9 900.0 ns/op 7.000 p99-ns 8.000 rate/sec",
                "Benchmarkmemory-2 1 30.50 B/item",
                "--- FAIL: Benchmarklost",
                "it did not arrive",
                "FAIL"
            ]
        );
    }
}
