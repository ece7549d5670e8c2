//! The points and lookups of every scenario: those of the original.

use crate::random::Random;
use std::hint::black_box;
use tidemark_series::{Options, Series};

/// Seed of the lookups, as in the original.
const SEED: u64 = 42;

/// Returns the value at a time.
#[inline]
pub(super) fn value_at(time: i64) -> f64 {
    time as f64 * 0.1
}

/// Returns the times and values of the first `points` points.
pub(super) fn columns(points: u64) -> (Vec<i64>, Vec<f64>) {
    let times: Vec<i64> = (0..points as i64).collect();
    let values = times.iter().map(|time| value_at(*time)).collect();
    (times, values)
}

/// Returns a series of the first `points` points.
pub(super) fn series(points: u64) -> anyhow::Result<Series<f64>> {
    let mut series = Series::new(Options::default());
    append_all(&mut series, points)?;
    Ok(series)
}

/// Appends the first `points` points one by one.
#[inline]
pub(super) fn append_all(series: &mut Series<f64>, points: u64) -> anyhow::Result<()> {
    let mut added = 0_u64;
    for time in 0..black_box(points) as i64 {
        added += u64::from(series.append(time, value_at(time)).is_ok());
    }
    black_box(&*series);
    anyhow::ensure!(added == points, "{} of {points} points were refused", points - added);
    Ok(())
}

/// Fails unless the series has the first `points` points and no other, to the bit.
pub(super) fn expect_all(series: &Series<f64>, points: u64) -> anyhow::Result<()> {
    let (mut next, mut wrong) = (0, 0_u64);
    series.for_each_run(|times, values| {
        for (time, value) in times.iter().zip(values) {
            wrong += u64::from(*time != next || value.to_bits() != value_at(next).to_bits());
            next += 1;
        }
    });
    anyhow::ensure!(wrong == 0, "{wrong} of {next} points are wrong");
    anyhow::ensure!(next as u64 == points, "{next} points are there where {points} were appended");
    Ok(())
}

/// Times to look up, all of which have a point, and the sum of their values' bits.
#[derive(Debug)]
pub(super) struct Lookups {
    pub(super) times: Vec<i64>,
    sum: u64,
}

impl Lookups {
    /// Draws `count` of the first `points` points. `seen` is what a value is seen through.
    pub(super) fn draw(count: u64, points: u64, seen: impl Fn(f64) -> f64) -> Self {
        let mut random = Random::new(SEED, 0);
        let times: Vec<i64> = (0..count).map(|_| random.below(points) as i64).collect();
        let bits = times.iter().map(|time| seen(value_at(*time)).to_bits());
        let sum = bits.fold(0, u64::wrapping_add);
        Lookups { times, sum }
    }

    /// Looks all of them up. Every bit of every value counts in the result.
    #[inline]
    pub(super) fn run(&self, get: impl Fn(i64) -> Option<f64>) -> anyhow::Result<()> {
        let (mut missed, mut sum) = (0_u64, 0_u64);
        for time in black_box(&self.times[..]) {
            match get(*time) {
                Some(value) => sum = sum.wrapping_add(value.to_bits()),
                None => missed += 1,
            }
        }
        let (missed, sum) = black_box((missed, sum));
        anyhow::ensure!(missed == 0, "{missed} of {} points were not found", self.times.len());
        anyhow::ensure!(sum == self.sum, "a value was served wrong");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Lookups, expect_all, series};

    #[test]
    fn missing_and_wrong_points_are_found() {
        let all = series(3_000).unwrap();
        expect_all(&all, 3_000).unwrap();
        assert!(expect_all(&all, 3_001).is_err() && expect_all(&all, 2_999).is_err());
        let lookups = Lookups::draw(500, 3_000, |value| value);
        lookups.run(|time| all.get(time)).unwrap();
        assert!(lookups.run(|time| all.get(time).filter(|_| time != lookups.times[7])).is_err());
        let wrong =
            |time| all.get(time).map(|value| if time == lookups.times[7] { value + 0.1 } else { value });
        assert_eq!(lookups.run(wrong).unwrap_err().to_string(), "a value was served wrong");
    }
}
