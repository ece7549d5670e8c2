//! What commands run against.

use crate::config::Config;
use crate::observe::counters::Counters;
use crate::shared::Shared;
use crate::subscription::registry::SubscriptionRegistry;
use std::cell::Cell;
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
    /// Whether the worker's unsent replies may show what only the leader of a group knows.
    pub(crate) shows_lead: &'a Cell<bool>,
}

impl Context<'_> {
    /// See [`Settings::waits_for_commit`](crate::settings::Settings::waits_for_commit).
    pub(crate) fn waits_for_commit(&self) -> bool {
        self.shared.settings.waits_for_commit()
    }

    /// Whether commands run here now, of which one does. A comparison if this node is alone.
    #[inline]
    pub(crate) fn admits(&self) -> bool {
        let Some(group) = &self.shared.group else { return true };
        let admits = group.consensus().admit().is_ok();
        if admits {
            self.shows_lead.set(true);
        }
        admits
    }

    /// Notes a reply that shows the data without a command that was just admitted.
    pub(crate) fn note_shown(&self) {
        if self.shared.group.is_some() {
            self.shows_lead.set(true);
        }
    }
}
