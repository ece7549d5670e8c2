//! Operators that read the clock.
//!
//! Inside a circuit the clock does not advance while an input and all that it causes are handled.

use std::time::Duration;

use super::{And, Part, Plan, Stage, nanos};
use crate::ArgumentError;
use crate::Fiber;
use crate::execution::machine::now_nanos;

impl<E: Send + 'static, R: Plan<E, Out = E>> Fiber<E, R> {
    /// Passes the first value in each interval after the first interval, and drops the others.
    ///
    /// The first interval starts with the first value, which is dropped. The intervals have a fixed
    /// length: a late value does not shift later ones. State: two times. Cost: one reading of the
    /// clock per value.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tidemark_circuit::{ArgumentError, Fiber};
    /// let once_a_day = Fiber::new().every_duration(Duration::from_hours(24))?;
    /// assert!(once_a_day.trace([1, 2, 3]).unwrap().is_empty());
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn every_duration(
        self,
        interval: Duration,
    ) -> Result<Fiber<E, And<R, EveryDuration>>, ArgumentError> {
        Ok(self.then(EveryDuration { interval: nanos("every_duration", interval)?, due: None }))
    }

    /// Drops values equal to the previous one, but for at most `silence`. After that, an equal
    /// value emits the held value again.
    ///
    /// The silence is counted from the first dropped value, and from each repetition. The clock is
    /// read only when an equal value arrives, so without values there are no repetitions. State:
    /// one value and one time.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tidemark_circuit::{ArgumentError, Fiber};
    /// let alive = Fiber::new().heartbeat(Duration::from_secs(60))?;
    /// assert_eq!(alive.trace([1, 1, 2, 2, 1]).unwrap(), [1, 2, 1]);
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn heartbeat(self, silence: Duration) -> Result<Fiber<E, And<R, Heartbeat<E>>>, ArgumentError>
    where
        E: Part + PartialEq,
    {
        Ok(self.then(Heartbeat { silence: nanos("heartbeat", silence)?, held: None, since: None }))
    }
}

/// The stage of [`Fiber::every_duration`].
#[derive(Clone)]
pub struct EveryDuration {
    interval: u64,
    /// Start of the next interval from which no value has passed.
    due: Option<u64>,
}

impl<E> Stage<E> for EveryDuration {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        self.passes_at(now_nanos()).then_some(value)
    }
}

impl EveryDuration {
    fn passes_at(&mut self, now: u64) -> bool {
        let Some(due) = self.due else {
            self.due = Some(now.saturating_add(self.interval));
            return false;
        };
        if now < due {
            return false;
        }
        let late = (now - due) % self.interval;
        self.due = Some((now - late).saturating_add(self.interval));
        true
    }
}

/// The stage of [`Fiber::heartbeat`].
#[derive(Clone)]
pub struct Heartbeat<E> {
    silence: u64,
    held: Option<E>,
    /// Time of the first dropped value or of the last repetition.
    since: Option<u64>,
}

impl<E: Part + PartialEq> Stage<E> for Heartbeat<E> {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        self.apply_at(value, now_nanos)
    }
}

impl<E: Part + PartialEq> Heartbeat<E> {
    #[inline]
    fn apply_at(&mut self, value: E, now: impl FnOnce() -> u64) -> Option<E> {
        if self.held.as_ref() != Some(&value) {
            self.held = Some(value.clone());
            self.since = None;
            return Some(value);
        }
        let now = now();
        let since = *self.since.get_or_insert(now);
        if now.saturating_sub(since) < self.silence {
            return None;
        }
        self.since = Some(now);
        self.held.clone()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn passing(interval: u64, times: &[u64]) -> Vec<u64> {
        let mut stage = EveryDuration { interval, due: None };
        times.iter().copied().filter(|now| stage.passes_at(*now)).collect()
    }

    #[test]
    fn one_value_passes_in_each_interval_after_the_first() {
        assert_eq!(passing(10, &[3, 12, 13, 14, 22, 23, 33]), [13, 23, 33]);
    }

    #[test]
    fn a_late_value_does_not_move_the_intervals() {
        assert_eq!(passing(250, &[0, 600, 780, 999, 1000]), [600, 780, 1000]);
    }

    #[test]
    fn intervals_beyond_the_clock_never_come() {
        assert_eq!(passing(u64::MAX, &[5, 6, u64::MAX - 1]), [0_u64; 0]);
    }

    fn beats(silence: u64, values: &[(u64, char)]) -> Vec<(u64, char)> {
        let mut stage = Heartbeat { silence, held: None, since: None };
        let out = |(now, value): &(u64, char)| stage.apply_at(*value, || *now).map(|value| (*now, value));
        values.iter().filter_map(out).collect()
    }

    #[test]
    fn silence_is_counted_from_the_first_repetition() {
        assert_eq!(beats(10, &[(0, 'a'), (50, 'a'), (59, 'a'), (60, 'a')]), [(0, 'a'), (60, 'a')]);
    }

    #[test]
    fn silence_is_counted_anew_after_a_beat() {
        let values = [(0, 'a'), (1, 'a'), (11, 'a'), (20, 'a'), (21, 'a')];
        assert_eq!(beats(10, &values), [(0, 'a'), (11, 'a'), (21, 'a')]);
    }

    #[test]
    fn another_value_ends_the_silence() {
        let values = [(0, 'a'), (1, 'a'), (5, 'b'), (12, 'b'), (21, 'b'), (22, 'b')];
        assert_eq!(beats(10, &values), [(0, 'a'), (5, 'b'), (22, 'b')]);
    }

    proptest! {
        #[test]
        fn the_first_value_of_each_interval_passes(
            steps in prop::collection::vec(0_u64..8, 1..60),
            interval in 1_u64..20,
        ) {
            let times: Vec<u64> = steps.iter().scan(3, |now, step| { *now += step; Some(*now) }).collect();
            let number = |time: u64| (time - times[0]) / interval;
            let model = times.windows(2).map(|pair| (number(pair[0]), pair[1]));
            let model = model.filter(|(before, time)| number(*time) > *before).map(|(_, time)| time);
            prop_assert_eq!(passing(interval, &times), model.collect::<Vec<_>>());
        }

        #[test]
        fn a_beat_comes_after_each_silence(
            steps in prop::collection::vec((0_u64..8, prop::char::range('a', 'b')), 0..60),
            silence in 1_u64..20,
        ) {
            let timed = steps.iter().scan(0, |now, (step, value)| { *now += step; Some((*now, *value)) });
            let values: Vec<(u64, char)> = timed.collect();
            let mut model = Vec::new();
            for run in values.chunk_by(|left, right| left.1 == right.1) {
                model.push(run[0]);
                let mut quiet_since = run.get(1).map_or(0, |first| first.0);
                for (time, value) in run.iter().skip(2) {
                    if time - quiet_since >= silence {
                        model.push((*time, *value));
                        quiet_since = *time;
                    }
                }
            }
            prop_assert_eq!(beats(silence, &values), model);
        }
    }
}
