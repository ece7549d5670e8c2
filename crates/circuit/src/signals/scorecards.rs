//! Scorecards: the status of a subject by weighted votes. Each sign is a vote for a status, and the
//! status with the most weight wins.
//!
//! A scorecard reflects the bulk of the evidence, not the worst of it: a single
//! [`Down`](statuses::Sign::Down) among many votes for [`Stable`](statuses::Sign::Stable) is
//! outvoted. In a tie, the status that comes first among the signs of [`statuses`] wins.
//!
//! The winner's share of the votes sets the confidence:
//! [`Tentative`](statuses::Dimension::Tentative) below one half,
//! [`Measured`](statuses::Dimension::Measured) below four fifths, and
//! [`Confirmed`](statuses::Dimension::Confirmed) from there.
//!
//! ```
//! use tidemark_circuit::Flow;
//! use tidemark_circuit::signals::{Sign, caches, scorecards, statuses};
//!
//! // The last four signs, each as it reads itself. A lookup says nothing, and is no vote.
//! let flow = Flow::new().window(4)?.filter_map(|window| scorecards::score(&window, caches::Sign::status));
//! let signals = flow.trace([caches::Sign::Lookup, caches::Sign::Hit, caches::Sign::Hit, caches::Sign::Miss])?;
//! let said: Vec<_> = signals.iter().map(ToString::to_string).collect();
//! assert_eq!(said, ["Stable Confirmed", "Stable Confirmed", "Stable Measured"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::{Symbol, statuses};
use crate::operator::flow::Flow;
use crate::operator::window_view::Window;
use crate::operator::{Part, Plan, Stage};

/// Factor by which each later vote reduces the weight of a vote.
const DECAY: f64 = 0.95;
/// Weight of a vote. The total weight is at most 1.
const GAIN: f64 = 1.0 - DECAY;
/// Total weight below which every winner is tentative. It is reached with six votes.
const WARM: f64 = 0.25;
/// Share below which a winner is tentative.
const WEAK: f64 = 0.5;
/// Share from which a winner is confirmed.
const STRONG: f64 = 0.8;
/// Smaller weights are set to 0, as subnormal numbers are slow. This never affects the winner: the
/// last vote alone has a weight of 0.05.
const NOTHING: f64 = 1e-12;

const STATUSES: usize = <statuses::Sign as Symbol>::ALL.len();

/// Returns a flow that emits the winner after each vote. `ballot` returns the status that a value
/// votes for. If it returns none, nothing is emitted. State: eight numbers.
///
/// Later votes count more: each one reduces the weight of earlier votes by a twentieth. So a
/// subject that has recovered gets a good status after some dozen votes. The first five votes are
/// always tentative.
///
/// ```
/// use tidemark_circuit::signals::{Sign, resources, scorecards};
///
/// let flow = scorecards::flow(resources::Sign::status);
/// let said = flow.trace([resources::Sign::Acquire, resources::Sign::Grant])?;
/// assert_eq!(said[0].to_string(), "Stable Tentative"); // one vote: to acquire says nothing
/// let said = flow.trace([resources::Sign::Grant; 6])?;
/// assert_eq!(said[5].to_string(), "Stable Confirmed");
/// # Ok::<(), tidemark_circuit::Fault>(())
/// ```
pub fn flow<E, F>(ballot: F) -> Flow<E, statuses::Signal, impl Plan<E, Out = statuses::Signal>>
where
    E: Send + 'static,
    F: FnMut(E) -> Option<statuses::Sign> + Part,
{
    Flow::new().then(Scorecard { ballot, weights: [0.0; STATUSES], total: 0.0 })
}

/// Returns the winner of the votes in view, with equal weights, or none without votes. `ballot`
/// returns the status that a value votes for, if it votes.
///
/// A single vote is a confirmed win; check the window's length to require more.
pub fn score<E: Copy>(
    window: &Window<'_, E>,
    mut ballot: impl FnMut(E) -> Option<statuses::Sign>,
) -> Option<statuses::Signal> {
    let mut weights = [0.0; STATUSES];
    for status in window.iter().filter_map(|value| ballot(*value)) {
        weights[status.index()] += 1.0;
    }
    let total: f64 = weights.iter().sum();
    (total > 0.0).then(|| winner(&weights, total))
}

#[derive(Clone)]
struct Scorecard<F> {
    ballot: F,
    weights: [f64; STATUSES],
    total: f64,
}

impl<E, F: FnMut(E) -> Option<statuses::Sign> + Part> Stage<E> for Scorecard<F> {
    type Out = statuses::Signal;

    #[inline]
    fn apply(&mut self, value: E) -> Option<statuses::Signal> {
        let status = (self.ballot)(value)?;
        for weight in &mut self.weights {
            *weight *= DECAY;
            if *weight < NOTHING {
                *weight = 0.0;
            }
        }
        self.weights[status.index()] += GAIN;
        self.total = self.total * DECAY + GAIN;
        let mut signal = winner(&self.weights, self.total);
        if self.total < WARM {
            signal.dimension = statuses::Dimension::Tentative;
        }
        Some(signal)
    }
}

fn winner(weights: &[f64; STATUSES], total: f64) -> statuses::Signal {
    let mut sign = statuses::Sign::ALL[0];
    for &other in statuses::Sign::ALL {
        if weights[other.index()] > weights[sign.index()] {
            sign = other;
        }
    }
    let weight = weights[sign.index()];
    let dimension = if weight < WEAK * total {
        statuses::Dimension::Tentative
    } else if weight < STRONG * total {
        statuses::Dimension::Measured
    } else {
        statuses::Dimension::Confirmed
    };
    statuses::Signal { sign, dimension }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::signals::Observation;
    use statuses::Dimension::{Confirmed, Measured, Tentative};
    use statuses::Sign::{Converging, Degraded, Down, Stable};

    fn votes(statuses: impl IntoIterator<Item = statuses::Sign>) -> Vec<statuses::Signal> {
        flow(Some).trace(statuses).expect("no factory fails")
    }

    fn said(sign: statuses::Sign, dimension: statuses::Dimension) -> statuses::Signal {
        statuses::Signal { sign, dimension }
    }

    #[test]
    fn five_votes_are_tentative_and_the_sixth_is_not() {
        let signals = votes([Stable; 6]);
        assert_eq!(signals[..5], [said(Stable, Tentative); 5]);
        assert_eq!(signals[5], said(Stable, Confirmed));
    }

    #[test]
    fn later_votes_outweigh_many_earlier_ones() {
        let signals = votes([Stable; 100].into_iter().chain([Degraded; 100]));
        let changed = signals.iter().position(|signal| signal.sign == Degraded).expect("some time");
        // The last 14 votes or so have half of the weight: ln 0.5 / ln 0.95.
        assert_eq!(changed, 100 + 13);
        assert_eq!(signals[changed], said(Degraded, Measured));
        assert_eq!(signals[199], said(Degraded, Confirmed));
    }

    #[test]
    fn of_equal_weights_the_first_status_wins() {
        assert_eq!(scored(&[Down, Stable, Down, Stable]), Some(said(Stable, Measured)));
        assert_eq!(scored(&[Down, Stable, Converging]), Some(said(Converging, Tentative)));
    }

    #[test]
    fn shares_are_bounded_from_below() {
        let stable = |count| vec![Stable; count];
        assert_eq!(scored(&[stable(4), vec![Down]].concat()), Some(said(Stable, Confirmed)));
        assert_eq!(scored(&[stable(3), vec![Down]].concat()), Some(said(Stable, Measured)));
        assert_eq!(scored(&[]), None);
    }

    #[test]
    fn an_abstention_changes_nothing() {
        let ballot = |vote: Option<statuses::Sign>| vote;
        let with = flow(ballot).trace([Some(Stable), None, Some(Down), None, None, Some(Down)]);
        assert_eq!(with.expect("no factory fails"), votes([Stable, Down, Down]));
    }

    fn scored(statuses: &[statuses::Sign]) -> Option<statuses::Signal> {
        let values = statuses.iter().copied().collect();
        score(&Window::of(&values), Some)
    }

    proptest! {
        #[test]
        fn the_winner_has_the_most_weight(picks in prop::collection::vec(0..STATUSES, 1..400)) {
            let statuses: Vec<_> = picks.iter().map(|pick| statuses::Sign::ALL[*pick]).collect();
            let signals = votes(statuses.iter().copied());
            for (count, signal) in (1..).zip(signals) {
                let weight = |of: statuses::Sign| -> f64 {
                    let places = (0..count).filter(|place| statuses[*place] == of);
                    places.map(|place| GAIN * DECAY.powi((count - 1 - place) as i32)).sum()
                };
                let most = statuses::Sign::ALL.iter().map(|status| weight(*status)).fold(0.0, f64::max);
                prop_assert!(weight(signal.sign) > most - 1e-9);
                prop_assert!(signal.ordinal() < statuses::Signal::COUNT);
            }
        }
    }
}
