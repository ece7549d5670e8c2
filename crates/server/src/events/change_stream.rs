//! Delivery of the change stream to a client that follows the log.

use crate::context::Context;
use crate::session::Session;
use std::time::Instant;

/// Writes pending changes until the client's outbox is full.
pub(crate) fn write_changes(session: &mut Session, cx: &Context<'_>) {
    let Session { subscriptions, outbox, .. } = &mut *session;
    let Some(following) = &mut subscriptions.following else { return };
    if following.write_changes(outbox, &cx.counters.changes) {
        subscriptions.following = None;
        session.show_state();
    }
}

/// Writes pending changes, and a progress frame if one is due.
pub(crate) fn time_has_come(session: &mut Session, now: Instant, cx: &Context<'_>) {
    write_changes(session, cx);
    let Session { subscriptions, outbox, .. } = session;
    if let Some(following) = &mut subscriptions.following {
        following.write_progress(now, outbox);
    }
}
