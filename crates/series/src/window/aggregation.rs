//! What a bucket's points become.

use std::fmt;
use std::str::FromStr;

/// How the values of a bucket become one. NaNs are left out of all but the two that count them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aggregation {
    /// Arithmetic mean.
    Avg,
    /// Sum.
    Sum,
    /// Lowest value.
    Min,
    /// Highest value.
    Max,
    /// Highest less lowest value.
    Range,
    /// Number of values that are not NaN.
    Count,
    /// Number of NaNs.
    CountNan,
    /// Number of values, NaNs included.
    CountAll,
    /// Value at the earliest time.
    First,
    /// Value at the latest time.
    Last,
    /// Standard deviation of the population.
    StdP,
    /// Standard deviation of a sample.
    StdS,
    /// Variance of the population.
    VarP,
    /// Variance of a sample.
    VarS,
    /// Mean over time of the straight lines between the points.
    Twa,
    /// Value below which this share, 0 to 1, of the values lies; on the line between two values if
    /// need be.
    Quantile(f64),
    /// Sum of all steps up since the point before the bucket; a step down counts as a restart at zero.
    Increase,
    /// [`Aggregation::Increase`] divided by the bucket's duration, which is in the caller's unit.
    Rate,
}

/// The aggregations without a parameter, with their names.
const NAMED: [(&str, Aggregation); 17] = [
    ("avg", Aggregation::Avg),
    ("sum", Aggregation::Sum),
    ("min", Aggregation::Min),
    ("max", Aggregation::Max),
    ("range", Aggregation::Range),
    ("count", Aggregation::Count),
    ("countnan", Aggregation::CountNan),
    ("countall", Aggregation::CountAll),
    ("first", Aggregation::First),
    ("last", Aggregation::Last),
    ("std.p", Aggregation::StdP),
    ("std.s", Aggregation::StdS),
    ("var.p", Aggregation::VarP),
    ("var.s", Aggregation::VarS),
    ("twa", Aggregation::Twa),
    ("increase", Aggregation::Increase),
    ("rate", Aggregation::Rate),
];

/// What the name of a quantile begins with.
const QUANTILE: &str = "quantile:";

/// The name of no aggregation was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no aggregation has this name")]
pub struct UnknownAggregation;

/// The name is read in either case: `avg`, `STD.P`, `quantile:0.99`.
impl FromStr for Aggregation {
    type Err = UnknownAggregation;

    fn from_str(name: &str) -> Result<Self, UnknownAggregation> {
        let name = name.to_ascii_lowercase();
        if let Some(share) = name.strip_prefix(QUANTILE) {
            let share = share.parse().ok().filter(|share| (0.0..=1.0).contains(share));
            return share.map(Self::Quantile).ok_or(UnknownAggregation);
        }
        let known = NAMED.iter().find(|(known, _)| *known == name);
        known.map(|(_, aggregation)| *aggregation).ok_or(UnknownAggregation)
    }
}

impl fmt::Display for Aggregation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Quantile(share) = self {
            return write!(f, "{QUANTILE}{share}");
        }
        let named = NAMED.iter().find(|(_, known)| known == self);
        f.write_str(named.expect("every aggregation without a parameter has a name").0)
    }
}

impl Aggregation {
    /// Whether the value of a bucket depends on the number before its points, and on the one behind
    /// them.
    pub fn uses_neighbours(self) -> (bool, bool) {
        match self {
            Self::Twa => (true, true),
            Self::Increase | Self::Rate => (true, false),
            _ => (false, false),
        }
    }

    /// Whether the value of a bucket depends on when its points are, or in which order.
    pub fn depends_on_time(self) -> bool {
        matches!(self, Self::First | Self::Last | Self::Twa | Self::Increase | Self::Rate)
    }

    /// Returns the value of a bucket without points, if it is a number without regard to the points
    /// around it.
    pub(super) fn of_nothing(self) -> f64 {
        match self {
            Self::Sum | Self::Count | Self::CountNan | Self::CountAll => 0.0,
            _ => f64::NAN,
        }
    }
}

/// What aggregations together need of the points.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Needs {
    pub sum: bool,
    pub range: bool,
    pub spread: bool,
    pub values: bool,
    pub area: bool,
    pub steps: bool,
}

impl Needs {
    pub(super) fn of(aggregations: &[Aggregation]) -> Self {
        let mut needs = Self::default();
        for aggregation in aggregations {
            match aggregation {
                Aggregation::Avg | Aggregation::Sum => needs.sum = true,
                Aggregation::Min | Aggregation::Max | Aggregation::Range => needs.range = true,
                Aggregation::StdP | Aggregation::StdS | Aggregation::VarP | Aggregation::VarS => {
                    needs.spread = true;
                }
                Aggregation::Quantile(_) => needs.values = true,
                Aggregation::Twa => needs.area = true,
                Aggregation::Increase | Aggregation::Rate => needs.steps = true,
                Aggregation::Count
                | Aggregation::CountNan
                | Aggregation::CountAll
                | Aggregation::First
                | Aggregation::Last => {}
            }
        }
        needs
    }

    /// Whether a block's summary is enough.
    pub(super) fn only_summaries(self) -> bool {
        !(self.spread || self.values || self.area || self.steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_is_written() {
        let quantiles = [0.0, 0.5, 0.99, 1.0].map(Aggregation::Quantile);
        for aggregation in NAMED.iter().map(|(_, aggregation)| *aggregation).chain(quantiles) {
            let name = aggregation.to_string();
            assert_eq!(name.parse(), Ok(aggregation));
            assert_eq!(name.to_ascii_uppercase().parse(), Ok(aggregation));
        }
        for name in ["", "mean", "quantile:", "quantile:1.5", "quantile:nan", "avg,max", " avg"] {
            assert_eq!(name.parse::<Aggregation>(), Err(UnknownAggregation), "{name}");
        }
    }
}
