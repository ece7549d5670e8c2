//! What the scenarios of operators are told with: a recipe attached to a recorder, and what went in and out.
//!
//! The recipe runs in a circuit, which whoever waits for it runs; rows of tables run once more without any circuit.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidemark_circuit::{Circuit, Pipe, Receptor, Recipe, RunBy, Simulation, Site};

use super::support::run_by;

/// What comes out of a fresh attachment of the recipe when these values go in.
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

    /// What came out so far.
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

    /// Moves the clock, then emits the value and has it handled, in which about a microsecond passes.
    pub(crate) fn emit_after(&mut self, pause: Duration, value: I) {
        self.simulation.advance(pause);
        self.head.emit(value);
        self.simulation.run();
    }

    /// What came out so far.
    pub(crate) fn seen(&self) -> Vec<O> {
        self.out.seen()
    }
}

/// Remembers what it is given.
#[derive(Clone)]
pub(crate) struct Recorder<E>(Arc<Mutex<Vec<E>>>);

impl<E: Clone + Send + 'static> Recorder<E> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Vec::new())))
    }

    /// To be put at the end of a way, or beside it.
    pub(crate) fn receptor(&self) -> impl FnMut(E) + Clone + Send + Sync + use<E> {
        let seen = Arc::clone(&self.0);
        move |value| seen.lock().unwrap().push(value)
    }

    /// To be put into a way.
    pub(crate) fn peek(&self) -> impl FnMut(&E) + Clone + Send + Sync + use<E> {
        let mut receptor = self.receptor();
        move |value| receptor(value.clone())
    }

    pub(crate) fn seen(&self) -> Vec<E> {
        self.0.lock().unwrap().clone()
    }
}

/// That what comes out of the recipe is this.
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

/// That the same comes out without any circuit, where a panic is caught as a circuit does.
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

/// Tests of the form: what comes out of a recipe when these values go in.
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
