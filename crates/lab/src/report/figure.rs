//! Figures of a report.

use crate::statistics::Spread;
use serde::{Deserialize, Serialize};
use serde_json::Number;

/// A measured or counted number with its unit. What was not measured has no key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// What it is, such as `latency`.
    pub name: String,
    /// The part of the run that it belongs to, such as a server; none for the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The round or iteration that it belongs to, from 1; none for all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    /// Such as `ms` or `count`.
    pub unit: String,
    /// The number; of several measurements, their median.
    pub value: Number,
    /// Number of measurements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Arithmetic mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Number>,
    /// Smallest measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Number>,
    /// 90 of 100 measurements are at most this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p90: Option<Number>,
    /// 95 of 100 measurements are at most this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95: Option<Number>,
    /// 99 of 100 measurements are at most this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<Number>,
    /// 999 of 1000 measurements are at most this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p999: Option<Number>,
    /// Largest measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Number>,
    /// Lower end of the 95 % confidence interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<Number>,
    /// Upper end of the 95 % confidence interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<Number>,
    /// Distribution of the measurements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<Bucket>,
    /// Numbers of the counted things, if they have numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub which: Vec<u64>,
}

/// Measurements within a range, which begins where the previous bucket ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bucket {
    /// End of the range, which is not in it; none for the last bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below: Option<u64>,
    /// Number of measurements.
    pub count: u64,
}

/// A number that may be missing.
pub(crate) trait Measured {
    /// Returns the number if there is one that JSON has.
    fn number(self) -> Option<Number>;
}

impl Measured for f64 {
    fn number(self) -> Option<Number> {
        Number::from_f64(self)
    }
}

impl Measured for u128 {
    fn number(self) -> Option<Number> {
        Number::from_u128(self)
    }
}

macro_rules! whole_numbers {
    ($($type:ty),*) => {
        $(impl Measured for $type {
            fn number(self) -> Option<Number> {
                Some(self.into())
            }
        })*
    };
}

whole_numbers!(u32, u64, usize, i64);

impl<T: Measured> Measured for Option<T> {
    fn number(self) -> Option<Number> {
        self.and_then(Measured::number)
    }
}

/// The figures of a report while they are collected.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    list: Vec<Figure>,
    of: Option<String>,
    round: Option<u32>,
}

impl Figures {
    /// Adds a figure, which is returned for its further numbers; nothing if the value is missing.
    pub(crate) fn add(&mut self, name: &str, unit: &str, value: impl Measured) -> Option<&mut Figure> {
        self.list.push(Figure {
            name: name.to_owned(),
            of: self.of.clone(),
            round: self.round,
            unit: unit.to_owned(),
            value: value.number()?,
            count: None,
            mean: None,
            min: None,
            p90: None,
            p95: None,
            p99: None,
            p999: None,
            max: None,
            low: None,
            high: None,
            histogram: Vec::new(),
            which: Vec::new(),
        });
        self.list.last_mut()
    }

    /// Adds counts of these names.
    pub(crate) fn add_counts<const N: usize>(&mut self, counts: [(&str, u64); N]) {
        for (name, count) in counts {
            self.add(name, "count", count);
        }
    }

    /// Adds the figures of one part of the run.
    pub(crate) fn add_of(&mut self, part: &str, add: impl FnOnce(&mut Self)) {
        let whole = self.of.replace(part.to_owned());
        add(self);
        self.of = whole;
    }

    /// Adds the median and the extremes of measurements in `rounds` rounds.
    pub(crate) fn add_spread(
        &mut self,
        name: &str,
        unit: &str,
        spread: Spread,
        rounds: usize,
    ) -> Option<&mut Figure> {
        let figure = self.add(name, unit, spread.median)?;
        figure.count = Some(rounds as u64);
        figure.min = spread.min.number();
        figure.max = spread.max.number();
        Some(figure)
    }

    /// Returns all figures.
    pub(crate) fn into_list(self) -> Vec<Figure> {
        self.list
    }
}

#[cfg(feature = "wire")]
mod summaries {
    use super::{Figures, Measured};
    use crate::latency::LatencySummary;
    use crate::statistics::{Quantiles, Ratio};

    /// Summaries of several measurements.
    impl Figures {
        /// Adds the figures of one round.
        pub(crate) fn add_round(&mut self, round: u32, add: impl FnOnce(&mut Self)) {
            let all = self.round.replace(round);
            add(self);
            self.round = all;
        }

        /// Adds a count of things with these numbers.
        pub(crate) fn add_numbered(&mut self, name: &str, which: &[u64]) {
            if let Some(figure) = self.add(name, "count", which.len()) {
                figure.which = which.to_vec();
            }
        }

        /// Adds latencies in milliseconds.
        pub(crate) fn add_latency(&mut self, name: &str, latency: &LatencySummary) {
            if let Some(figure) = self.add(name, "ms", latency.p50) {
                figure.count = Some(latency.count);
                figure.p95 = latency.p95.number();
                figure.p99 = latency.p99.number();
                figure.p999 = latency.p999.number();
                figure.max = latency.max.number();
            }
        }

        /// Adds the quantiles and the mean of a few measurements.
        pub(crate) fn add_quantiles(&mut self, name: &str, unit: &str, values: &[f64]) {
            let Quantiles { p50, p95, p99, mean } = Quantiles::of(values);
            if let Some(figure) = self.add(name, unit, p50) {
                figure.count = Some(values.len() as u64);
                figure.p95 = p95.number();
                figure.p99 = p99.number();
                figure.mean = mean.number();
            }
        }

        /// Adds a ratio with its confidence.
        pub(crate) fn add_ratio(&mut self, name: &str, ratio: Option<Ratio>) {
            let Some(Ratio { estimate, low, high, rounds }) = ratio else { return };
            if let Some(figure) = self.add(name, "ratio", estimate) {
                figure.count = Some(rounds as u64);
                figure.low = low.number();
                figure.high = high.number();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Figures;

    #[test]
    fn what_was_not_measured_is_left_out() {
        let mut figures = Figures::default();
        assert!(figures.add("latency", "ms", f64::NAN).is_none());
        assert!(figures.add("restart_time", "ms", None::<f64>).is_none());
        figures.add("failed_operations", "count", 0_u64);
        let json = serde_json::to_value(figures.into_list()).unwrap();
        assert_eq!(json, serde_json::json!([{ "name": "failed_operations", "unit": "count", "value": 0 }]));
    }

    #[cfg(feature = "wire")]
    #[test]
    fn summaries_without_measurements_are_left_out() {
        use crate::latency::LatencySummary;
        let mut figures = Figures::default();
        figures.add_latency("latency", &LatencySummary::default());
        figures.add_quantiles("resume_time", "ms", &[]);
        figures.add_ratio("throughput_ratio", None);
        assert_eq!(figures.into_list(), []);
    }

    #[test]
    fn a_part_names_its_figures_and_no_others() {
        let mut figures = Figures::default();
        figures.add_of("vsa", |figures| figures.add_counts([("refused", 1)]));
        figures.add_counts([("refused", 2)]);
        let of: Vec<_> = figures.into_list().into_iter().map(|figure| figure.of).collect();
        assert_eq!(of, [Some("vsa".to_owned()), None]);
    }
}
