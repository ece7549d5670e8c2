//! Drivers: what runs a circuit, and when.
//!
//! A machine has its driver, which refers to the machine by its head. The code that runs machines
//! is above both, in `thread` and `workers`.

mod pace;
mod parker;
mod pool;
pub(crate) mod thread;
mod workers;

use std::sync::Arc;

use crate::execution::ticker::SimulatedClock;
use parker::Parker;
pub use pool::ThreadPool;

/// What runs a circuit. What the circuit does, and in which order, is the same for all drivers.
pub(crate) enum Driver {
    /// The owner, by calling for it; for a simulation, with its clock.
    Owner(Option<Arc<SimulatedClock>>),
    /// The threads that wait for it.
    Waiters,
    /// A thread of its own.
    Thread(Arc<Parker>),
    /// The threads of a pool.
    Pool(ThreadPool),
    /// The threads of the shared pool, which lives for ever and needs no counted reference.
    SharedPool(&'static ThreadPool),
}

/// A notification that a driver still gets after a reference to its circuit is gone.
pub(crate) struct AbandonNotice(Arc<Parker>);

impl AbandonNotice {
    pub(crate) fn send(self) {
        self.0.unpark();
    }
}

impl Driver {
    /// Returns whether the driver needs a notification for work to begin with, and runs the circuit
    /// also after its end.
    pub(crate) fn needs_notification(&self) -> bool {
        matches!(self, Self::Pool(_) | Self::SharedPool(_))
    }

    #[inline]
    pub(crate) fn is_run_by_waiters(&self) -> bool {
        matches!(self, Self::Waiters)
    }

    /// The clock of the simulation that runs the circuit, if one does.
    pub(crate) fn simulated_clock(&self) -> Option<&SimulatedClock> {
        match self {
            Self::Owner(clock) => clock.as_deref(),
            Self::Waiters | Self::Thread(_) | Self::Pool(_) | Self::SharedPool(_) => None,
        }
    }

    /// Notifies the driver that the circuit has ended without it.
    pub(crate) fn on_ended(&self) {
        if let Self::Thread(parker) = self {
            parker.unpark();
        }
    }

    /// The notification to send if the reference about to be dropped is the last except the
    /// driver's own.
    #[inline]
    pub(crate) fn on_abandoned(&self) -> Option<AbandonNotice> {
        match self {
            Self::Thread(parker) => Some(AbandonNotice(Arc::clone(parker))),
            _ => None,
        }
    }
}
