//! A client that follows the log is told of it.

use crate::context::Context;
use crate::session::Session;
use std::time::Instant;

/// Writes what a client that follows the log has not been told yet, as far as it has room.
pub(crate) fn tell(session: &mut Session, cx: &Context<'_>) {
    let Session { subscriptions, outbox, .. } = &mut *session;
    let Some(following) = &mut subscriptions.following else { return };
    if following.tell(outbox, &cx.counters.changes) {
        subscriptions.following = None;
        session.show_state();
    }
}

/// Says up to where there was nothing, when that is due.
pub(crate) fn time_has_come(session: &mut Session, now: Instant, cx: &Context<'_>) {
    tell(session, cx);
    let Session { subscriptions, outbox, .. } = session;
    if let Some(following) = &mut subscriptions.following {
        following.tell_progress(now, outbox);
    }
}
