//! What happens to a circuit from outside besides emissions.

use crate::identity::subject::Id;

/// An input that is no emission, as far as a journal has to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Nothing that a replay would have to repeat.
    Other,
    Subscribe {
        source: Id,
        subscription: Id,
        hearer: Hearer,
    },
    Unsubscribe {
        subscription: Id,
    },
    CloseConduit {
        source: Id,
    },
    CloseBank {
        bank: Id,
    },
    CloseSubscriber {
        subscriber: Id,
    },
    CloseCircuit,
}

/// Who begins to hear of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hearer {
    Subscriber {
        id: Id,
        /// Whether something is to be called when the subscription ends.
        has_on_close: bool,
    },
    /// A tap whose conduit this is.
    Tap { mirror: Id },
    /// A reservoir for so many captures, or a stream for as many emissions.
    Reservoir { capacity: usize },
}
