//! What a few repeated measurements say: median, spread, and how sure a ratio is.

use serde::Serialize;

/// Median and extremes of repeated measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The middle one, or the mean of the middle two.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// How many times larger one quantity is than another, from paired rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
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

impl Spread {
    /// All zero for no values.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else { return Spread::default() };
        let middle = sorted.get((sorted.len() - 1) / 2..=sorted.len() / 2).unwrap_or_default();
        Spread { median: middle.iter().sum::<f64>() / middle.len().max(1) as f64, min: *min, max: *max }
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
        let count = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / count;
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let margin = student_t_95(logs.len() - 1) * (variance / count).sqrt();
        Some(Ratio {
            estimate: mean.exp(),
            low: (mean - margin).exp(),
            high: (mean + margin).exp(),
            rounds: logs.len(),
        })
    }
}

fn student_t_95(degrees_of_freedom: usize) -> f64 {
    debug_assert!(degrees_of_freedom > 0);
    // Beyond the table the last entry is used: at most 4 % too wide, never too narrow.
    let place = degrees_of_freedom.clamp(1, STUDENT_T_95.len()) - 1;
    STUDENT_T_95.get(place).copied().unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::{Ratio, Spread};
    use proptest::prelude::*;

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_two() {
        assert_eq!(Spread::of(&[4.0, 1.0, 3.0, 2.0]), Spread { median: 2.5, min: 1.0, max: 4.0 });
        assert_eq!(Spread::of(&[7.0]), Spread { median: 7.0, min: 7.0, max: 7.0 });
        assert_eq!(Spread::of(&[]), Spread::default());
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
