//! What the scenarios have in common.

use std::panic;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tidemark_circuit::{
    Basin, Capture, Circuit, Conduit, Name, Pipe, Receptor, Registrar, RunBy, Subject, Subscriber,
};

/// A circuit for each way of running one where nobody but the driver runs it.
pub(crate) fn driven() -> Vec<Circuit> {
    [RunBy::SharedPool, RunBy::Thread].into_iter().map(run_by).collect()
}

/// A circuit for each way of running one in which waiting for it is enough.
pub(crate) fn circuits() -> Vec<Circuit> {
    [RunBy::SharedPool, RunBy::Thread, RunBy::Waiters].into_iter().map(run_by).collect()
}

pub(crate) fn run_by(run_by: RunBy) -> Circuit {
    Circuit::builder().run_by(run_by).build().expect("a thread")
}

pub(crate) fn name(path: &str) -> Name {
    Name::new(path).expect("a valid name")
}

/// What a receptor saw, in order.
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

    /// A receptor that notes what it is given.
    pub(crate) fn receptor(&self) -> impl Receptor<T> + Clone + 'static {
        let trace = self.clone();
        move |value| trace.push(value)
    }

    /// A pipe of the circuit whose receptor notes what it is given.
    pub(crate) fn pipe(&self, circuit: &Circuit) -> Pipe<T> {
        circuit.pipe(self.receptor()).expect("an open circuit")
    }

    /// What was seen so far; the trace begins anew.
    pub(crate) fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().expect("no panic").len()
    }

    /// Waits until so many values were seen; a scenario that hangs here for a minute has failed.
    pub(crate) fn wait_for(&self, count: usize) {
        let end = Instant::now() + Duration::from_mins(1);
        while self.len() < count {
            assert!(Instant::now() < end, "{} of {count} values came", self.len());
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// What the pipes of a conduit emit, captured in a basin.
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

    /// What was captured since the last call.
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
    /// A subscriber that notes what it hears of, with the names of the pipes.
    pub(crate) fn subscriber(&self, circuit: &Circuit) -> Subscriber<E> {
        let trace = self.clone();
        let subscriber = circuit.subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, E>| {
            let (trace, name) = (trace.clone(), subject.name());
            registrar.receptor(move |value| trace.push((name, value)));
        });
        subscriber.expect("an open circuit")
    }

    /// Notes what goes through the conduit from here on.
    pub(crate) fn of(circuit: &Circuit, conduit: &Conduit<E>) -> Self {
        let trace = Self::new();
        conduit.subscribe(&trace.subscriber(circuit)).expect("an open conduit");
        trace
    }

    /// What was seen so far, without names; the trace begins anew.
    pub(crate) fn values(&self) -> Vec<E> {
        self.take().into_iter().map(|(_, value)| value).collect()
    }
}

/// Fails in a callback, without the message that a panic prints.
pub(crate) fn fail(why: &'static str) -> ! {
    panic::resume_unwind(Box::new(why))
}

/// A door that is shut until somebody opens it.
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
