//! Who runs a circuit, and when.
//!
//! A machine has its driver, which knows by its head the machine that is to be run; what runs machines is above both, in `thread`
//! and `workers`.

mod pace;
mod parker;
mod pool;
pub(crate) mod thread;
mod workers;

use std::sync::Arc;

use crate::execution::ticker::SimulatedClock;
use parker::Parker;
pub use pool::ThreadPool;

/// Who runs a circuit. What a circuit does, and in which order, is the same for all of them.
pub(crate) enum Driver {
    /// The owner, by calling for it; if that is a simulation, by its clock.
    Owner(Option<Arc<SimulatedClock>>),
    /// Whoever waits for it.
    Waiters,
    /// A thread of its own.
    Thread(Arc<Parker>),
    /// The threads of a pool.
    Pool(ThreadPool),
    /// Those of the pool that all share, which nobody has to count.
    SharedPool(&'static ThreadPool),
}

/// What is still to be said to a driver when a reference to its circuit is gone.
pub(crate) struct LastWords(Arc<Parker>);

impl LastWords {
    pub(crate) fn tell(self) {
        self.0.unpark();
    }
}

impl Driver {
    /// Whether somebody sleeps who has to be told of work, and comes for it also after the circuit's end.
    pub(crate) fn must_be_told(&self) -> bool {
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

    /// The circuit has ended without its driver.
    pub(crate) fn on_ended(&self) {
        if let Self::Thread(parker) = self {
            parker.unpark();
        }
    }

    /// What has to be told if the reference that is about to be dropped was the last but the driver's own.
    #[inline]
    pub(crate) fn on_abandoned(&self) -> Option<LastWords> {
        match self {
            Self::Thread(parker) => Some(LastWords(Arc::clone(parker))),
            _ => None,
        }
    }
}
