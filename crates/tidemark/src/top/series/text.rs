//! Series as lines for people, in 80 columns.

use super::reading::{Reading, Series};
use crate::counted::plural;
use crate::name::{clipped, printable};
use crate::top::line::{Line, grouped, plain, title};

/// Columns of a series' key.
const KEY: usize = 28;

/// Returns a reading.
pub(super) fn lines(reading: &Reading) -> Vec<Line> {
    let rate = reading.rate.map_or_else(String::new, |rate| format!(", {rate:.1} a second"));
    let more = if reading.is_all { "" } else { " (there are more)" };
    let mut lines = vec![plain(format!(
        "{} series{more}; {} {}{rate}; {} bytes",
        grouped(reading.count as u64),
        grouped(reading.points),
        plural(reading.points, "point"),
        grouped(reading.bytes),
    ))];
    if !reading.series.is_empty() {
        lines.push(title(format!(
            "{:>10} {:>14} {:>14} {:>8}  SERIES",
            "POINTS/S", "POINTS", "BYTES", "B/POINT"
        )));
    }
    lines.extend(reading.series.iter().map(of_series));
    lines
}

fn of_series(series: &Series) -> Line {
    let number = |number: Option<f64>| number.map_or_else(|| "-".to_owned(), |number| format!("{number:.1}"));
    plain(format!(
        "{:>10} {:>14} {:>14} {:>8}  {}",
        number(series.rate),
        grouped(series.points),
        grouped(series.bytes),
        number(series.bytes_per_point()),
        clipped(&printable(&series.key), KEY),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_a_page() {
        let one = |key: &str, points, rate| Series { key: key.into(), points, bytes: 4_000, rate, labels: 1 };
        let series = vec![one("cpu\u{1b}[2J", 2_000, Some(10.0)), one("empty", 0, None)];
        let reading = Reading { count: 2, is_all: false, points: 2_000, rate: None, bytes: 8_000, series };
        let texts: Vec<String> = lines(&reading).into_iter().map(|line| line.text).collect();
        assert_eq!(
            texts,
            [
                "2 series (there are more); 2,000 points; 8,000 bytes",
                "  POINTS/S         POINTS          BYTES  B/POINT  SERIES",
                "      10.0          2,000          4,000      2.0  cpu\\u{1b}[2J",
                "         -              0          4,000        -  empty",
            ]
        );
    }
}
