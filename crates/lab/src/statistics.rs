//! What a few repeated measurements say: median, spread, and how sure a ratio is.

/// Median and extremes of repeated measurements; not numbers for none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The middle one, or the mean of the middle two.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// Quantiles and mean of a few measurements, each of which was kept; not numbers for none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantiles {
    /// The median.
    pub p50: f64,
    /// 95 of 100 are at most this.
    pub p95: f64,
    /// 99 of 100 are at most this.
    pub p99: f64,
    /// The arithmetic mean.
    pub mean: f64,
}

/// How many times larger one quantity is than another, from paired rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Geometric mean of the rounds' ratios.
    pub estimate: f64,
    /// Lower end of the 95 % confidence interval.
    pub low: f64,
    /// Upper end of the 95 % confidence interval.
    pub high: f64,
    /// Rounds that entered.
    pub rounds: usize,
}

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
const STUDENT_T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// Two-sided 99.9 % quantiles of Student's t for 1 to 30 degrees of freedom.
const STUDENT_T_999: [f64; 30] = [
    636.619, 31.599, 12.924, 8.610, 6.869, 5.959, 5.408, 5.041, 4.781, 4.587, 4.437, 4.318, 4.221, 4.140,
    4.073, 4.015, 3.965, 3.922, 3.883, 3.850, 3.819, 3.792, 3.768, 3.745, 3.725, 3.707, 3.690, 3.674, 3.659,
    3.646,
];

impl Spread {
    /// Not numbers for no values.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else {
            return Spread { median: f64::NAN, min: f64::NAN, max: f64::NAN };
        };
        let middle = &sorted[(sorted.len() - 1) / 2..=sorted.len() / 2];
        Spread { median: mean(middle), min: *min, max: *max }
    }
}

impl Quantiles {
    /// Between two measurements a quantile is interpolated.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        if values.is_empty() {
            return Quantiles { p50: f64::NAN, p95: f64::NAN, p99: f64::NAN, mean: f64::NAN };
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |quantile: f64| {
            let place = quantile * (sorted.len() - 1) as f64;
            let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
            below + (above - below) * place.fract()
        };
        Quantiles { p50: at(0.5), p95: at(0.95), p99: at(0.99), mean: mean(values) }
    }
}

impl Ratio {
    /// The ratio of `pairs`' first to second members, round by round.
    ///
    /// A round's two runs share the machine's state of that minute, so their quotient varies less than either. The
    /// quotients' logarithms are taken for normal; Student's t then bounds their mean. `None` without at least two
    /// rounds of positive numbers.
    #[must_use]
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let logs: Vec<f64> = pairs
            .iter()
            .map(|(numerator, denominator)| (numerator / denominator).ln())
            .filter(|log| log.is_finite())
            .collect();
        if logs.len() < 2 {
            return None;
        }
        let mean = mean(&logs);
        let margin = quantile(&STUDENT_T_95, logs.len() - 1) * squared_error(&logs)?.sqrt();
        Some(Ratio {
            estimate: mean.exp(),
            low: (mean - margin).exp(),
            high: (mean + margin).exp(),
            rounds: logs.len(),
        })
    }

    /// The ratio of two runs' [geometric means](geometric_mean) that have nothing to do with each other, from the samples of
    /// either.
    ///
    /// The samples' logarithms are taken for normal, each run with a variance of its own (Welch). `None` without at least two
    /// samples of each, all of them positive.
    #[must_use]
    pub fn of_runs(numerator: &[f64], denominator: &[f64]) -> Option<Self> {
        let logs = |samples: &[f64]| -> Option<Vec<f64>> {
            samples.iter().map(|sample| Some(sample.ln()).filter(|log| log.is_finite())).collect()
        };
        let (above, below) = (logs(numerator)?, logs(denominator)?);
        let (error_above, error_below) = (squared_error(&above)?, squared_error(&below)?);
        let error = error_above + error_below;
        let part = |error: f64, logs: &[f64]| error.powi(2) / (logs.len() - 1) as f64;
        let parts = part(error_above, &above) + part(error_below, &below);
        // Without any spread there is no doubt, and nothing to divide by.
        let freedom = if parts > 0.0 { (error.powi(2) / parts).max(1.0) as usize } else { 1 };
        let mean = mean(&above) - mean(&below);
        let margin = quantile(&STUDENT_T_95, freedom) * error.sqrt();
        Some(Ratio {
            estimate: mean.exp(),
            low: (mean - margin).exp(),
            high: (mean + margin).exp(),
            rounds: above.len().min(below.len()),
        })
    }
}

/// The arithmetic mean; not a number for no values.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean by which ratios multiply: 0 if one of the values is 0; not a number for no values, or with negative ones.
#[must_use]
pub fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

/// Half the width of the 99.9 % confidence interval of the mean, the values being taken for normal, as JMH reports it. `None`
/// without at least two values.
#[must_use]
pub fn error_999(values: &[f64]) -> Option<f64> {
    let squared_error = squared_error(values)?;
    Some(quantile(&STUDENT_T_999, values.len() - 1) * squared_error.sqrt())
}

/// The square of the mean's standard error.
fn squared_error(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let (count, mean) = (values.len() as f64, mean(values));
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    Some(variance / count)
}

/// The entry of a table of Student's t. Beyond the table its last entry is used: at most 11 % too wide, never too narrow.
fn quantile(table: &[f64; 30], degrees_of_freedom: usize) -> f64 {
    assert!(degrees_of_freedom > 0, "one value has no spread");
    table[degrees_of_freedom.min(table.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::{Quantiles, Ratio, Spread, error_999, geometric_mean};
    use proptest::prelude::*;

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_two() {
        assert_eq!(Spread::of(&[4.0, 1.0, 3.0, 2.0]), Spread { median: 2.5, min: 1.0, max: 4.0 });
        assert_eq!(Spread::of(&[7.0]), Spread { median: 7.0, min: 7.0, max: 7.0 });
        let Spread { median, min, max } = Spread::of(&[]);
        assert!([median, min, max].iter().all(|figure| figure.is_nan()), "nothing was measured");
    }

    #[test]
    fn quantiles_of_a_few_lie_between_them() {
        let quantiles = Quantiles::of(&[3.0, 1.0, 2.0, 5.0, 4.0]);
        assert!((quantiles.p50 - 3.0).abs() < 1e-12 && (quantiles.mean - 3.0).abs() < 1e-12);
        assert!((quantiles.p95 - 4.8).abs() < 1e-12 && (quantiles.p99 - 4.96).abs() < 1e-12);
        let one = Quantiles::of(&[7.0]);
        assert_eq!(one, Quantiles { p50: 7.0, p95: 7.0, p99: 7.0, mean: 7.0 });
        let Quantiles { p50, p95, p99, mean } = Quantiles::of(&[]);
        assert!([p50, p95, p99, mean].iter().all(|figure| figure.is_nan()), "nothing was measured");
    }

    #[test]
    fn the_interval_is_students() {
        // Logarithms 0, ln 2, 2 ln 2: mean ln 2, deviation ln 2, t(2) = 4.303, margin 4.303 * ln 2 / sqrt 3.
        let ratio = Ratio::of(&[(1.0, 1.0), (2.0, 1.0), (4.0, 1.0)]).unwrap();
        let margin = (4.303 * 2.0_f64.ln() / 3.0_f64.sqrt()).exp();
        assert!((ratio.estimate - 2.0).abs() < 1e-12);
        assert!((ratio.high - 2.0 * margin).abs() < 1e-9);
        assert!((ratio.low - 2.0 / margin).abs() < 1e-9);
        assert_eq!(ratio.rounds, 3);
    }

    #[test]
    fn the_error_of_a_mean_is_students() {
        // Deviation 1, three values: t(2) = 31.599 at 99.9 %.
        let error = error_999(&[1.0, 2.0, 3.0]).unwrap();
        assert!((error - 31.599 / 3.0_f64.sqrt()).abs() < 1e-9);
        assert_eq!(error_999(&[1.0]), None);
        assert_eq!(error_999(&[]), None);
    }

    #[test]
    fn the_ratio_of_two_runs_is_welchs() {
        // Both logarithms have the deviation ln 2: then Welch's degrees of freedom are the sum of both, 4; t = 2.776.
        let ratio = Ratio::of_runs(&[2.0, 4.0, 8.0], &[1.0, 2.0, 4.0]).unwrap();
        let margin = (2.776 * 2.0_f64.ln() * (2.0_f64 / 3.0).sqrt()).exp();
        assert!((ratio.estimate - 2.0).abs() < 1e-12);
        assert!((ratio.high - 2.0 * margin).abs() < 1e-9);
        assert!((ratio.low - 2.0 / margin).abs() < 1e-9);
        let certain = Ratio::of_runs(&[3.0, 3.0], &[1.5, 1.5]).unwrap();
        assert_eq!((certain.low, certain.high), (certain.estimate, certain.estimate));
        assert_eq!(Ratio::of_runs(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(Ratio::of_runs(&[1.0, 0.0, 1.0], &[1.0, 2.0]), None, "nothing is left out of the mean");
    }

    #[test]
    fn the_geometric_mean_is_that_of_the_logarithms() {
        assert!((geometric_mean(&[1.0, 4.0]) - 2.0).abs() < 1e-12);
        assert!(geometric_mean(&[0.0, 4.0]) < f64::MIN_POSITIVE);
        assert!(geometric_mean(&[]).is_nan());
    }

    #[test]
    fn one_round_says_nothing_about_confidence() {
        assert_eq!(Ratio::of(&[(2.0, 1.0)]), None);
        assert_eq!(Ratio::of(&[(2.0, 1.0), (0.0, 1.0)]), None, "a failed round is no measurement");
    }

    proptest! {
        #[test]
        fn swapping_the_two_inverts_the_ratio(
            pairs in proptest::collection::vec((1.0_f64..1e6, 1.0_f64..1e6), 2..40),
        ) {
            let ratio = Ratio::of(&pairs).unwrap();
            let swapped: Vec<_> = pairs.iter().map(|(a, b)| (*b, *a)).collect();
            let inverse = Ratio::of(&swapped).unwrap();
            prop_assert!((ratio.estimate * inverse.estimate - 1.0).abs() < 1e-9);
            prop_assert!((ratio.low * inverse.high - 1.0).abs() < 1e-6);
            prop_assert!(ratio.low <= ratio.estimate && ratio.estimate <= ratio.high);
        }
    }
}
