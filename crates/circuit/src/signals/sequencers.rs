//! Sequencers: the status of a subject by the order of its signs. For example, a release without an
//! acquisition is a defect, whatever the signs mean alone.
//!
//! There are two flows. [`episodes`] is for episodes with a beginning and an end; it needs only a
//! vocabulary that maps its signs to their parts ([`Episodic`]). [`machine`] is for everything
//! else: a state machine over signs.
//!
//! Both follow one episode at a time, so concurrent episodes need subjects with different names.
//! They do not read the clock: a timeout must be a sign (`Timeout`, `Expire`) that another
//! component emits.

use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::sync::Arc;

use super::{Episodic, Map, Observation, operations, statuses};
use crate::operator::flow::Flow;
use crate::operator::{Part, Plan, Stage};
use operations::Sign::{Advance, Begin, End};
use statuses::Sign as Status;

/// Returns a flow that emits the status implied by the order of signs, according to their parts of
/// an episode. State: whether an episode is open.
///
/// | sign | no episode is open | an episode is open |
/// |---|---|---|
/// | begins | [`Diverging`](Status::Diverging); opens one | [`Defective`](Status::Defective): the last one never ended; opens another |
/// | advances | nothing | its status, with [`Converging`](Status::Converging) for good ones; nothing without one |
/// | ends | [`Defective`](Status::Defective): it never began | its status, with [`Stable`](Status::Stable) for good ones or without one |
///
/// A bad status becomes [`Defective`](Status::Defective) if it is that or [`Down`](Status::Down),
/// and [`Degraded`](Status::Degraded) otherwise.
///
/// ```
/// use tidemark_circuit::signals::sequencers::episodes;
/// use tidemark_circuit::signals::statuses::Sign::{Converging, Defective, Degraded, Diverging, Stable};
/// use tidemark_circuit::signals::tasks::Sign::{Cancel, Complete, Start, Submit, Timeout};
///
/// assert_eq!(episodes().trace([Submit, Start, Complete])?, [Diverging, Stable]);
/// assert_eq!(episodes().trace([Submit, Timeout, Cancel])?, [Diverging, Degraded, Defective]);
///
/// use tidemark_circuit::signals::leases::Sign::{Acquire, Grant, Revoke};
/// assert_eq!(episodes().trace([Acquire, Grant, Revoke])?, [Diverging, Converging, Defective]);
/// # Ok::<(), tidemark_circuit::Fault>(())
/// ```
pub fn episodes<S: Episodic>() -> Flow<S, Status, impl Plan<S, Out = Status>> {
    episodes_by(S::operation, S::status)
}

/// Returns a flow as [`episodes`] does, with custom readings of a vocabulary or of other values.
///
/// ```
/// use tidemark_circuit::signals::sequencers::episodes_by;
/// use tidemark_circuit::signals::services::Sign::{Start, Stop, Success};
/// use tidemark_circuit::signals::statuses::Sign::{Converging, Diverging, Stable};
/// use tidemark_circuit::signals::{Sign, operations, services};
///
/// // A service that is asked starts and stops. (One that asks calls and is answered, so services have no parts of their own.)
/// let operation = |sign| match sign {
///     services::Sign::Start => operations::Sign::Begin,
///     services::Sign::Stop => operations::Sign::End,
///     _ => operations::Sign::Advance,
/// };
/// let flow = episodes_by(operation, services::Sign::status);
/// assert_eq!(flow.trace([Start, Success, Stop])?, [Diverging, Converging, Stable]);
/// # Ok::<(), tidemark_circuit::Fault>(())
/// ```
pub fn episodes_by<E, O, T>(operation: O, status: T) -> Flow<E, Status, impl Plan<E, Out = Status>>
where
    E: Copy + Send + 'static,
    O: FnMut(E) -> operations::Sign + Part,
    T: FnMut(E) -> Option<Status> + Part,
{
    Flow::new().then(Episodes { operation, status, is_open: false })
}

#[derive(Clone)]
struct Episodes<O, T> {
    operation: O,
    status: T,
    is_open: bool,
}

impl<E, O, T> Stage<E> for Episodes<O, T>
where
    E: Copy,
    O: FnMut(E) -> operations::Sign + Part,
    T: FnMut(E) -> Option<Status> + Part,
{
    type Out = Status;

    #[inline]
    fn apply(&mut self, value: E) -> Option<Status> {
        let operation = (self.operation)(value);
        let status = (self.status)(value);
        let was_open = self.is_open;
        self.is_open = match operation {
            Begin => true,
            Advance => was_open,
            End => false,
        };
        match (operation, was_open) {
            (Begin, false) => Some(Status::Diverging),
            (Begin, true) | (End, false) => Some(Status::Defective),
            (Advance, false) => None,
            (Advance, true) => status.map(|status| folded(status, Status::Converging)),
            (End, true) => Some(status.map_or(Status::Stable, |status| folded(status, Status::Stable))),
        }
    }
}

/// Reduces a sign's status within an episode: to `good`, `Degraded` or `Defective`.
fn folded(status: Status, good: Status) -> Status {
    match status {
        Status::Stable | Status::Converging => good,
        Status::Degraded | Status::Erratic | Status::Diverging => Status::Degraded,
        Status::Defective | Status::Down => Status::Defective,
    }
}

/// Returns a flow that runs a state machine over signs and emits the status of each transition. It
/// begins in `start`. State: the current state.
///
/// All attachments share one transition table; a value costs one load of it.
///
/// ```
/// use tidemark_circuit::signals::sequencers::{State, Step, machine};
/// use tidemark_circuit::signals::statuses::Sign::{Converging, Degraded, Diverging, Stable};
/// use tidemark_circuit::signals::atomics::Sign::{Attempt, Backoff, Fail, Park, Success};
///
/// // The longer it takes, the worse.
/// let contended = State::new(|sign| match sign {
///     Success => Step::Restart(Some(Converging)),
///     Backoff | Park => Step::Restart(Some(Degraded)),
///     _ => Step::Stay,
/// });
/// let tried = State::new(|sign| match sign {
///     Success => Step::Restart(Some(Stable)),
///     Fail => Step::Next(Some(Diverging), contended.clone()),
///     _ => Step::Stay,
/// });
/// let idle = State::new(|sign| match sign {
///     Attempt => Step::Next(None, tried.clone()),
///     _ => Step::Stay,
/// });
/// let flow = machine(&idle);
/// assert_eq!(flow.trace([Attempt, Success, Attempt, Fail, Fail, Success])?, [Stable, Diverging, Converging]);
/// assert_eq!(flow.trace([Success, Attempt, Fail, Park])?, [Diverging, Degraded]);
/// # Ok::<(), tidemark_circuit::Fault>(())
/// ```
pub fn machine<O: Observation>(start: &State<O>) -> Flow<O, Status, impl Plan<O, Out = Status> + use<O>> {
    let moves = moves(start);
    Flow::new().then(Walk { moves, row: 0 })
}

/// A state of a [`machine`]: its transition for each observation. Clones are the same state.
///
/// A state's transitions lead to states made before it, or restart the machine. So every loop goes
/// through the start state.
pub struct State<O>(Map<O, Step<O>>);

/// A transition of a state.
#[derive(Clone, Debug)]
pub enum Step<O> {
    /// Stays in the state and emits nothing.
    Stay,
    /// Returns to the start state, and emits the status, if there is one.
    Restart(Option<Status>),
    /// Goes to the given state, and emits the status, if there is one.
    Next(Option<Status>, State<O>),
}

impl<O: Observation> State<O> {
    /// Creates a state with these transitions. The function is called once for each observation.
    pub fn new(step: impl FnMut(O) -> Step<O>) -> Self {
        Self(Map::new(step))
    }
}

impl<O> Clone for State<O> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<O> State<O> {
    /// Moves the target states of the transitions to `next`, if no clone shares them.
    fn take_next(&mut self, next: &mut Vec<Self>) {
        for step in self.0.own_values().unwrap_or_default() {
            if let Step::Next(_, state) = mem::replace(step, Step::Stay) {
                next.push(state);
            }
        }
    }
}

impl<O> Drop for State<O> {
    /// Drops the target states in a loop: recursion could overflow the stack on a long chain.
    fn drop(&mut self) {
        let mut left = Vec::new();
        self.take_next(&mut left);
        while let Some(mut state) = left.pop() {
            state.take_next(&mut left);
        }
    }
}

impl<O> fmt::Debug for State<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

#[derive(Clone)]
struct Walk {
    /// A row of moves for each state, indexed by the observation's ordinal. The first row is that
    /// of the start state.
    moves: Arc<[Move]>,
    /// Offset of the current state's row.
    row: u32,
}

#[derive(Clone, Copy)]
struct Move {
    says: Option<Status>,
    row: u32,
}

impl<O: Observation> Stage<O> for Walk {
    type Out = Status;

    #[inline]
    fn apply(&mut self, observation: O) -> Option<Status> {
        let step = self.moves[self.row as usize + observation.ordinal()];
        self.row = step.row;
        step.says
    }
}

/// Returns the rows of all reachable states.
fn moves<O: Observation>(start: &State<O>) -> Arc<[Move]> {
    let mut found = Found { states: vec![start.clone()], numbers: HashMap::from([(start.0.address(), 0)]) };
    let mut moves = Vec::new();
    let mut at = 0;
    // Rows are in the order in which states are found. Writing a row may find further states.
    while let Some(state) = found.states.get(at).cloned() {
        for (_, step) in state.0.iter() {
            let (says, next) = match step {
                Step::Stay => (None, at),
                Step::Restart(says) => (*says, 0),
                Step::Next(says, next) => (*says, found.number(next)),
            };
            moves.push(Move { says, row: (next * O::COUNT) as u32 });
        }
        at += 1;
    }
    assert_eq!(moves.len(), found.states.len() * O::COUNT, "each state has a row");
    moves.into()
}

/// States and the numbers of their rows.
struct Found<O> {
    states: Vec<State<O>>,
    /// By the address of their transitions, which is stable as long as `states` holds them.
    numbers: HashMap<*const Step<O>, usize>,
}

impl<O> Found<O> {
    fn number(&mut self, state: &State<O>) -> usize {
        let next = self.states.len();
        let number = *self.numbers.entry(state.0.address()).or_insert(next);
        if number == next {
            self.states.push(state.clone());
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::signals::{Symbol, locks, probes};
    use Status::{Converging, Defective, Degraded, Diverging, Down, Erratic, Stable};

    fn statuses(parts: impl IntoIterator<Item = (operations::Sign, Option<Status>)>) -> Vec<Status> {
        let flow = episodes_by(|(operation, _)| operation, |(_, status)| status);
        flow.trace(parts).expect("no factory fails")
    }

    #[test]
    fn within_an_episode_a_status_is_folded_by_how_bad_it_is() {
        let folds = [
            (None, None, Stable),
            (Some(Stable), Some(Converging), Stable),
            (Some(Converging), Some(Converging), Stable),
            (Some(Diverging), Some(Degraded), Degraded),
            (Some(Erratic), Some(Degraded), Degraded),
            (Some(Degraded), Some(Degraded), Degraded),
            (Some(Defective), Some(Defective), Defective),
            (Some(Down), Some(Defective), Defective),
        ];
        for (status, advancing, ending) in folds {
            let said = statuses([(Begin, None), (Advance, status), (End, status)]);
            let expected: Vec<_> = [Some(Diverging), advancing, Some(ending)].into_iter().flatten().collect();
            assert_eq!(said, expected, "{status:?}");
        }
    }

    #[test]
    fn parts_out_of_order_are_defects_or_nothing() {
        assert_eq!(statuses([(End, Some(Stable))]), [Defective]);
        assert_eq!(statuses([(Advance, Some(Down))]), []);
        assert_eq!(statuses([(Begin, None), (Begin, None), (End, None)]), [Diverging, Defective, Stable]);
        assert_eq!(statuses([(Begin, None), (End, None), (End, None)]), [Diverging, Stable, Defective]);
    }

    #[test]
    fn a_state_that_is_reached_twice_has_one_row() {
        let held = State::new(|sign| match sign {
            locks::Sign::Release => Step::Restart(Some(Stable)),
            _ => Step::Stay,
        });
        let idle = State::new(|sign| match sign {
            locks::Sign::Attempt | locks::Sign::Acquire => Step::Next(Some(Diverging), held.clone()),
            _ => Step::Stay,
        });
        assert_eq!(moves(&idle).len(), 2 * locks::Sign::ALL.len());
        assert_eq!(size_of::<Move>(), 8);
    }

    #[test]
    fn a_chain_of_any_length_takes_no_deep_stack_and_no_long_time() {
        let length = if cfg!(miri) { 300 } else { 200_000 };
        let mut state = State::<locks::Sign>::new(|_| Step::Restart(Some(Stable)));
        for _ in 1..length {
            // Every transition leads to the same state, which is found repeatedly and has one row.
            state = State::new(|_| Step::Next(None, state.clone()));
        }
        let flow = machine(&state);
        let drops = std::thread::Builder::new().stack_size(64 * 1024).spawn(|| drop(state));
        drops.expect("a thread").join().expect("no panic");
        let signs = (0..length).map(|number| locks::Sign::ALL[number % locks::Sign::ALL.len()]);
        assert_eq!(flow.trace(signs).expect("no factory fails"), [Stable]);
    }

    #[test]
    fn states_may_distinguish_dimensions() {
        let idle = State::new(|signal: probes::Signal| match (signal.sign, signal.dimension) {
            (probes::Sign::Fail, probes::Dimension::Inbound) => Step::Restart(Some(Degraded)),
            (probes::Sign::Fail, probes::Dimension::Outbound) => Step::Restart(Some(Defective)),
            _ => Step::Stay,
        });
        let said = machine(&idle).trace(probes::Signal::all()).expect("no factory fails");
        assert_eq!(said, [Defective, Degraded]);
    }

    #[test]
    fn attachments_of_one_machine_are_in_states_of_their_own() {
        let open = State::new(|_| Step::Restart(Some(Stable)));
        let flow = machine(&State::<locks::Sign>::new(|_| Step::Next(None, open.clone())));
        for _ in 0..2 {
            assert_eq!(flow.trace([locks::Sign::Grant]).expect("no factory fails"), []);
        }
    }

    /// Runs the machine directly on its states, without the table.
    fn walked(start: &State<locks::Sign>, signs: &[locks::Sign]) -> Vec<Status> {
        let mut state = start.clone();
        let mut said = Vec::new();
        for sign in signs {
            let step = state.0[*sign].clone();
            match step {
                Step::Stay => {}
                Step::Restart(says) => {
                    said.extend(says);
                    state = start.clone();
                }
                Step::Next(says, next) => {
                    said.extend(says);
                    state = next;
                }
            }
        }
        said
    }

    proptest! {
        #[test]
        fn a_machine_says_what_its_states_say(
            steps in prop::collection::vec((0..4_usize, 0..8_usize, any::<prop::sample::Index>()), 40),
            signs in prop::collection::vec(0..locks::Sign::ALL.len(), 0..100),
        ) {
            let mut steps = steps.into_iter();
            let mut states: Vec<State<locks::Sign>> = Vec::new();
            for _ in 0..4 {
                let state = State::new(|_| {
                    let (kind, says, next) = steps.next().expect("four states of ten signs");
                    let says = Status::ALL.get(says).copied();
                    match kind {
                        0 => Step::Stay,
                        1 => Step::Restart(says),
                        _ if states.is_empty() => Step::Restart(says),
                        _ => Step::Next(says, next.get(&states).clone()),
                    }
                });
                states.push(state);
            }
            let signs: Vec<_> = signs.into_iter().map(|sign| locks::Sign::ALL[sign]).collect();
            let said = machine(&states[3]).trace(signs.iter().copied()).expect("no factory fails");
            prop_assert_eq!(said, walked(&states[3], &signs));
        }
    }
}
