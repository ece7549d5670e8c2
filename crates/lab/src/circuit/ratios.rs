//! How many times longer rows take than the first of those that they were measured in turns with.

use super::benchmark::Quantity;
use super::report::{Row, Series};
use crate::statistics::{Ratio, Spread};

/// The ratios of rows that were measured in turns.
pub(super) struct Ratios {
    pub(super) group: String,
    /// The row that the others are compared with.
    pub(super) baseline: String,
    pub(super) lines: Vec<RatioLine>,
}

/// One comparison, of all rounds.
pub(super) struct RatioLine {
    pub(super) name: String,
    /// Of the rounds' ratios.
    pub(super) spread: Spread,
    /// What the rounds say together, if there are enough.
    pub(super) ratio: Option<Ratio>,
}

impl Ratios {
    /// The ratios of all groups that have more than one row.
    pub(super) fn of(rows: &[Row<'_>]) -> Vec<Self> {
        let mut groups: Vec<&str> = Vec::new();
        for row in rows {
            groups.extend(row.group.as_deref().filter(|group| !groups.contains(group)));
        }
        let group = |name: &&str| Self::of_group(rows, name);
        groups.iter().map(group).filter(|one| !one.lines.is_empty()).collect()
    }

    fn of_group(rows: &[Row<'_>], group: &str) -> Self {
        let mut members = rows.iter().filter(|row| row.group.as_deref() == Some(group));
        let first = members.next();
        let baseline: Vec<Series> = first.map(Row::times).unwrap_or_default();
        let lines = members.flat_map(compared).filter_map(|series| {
            let counterpart = |one: &&Series| (&one.label, &one.unit) == (&series.label, &series.unit);
            RatioLine::new(&series, baseline.iter().find(counterpart)?)
        });
        Ratios {
            group: group.to_owned(),
            baseline: first.map(|row| row.benchmark.name().to_owned()).unwrap_or_default(),
            lines: lines.collect(),
        }
    }
}

/// The percentiles of latencies that are compared.
const PERCENTILES: [&str; 3] = ["p50", "p99", "p99.9"];

/// What is compared of a row: of latencies some percentiles, and not their mean, which is that of the worst ones.
fn compared(row: &Row<'_>) -> Vec<Series> {
    let mut all = row.times();
    if row.benchmark.quantity() == Quantity::Latency {
        all.retain(|series| series.label.as_deref().is_some_and(|label| PERCENTILES.contains(&label)));
    }
    all
}

impl RatioLine {
    /// None if nothing was measured of either in the same round.
    fn new(series: &Series, baseline: &Series) -> Option<Self> {
        let pairs: Vec<(f64, f64)> =
            series.samples.concat().into_iter().zip(baseline.samples.concat()).collect();
        let quotients: Vec<f64> =
            pairs.iter().map(|(one, other)| one / other).filter(|quotient| quotient.is_finite()).collect();
        let ratio = Ratio::of(&pairs);
        (!quotients.is_empty()).then(|| RatioLine {
            name: series.full_name(),
            spread: Spread::of(&quotients),
            ratio,
        })
    }
}
