//! What commands run against.

use crate::config::Config;
use crate::observe::counters::Counters;
use crate::shared::Shared;
use crate::subscription::registry::SubscriptionRegistry;
use std::time::Duration;

/// What a command runs against: the server and the time.
pub(crate) struct Context<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) config: &'a Config,
    pub(crate) counters: &'a Counters,
    /// Subscribers of the worker that runs the command.
    pub(crate) registry: &'a SubscriptionRegistry,
    /// How long one connection runs before the worker serves the next: see
    /// [`crate::net::time_slice`].
    pub(crate) turn: Duration,
    /// Time of admission, in microseconds since 1970.
    pub(crate) now_us: u64,
}

impl Context<'_> {
    /// Whether every change is synced before its reply.
    pub(crate) fn always_durable(&self) -> bool {
        self.shared.settings.is_always_durable()
    }
}
