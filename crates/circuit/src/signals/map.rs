//! Values precomputed for each observation of a vocabulary.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Index;
use std::sync::Arc;

use super::{Observation, Signal};
use crate::operator::Plan;
use crate::operator::flow::Flow;

/// A value for each sign of a vocabulary.
pub type SignMap<S, T> = Map<S, T>;

/// A value for each signal of a vocabulary: each sign in each dimension.
pub type SignalMap<S, D, T> = Map<Signal<S, D>, T>;

/// A precomputed value for each observation of a vocabulary. A lookup is one load.
///
/// Defines a reading of a vocabulary other than its own. Clones share the values.
///
/// ```
/// use tidemark_circuit::signals::{Map, Sign, SignalMap, statuses, timers};
///
/// // A deadline that is missed is worse than what a missed time says by itself.
/// let readings: SignalMap<timers::Sign, timers::Dimension, _> = Map::new(|signal: timers::Signal| match signal {
///     timers::Signal { sign: timers::Sign::Miss, dimension: timers::Dimension::Deadline } => {
///         Some(statuses::Sign::Defective)
///     }
///     other => other.sign.status(),
/// });
/// let missed = |dimension| timers::Signal { sign: timers::Sign::Miss, dimension };
/// assert_eq!(readings[missed(timers::Dimension::Deadline)], Some(statuses::Sign::Defective));
/// assert_eq!(readings[missed(timers::Dimension::Threshold)], Some(statuses::Sign::Degraded));
/// ```
pub struct Map<O, T> {
    values: Arc<[T]>,
    observations: PhantomData<fn(O)>,
}

impl<O: Observation, T> Map<O, T> {
    /// Creates a map of the results of the function. It is called once for each observation, in the
    /// order of their ordinals.
    pub fn new(value: impl FnMut(O) -> T) -> Self {
        let values: Arc<[T]> = O::all().map(value).collect();
        assert_eq!(values.len(), O::COUNT, "each observation has an ordinal");
        Self { values, observations: PhantomData }
    }

    /// Iterates over the observations and their values, in the order of their ordinals.
    pub fn iter(&self) -> impl Iterator<Item = (O, &T)> {
        O::all().zip(&*self.values)
    }
}

impl<O, T> Map<O, T> {
    /// Returns the address of the values. Clones share it; it is unique among existing maps.
    pub(super) fn address(&self) -> *const T {
        self.values.as_ptr()
    }

    /// Returns the values, in the order of the ordinals, if no clone shares them.
    pub(super) fn own_values(&mut self) -> Option<&mut [T]> {
        Arc::get_mut(&mut self.values)
    }
}

impl<O: Observation, T: Copy + Send + Sync + 'static> Map<O, Option<T>> {
    /// Returns a flow that emits the value of each observation that has one, and drops the others.
    /// No state.
    ///
    /// ```
    /// use tidemark_circuit::signals::{SignMap, counters, situations};
    ///
    /// let urgency = SignMap::new(|sign| (sign == counters::Sign::Overflow).then_some(situations::Sign::Critical));
    /// let said = [counters::Sign::Increment, counters::Sign::Overflow];
    /// assert_eq!(urgency.flow().trace(said)?, [situations::Sign::Critical]);
    /// # Ok::<(), tidemark_circuit::Fault>(())
    /// ```
    pub fn flow(&self) -> Flow<O, T, impl Plan<O, Out = T> + use<O, T>> {
        let map = self.clone();
        Flow::new().filter_map(move |observation| map[observation])
    }
}

impl<O: Observation, T> Index<O> for Map<O, T> {
    type Output = T;

    #[inline]
    fn index(&self, observation: O) -> &T {
        &self.values[observation.ordinal()]
    }
}

impl<O, T> Clone for Map<O, T> {
    fn clone(&self) -> Self {
        Self { values: Arc::clone(&self.values), observations: PhantomData }
    }
}

impl<O: Observation, T: fmt::Debug> fmt::Debug for Map<O, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
