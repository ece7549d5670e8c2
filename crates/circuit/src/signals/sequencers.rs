//! How a subject is by the order of what is said of it: to release what was never asked for is a defect, whatever each sign says by
//! itself.
//!
//! Two flows tell. [`episodes`] knows what every episode has, a beginning, an end, and what is between; it needs nothing but a
//! vocabulary that says which sign is which part ([`Episodic`]). [`machine`] is for all that is not as simple: states, and what each
//! sign makes of them.
//!
//! Both follow one episode after the other. What happens at the same time is to be said of subjects of different names. They do not
//! look at the clock: that something takes too long is a sign of its own (`Timeout`, `Expire`), which somebody else has to give.

use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::sync::Arc;

use super::{Episodic, Map, Observation, operations, statuses};
use crate::operator::flow::Flow;
use crate::operator::{Part, Plan, Stage};
use operations::Sign::{Advance, Begin, End};
use statuses::Sign as Status;

/// Emits what the order of signs proves, by the parts of an episode that they are. State: whether an episode is open.
///
/// | the sign | no episode is open | one is |
/// |---|---|---|
/// | begins | [`Diverging`](Status::Diverging); it is open | [`Defective`](Status::Defective): that one never ended; another is open |
/// | advances | nothing | what its status says: [`Converging`](Status::Converging) if that is good, nothing if it has none |
/// | ends | [`Defective`](Status::Defective): it never began | what its status says: [`Stable`](Status::Stable) if that is good, or there is none |
///
/// A status that is bad is [`Degraded`](Status::Degraded) or, if the sign's is worse than that, [`Defective`](Status::Defective).
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

/// As [`episodes`], with other readings than the vocabulary's own, or of values that are no signs.
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

/// The stage of [`episodes_by`].
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

/// What a sign's status says within an episode: `good` if it is.
fn folded(status: Status, good: Status) -> Status {
    match status {
        Status::Stable | Status::Converging => good,
        Status::Degraded | Status::Erratic | Status::Diverging => Status::Degraded,
        Status::Defective | Status::Down => Status::Defective,
    }
}

/// Emits what the order of signs proves, by states and what each sign makes of them. It begins in `start`. State: which it is in.
///
/// All attachments share one table of the states; a value costs one load of it.
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

/// A state of a [`machine`]: what each sign, or signal, makes of it. Clones are the same state.
///
/// A state can only lead to such as were made before it, and back to where the machine begins. Loops are thus only those that go
/// through the beginning.
pub struct State<O>(Map<O, Step<O>>);

/// What a sign makes of a state.
#[derive(Clone, Debug)]
pub enum Step<O> {
    /// It stays, and nothing is said.
    Stay,
    /// The machine is back where it begins, and this is said, if anything.
    Restart(Option<Status>),
    /// It goes on to this state, and this is said, if anything.
    Next(Option<Status>, State<O>),
}

impl<O: Observation> State<O> {
    /// A state with these steps. The function is called once for each sign, or signal.
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
    /// Takes out where the steps lead to, if nobody else has them.
    fn take_next(&mut self, next: &mut Vec<Self>) {
        for step in self.0.own_values().unwrap_or_default() {
            if let Step::Next(_, state) = mem::replace(step, Step::Stay) {
                next.push(state);
            }
        }
    }
}

impl<O> Drop for State<O> {
    /// Lets go of the states that it leads to in a loop: a chain of any length must not take a stack of that depth.
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

/// The stage of [`machine`].
#[derive(Clone)]
struct Walk {
    /// A row of moves for each state, one for each observation by its ordinal. The first row is that of the beginning.
    moves: Arc<[Move]>,
    /// Where the row of the present state begins.
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

/// The rows of all states that can be reached.
fn moves<O: Observation>(start: &State<O>) -> Arc<[Move]> {
    let mut found = Found { states: vec![start.clone()], numbers: HashMap::from([(start.0.address(), 0)]) };
    let mut moves = Vec::new();
    let mut at = 0;
    // Each state has its row in the order in which it was found; further ones are found while rows are written.
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

/// States with the numbers of their rows.
struct Found<O> {
    states: Vec<State<O>>,
    /// By where their steps are, which stay there as long as `states` has them.
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

    fn told(parts: impl IntoIterator<Item = (operations::Sign, Option<Status>)>) -> Vec<Status> {
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
            let said = told([(Begin, None), (Advance, status), (End, status)]);
            let expected: Vec<_> = [Some(Diverging), advancing, Some(ending)].into_iter().flatten().collect();
            assert_eq!(said, expected, "{status:?}");
        }
    }

    #[test]
    fn parts_out_of_order_are_defects_or_nothing() {
        assert_eq!(told([(End, Some(Stable))]), [Defective]);
        assert_eq!(told([(Advance, Some(Down))]), []);
        assert_eq!(told([(Begin, None), (Begin, None), (End, None)]), [Diverging, Defective, Stable]);
        assert_eq!(told([(Begin, None), (End, None), (End, None)]), [Diverging, Stable, Defective]);
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
            // Every step leads to the same state: it is found time and again, and has one row.
            state = State::new(|_| Step::Next(None, state.clone()));
        }
        let flow = machine(&state);
        let drops = std::thread::Builder::new().stack_size(64 * 1024).spawn(|| drop(state));
        drops.expect("a thread").join().expect("no panic");
        let signs = (0..length).map(|number| locks::Sign::ALL[number % locks::Sign::ALL.len()]);
        assert_eq!(flow.trace(signs).expect("no factory fails"), [Stable]);
    }

    #[test]
    fn states_may_tell_dimensions_apart() {
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

    /// What a machine says that is walked from state to state as it is written.
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
