//! Functions of time, and lenses: the same function seen through another.

use crate::sample::Sample;
use crate::series::{Direction, Series};
use std::marker::PhantomData;
use std::ops::{ControlFlow, RangeInclusive};

/// Reads runs of points at rising times, until it breaks off.
pub type ReadRuns<'r, V> = dyn FnMut(&[i64], &[V]) -> ControlFlow<()> + 'r;

/// A partial function from time to values.
pub trait Function {
    /// Type of its values.
    type Value: Copy;

    /// Returns the value at exactly `time`.
    fn get(&self, time: i64) -> Option<Self::Value>;

    /// Reads the points in `range`, in runs at rising times, until `run` breaks off.
    fn read(&self, range: RangeInclusive<i64>, direction: Direction, run: &mut ReadRuns<'_, Self::Value>);

    /// Returns the function seen through `map`. Nothing is computed or copied until it is read.
    ///
    /// ```
    /// use tidemark_series::{Function, Options, Series};
    ///
    /// let mut celsius = Series::new(Options::default());
    /// celsius.append(1_000, 100.0).unwrap();
    /// let fahrenheit = celsius.through(|degrees| degrees * 9.0 / 5.0 + 32.0);
    /// let boiling = fahrenheit.through(|degrees| degrees >= 212.0);
    /// assert_eq!(boiling.get(1_000), Some(true));
    /// ```
    fn through<W: Copy, F: Fn(Self::Value) -> W>(&self, map: F) -> Lens<'_, Self, F, W>
    where
        Self: Sized,
    {
        Lens { source: self, map, value: PhantomData }
    }
}

impl<V: Sample> Function for Series<V> {
    type Value = V;

    #[inline]
    fn get(&self, time: i64) -> Option<V> {
        self.get(time)
    }

    fn read(&self, range: RangeInclusive<i64>, direction: Direction, mut run: &mut ReadRuns<'_, V>) {
        self.read(range, direction, &mut run);
    }
}

/// A function of time seen through a function of its values: where the one has no value, neither has
/// the other.
///
/// Lenses compose: a lens over a lens is a lens through both functions, and a lens through the
/// identity is its source.
#[derive(Debug, Clone, Copy)]
pub struct Lens<'s, S, F, W> {
    source: &'s S,
    map: F,
    value: PhantomData<W>,
}

impl<S: Function, F: Fn(S::Value) -> W, W: Copy> Function for Lens<'_, S, F, W> {
    type Value = W;

    #[inline]
    fn get(&self, time: i64) -> Option<W> {
        self.source.get(time).map(&self.map)
    }

    fn read(&self, range: RangeInclusive<i64>, direction: Direction, run: &mut ReadRuns<'_, W>) {
        let mut mapped = Vec::new();
        self.source.read(range, direction, &mut |times, values| {
            mapped.clear();
            mapped.extend(values.iter().map(|value| (self.map)(*value)));
            run(times, &mapped)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use proptest::prelude::*;

    fn points<F: Function>(function: &F) -> Vec<(i64, F::Value)> {
        let mut points = Vec::new();
        function.read(i64::MIN..=i64::MAX, Direction::Forward, &mut |times, values| {
            points.extend(times.iter().copied().zip(values.iter().copied()));
            ControlFlow::Continue(())
        });
        points
    }

    fn series() -> impl Strategy<Value = Series<i64>> {
        proptest::collection::btree_map(-5_000_i64..5_000, any::<i64>(), 0..3_000).prop_map(|points| {
            let mut series = Series::new(Options::default());
            for (time, value) in points {
                series.append(time, value).unwrap();
            }
            series.seal();
            series
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

        #[test]
        fn a_lens_through_the_identity_is_its_source(series in series()) {
            prop_assert_eq!(points(&series.through(|value| value)), points(&series));
        }

        #[test]
        fn lenses_compose_like_their_functions(series in series(), add in any::<i64>(), factor in any::<i64>()) {
            let first = move |value: i64| value.wrapping_add(add);
            let second = move |value: i64| value.wrapping_mul(factor);
            let third = |value: i64| value % 7 == 0;
            let through_both = series.through(move |value| second(first(value)));
            let after_another = series.through(first);
            let after_another = after_another.through(second);
            prop_assert_eq!(points(&after_another), points(&through_both));
            prop_assert_eq!(points(&after_another.through(third)), points(&through_both.through(third)));
            for time in [-1, 0, 1] {
                prop_assert_eq!(after_another.get(time), series.get(time).map(|value| second(first(value))));
            }
        }
    }
}
