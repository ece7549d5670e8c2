//! What a worker's turn reads and does not change.

use crate::config::Config;
use crate::context::Context;
use crate::net::inbox::Inbox;
use crate::observe::counters::Counters;
use crate::shared::Shared;
use crate::subscription::registry::SubscriptionRegistry;
use std::cell::Cell;
use std::sync::Arc;

/// State that does not change within a turn.
pub(super) struct Environment {
    pub(super) shared: Arc<Shared>,
    pub(super) index: usize,
    pub(super) config: Arc<Config>,
    pub(super) config_version: u64,
    pub(super) registry: SubscriptionRegistry,
    /// See [`Context::shows_lead`].
    pub(super) shows_lead: Cell<bool>,
}

impl Environment {
    pub(super) fn inbox(&self) -> &Inbox {
        &self.shared.inboxes[self.index]
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.shared.counters[self.index]
    }

    pub(super) fn context(&self) -> Context<'_> {
        Context {
            shared: &self.shared,
            config: &self.config,
            counters: self.counters(),
            registry: &self.registry,
            turn: crate::net::time_slice::TURN,
            now_us: self.shared.clock.now_us(),
            shows_lead: &self.shows_lead,
        }
    }

    /// Loads changed settings. Returns whether there were any.
    pub(super) fn refresh(&mut self) -> bool {
        let version = self.shared.settings.version();
        if version == self.config_version {
            return false;
        }
        self.config = self.shared.settings.current();
        self.config_version = version;
        true
    }

    pub(super) fn is_outdated(&self) -> bool {
        self.shared.settings.version() != self.config_version
    }
}
