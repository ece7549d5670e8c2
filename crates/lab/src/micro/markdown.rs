//! Output as Markdown tables for a document: `--markdown`.

use super::benchmark::Quantity;
use super::ratios::{RatioLine, Ratios};
use super::report::{Failure, MicroResults, number};
use super::row::Row;
use super::series::Series;
use crate::machine::Machine;
use crate::statistics::Spread;
use std::fmt;

/// A report as tables in Markdown.
pub(crate) struct Markdown<'a>(pub(crate) &'a MicroResults<'a>);

impl fmt::Display for Markdown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { cores, processor, kernel } = &self.0.machine;
        writeln!(out, "{cores} cores, {processor}, {kernel}\n")?;
        writeln!(out, "| row | what is measured | median | best | unit | aim |\n|---|---|--:|--:|---|--:|")?;
        let is_late = |row: &&Row<'_>| row.benchmark.quantity() == Quantity::Latency;
        self.0.rows.iter().filter(|row| !is_late(row)).try_for_each(|row| write_row(row, out))?;
        for Failure { name, why } in &self.0.failures {
            writeln!(out, "| `{name}` | failed: {} | | | | |", in_a_cell(why))?;
        }
        let late: Vec<&Row<'_>> = self.0.rows.iter().filter(is_late).collect();
        if !late.is_empty() {
            write_latencies(&late, out)?;
        }
        Ratios::of(&self.0.rows).iter().try_for_each(|ratios| write_ratios(ratios, out))
    }
}

fn write_row(row: &Row<'_>, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    for series in row.series() {
        let what = if series.label.is_none() { row.benchmark.measures() } else { "" };
        let Series { unit, target, .. } = &series;
        let (median, best) = (number(series.summary().spread.median), number(series.best()));
        let aim = target.map(number).unwrap_or_default();
        let name = series.full_name();
        writeln!(out, "| `{name}` | {} | {median} | {best} | {unit} | {aim} |", in_a_cell(what))?;
    }
    Ok(())
}

fn in_a_cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Writes percentiles of latency and arrival rates; each is the median of the iterations.
fn write_latencies(rows: &[&Row<'_>], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let found: Vec<Vec<Series>> = rows.iter().map(|row| row.series()).collect();
    let mut labels: Vec<&str> = Vec::new();
    for label in found.iter().flatten().filter_map(|series| series.label.as_deref()) {
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    writeln!(
        out,
        "\nMicroseconds that values are late, and how many arrived in a second; medians of the iterations:\n"
    )?;
    writeln!(out, "| row | {} |\n|---|{}", labels.join(" | "), "--:|".repeat(labels.len()))?;
    for (row, series) in rows.iter().zip(&found) {
        write!(out, "| `{}` |", row.benchmark.name())?;
        for label in &labels {
            match series.iter().find(|one| one.label.as_deref() == Some(label)) {
                Some(one) => write!(out, " {} |", number(micros_or_rate(one)))?,
                None => write!(out, " |")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

fn micros_or_rate(series: &Series) -> f64 {
    let median = series.summary().spread.median;
    if series.unit == "ns/op" { median / 1e3 } else { median }
}

fn write_ratios(ratios: &Ratios, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Ratios { group, baseline, lines } = ratios;
    let Some(lines) = lines else {
        return writeln!(
            out,
            "\nNo ratios of {group}: there are no figures of `{baseline}`, which they are over."
        );
    };
    writeln!(out, "\nTimes of {group} over that of `{baseline}`, round by round:\n")?;
    writeln!(
        out,
        "| row | median | smallest | largest | 95 % confidence of the mean |\n|---|--:|--:|--:|---|"
    )?;
    for RatioLine { name, spread: Spread { median, min, max }, ratio } in lines {
        let sure = ratio.as_ref().map(|ratio| format!("{:.2} to {:.2}", ratio.low, ratio.high));
        let sure = sure.unwrap_or_default();
        writeln!(out, "| `{name}` | {median:.2} | {min:.2} | {max:.2} | {sure} |")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Failure, Markdown, MicroResults};
    use crate::micro::options::Mode;
    use crate::micro::runner::Finding;
    use crate::micro::test_report::{benchmark, report, row};

    #[test]
    fn rows_and_ratios_are_tables() {
        let [a, b] = ["P.a", "P.b"].map(|name| benchmark(name).in_group("sending").at_most(2.0));
        let rows =
            vec![row(&a, Mode::AverageTime, &[1.0, 3.0, 2.0]), row(&b, Mode::AverageTime, &[2.0, 6.0, 4.0])];
        let expected = "\
2 cores, a processor, a kernel

| row | what is measured | median | best | unit | aim |
|---|---|--:|--:|---|--:|
| `P.a` | what P.a measures | 2.000 | 1.000 | ns/op | 2.000 |
| `P.b` | what P.b measures | 4.000 | 2.000 | ns/op | 2.000 |

Times of sending over that of `P.a`, round by round:

| row | median | smallest | largest | 95 % confidence of the mean |
|---|--:|--:|--:|---|
| `P.b` | 2.00 | 2.00 | 2.00 | 2.00 to 2.00 |
";
        assert_eq!(Markdown(&report(rows)).to_string(), expected);
    }

    #[test]
    fn what_has_failed_is_a_row() {
        let [a, b] = ["P.b", "P.c"].map(|name| benchmark(name).in_group("sending"));
        let rows = vec![row(&a, Mode::AverageTime, &[1.0]), row(&b, Mode::AverageTime, &[2.0])];
        let failures = vec![Failure { name: "P.a".to_owned(), why: "no a|b".to_owned() }];
        let text = Markdown(&MicroResults { failures, ..report(rows) }).to_string();
        assert!(
            text.contains("| ns/op |  |\n| `P.a` | failed: no a\\|b | | | | |\n\nNo ratios of sending:"),
            "{text}"
        );
    }

    #[test]
    fn latencies_are_a_table_of_their_percentiles() {
        let benchmark = benchmark("P.late").of_latencies();
        let mut late = row(&benchmark, Mode::AverageTime, &[900.0]);
        late.outcome.others = vec![
            Finding::new("p50", "ns/op", vec![400.0, 500.0, 900.0]),
            Finding::new("p99", "ns/op", vec![12_000.0]),
        ];
        let mut at_a_rate = row(&benchmark, Mode::AverageTime, &[900.0]);
        at_a_rate.outcome.others =
            vec![Finding::new("p99", "ns/op", vec![7_000.0]), Finding::new("rate", "ops/s", vec![9_999.0])];
        let text = Markdown(&report(vec![late, at_a_rate])).to_string();
        let expected = "\
| row | p50 | p99 | rate |
|---|--:|--:|--:|
| `P.late` | 0.500 | 12.000 | |
| `P.late` | | 7.000 | 9999.0 |
";
        assert!(text.ends_with(expected), "{text}");
        assert!(!text.contains("what P.late measures"), "{text}");
    }
}
