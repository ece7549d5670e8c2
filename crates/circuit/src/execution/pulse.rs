//! Pulses: how long it takes until a circuit comes to something.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::circuit::Circuit;
use crate::error::{ContextError, called_inside};
use crate::execution::event::Event;

/// When something that did nothing went through a circuit's ingress queue. Made by [`Circuit::pulse`], with an example there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulse {
    start: Instant,
    enqueued: Instant,
    dequeued: Instant,
    stop: Instant,
}

impl Circuit {
    /// Sends a pulse through the ingress queue and waits for it: behind what the caller emitted before, and with nothing done
    /// in the circuit but looking at the clock. None if the circuit is closed.
    ///
    /// Fails inside of the circuit, where it would wait for itself, and in a [`crate::Simulation`]. Costs a few allocations and what [`Circuit::settle`] costs.
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
        // A circuit that is closed drops what is submitted to it.
        Ok(arrived.get().map(|&dequeued| Pulse { start, enqueued, dequeued, stop }))
    }
}

impl Pulse {
    /// When the caller began.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// When the pulse was in the queue, as the caller saw it.
    pub fn enqueued(&self) -> Instant {
        self.enqueued
    }

    /// When the circuit came to it. May be before [`Pulse::enqueued`], as the circuit does not wait for the caller to look at the
    /// clock.
    pub fn dequeued(&self) -> Instant {
        self.dequeued
    }

    /// When the caller heard of it.
    pub fn stop(&self) -> Instant {
        self.stop
    }

    /// From the start until the circuit came to it.
    pub fn waited(&self) -> Duration {
        self.dequeued.saturating_duration_since(self.start)
    }

    /// From the start until the caller heard of it.
    pub fn elapsed(&self) -> Duration {
        self.stop.saturating_duration_since(self.start)
    }
}
