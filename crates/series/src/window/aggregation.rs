//! What a bucket's points become.

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

impl Aggregation {
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
