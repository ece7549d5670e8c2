//! Circuits and callers on one thread, interleaved by repeatable chance.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::circuit::{Circuit, CircuitBuilder, RunBy};
use crate::error::Error;
use crate::execution::driver::Driver;
use crate::execution::ticker::SimulatedClock;
use crate::random::Generator;

/// How many entries a circuit handles at most in one step.
const TURN_MAX: u64 = 8;

/// Upper bound of the time that passes in one step.
const STEP_NANOS_MAX: u64 = 1000;

/// One action of a caller.
type Step = Box<dyn FnOnce()>;

/// Runs circuits and scripted callers on the calling thread, one step at a time, each chosen by a
/// random generator: for tests. The same seed gives the same run on any machine; other seeds give
/// other interleavings.
///
/// The simulation owns and runs its circuits. They have its clock, which advances only by
/// [`Simulation::advance`] and by up to a microsecond in each step of a circuit. Tickers use it
/// too. Waiting for a circuit here, as [`Circuit::settle`] does, is an error, because the waiting
/// thread is the one that would run the circuit: call [`Simulation::run`] instead.
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
    clock: Arc<SimulatedClock>,
}

impl Simulation {
    /// Makes a simulation without circuits and callers, at time zero.
    pub fn new(seed: u64) -> Self {
        Self {
            generator: Generator::new(seed),
            circuits: Vec::new(),
            callers: Vec::new(),
            clock: Arc::default(),
        }
    }

    /// Makes a circuit that this simulation runs.
    ///
    /// # Panics
    ///
    /// Never: none of the defaults can be refused.
    pub fn circuit(&mut self) -> Circuit {
        self.circuit_from(Circuit::builder()).expect("no thread and no bounds are asked for")
    }

    /// Makes a circuit with options. The simulation runs it, whatever the builder says. Fails as
    /// [`CircuitBuilder::build`].
    pub fn circuit_from(&mut self, builder: CircuitBuilder) -> Result<Circuit, Error> {
        let circuit =
            builder.run_by(RunBy::Owner).build_with(|_| Ok(Driver::Owner(Some(Arc::clone(&self.clock)))))?;
        circuit.machine().set_time(self.clock.nanos());
        self.circuits.push(circuit.clone());
        Ok(circuit)
    }

    /// Adds a caller that does these steps one after the other. Other callers and circuits may run
    /// between any two.
    pub fn caller(&mut self, steps: impl IntoIterator<Item = Box<dyn FnOnce()>>) {
        self.callers.push(steps.into_iter().collect());
    }

    /// Advances the clock. What tickers send by then waits until the simulation runs their
    /// circuits, and is handled at the time of the run. For each tick at its own time, advance by
    /// no more than an interval per call.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidemark_circuit::Simulation;
    ///
    /// let mut simulation = Simulation::new(1);
    /// let circuit = simulation.circuit();
    /// let newest = circuit.cell(0)?;
    /// let ticker = circuit.ticker(Duration::from_millis(10), newest.pipe())?;
    /// for _ in 0..100 {
    ///     simulation.advance(Duration::from_millis(10));
    ///     simulation.run();
    /// }
    /// assert_eq!(newest.get(), 99); // 0, 1, 2, …: a second of ticks, in no time
    /// # drop(ticker);
    /// # Ok::<(), tidemark_circuit::Error>(())
    /// ```
    pub fn advance(&mut self, time: Duration) {
        self.clock.advance(time);
        let now = self.clock.nanos();
        self.circuits.iter().for_each(|circuit| circuit.machine().set_time(now));
    }

    /// Runs one step of a caller or circuit. Returns false if none has anything to do. A step of a
    /// circuit advances the clock by up to a microsecond.
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

    /// Runs steps until there is nothing left to do. Time passes in the steps. Does not return for
    /// circuits that are never done, such as one with a ticker that ticks faster than steps pass.
    pub fn run(&mut self) {
        while self.step() {}
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation").field("nanos", &self.clock.nanos()).finish_non_exhaustive()
    }
}
