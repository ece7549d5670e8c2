//! Inputs of a circuit from outside other than emissions.

use crate::identity::subject::Id;

/// An input that is no emission, in the form that a journal records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Nothing that a replay has to repeat.
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

/// What subscribes to a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hearer {
    Subscriber {
        id: Id,
        /// Whether the subscription has an on-close callback.
        has_on_close: bool,
    },
    /// A tap with this conduit.
    Tap { mirror: Id },
    /// A reservoir with room for this many captures, or a stream with room for this many emissions.
    Reservoir { capacity: usize },
}
