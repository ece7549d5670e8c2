//! What commands run against.

use crate::config::Config;
use crate::observe::counters::Counters;
use crate::shared::Shared;
use crate::subscription::registry::SubscriptionRegistry;
use std::time::Duration;

/// What commands run against: the server, and the moment.
pub(crate) struct Context<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) config: &'a Config,
    pub(crate) counters: &'a Counters,
    /// Subscribers of the worker that runs the command.
    pub(crate) registry: &'a SubscriptionRegistry,
    /// How long a connection runs before others have their turn: see [`crate::net::time_slice`].
    pub(crate) turn: Duration,
    /// Time of admission, in microseconds since 1970.
    pub(crate) now_us: u64,
}

impl Context<'_> {
    /// Whether every change waits for the disk before it is answered.
    pub(crate) fn always_durable(&self) -> bool {
        self.shared.settings.is_always_durable()
    }
}
