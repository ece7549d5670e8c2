//! Helpers of the operators' scenarios: a recipe attached to a recorder, with its inputs and
//! outputs.
//!
//! The recipe runs in a circuit that the waiting caller runs; rows of tables run once more without
//! any circuit.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidemark_circuit::{Circuit, Pipe, Receptor, Recipe, RunBy, Simulation, Site};

use super::support::run_by;

/// The outputs of a fresh attachment of the recipe for these inputs.
pub(crate) fn observe<R: Recipe>(recipe: &R, inputs: impl IntoIterator<Item = R::In>) -> Vec<R::Out>
where
    R::Out: Clone,
{
    let attached = Attached::of(recipe);
    inputs.into_iter().for_each(|input| attached.head.emit(input));
    attached.seen()
}

/// A recipe ahead of a recorder, in a circuit of its own.
pub(crate) struct Attached<I, O> {
    circuit: Circuit,
    pub(crate) head: Pipe<I>,
    out: Recorder<O>,
}

impl<I: Send + 'static, O: Clone + Send + 'static> Attached<I, O> {
    pub(crate) fn of(recipe: &impl Recipe<In = I, Out = O>) -> Self {
        let (circuit, out) = (run_by(RunBy::Waiters), Recorder::new());
        let target = circuit.pipe(out.receptor()).expect("an open circuit");
        let head = target.prepend(recipe).expect("no factory that fails");
        Self { circuit, head, out }
    }

    /// Emits a value and waits until it is handled.
    pub(crate) fn emit(&self, value: I) {
        self.head.emit(value);
        self.circuit.settle().expect("a caller outside of the circuit");
    }

    /// The outputs so far.
    pub(crate) fn seen(&self) -> Vec<O> {
        self.circuit.settle().expect("a caller outside of the circuit");
        self.out.seen()
    }
}

/// A recipe ahead of a recorder, in a circuit whose clock the scenario moves.
pub(crate) struct Timed<I, O> {
    simulation: Simulation,
    head: Pipe<I>,
    out: Recorder<O>,
}

impl<I: Send + 'static, O: Clone + Send + 'static> Timed<I, O> {
    pub(crate) fn of(recipe: &impl Recipe<In = I, Out = O>) -> Self {
        let (mut simulation, out) = (Simulation::new(1), Recorder::new());
        let target = simulation.circuit().pipe(out.receptor()).expect("an open circuit");
        let head = target.prepend(recipe).expect("no factory that fails");
        Self { simulation, head, out }
    }

    /// Moves the clock, then emits the value and handles it, which takes about a microsecond.
    pub(crate) fn emit_after(&mut self, pause: Duration, value: I) {
        self.simulation.advance(pause);
        self.head.emit(value);
        self.simulation.run();
    }

    /// The outputs so far.
    pub(crate) fn seen(&self) -> Vec<O> {
        self.out.seen()
    }
}

/// Records its inputs.
#[derive(Clone)]
pub(crate) struct Recorder<E>(Arc<Mutex<Vec<E>>>);

impl<E: Clone + Send + 'static> Recorder<E> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Vec::new())))
    }

    /// A receptor for the end of a chain, or beside it.
    pub(crate) fn receptor(&self) -> impl FnMut(E) + Clone + Send + Sync + use<E> {
        let seen = Arc::clone(&self.0);
        move |value| seen.lock().unwrap().push(value)
    }

    /// A peek function for the middle of a chain.
    pub(crate) fn peek(&self) -> impl FnMut(&E) + Clone + Send + Sync + use<E> {
        let mut receptor = self.receptor();
        move |value| receptor(value.clone())
    }

    pub(crate) fn seen(&self) -> Vec<E> {
        self.0.lock().unwrap().clone()
    }
}

/// Checks the outputs of the recipe.
#[track_caller]
pub(crate) fn check<R: Recipe, E>(
    recipe: &R,
    inputs: impl IntoIterator<Item = R::In>,
    outputs: impl IntoIterator<Item = E>,
) where
    R::Out: Clone + Debug + PartialEq<E>,
    E: Debug,
{
    assert_eq!(observe(recipe, inputs), outputs.into_iter().collect::<Vec<E>>());
}

/// Checks that the outputs are the same without any circuit, with panics caught as a circuit
/// catches them.
#[track_caller]
pub(crate) fn check_detached<R: Recipe, E>(
    recipe: &R,
    inputs: impl IntoIterator<Item = R::In>,
    outputs: impl IntoIterator<Item = E>,
) where
    R::Out: Clone + Debug + PartialEq<E>,
    E: Debug,
{
    let out = Recorder::new();
    let mut head = recipe.attach(&Site::detached(), out.receptor()).expect("no factory that fails");
    for input in inputs {
        let _ = catch_unwind(AssertUnwindSafe(|| head.receive(input)));
    }
    assert_eq!(out.seen(), outputs.into_iter().collect::<Vec<E>>());
}

/// Tests of the form: the outputs of a recipe for these inputs.
macro_rules! scenarios {
    ($(fn $name:ident: $recipe:expr, $inputs:expr => $outputs:expr;)*) => {$(
        #[test]
        fn $name() -> Result<(), tidemark_circuit::Error> {
            let recipe = $recipe;
            crate::conformance::attached::check(&recipe, $inputs, $outputs);
            crate::conformance::attached::check_detached(&recipe, $inputs, $outputs);
            Ok(())
        }
    )*};
}

/// Tests of the form: this configuration is refused.
macro_rules! refusals {
    ($(fn $name:ident: $($result:expr),+;)*) => {$(
        #[test]
        fn $name() {
            $(assert!($result.is_err(), "{}", stringify!($result));)+
        }
    )*};
}

pub(crate) use {refusals, scenarios};
