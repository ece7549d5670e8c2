//! Pulses: measurements of a circuit's latency.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::circuit::Circuit;
use crate::error::{ContextError, called_inside};
use crate::execution::event::Event;

/// Times at which an empty job passed through a circuit's ingress queue. Made by
/// [`Circuit::pulse`], which has an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulse {
    start: Instant,
    enqueued: Instant,
    dequeued: Instant,
    stop: Instant,
}

impl Circuit {
    /// Sends a pulse through the ingress queue and waits for it. It follows what the caller emitted
    /// before, and only reads the clock in the circuit. None if the circuit is closed.
    ///
    /// Fails inside the circuit, which would wait for itself, and in a [`crate::Simulation`]. Costs
    /// a few allocations more than [`Circuit::settle`].
    ///
    /// ```
    /// use tidemark_circuit::Circuit;
    ///
    /// let circuit = Circuit::new();
    /// let pulse = circuit.pulse()?.expect("the circuit is open");
    /// println!("{:?} in the queue, {:?} in all", pulse.waited(), pulse.elapsed());
    ///
    /// circuit.close();
    /// assert_eq!(circuit.pulse()?, None);
    /// # Ok::<(), tidemark_circuit::Error>(())
    /// ```
    pub fn pulse(&self) -> Result<Option<Pulse>, ContextError> {
        let machine = self.machine();
        machine.check_can_wait(called_inside!("pulse"))?;
        let arrived = Arc::new(OnceLock::new());
        let arrival = Arc::clone(&arrived);
        let start = Instant::now();
        machine.submit(Event::Other, move || arrival.set(Instant::now()).expect("one arrival"));
        let enqueued = Instant::now();
        machine.settle()?;
        let stop = Instant::now();
        // A closed circuit drops what is submitted to it.
        Ok(arrived.get().map(|&dequeued| Pulse { start, enqueued, dequeued, stop }))
    }
}

impl Pulse {
    /// When the caller began.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// When the caller saw that the pulse was in the queue.
    pub fn enqueued(&self) -> Instant {
        self.enqueued
    }

    /// When the circuit handled the pulse. May be before [`Pulse::enqueued`], because the circuit
    /// does not wait for the caller to read the clock.
    pub fn dequeued(&self) -> Instant {
        self.dequeued
    }

    /// When the caller was notified.
    pub fn stop(&self) -> Instant {
        self.stop
    }

    /// Time from the start until the circuit handled the pulse.
    pub fn waited(&self) -> Duration {
        self.dequeued.saturating_duration_since(self.start)
    }

    /// Time from the start until the caller was notified.
    pub fn elapsed(&self) -> Duration {
        self.stop.saturating_duration_since(self.start)
    }
}
