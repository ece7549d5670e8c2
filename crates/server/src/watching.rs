//! A client's subscriptions to reads begin, go on and end.

use crate::backlog::Tell;
use crate::context::Context;
use crate::cursor::{Cursor, Older};
use crate::delivery::Delivery;
use crate::holders::{Tenancy, Tenure};
use crate::inbox::Message;
use crate::session::{Emitted, REPLACED, Session, TAKEN, Wait, Watching, write_ended};
use crate::target::Target;
use std::sync::Arc;
use std::time::Instant;
use tidemark_engine::query::{Named, Query};
use tidemark_log::Lsn;

/// How a client's subscriptions come to what is not retained any more: the client is told by a message to its worker.
pub(crate) fn teller<'a>(session: &Session, cx: &Context<'a>) -> impl Fn(Lsn) -> Tell + Sync + use<'a> {
    let (shared, worker, target) = (cx.shared, session.client.worker, session.target());
    move |query| {
        let inbox = Arc::clone(&shared.inboxes[worker]);
        Box::new(move || inbox.send(Message::Older(target, query)))
    }
}

/// A named subscription that another one has taken the place of, of which the client has to be told behind the answer:
/// in RESP2 it would take what stands before that for the answer.
#[must_use]
pub(crate) struct Replaced(Option<Box<[u8]>>);

impl Replaced {
    /// Tells the client, if there was one.
    pub(crate) fn tell(self, session: &mut Session) {
        if let Some(name) = self.0 {
            write_ended(&name, REPLACED, &mut session.output);
        }
    }
}

/// Adds a subscription, or puts it in place of the client's other one to the same query.
pub(crate) fn begin(session: &mut Session, watching: Watching, cx: &Context<'_>) -> Replaced {
    let (id, target) = (watching.cursor.query().id(), session.target());
    let name: Option<Box<[u8]>> = watching.given_name().map(|(name, _)| name.into());
    let mut ended = None;
    match session.subscriptions.watchings.insert(watching) {
        None => cx.watchers.join(id, target.slot),
        Some(replaced) => {
            replaced.release_name(&cx.shared.holders);
            let its_name = replaced.given_name().map(|(name, _)| name.into());
            ended = its_name.filter(|its_name| name.as_ref() != Some(its_name));
        }
    }
    session.show_state();
    Replaced(ended)
}

/// Lets the session have the name, and nobody else any more.
pub(crate) fn hold(
    session: &mut Session,
    name: &[u8],
    named: &Named,
    (cursor, delivery): (Cursor, Delivery),
    cx: &Context<'_>,
) -> Replaced {
    let (holder, query) = ((session.client.worker, session.target()), named.query.id());
    let (tenure, before) = cx.shared.holders.take(name, holder, query);
    if let Some(before) = before.filter(|before| before.holder != holder) {
        tell_taken(&before, cx);
    }
    let is_same = |now: &Named| now.query.id() == query && now.base == named.base;
    if !cx.shared.engine.named(name).as_ref().is_some_and(is_same) {
        // Whoever has ended it since it was looked up may have found nobody that had it.
        tell_taken(&Tenancy { holder, tenure, query }, cx);
    }
    begin(session, Watching::named(cursor, delivery, name, named.guarantee, tenure), cx)
}

/// Tells a connection that a named subscription of its has ended.
pub(crate) fn tell_taken(tenancy: &Tenancy, cx: &Context<'_>) {
    let Tenancy { holder: (worker, target), tenure, query } = *tenancy;
    cx.shared.inboxes[worker].send(Message::Taken(target, query, tenure));
}

/// Takes back that the worker listens to a query, if none of its clients does.
pub(crate) fn leave_if_unused(session: &Session, query: &Query, cx: &Context<'_>) {
    if cx.watchers.of(query.id()).is_empty() {
        cx.shared.engine.leave(query, session.client.worker, cx.now_us);
    }
}

/// Lets a subscription catch up: as soon as the client's answer is written.
pub(crate) fn catch_up_soon(session: &mut Session, query: Lsn) {
    session.subscriptions.watchings.catch_up_soon(query);
}

/// Ends a subscription; whether there was one.
pub(crate) fn end(session: &mut Session, query: Lsn, cx: &Context<'_>) -> bool {
    let Some(watching) = session.subscriptions.watchings.remove(query) else { return false };
    leave(&watching, session.target(), session.client.worker, cx);
    session.show_state();
    true
}

/// Ends all subscriptions without telling the client.
pub(crate) fn end_all(session: &mut Session, cx: &Context<'_>) {
    let watchings = std::mem::take(&mut session.subscriptions.watchings);
    for watching in watchings.iter() {
        leave(watching, session.target(), session.client.worker, cx);
    }
}

/// Ends a named subscription that another connection has taken over, or whose name has ended; unless the client has begun
/// it anew since.
pub(crate) fn lose_name(session: &mut Session, query: Lsn, tenure: Tenure, cx: &Context<'_>) {
    let Session { subscriptions, output, .. } = &mut *session;
    let Some(watching) = subscriptions.watchings.get_mut(query) else { return };
    if watching.given_name().is_none_or(|(_, its_tenure)| its_tenure != tenure) {
        return;
    }
    watching.write_ended(TAKEN, output);
    end(session, query, cx);
}

fn leave(watching: &Watching, target: Target, worker: usize, cx: &Context<'_>) {
    watching.release_name(&cx.shared.holders);
    if cx.watchers.leave(watching.cursor.query().id(), target.slot) {
        cx.shared.engine.leave(watching.cursor.query(), worker, cx.now_us);
    }
}

/// Writes what a query has emitted, as far as the client has room.
pub(crate) fn emit(session: &mut Session, query: Lsn, cx: &Context<'_>) {
    let tell = teller(session, cx);
    let older = Older { backlogs: &cx.shared.backlogs, tell: &tell };
    let Session { subscriptions, output, wait, .. } = &mut *session;
    let awaits_delivery = || wait.as_ref().is_some_and(Wait::awaits_delivery);
    if subscriptions.watchings.emit(query, output, &older, &awaits_delivery, cx) == Emitted::Ended {
        end(session, query, cx);
    }
}

/// Gives away what had to wait for the end of `CLIENT PAUSE`.
pub(crate) fn pause_ended(session: &mut Session, cx: &Context<'_>) {
    let waited = session.subscriptions.watchings.end_pause();
    waited.into_iter().for_each(|query| emit(session, query, cx));
}

/// Does what is due by now: sends what a pause has held back, and says up to where there was nothing.
pub(crate) fn time_has_come(session: &mut Session, now: Instant, cx: &Context<'_>) {
    for query in session.subscriptions.watchings.take_due(now) {
        emit(session, query, cx);
        let Session { subscriptions, output, .. } = &mut *session;
        subscriptions.watchings.tell_progress(query, now, output, cx);
    }
}

/// Writes what the client's subscriptions have had to wait with.
pub(crate) fn catch_up(session: &mut Session, cx: &Context<'_>) {
    let behind = session.subscriptions.watchings.take_behind();
    behind.into_iter().for_each(|query| emit(session, query, cx));
}
