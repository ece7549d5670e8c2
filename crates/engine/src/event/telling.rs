//! Telling of what happened to keys.

use super::classes::{EXPIRED, EventClasses};
use super::desk::{Cause, EventAudience};
use crate::context::Keys;
use crate::engine::Engine;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidemark_log::Lsn;

impl Engine {
    /// Says who passes events on. Once, before any are wanted.
    pub fn set_event_audience(&self, audience: Arc<dyn EventAudience>) {
        let is_first = self.events().audience.set(audience).is_ok();
        assert!(is_first, "events have an audience already, and a second one would hear of nothing");
    }

    /// Says which events are wanted, from the next command on.
    pub fn want_events(&self, classes: EventClasses) {
        self.events().wanted.store(classes.0, Ordering::Relaxed);
    }

    /// Tells of what the commands under these locks have done, which the log has at `lsn`, if it had to be logged.
    #[cold]
    pub(crate) fn tell_events(&self, keys: &mut Keys<'_>, lsn: Option<Lsn>, durable: bool) {
        let events = keys.events.take();
        // Without a record: either nothing was changed, or the log has refused the change, and then it refuses all.
        if lsn.is_some() || !self.is_ahead_of_log() {
            self.events().tell(&events, Cause { lsn, durable });
        }
    }

    /// Tells that a key's time had come, as the log has it at `lsn`.
    pub(crate) fn tell_expiry(&self, db: u8, key: &[u8], lsn: Lsn) {
        let mut events = self.events().gather();
        if events.are_wanted() {
            events.add(EventClasses::EXPIRED, db, EXPIRED, key);
            self.events().tell(&events.take(), Cause { lsn: Some(lsn), durable: false });
        }
    }
}
