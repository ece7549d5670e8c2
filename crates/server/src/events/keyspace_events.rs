//! Keyspace notifications: key events of the engine, published on channels.
//!
//! An event `lpop` of key `jobs` in database 0 is the message `lpop` on `__keyspace@0__:jobs` and
//! the message `jobs` on `__keyevent@0__:lpop`, each if configured. They are delivered like all
//! channel messages: a client that is not subscribed misses them.

use crate::config::{Config, EventSelection};
use crate::durability::log_state::{CommitLost, not_yet_committed};
use crate::events::publication::Kind;
use crate::events::pubsub::PubSub;
use crate::net::inbox::Inbox;
use crate::net::outbox::Until;
use crate::settings::Settings;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tidemark_engine::Engine;
use tidemark_engine::event::{Cause, Event, EventAudience};
use tidemark_log::{Log, Lsn};

/// Publishes key events.
pub(crate) struct KeyspaceEvents {
    pubsub: Arc<PubSub>,
    inboxes: Vec<Arc<Inbox>>,
    settings: Arc<Settings>,
    log: Arc<Log>,
    by_key: AtomicBool,
    by_event: AtomicBool,
}

impl KeyspaceEvents {
    pub(crate) fn new(
        pubsub: Arc<PubSub>,
        inboxes: Vec<Arc<Inbox>>,
        settings: Arc<Settings>,
        log: Arc<Log>,
    ) -> KeyspaceEvents {
        let [by_key, by_event] = [false, false].map(AtomicBool::new);
        KeyspaceEvents { pubsub, inboxes, settings, log, by_key, by_event }
    }

    /// Applies the settings, from the next command on.
    pub(crate) fn configure(&self, engine: &Engine, config: &Config) {
        let selection: EventSelection = config.notify_keyspace_events;
        self.by_key.store(selection.by_key(), Ordering::Relaxed);
        self.by_event.store(selection.by_event(), Ordering::Relaxed);
        engine.want_events(selection.classes());
    }

    /// Record that must be committed before subscribers are notified.
    fn after(&self, cause: Cause) -> Result<Option<Lsn>, CommitLost> {
        if !cause.durable && !self.settings.waits_for_commit() {
            return Ok(None);
        }
        // A command that changed nothing may show a change that is not committed yet.
        if cause.lsn.is_some() { Ok(cause.lsn) } else { not_yet_committed(&self.log) }
    }

    fn publish(&self, channel: &[u8], message: &[u8], after: Option<Lsn>) {
        self.pubsub.publish(
            Kind::Channel,
            channel,
            message,
            after.map(Until::Committed),
            None,
            &self.inboxes,
        );
    }
}

impl EventAudience for KeyspaceEvents {
    fn publish(&self, events: &[Event], cause: Cause) {
        if !self.pubsub.has_subscriptions() {
            return;
        }
        let (by_key, by_event) = (self.by_key.load(Ordering::Relaxed), self.by_event.load(Ordering::Relaxed));
        // The command that has met the event is answered with an error.
        let Ok(after) = self.after(cause) else { return };
        for Event { db, name, key } in events {
            if by_key {
                self.publish(
                    &[format!("__keyspace@{db}__:").as_bytes(), key].concat(),
                    name.as_bytes(),
                    after,
                );
            }
            if by_event {
                self.publish(format!("__keyevent@{db}__:{name}").as_bytes(), key, after);
            }
        }
    }
}
