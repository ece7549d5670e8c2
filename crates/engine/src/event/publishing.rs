//! Publishes keyspace events.

use super::classes::{EXPIRED, EventClasses};
use super::desk::{Cause, EventAudience};
use crate::context::Keys;
use crate::engine::Engine;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidemark_log::Lsn;

impl Engine {
    /// Sets the receiver of events. Must be called once, before any class is wanted.
    pub fn set_event_audience(&self, audience: Arc<dyn EventAudience>) {
        let is_first = self.events().audience.set(audience).is_ok();
        assert!(is_first, "events have an audience already, and a second one would hear of nothing");
    }

    /// Sets the wanted classes of events, from the next command on.
    pub fn want_events(&self, classes: EventClasses) {
        self.events().wanted.store(classes.0, Ordering::Relaxed);
    }

    /// Publishes the events of the commands under these locks. `lsn` is their record, if one was
    /// needed.
    #[cold]
    pub(crate) fn publish_events(&self, keys: &mut Keys<'_>, lsn: Option<Lsn>, durable: bool) {
        let events = keys.events.take();
        // Without a record, either nothing changed, or the log refused the change; then no event is
        // published.
        if lsn.is_some() || !self.is_ahead_of_log() {
            self.events().publish(&events, Cause { lsn, durable });
        }
    }

    /// Publishes the expiry of a key, with the LSN of its record.
    pub(crate) fn publish_expiry(&self, db: u8, key: &[u8], lsn: Lsn) {
        let mut events = self.events().gather();
        if events.are_wanted() {
            events.add(EventClasses::EXPIRED, db, EXPIRED, key);
            self.events().publish(&events.take(), Cause { lsn: Some(lsn), durable: false });
        }
    }
}
