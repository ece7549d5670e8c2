//! Helpers of the scenarios.

use std::panic;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) use crate::limit::{Limit, wait_until};
use tidemark_circuit::{
    Basin, Capture, Cell, Circuit, Conduit, Name, Pin, Pipe, Receptor, Registrar, RunBy, Subject, Subscriber,
};

/// A circuit for each driver that needs no caller.
#[track_caller]
pub(crate) fn driven() -> impl Iterator<Item = Circuit> {
    each_in_time([RunBy::SharedPool, RunBy::Thread])
}

/// A circuit for each driver with which settling is enough.
#[track_caller]
pub(crate) fn circuits() -> impl Iterator<Item = Circuit> {
    each_in_time([RunBy::SharedPool, RunBy::Thread, RunBy::Waiters])
}

/// Circuits that share one time limit.
#[track_caller]
fn each_in_time<const N: usize>(ways: [RunBy; N]) -> impl Iterator<Item = Circuit> {
    let limit = Limit::new();
    ways.into_iter().map(move |way| {
        let _ = &limit;
        run_by(way)
    })
}

pub(crate) fn run_by(run_by: RunBy) -> Circuit {
    Circuit::builder().run_by(run_by).build().expect("a thread")
}

pub(crate) fn name(path: &str) -> Name {
    Name::new(path).expect("a valid name")
}

/// Whether a type implements a trait, decided at compile time: the inherent constant takes
/// precedence where it exists.
macro_rules! has {
    ($type:ty, $($capability:tt)+) => {{
        #[allow(dead_code, reason = "one of the two constants is used")]
        trait Otherwise {
            const IS: bool = false;
        }
        impl<T> Otherwise for T {}
        #[allow(dead_code, reason = "one of the two constants is used")]
        struct Check<T>(T);
        #[allow(dead_code, reason = "one of the two constants is used")]
        impl<T: $($capability)+> Check<T> {
            const IS: bool = true;
        }
        <Check<$type>>::IS
    }};
}

pub(crate) use has;

/// An `emit` for types without one: a type's own method takes precedence.
pub(crate) trait NoEmit {
    fn emit(&self, _: u64) -> &'static str {
        "no pipe"
    }
}

impl NoEmit for Cell<u64> {}
impl NoEmit for Pin<u64> {}
impl NoEmit for Pipe<u64> {}

/// The values that a receptor received, in order.
pub(crate) struct Trace<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Trace<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Send + 'static> Trace<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Vec::new())))
    }

    pub(crate) fn push(&self, value: T) {
        self.0.lock().expect("no panic").push(value);
    }

    /// A receptor that notes its values.
    pub(crate) fn receptor(&self) -> impl Receptor<T> + Clone + 'static {
        let trace = self.clone();
        move |value| trace.push(value)
    }

    /// A pipe of the circuit whose receptor notes its values.
    pub(crate) fn pipe(&self, circuit: &Circuit) -> Pipe<T> {
        circuit.pipe(self.receptor()).expect("an open circuit")
    }

    /// Takes the values so far, and leaves the trace empty.
    pub(crate) fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().expect("no panic").len()
    }

    /// Waits until this many values were noted; a scenario that hangs here for a minute has failed.
    pub(crate) fn wait_for(&self, count: usize) {
        let end = Instant::now() + Duration::from_mins(1);
        while self.len() < count {
            assert!(Instant::now() < end, "{} of {count} values came", self.len());
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The emissions of a conduit's pipes, captured in a basin.
pub(crate) struct Captured<E> {
    circuit: Circuit,
    basin: Basin<Capture<E>>,
    drain: Pipe<Capture<E>>,
    trace: Trace<Capture<E>>,
}

impl<E: Clone + Send + 'static> Captured<E> {
    pub(crate) fn of(circuit: &Circuit, conduit: &Conduit<E>) -> Self {
        let basin = circuit.basin(1024).expect("open");
        let sink = circuit.sink(basin.pipe()).expect("open");
        conduit.subscribe(&circuit.subscriber_to(sink).expect("open")).expect("open");
        let trace = Trace::new();
        Self { circuit: circuit.clone(), basin, drain: trace.pipe(circuit), trace }
    }

    /// The captures since the last call.
    pub(crate) fn drain(&self) -> Vec<Capture<E>> {
        self.basin.drain(&self.drain);
        self.circuit.settle().expect("outside");
        self.trace.take()
    }
}

/// The values of captures.
pub(crate) fn emissions<E: Clone>(captures: &[Capture<E>]) -> Vec<E> {
    captures.iter().map(|capture| capture.emission().clone()).collect()
}

impl<E: Clone + Send + 'static> Trace<(Name, E)> {
    /// A subscriber that notes the values it receives, with the names of the pipes.
    pub(crate) fn subscriber(&self, circuit: &Circuit) -> Subscriber<E> {
        let trace = self.clone();
        let subscriber = circuit.subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, E>| {
            let (trace, name) = (trace.clone(), subject.name());
            registrar.receptor(move |value| trace.push((name, value)));
        });
        subscriber.expect("an open circuit")
    }

    /// Notes what passes through the conduit from now on.
    pub(crate) fn of(circuit: &Circuit, conduit: &Conduit<E>) -> Self {
        let trace = Self::new();
        conduit.subscribe(&trace.subscriber(circuit)).expect("an open conduit");
        trace
    }

    /// Takes the values so far, without names, and leaves the trace empty.
    pub(crate) fn values(&self) -> Vec<E> {
        self.take().into_iter().map(|(_, value)| value).collect()
    }
}

/// Panics in a callback, without the message that a panic prints.
pub(crate) fn fail(why: &'static str) -> ! {
    panic::resume_unwind(Box::new(why))
}

/// A gate that blocks until another thread opens it.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn open(&self) {
        *self.0.0.lock().expect("no panic") = true;
        self.0.1.notify_all();
    }

    /// Waits until the gate is open; a scenario that hangs here for a minute has failed.
    pub(crate) fn pass(&self) {
        let (open, opened) = &*self.0;
        let guard = open.lock().expect("no panic");
        let outcome =
            opened.wait_timeout_while(guard, Duration::from_mins(1), |open| !*open).expect("no panic");
        assert!(!outcome.1.timed_out(), "the gate was never opened");
    }
}
