//! Distinct integers in ascending order, in 2, 4 or 8 bytes each, as the widest one needs.
#![allow(clippy::useless_conversion, reason = "one expression serves three vectors, and converts for two")]

/// A sorted set of integers. Lookups are O(log n), changes O(n).
#[derive(Debug)]
pub(super) enum Integers {
    /// Two bytes each.
    Short(Vec<i16>),
    /// Four bytes each.
    Medium(Vec<i32>),
    /// Eight bytes each.
    Long(Vec<i64>),
}

impl Default for Integers {
    fn default() -> Self {
        Self::Short(Vec::new())
    }
}

/// Evaluates an expression on the vector of any width.
macro_rules! either {
    ($integers:expr, $vec:ident => $run:expr) => {
        match $integers {
            Integers::Short($vec) => $run,
            Integers::Medium($vec) => $run,
            Integers::Long($vec) => $run,
        }
    };
}

impl Integers {
    /// Returns the number of integers.
    pub(super) fn len(&self) -> usize {
        either!(self, vec => vec.len())
    }

    /// Returns the integer at an index.
    pub(super) fn get(&self, index: usize) -> Option<i64> {
        either!(self, vec => vec.get(index).map(|&value| value.into()))
    }

    /// Whether the set contains an integer.
    #[inline]
    pub(super) fn contains(&self, value: i64) -> bool {
        self.search(value).is_ok()
    }

    /// Adds an integer. Returns whether it is new.
    pub(super) fn insert(&mut self, value: i64) -> bool {
        let Err(index) = self.search(value) else { return false };
        self.widen_for(value);
        either!(self, vec => match value.try_into() {
            Ok(value) => vec.insert(index, value),
            Err(_) => unreachable!("the vector has been widened for the value"),
        });
        true
    }

    /// Removes an integer. Returns whether it was present.
    pub(super) fn remove(&mut self, value: i64) -> bool {
        let Ok(index) = self.search(value) else { return false };
        either!(self, vec => drop(vec.remove(index)));
        true
    }

    /// Iterates over all integers, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = i64> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Returns the index of an integer, or the index to insert it at.
    #[inline]
    fn search(&self, value: i64) -> Result<usize, usize> {
        either!(self, vec => vec.binary_search_by(|&other| i64::from(other).cmp(&value)))
    }

    fn widen_for(&mut self, value: i64) {
        let fits = match self {
            Self::Short(_) => i16::try_from(value).is_ok(),
            Self::Medium(_) => i32::try_from(value).is_ok(),
            Self::Long(_) => true,
        };
        if fits {
            return;
        }
        *self = if i32::try_from(value).is_ok() {
            Self::Medium(self.iter().filter_map(|value| i32::try_from(value).ok()).collect())
        } else {
            Self::Long(self.iter().collect())
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn integers_behave_as_a_sorted_set(
            steps in proptest::collection::vec(
                (any::<bool>(), prop_oneof![-9..9_i64, -40_000..40_000_i64, any::<i64>()]),
                0..200,
            ),
        ) {
            let (mut integers, mut model) = (Integers::default(), BTreeSet::new());
            for (add, value) in steps {
                if add {
                    prop_assert_eq!(integers.insert(value), model.insert(value));
                } else {
                    prop_assert_eq!(integers.remove(value), model.remove(&value));
                }
                prop_assert_eq!(integers.contains(value), add);
                prop_assert!(integers.iter().eq(model.iter().copied()));
            }
        }
    }

    #[test]
    fn integers_take_no_more_bytes_than_they_need() {
        let mut integers = Integers::default();
        integers.insert(i16::MAX.into());
        assert!(matches!(integers, Integers::Short(_)));
        integers.insert(i32::MIN.into());
        assert!(matches!(integers, Integers::Medium(_)));
        integers.insert(i64::MAX);
        assert!(matches!(integers, Integers::Long(_)));
        assert!(integers.iter().eq([i32::MIN.into(), i16::MAX.into(), i64::MAX]));
    }
}
