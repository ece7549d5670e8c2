//! Supervision of circuits and pipes: what is done about callbacks that fail.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// What is done about a receptor that panics, or a chain of operators in front of one. In any case
/// the value that was being handled is lost, and the circuit goes on.
///
/// A circuit has one by default
/// ([`CircuitBuilder::supervision`](crate::CircuitBuilder::supervision)); pipes and subscribers may
/// have their own ([`Circuit::supervised`](crate::Circuit::supervised)).
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use tidemark_circuit::{Circuit, Supervision};
///
/// # std::panic::set_hook(Box::new(|_| ()));
/// let restart = Supervision::Restart { at_most: 3, within: Duration::from_secs(60) };
/// let circuit = Circuit::builder().supervision(restart).build()?;
/// let (sender, receiver) = mpsc::channel();
/// let pipe = circuit.pipe_from(move || {
///     let (sender, mut sum) = (sender.clone(), 0);
///     move |value: u64| {
///         sum += value;
///         assert!(sum < 100, "the sum is off");
///         sender.send(sum).unwrap();
///     }
/// })?;
/// [1, 2, 1000, 5].into_iter().for_each(|value| pipe.emit(value));
/// circuit.settle()?;
/// assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [1, 3, 5]); // 5 went to a fresh sum
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Supervision {
    /// The receptor gets the next value, with its current state.
    #[default]
    Resume,
    /// The receptor is dropped after this many failures, and the pipe loses all later values.
    Quarantine {
        /// Number of failures, at least one.
        after: u32,
    },
    /// The receptor is dropped and made again, with fresh state, before the next value. If it fails
    /// more often than allowed, or cannot be made again, it is dropped for good, as in quarantine.
    ///
    /// Operators ([`Pipe::prepend`](crate::Pipe::prepend)) are made again from their recipe, and
    /// receptors that a function made ([`Circuit::pipe_from`](crate::Circuit::pipe_from),
    /// [`Registrar::receptor_from`](crate::Registrar::receptor_from)) by that function. A plain
    /// receptor cannot be made again: it resumes.
    ///
    /// Uses the time of the circuit's inputs, so that a replay restarts where the original did.
    Restart {
        /// Number of restarts allowed `within` any such time. The times of that many are stored.
        at_most: u16,
        /// Length of the sliding window.
        within: Duration,
    },
}

/// What was done about a failure. See [`Supervision`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Remedy {
    /// The receptor goes on with its current state.
    #[default]
    Resumed,
    /// The receptor was made again.
    Restarted,
    /// The receptor was dropped.
    Quarantined,
}

impl Remedy {
    /// The remedy as a word, in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resumed => "resumed",
            Self::Restarted => "restarted",
            Self::Quarantined => "quarantined",
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Supervision {
    /// Returns whether this may make a receptor again.
    pub(crate) fn restarts(self) -> bool {
        matches!(self, Self::Restart { .. })
    }

    /// Decides about failure number `failures`, given the recent restarts; none if the receptor
    /// cannot be made again. A restart is counted as done.
    pub(crate) fn remedy(
        self,
        failures: u32,
        restarts: Option<&mut Restarts>,
        now: impl FnOnce() -> u64,
    ) -> Remedy {
        match (self, restarts) {
            (Self::Quarantine { after }, _) if failures >= after => Remedy::Quarantined,
            (Self::Restart { at_most, within }, Some(restarts)) => {
                if restarts.allow(at_most, within, now()) {
                    Remedy::Restarted
                } else {
                    Remedy::Quarantined
                }
            }
            _ => Remedy::Resumed,
        }
    }
}

/// Times of the recent restarts: nanoseconds of the circuit's time, the oldest first.
#[derive(Default)]
pub(crate) struct Restarts(VecDeque<u64>);

impl Restarts {
    /// Returns whether one more restart is allowed now, and counts it as done.
    fn allow(&mut self, at_most: u16, within: Duration, now: u64) -> bool {
        let within = u64::try_from(within.as_nanos()).unwrap_or(u64::MAX);
        while self.0.front().is_some_and(|oldest| now.saturating_sub(*oldest) > within) {
            self.0.pop_front();
        }
        if self.0.len() >= usize::from(at_most) {
            return false;
        }
        self.0.push_back(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn restart(at_most: u16, within: u64) -> Supervision {
        Supervision::Restart { at_most, within: Duration::from_nanos(within) }
    }

    #[test]
    fn a_receptor_without_a_factory_resumes() {
        assert_eq!(restart(0, 1).remedy(1, None, || 0), Remedy::Resumed);
    }

    #[test]
    fn a_quarantine_begins_with_the_failure_of_its_number() {
        let supervision = Supervision::Quarantine { after: 2 };
        let remedies = (1..=3).map(|failures| supervision.remedy(failures, None, || 0));
        assert!(remedies.eq([Remedy::Resumed, Remedy::Quarantined, Remedy::Quarantined]));
        assert_eq!(Supervision::Quarantine { after: 0 }.remedy(1, None, || 0), Remedy::Quarantined);
    }

    proptest! {
        /// However failures are spread, no window of time has more restarts than allowed, and no
        /// allowed restart is refused.
        #[test]
        fn restarts_are_as_many_as_are_allowed_in_any_window(
            at_most in 0_u16..5,
            within in 0_u64..50,
            pauses in prop::collection::vec(0_u64..30, 1..60),
        ) {
            let (mut restarts, mut done, mut now) = (Restarts::default(), Vec::<u64>::new(), 0);
            for pause in pauses {
                now += pause;
                let lately = done.iter().filter(|then| now - **then <= within).count();
                let remedy = restart(at_most, within).remedy(1, Some(&mut restarts), || now);
                if lately < usize::from(at_most) {
                    prop_assert_eq!(remedy, Remedy::Restarted);
                    done.push(now);
                } else {
                    prop_assert_eq!(remedy, Remedy::Quarantined);
                }
                prop_assert!(restarts.0.len() <= usize::from(at_most));
            }
        }
    }
}
