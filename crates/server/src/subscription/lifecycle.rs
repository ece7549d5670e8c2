//! Begin, delivery and end of a client's subscriptions to watched reads.

use crate::context::Context;
use crate::net::connection_id::ConnectionId;
use crate::net::inbox::Message;
use crate::session::{Session, Wait};
use crate::subscription::cursor::{Cursor, Older};
use crate::subscription::delivery::Delivery;
use crate::subscription::ownership::{FencingToken, Ownership};
use crate::subscription::read_subscription::{REPLACED, ReadSubscription, TAKEN, write_ended};
use crate::subscription::replay_buffer::Notifier;
use crate::subscription::subscriber::Emitted;
use std::sync::Arc;
use std::time::Instant;
use tidemark_engine::watch::{Named, Query};
use tidemark_log::Lsn;

/// Returns the constructor of replay notifications, which go as messages to the client's worker.
pub(crate) fn notifier_of<'a>(
    session: &Session,
    cx: &Context<'a>,
) -> impl Fn(Lsn) -> Notifier + Sync + use<'a> {
    let (shared, worker, connection_id) = (cx.shared, session.client.worker, session.connection_id());
    move |query| {
        let inbox = Arc::clone(&shared.inboxes[worker]);
        Box::new(move || inbox.send(Message::Older(connection_id, query)))
    }
}

/// A named subscription that another one has replaced. The client is notified after the answer: in
/// RESP2 it would take an earlier frame for the answer.
#[must_use]
pub(crate) struct Replaced(Option<Box<[u8]>>);

impl Replaced {
    /// Notifies the client, if a subscription was replaced.
    pub(crate) fn notify(self, session: &mut Session) {
        if let Some(name) = self.0 {
            write_ended(&name, REPLACED, &mut session.outbox);
        }
    }
}

/// Adds a subscription, replacing the client's other one to the same query.
pub(crate) fn begin(session: &mut Session, subscription: ReadSubscription, cx: &Context<'_>) -> Replaced {
    let (id, connection_id) = (subscription.cursor.query().id(), session.connection_id());
    let name: Option<Box<[u8]>> = subscription.given_name().map(|(name, _)| name.into());
    let mut ended = None;
    match session.subscriptions.reads.insert(subscription) {
        None => cx.registry.join(id, connection_id.slot),
        Some(replaced) => {
            replaced.release_name(&cx.shared.name_owners);
            let its_name = replaced.given_name().map(|(name, _)| name.into());
            ended = its_name.filter(|its_name| name.as_ref() != Some(its_name));
        }
    }
    session.show_state();
    Replaced(ended)
}

/// Makes the session the owner of a name, and begins the subscription. Evicts the previous owner.
pub(crate) fn hold(
    session: &mut Session,
    name: &[u8],
    named: &Named,
    (cursor, delivery): (Cursor, Delivery),
    cx: &Context<'_>,
) -> Replaced {
    let (owner, query) = (session.address(), named.query.id());
    let (fencing_token, before) = cx.shared.name_owners.take(name, owner, query);
    if let Some(before) = before.filter(|before| before.owner != owner) {
        notify_taken(&before, cx);
    }
    let is_same = |now: &Named| now.query.id() == query && now.base == named.base;
    if !cx.shared.engine.named(name).as_ref().is_some_and(is_same) {
        // The name ended after the lookup, and the command that ended it may have found no owner.
        notify_taken(&Ownership { owner, fencing_token, query }, cx);
    }
    begin(
        session,
        ReadSubscription::named(cursor, delivery, name, named.guarantee, fencing_token, &cx.shared.clock),
        cx,
    )
}

/// Notifies a connection that its named subscription has ended.
pub(crate) fn notify_taken(ownership: &Ownership, cx: &Context<'_>) {
    let Ownership { owner, fencing_token, query } = *ownership;
    cx.shared.inboxes[owner.worker].send(Message::Taken(owner.connection_id, query, fencing_token));
}

/// Unregisters the worker from a query when its last local subscriber leaves.
pub(crate) fn leave_if_unused(session: &Session, query: &Query, cx: &Context<'_>) {
    if cx.registry.of(query.id()).is_empty() {
        cx.shared.engine.leave(query, session.client.worker, cx.now_us);
    }
}

/// Schedules a subscription to catch up after the client's answer is written.
pub(crate) fn catch_up_soon(session: &mut Session, query: Lsn) {
    session.subscriptions.reads.catch_up_soon(query);
}

/// Ends a subscription. Returns whether there was one.
pub(crate) fn end(session: &mut Session, query: Lsn, cx: &Context<'_>) -> bool {
    let Some(subscription) = session.subscriptions.reads.remove(query) else { return false };
    leave(&subscription, session.connection_id(), session.client.worker, cx);
    session.show_state();
    true
}

/// Ends all subscriptions without notifying the client.
pub(crate) fn end_all(session: &mut Session, cx: &Context<'_>) {
    let reads = std::mem::take(&mut session.subscriptions.reads);
    for subscription in reads.iter() {
        leave(subscription, session.connection_id(), session.client.worker, cx);
    }
}

/// Ends a named subscription whose name was taken over or has ended. Does nothing if the client has
/// acquired the name again since.
pub(crate) fn lose_name(session: &mut Session, query: Lsn, fencing_token: FencingToken, cx: &Context<'_>) {
    let Session { subscriptions, outbox, .. } = &mut *session;
    let Some(subscription) = subscriptions.reads.get_mut(query) else { return };
    if subscription.given_name().is_none_or(|(_, its_token)| its_token != fencing_token) {
        return;
    }
    subscription.write_ended(TAKEN, outbox);
    end(session, query, cx);
}

fn leave(subscription: &ReadSubscription, connection_id: ConnectionId, worker: usize, cx: &Context<'_>) {
    subscription.release_name(&cx.shared.name_owners);
    if cx.registry.leave(subscription.cursor.query().id(), connection_id.slot) {
        cx.shared.engine.leave(subscription.cursor.query(), worker, cx.now_us);
    }
}

/// Writes a query's emissions until the client's outbox is full.
pub(crate) fn emit(session: &mut Session, query: Lsn, cx: &Context<'_>) {
    let notifier = notifier_of(session, cx);
    let older = Older { replays: &cx.shared.replays, notifier: &notifier };
    let Session { subscriptions, outbox, wait, .. } = &mut *session;
    let awaits_delivery = || wait.as_ref().is_some_and(Wait::awaits_delivery);
    if subscriptions.reads.emit(query, outbox, &older, &awaits_delivery, cx) == Emitted::Ended {
        end(session, query, cx);
    }
}

/// Delivers emissions that waited for the end of `CLIENT PAUSE`.
pub(crate) fn pause_ended(session: &mut Session, cx: &Context<'_>) {
    let waited = session.subscriptions.reads.end_pause();
    waited.into_iter().for_each(|query| emit(session, query, cx));
}

/// Handles passed deadlines: sends emissions that a pause held back, and progress frames.
pub(crate) fn time_has_come(session: &mut Session, now: Instant, cx: &Context<'_>) {
    for query in session.subscriptions.reads.take_due(now) {
        emit(session, query, cx);
        let Session { subscriptions, outbox, .. } = &mut *session;
        subscriptions.reads.write_progress(query, now, outbox, cx);
    }
}

/// Writes emissions that had to wait for room.
pub(crate) fn catch_up(session: &mut Session, cx: &Context<'_>) {
    let behind = session.subscriptions.reads.take_behind();
    behind.into_iter().for_each(|query| emit(session, query, cx));
}
