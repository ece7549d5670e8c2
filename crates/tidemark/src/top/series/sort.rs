//! The order of series.

use super::reading::Series;
use clap::ValueEnum;

/// Orders: the highest value first; names in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum Sort {
    /// Points a second
    #[default]
    Rate,
    /// Points
    Points,
    /// Memory
    Memory,
    /// The key
    Name,
}

impl Sort {
    /// Returns the name of the order, as shown.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Rate => "points a second",
            Self::Points => "points",
            Self::Memory => "memory",
            Self::Name => "name",
        }
    }

    /// Sorts series; equal ones by name.
    pub(super) fn order(self, series: &mut [Series]) {
        series.sort_by(|one, other| {
            let order = match self {
                Self::Rate => other.rate.unwrap_or(0.0).total_cmp(&one.rate.unwrap_or(0.0)),
                Self::Points => other.points.cmp(&one.points),
                Self::Memory => other.bytes.cmp(&one.bytes),
                Self::Name => std::cmp::Ordering::Equal,
            };
            order.then_with(|| one.key.cmp(&other.key))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_comes_first_and_names_ascend() {
        let one = |key: &str, points, bytes, rate| Series { key: key.into(), points, bytes, rate, labels: 0 };
        let mut series = [
            one("b", 1, 30, Some(2.0)),
            one("a", 3, 10, None),
            one("c", 2, 20, Some(5.0)),
            one("d", 1, 5, None),
        ];
        for (sort, order) in
            [(Sort::Rate, "cbad"), (Sort::Points, "acbd"), (Sort::Memory, "bcad"), (Sort::Name, "abcd")]
        {
            sort.order(&mut series);
            let keys: Vec<u8> = series.iter().flat_map(|one| one.key.clone()).collect();
            assert_eq!(String::from_utf8(keys).unwrap(), order);
        }
    }
}
