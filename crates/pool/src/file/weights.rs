//! Conversion of weights to integers, by one power of ten for all.

use super::decimal::{Decimal, NumberError};
use super::error::Problem;
use crate::catalogue::Mode;
use std::fmt;

/// A weight as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) number: Decimal,
    pub(super) percent: bool,
}

impl Weight {
    /// Parses a weight: a number, optionally in per cent.
    pub(super) fn parse(text: &str) -> Result<Self, NumberError> {
        let number = text.strip_suffix('%');
        let percent = number.is_some();
        Ok(Self { number: Decimal::parse(number.map_or(text, str::trim_end))?, percent })
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.number, if self.percent { "%" } else { "" })
    }
}

/// Weights as integers.
pub(super) struct Whole {
    pub(super) weights: Vec<u64>,
    /// Index of the weight whose digits after the point determined the power of ten; `None` if all
    /// were integers.
    pub(super) finest: Option<usize>,
}

/// Multiplies all weights by the smallest power of ten that makes them integers. An error includes
/// the index of the weight.
pub(super) fn whole(weights: &[Weight], mode: Mode) -> Result<Whole, (Option<usize>, Problem)> {
    let behind = |position: &usize| weights[*position].number.digits_behind_point();
    let finest = (0..weights.len()).rev().max_by_key(behind).filter(|position| behind(position) > 0);
    let shift = finest.as_ref().map_or(0, behind);
    check_percentages(weights, mode, shift)?;
    let weights_whole = weights.iter().map(|weight| weight.number.shifted(shift));
    let whole: Option<Vec<u64>> = weights_whole.clone().collect();
    match whole {
        Some(weights) => Ok(Whole { weights, finest }),
        None => {
            let position = weights_whole.take_while(Option::is_some).count();
            Err(too_large(weights, finest, position))
        }
    }
}

/// Returns the problem of the weight at `position`, which is too large.
fn too_large(weights: &[Weight], finest: Option<usize>, position: usize) -> (Option<usize>, Problem) {
    match finest {
        Some(finest) => (Some(finest), too_many_digits(weights[finest], position)),
        None => {
            let (spelled, error) = (weights[position].to_string().into(), NumberError::TooLarge);
            (Some(position), Problem::Number { key: "weight", spelled, error })
        }
    }
}

/// Returns the problem if the digits of `finest` make the weights too large at `position`.
pub(super) fn too_many_digits(finest: Weight, position: usize) -> Problem {
    Problem::TooManyDigits {
        weight: finest.to_string().into(),
        digits: finest.number.digits_behind_point(),
        number: position + 1,
    }
}

fn check_percentages(weights: &[Weight], mode: Mode, shift: u32) -> Result<(), (Option<usize>, Problem)> {
    let Some(first) = weights.iter().position(|weight| weight.percent) else { return Ok(()) };
    if mode == Mode::PerUnit {
        return Err((Some(first), Problem::PercentPerUnit));
    }
    // Zero is the same in per cent and without.
    if let Some(other) = weights.iter().position(|weight| !weight.percent && weight.number.digits > 0) {
        return Err((Some(other), Problem::MixedPercent));
    }
    let mut terms = weights.iter().map(|weight| weight.number.shifted(shift));
    let sum = terms.try_fold(0_u128, |sum, term| sum.checked_add(u128::from(term?)));
    let hundred = 10_u128.checked_pow(shift).and_then(|one| one.checked_mul(100));
    match sum {
        Some(sum) if Some(sum) != hundred => Err((None, Problem::PercentSum { sum: pointed(sum, shift) })),
        // If the sum overflows, the conversion to integers reports that.
        _ => Ok(()),
    }
}

/// Formats an integer divided by a power of ten.
fn pointed(number: u128, behind: u32) -> Box<str> {
    let digits = format!("{number:0>width$}", width = behind as usize + 1);
    let (whole, fraction) = digits.split_at(digits.len() - behind as usize);
    match fraction.trim_end_matches('0') {
        "" => whole.into(),
        fraction => format!("{whole}.{fraction}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn made_whole(texts: &[&str]) -> Result<Vec<u64>, String> {
        let weights: Vec<Weight> = texts.iter().map(|text| Weight::parse(text).expect(text)).collect();
        match whole(&weights, Mode::FixedOdds) {
            Ok(whole) => Ok(whole.weights),
            Err((_, problem)) => Err(problem.to_string()),
        }
    }

    #[test]
    fn one_power_of_ten_makes_all_whole() {
        assert_eq!(made_whole(&["10", "20", "30"]), Ok(vec![10, 20, 30]));
        assert_eq!(made_whole(&["0.1", "0.2"]), Ok(vec![1, 2]));
        assert_eq!(made_whole(&["0.50", "12.25", "0"]), Ok(vec![50, 1225, 0]));
        assert_eq!(made_whole(&["1e3", "1e-3"]), Ok(vec![1_000_000, 1]));
        assert_eq!(made_whole(&["1e-300", "25e-301"]), Ok(vec![10, 25]));
        assert_eq!(made_whole(&["12.5%", "87.5 %", "0"]), Ok(vec![125, 875, 0]));
    }

    #[test]
    fn percentages_must_be_the_odds() {
        assert_eq!(
            made_whole(&["33.3%", "33.3%", "33.3%"]),
            Err(
                "the weights in per cent add up to 99.9 %, not 100 %: correct them, or write them as numbers"
                    .into()
            )
        );
        assert_eq!(
            made_whole(&["50%", "50"]),
            Err("some weights are in per cent and some are not: write all of them in one way".into())
        );
    }

    #[test]
    fn what_does_not_fit_is_said_with_the_digits_that_are_too_many() {
        assert_eq!(
            made_whole(&["1e15", "1", "0.0001"]),
            Err("the weight 0.0001 has 4 digits behind the point; made whole numbers by 10 to the power of 4, the weights add \
                 up to more than 9223372036854775807 at item 1: use fewer digits"
                .into())
        );
        assert_eq!(
            made_whole(&["1", "1e19"]),
            Err("the weight 1e19 is too large: at most 9223372036854775807 is possible".into())
        );
    }

    proptest! {
        #[test]
        fn ratios_are_kept_exactly(
            weights in proptest::collection::vec((0_u64..1_000_000, 0_u32..8), 1..20),
        ) {
            let texts: Vec<String> = weights.iter().map(|(digits, behind)| format!("{digits}e-{behind}")).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let whole = made_whole(&texts).expect("they fit");
            for (a, &(digits, behind)) in weights.iter().enumerate() {
                for (b, &(other, other_behind)) in weights.iter().enumerate() {
                    let left = u128::from(whole[a]) * u128::from(other) * 10_u128.pow(behind);
                    let right = u128::from(whole[b]) * u128::from(digits) * 10_u128.pow(other_behind);
                    prop_assert_eq!(left, right);
                }
            }
        }
    }
}
