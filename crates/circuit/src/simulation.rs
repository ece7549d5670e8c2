//! Circuits and callers on one thread, interleaved by chance that can be repeated.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::time::Duration;

use crate::circuit::{Circuit, CircuitBuilder, RunBy};
use crate::random::Generator;

/// How many entries a circuit handles at most before somebody else gets on.
const TURN_MAX: u64 = 8;

/// How much time passes at most from one step to the next.
const STEP_NANOS_MAX: u64 = 1000;

/// One thing that a caller does.
type Step = Box<dyn FnOnce()>;

/// Runs circuits and scripted callers on the calling thread, one step at a time, each chosen by a generator: for tests. The
/// same seed gives the same run, whatever the machine is doing; other seeds give other interleavings.
///
/// Its circuits are run by their owner, the simulation, and have its clock, which moves only when the simulation does.
///
/// ```
/// use std::cell::RefCell;
/// use std::rc::Rc;
/// use std::sync::{Arc, Mutex};
/// use tidemark_circuit::Simulation;
///
/// let orders = (0..50).map(|seed| {
///     let mut simulation = Simulation::new(seed);
///     let circuit = simulation.circuit();
///     let seen = Arc::new(Mutex::new(Vec::new()));
///     let log = Arc::clone(&seen);
///     let pipe = circuit.pipe(move |value: u32| log.lock().unwrap().push(value)).unwrap();
///     for caller in [[1, 2], [10, 20]] {
///         let pipe = pipe.clone();
///         simulation.caller(caller.map(|value| {
///             let pipe = pipe.clone();
///             Box::new(move || pipe.emit(value)) as Box<dyn FnOnce()>
///         }));
///     }
///     simulation.run();
///     let order = seen.lock().unwrap().clone();
///     order
/// });
/// // Each caller's own order is kept; between them there are six.
/// let different: std::collections::BTreeSet<_> = orders.collect();
/// assert_eq!(different.len(), 6);
/// ```
pub struct Simulation {
    generator: Generator,
    circuits: Vec<Circuit>,
    callers: Vec<VecDeque<Step>>,
    nanos: u64,
}

impl Simulation {
    /// A simulation without circuits and callers, at time zero.
    pub fn new(seed: u64) -> Self {
        Self { generator: Generator::new(seed), circuits: Vec::new(), callers: Vec::new(), nanos: 0 }
    }

    /// A circuit that this simulation runs.
    ///
    /// # Panics
    ///
    /// Never: there is nothing that could be refused.
    pub fn circuit(&mut self) -> Circuit {
        self.circuit_from(Circuit::builder()).expect("no thread and no bounds are asked for")
    }

    /// A circuit with choices; who runs it is the simulation, whatever the builder says. Fails as [`CircuitBuilder::build`].
    pub fn circuit_from(&mut self, builder: CircuitBuilder) -> io::Result<Circuit> {
        let circuit = builder.run_by(RunBy::Owner).build()?;
        circuit.machine().set_time(self.nanos);
        self.circuits.push(circuit.clone());
        Ok(circuit)
    }

    /// A caller that does these things one after the other. Between any two, others may get on.
    pub fn caller(&mut self, steps: impl IntoIterator<Item = Box<dyn FnOnce()>>) {
        self.callers.push(steps.into_iter().collect());
    }

    /// Has time pass.
    pub fn advance(&mut self, time: Duration) {
        self.nanos = self.nanos.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.circuits.iter().for_each(|circuit| circuit.machine().set_time(self.nanos));
    }

    /// Has one caller or circuit get on by one step. False if none of them has anything to do.
    pub fn step(&mut self) -> bool {
        self.callers.retain(|steps| !steps.is_empty());
        let busy: Vec<&Circuit> =
            self.circuits.iter().filter(|circuit| circuit.machine().has_work()).collect();
        let choices = self.callers.len() + busy.len();
        if choices == 0 {
            return false;
        }
        let choice = self.generator.below(choices as u64) as usize;
        if let Some(circuit) = choice.checked_sub(self.callers.len()).map(|index| busy[index].clone()) {
            let budget = 1 + self.generator.below(TURN_MAX);
            let passed = self.generator.below(STEP_NANOS_MAX);
            self.advance(Duration::from_nanos(passed));
            circuit.run(budget as usize);
        } else if let Some(step) = self.callers[choice].pop_front() {
            step();
        }
        true
    }

    /// Takes steps until there is nothing left to do. Does not come back from circuits that never get done.
    pub fn run(&mut self) {
        while self.step() {}
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation").field("nanos", &self.nanos).finish_non_exhaustive()
    }
}
