//! Tickers: consecutive numbers at a fixed rate.

mod simulated;
mod ticking;
mod timer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::circuit::{Circuit, Naming};
use crate::error::{ArgumentError, ContextError, Error};
use crate::execution::event::Event;
use crate::execution::machine::MachineRef;
use crate::identity::subject::{Id, Kind, Subject};
use crate::structure::handle::handle;
use crate::structure::pipe::Pipe;
use crate::subscription::receptor::Receptor;

pub(crate) use simulated::SimulatedClock;
use ticking::Ticking;

/// The longest interval: a hundred years.
const INTERVAL_MAX: Duration = Duration::from_hours(100 * 365 * 24);

/// How many ticks may wait for their circuit.
const OUTSTANDING_MAX: u64 = 1024;

/// Emits 0, 1, 2, ... to a pipe at a fixed rate, the first after one interval, in the context of
/// its circuit.
///
/// No number is skipped or repeated. A circuit that is busy for a while handles the missed ticks
/// later, up to 1024: beyond that no tick is made until the circuit has caught up, and the next one
/// has the next number. Likewise after the process was suspended: at most eight missed ticks are
/// made up for.
///
/// If a [`crate::Simulation`] runs the circuit, the ticker uses only the simulation's clock. When
/// that advances, the ticks that are due wait for the circuit, in the order in which they were due,
/// up to 1024.
///
/// In the journal of a [`crate::Recording`] ticks are emissions to the target, which must have a
/// label. A replay emits them to the target's counterpart; do not make a ticker there.
///
/// It ends with [`Ticker::close`], with its circuit, and when its last handle is dropped. One
/// thread of the process serves all tickers; it exists while there are any. Clones are the same
/// ticker.
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use tidemark_circuit::Circuit;
///
/// let circuit = Circuit::new();
/// let (sender, receiver) = mpsc::channel();
/// let target = circuit.pipe(move |tick: u64| sender.send(tick).unwrap())?;
/// let ticker = circuit.ticker(Duration::from_millis(1), &target)?;
/// assert_eq!(receiver.iter().take(3).collect::<Vec<_>>(), [0, 1, 2]);
/// ticker.close();
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
#[must_use = "a ticker ends when its last handle is dropped"]
pub struct Ticker {
    inner: Arc<Held>,
}

/// Shared by the handles of a ticker. Dropping it ends the ticker, and waits until the timer has
/// released the ticker: otherwise the timer's reference to the circuit could be the last, and the
/// receptors of a circuit that its waiters run would run on the timer's thread. It does not wait on
/// the timer's thread itself, which can drop the last handle in a value that it drops while it
/// sends the ticker's tick.
struct Held(Arc<TickerInner>);

struct TickerInner {
    machine: MachineRef,
    subject: Subject,
    target: Pipe<u64>,
    closed: AtomicBool,
    /// Number of the next tick. Changed only by the thread that advances the clock.
    next: AtomicU64,
    /// Number of ticks emitted to the target.
    given: AtomicU64,
}

impl Circuit {
    /// Makes a ticker of this circuit. The target may belong to another circuit; this one then
    /// emits to it.
    ///
    /// Fails if the circuit is closed, if the interval is zero or above a hundred years, or with
    /// [`Error::Io`] if the system cannot start a thread. See [`Ticker`].
    pub fn ticker(&self, interval: Duration, target: &Pipe<u64>) -> Result<Ticker, Error> {
        self.unnamed().ticker(interval, target)
    }
}

impl Naming<'_> {
    /// See [`Circuit::ticker`].
    pub fn ticker(&self, interval: Duration, target: &Pipe<u64>) -> Result<Ticker, Error> {
        if interval.is_zero() || interval > INTERVAL_MAX {
            let message =
                format!("the interval is {interval:?}; it must be above zero, up to a hundred years");
            return Err(ArgumentError::new("ticker", message).into());
        }
        let inner = Arc::new(TickerInner {
            machine: self.machine().clone(),
            subject: self.component(Kind::Ticker, "ticker")?,
            target: target.clone(),
            closed: AtomicBool::new(false),
            next: AtomicU64::new(0),
            given: AtomicU64::new(0),
        });
        let held = Held(inner);
        match held.0.simulated_clock() {
            Some(clock) => clock.add(&ticking(&held.0), interval),
            None => timer::add(&ticking(&held.0), interval)?,
        }
        Ok(Ticker { inner: Arc::new(held) })
    }
}

impl Ticker {
    /// Identity of the ticker.
    pub fn subject(&self) -> &Subject {
        &self.inner.0.subject
    }

    /// Ends the ticker: the target gets no more ticks, not even those that wait for the circuit.
    pub fn close(&self) {
        self.inner.0.close();
    }

    /// Closes the ticker and waits for its circuit, as [`Circuit::settle`] does: the target gets no
    /// more ticks, and a target of this circuit has handled those that it got. A target of another
    /// circuit may still have some in its queue; settle that circuit to wait for them. Fails, and
    /// does nothing, where waiting for the circuit is refused; but if other waits close a circle
    /// meanwhile, it fails after closing the ticker.
    pub fn close_and_settle(&self) -> Result<(), ContextError> {
        let machine = &self.inner.0.machine;
        machine.check_can_close_and_wait()?;
        self.close();
        machine.settle()
    }
}

/// The ticker in the form that its clock uses.
fn ticking(inner: &Arc<TickerInner>) -> Arc<dyn Ticking> {
    Arc::<TickerInner>::clone(inner)
}

impl Ticking for TickerInner {
    fn id(&self) -> Id {
        self.subject.id()
    }

    fn is_over(&self) -> bool {
        self.closed.load(Ordering::Acquire) || self.machine.is_closed()
    }

    fn send(self: Arc<Self>) -> bool {
        let number = self.next.load(Ordering::Relaxed);
        if number - self.given.load(Ordering::Relaxed) >= OUTSTANDING_MAX {
            return false;
        }
        self.next.store(number + 1, Ordering::Relaxed);
        // A waiting tick keeps neither the ticker nor, through it, the circuit.
        let ticker = Arc::downgrade(&self);
        self.machine.submit(Event::Other, move || {
            if let Some(ticker) = ticker.upgrade() {
                ticker.give(number);
            }
        });
        true
    }
}

impl TickerInner {
    /// Emits a tick to the target, in the circuit's context.
    fn give(&self, mut number: u64) {
        if !self.closed.load(Ordering::Acquire) {
            self.given.store(number + 1, Ordering::Relaxed);
            self.machine.record_as_emission(&self.target, &mut number);
            self.target.forward().receive(number);
        }
    }

    fn close(&self) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        match self.simulated_clock() {
            Some(clock) => clock.remove(self.id()),
            None => timer::remove(self.id()),
        }
    }

    /// The simulated clock of the ticker, if it uses one.
    fn simulated_clock(&self) -> Option<&SimulatedClock> {
        self.machine.driver().simulated_clock()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.close();
        // The thread that advances a simulation drops its references itself, where the circuit
        // runs.
        if self.0.simulated_clock().is_none() {
            timer::wait_for(self.0.id());
        }
    }
}

handle!(Ticker, |ticker| &ticker.inner.0.subject);
