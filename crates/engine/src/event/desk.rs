//! The subscription to keyspace events: wanted classes and receiver.

use super::classes::EventClasses;
use super::gathered::{Event, Events};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};
use tidemark_log::Lsn;

/// The record that caused events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cause {
    /// The record; `None` if nothing changed.
    pub lsn: Option<Lsn>,
    /// Whether the events are published only when the record is durable.
    pub durable: bool,
}

/// Receiver of events.
pub trait EventAudience: Send + Sync {
    /// Receives the events of one command, transaction or expiry, in order. Called with shards
    /// locked: must neither block nor use the engine.
    fn publish(&self, events: &[Event], cause: Cause);
}

/// Wanted classes of events, and their receiver.
#[derive(Default)]
pub(crate) struct EventDesk {
    /// Bits of [`EventClasses`].
    pub(super) wanted: AtomicU16,
    pub(super) audience: OnceLock<Arc<dyn EventAudience>>,
}

impl EventDesk {
    /// Creates the collection of a command's events.
    #[inline]
    pub(crate) fn gather(&self) -> Events {
        let wanted = EventClasses(self.wanted.load(Ordering::Relaxed));
        if wanted == EventClasses::NONE { Events::default() } else { Events::of(wanted) }
    }

    pub(super) fn publish(&self, events: &[Event], cause: Cause) {
        if !events.is_empty()
            && let Some(audience) = self.audience.get()
        {
            audience.publish(events, cause);
        }
    }
}
