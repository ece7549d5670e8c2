//! Who wants to know of which events.

use super::classes::EventClasses;
use super::gathered::{Event, Events};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};
use tidemark_log::Lsn;

/// The record behind which events are told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cause {
    /// The record; none if nothing was changed.
    pub lsn: Option<Lsn>,
    /// Nobody is to be told before the record is durable.
    pub durable: bool,
}

/// Whoever passes events on.
pub trait EventAudience: Send + Sync {
    /// Tells of what one command, transaction or expiry has done, in order. Called with shards locked: it must neither wait
    /// nor use the engine.
    fn tell(&self, events: &[Event], cause: Cause);
}

/// Which events are wanted, and by whom.
#[derive(Default)]
pub(crate) struct EventDesk {
    /// Bits of [`EventClasses`].
    pub(super) wanted: AtomicU16,
    pub(super) audience: OnceLock<Arc<dyn EventAudience>>,
}

impl EventDesk {
    /// Where commands gather events.
    #[inline]
    pub(crate) fn gather(&self) -> Events {
        let wanted = EventClasses(self.wanted.load(Ordering::Relaxed));
        if wanted == EventClasses::NONE { Events::default() } else { Events::of(wanted) }
    }

    pub(super) fn tell(&self, events: &[Event], cause: Cause) {
        if !events.is_empty()
            && let Some(audience) = self.audience.get()
        {
            audience.tell(events, cause);
        }
    }
}
