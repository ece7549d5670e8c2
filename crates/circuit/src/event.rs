//! What happens to a circuit from outside besides emissions.

use crate::subject::Id;

/// An input that is no emission, as far as a journal has to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Nothing that a replay would have to repeat.
    Other,
    Subscribe {
        source: Id,
        subscriber: Id,
        subscription: Id,
        /// Whether something is to be called when it ends.
        has_on_close: bool,
    },
    Unsubscribe {
        subscription: Id,
    },
    CloseConduit {
        source: Id,
    },
    CloseSubscriber {
        subscriber: Id,
    },
    CloseCircuit,
}
