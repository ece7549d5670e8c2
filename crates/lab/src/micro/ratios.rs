//! Cost ratios of rows to the baseline of their group.

use super::benchmark::Quantity;
use super::group::Group;
use super::row::Row;
use super::series::Series;
use crate::statistics::{Ratio, Spread};

/// Ratios of the rows of one group.
pub(crate) struct Ratios {
    pub(crate) group: String,
    /// Name of the baseline row.
    pub(crate) baseline: String,
    /// `None` if the baseline has no figures.
    pub(crate) lines: Option<Vec<RatioLine>>,
}

/// One comparison over all rounds.
pub(crate) struct RatioLine {
    pub(crate) name: String,
    /// Spread of the rounds' ratios.
    pub(crate) spread: Spread,
    /// The ratio over all rounds, if there are enough.
    pub(crate) ratio: Option<Ratio>,
}

impl Ratios {
    /// Returns the ratios of all groups that have more rows than the baseline.
    pub(crate) fn of(rows: &[Row<'_>]) -> Vec<Self> {
        let mut groups: Vec<&Group> = Vec::new();
        for row in rows {
            groups.extend(row.group.as_ref().filter(|group| !groups.contains(group)));
        }
        groups.iter().filter_map(|group| Self::of_group(rows, group)).collect()
    }

    fn of_group(rows: &[Row<'_>], group: &Group) -> Option<Self> {
        let members = rows.iter().filter(|row| row.group.as_ref() == Some(group));
        let (baselines, others): (Vec<_>, Vec<_>) =
            members.partition(|row| row.benchmark.name() == group.baseline);
        let lines = baselines.first().map(|baseline| lines(&others, &baseline.times()));
        let Group { name, baseline } = group.clone();
        (!lines.as_ref().is_some_and(Vec::is_empty)).then_some(Ratios { group: name, baseline, lines })
    }
}

fn lines(others: &[&Row<'_>], baseline: &[Series]) -> Vec<RatioLine> {
    let line = |series: Series| {
        let counterpart = |one: &&Series| (&one.label, &one.unit) == (&series.label, &series.unit);
        RatioLine::new(&series, baseline.iter().find(counterpart)?)
    };
    others.iter().flat_map(|row| compared(row)).filter_map(line).collect()
}

/// Compared percentiles of latency.
const PERCENTILES: [&str; 3] = ["p50", "p99", "p99.9"];

/// Returns the compared series of a row. For latencies these are percentiles: the worst values
/// dominate a mean.
fn compared(row: &Row<'_>) -> Vec<Series> {
    let mut all = row.times();
    if row.benchmark.quantity() == Quantity::Latency {
        all.retain(|series| series.label.as_deref().is_some_and(|label| PERCENTILES.contains(&label)));
    }
    all
}

impl RatioLine {
    /// Returns `None` if no round has figures of both.
    fn new(series: &Series, baseline: &Series) -> Option<Self> {
        // Fork by fork: an interrupted fork may have one sample less of one row than of the other.
        let forks = series.samples.iter().zip(&baseline.samples);
        let pairs: Vec<(f64, f64)> =
            forks.flat_map(|(one, other)| one.iter().copied().zip(other.iter().copied())).collect();
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
