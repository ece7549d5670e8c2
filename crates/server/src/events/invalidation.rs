//! Invalidations for clients with `CLIENT TRACKING`: which cached keys are stale.
//!
//! Invalidations wait in the client's [`Tracker`], bounded, until the receiving connection has
//! room: the client's own, or the one that it redirects to. A connection that does not read costs
//! no further memory; when it reads again, one message invalidates everything.

use crate::context::Context;
use crate::events::invalidation_source::Source;
use crate::net::client::flags;
use crate::net::connection_id::{ConnectionAddress, ConnectionId};
use crate::net::inbox::{Inbox, Message};
use crate::net::outbox::Until;
use crate::session::{Mode, Session};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidemark_engine::command::parse;
use tidemark_engine::tracking::{Invalidation, Notifier, Stale, Tracker};
use tidemark_engine::{Protocol, Reply};

/// Channel of invalidations for RESP2 subscribers.
const CHANNEL: &[u8] = b"__redis__:invalidate";

/// Returns the callback that notifies the receiving connection of a tracker's invalidations.
pub(crate) fn notifier(owner: ConnectionAddress, taker: ConnectionId, inbox: Arc<Inbox>) -> Notifier {
    Box::new(move |tracker| {
        let source = Source { tracker: Arc::clone(tracker), owner };
        inbox.send(Message::Invalidated(taker, source));
    })
}

/// Notifies a client that the connection which should have received its invalidations is gone, and
/// discards them.
pub(crate) fn return_to_owner(source: &Source, taker: ConnectionId, inboxes: &[Arc<Inbox>]) {
    if source.tracker.discard(taker.client) && source.owner.connection_id != taker {
        inboxes[source.owner.worker].send(Message::RedirectBroken(source.owner.connection_id, taker.client));
    }
}

/// Writes a tracker's invalidations until the connection's outbox is full.
pub(crate) fn invalidate(session: &mut Session, source: Source, cx: &Context<'_>) {
    session.untaken.add(source);
    catch_up(session, cx);
}

/// Like [`invalidate`], for invalidations that had to wait.
pub(crate) fn catch_up(session: &mut Session, cx: &Context<'_>) {
    while let Some(source) = session.untaken.first() {
        let tracker = Arc::clone(&source.tracker);
        let is_redirected = source.owner.connection_id != session.client.connection_id;
        if !take_all(session, &tracker, is_redirected, cx) {
            return;
        }
        session.untaken.pass();
    }
}

/// Writes a tracker's invalidations. Returns `false` if some must wait: for room, or for the reply
/// to a blocking command, which goes first.
fn take_all(session: &mut Session, tracker: &Tracker, is_redirected: bool, cx: &Context<'_>) -> bool {
    let is_redirected = is_redirected || session.tracking.as_ref().is_some_and(|own| own.redirect.is_some());
    loop {
        if !session.outbox.has_room() {
            return false;
        }
        if !tracker.has_some(session.client.id) {
            return true;
        }
        // Checked after the invalidation is seen: if the client has not been served yet, the
        // invalidation does not result from serving it.
        if session.awaits_delivery() {
            return false;
        }
        let Some(invalidation) = tracker.take(session.client.id) else { return true };
        write(session, &invalidation, is_redirected, cx);
    }
}

/// Writes an invalidation, if the client can distinguish it from a reply: in RESP2 only as a
/// message to a subscriber.
fn write(session: &mut Session, invalidation: &Invalidation, is_redirected: bool, cx: &Context<'_>) {
    let is_subscriber = session.subscriptions.listens();
    let outbox = &mut session.outbox;
    let mark = outbox.reply.len();
    match outbox.reply.protocol() {
        Protocol::Resp3 => {
            outbox.reply.push(2);
            outbox.reply.bulk(b"invalidate");
        }
        Protocol::Resp2 if is_redirected && is_subscriber => {
            outbox.reply.push(3);
            outbox.reply.bulk(b"message");
            outbox.reply.bulk(CHANNEL);
        }
        Protocol::Resp2 => return,
    }
    write_stale(&invalidation.stale, &mut outbox.reply);
    if cx.waits_for_commit() && invalidation.lsn > cx.shared.engine.log().committed() {
        outbox.hold(mark, Until::Committed(invalidation.lsn));
    }
}

fn write_stale(stale: &Stale, reply: &mut Reply) {
    match stale {
        Stale::Key(key) => {
            reply.array(1);
            reply.bulk(key);
        }
        Stale::Keys(keys) => {
            reply.array(keys.len());
            keys.iter().for_each(|key| reply.bulk(key));
        }
        Stale::Everything => reply.null(),
    }
}

/// Runs after each command of a tracking client: invalidations of its own change follow the reply
/// directly, and `CLIENT CACHING` applied to this command.
#[cold]
pub(crate) fn after_command(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) {
    let is_in_transaction = session.transaction.is_some();
    let Some(tracking) = &mut session.tracking else { return };
    if tracking.is_exception
        && !is_in_transaction
        && !args.first().is_some_and(|name| parse::is(name, "CLIENT"))
    {
        tracking.is_exception = false;
    }
    // Broadcasts are collected until the client's other commands of this turn have run.
    if tracking.mode != Mode::Broadcast && tracking.redirect.is_none() {
        let tracker = Arc::clone(&tracking.tracker);
        take_all(session, &tracker, false, cx);
    }
}

/// Notes that the client that this one redirects to is gone, and notifies a RESP3 client.
pub(crate) fn break_redirect(session: &mut Session, taker: u64) {
    let Some(tracking) = session.tracking.as_mut().filter(|tracking| tracking.redirect == Some(taker)) else {
        return;
    };
    tracking.is_broken = true;
    session.client.flag(flags::TRACKING_BROKEN, true);
    let reply = &mut session.outbox.reply;
    if reply.protocol() == Protocol::Resp3 {
        reply.push(2);
        reply.bulk(b"tracking-redir-broken");
        reply.integer(taker as i64);
    }
}

/// Ends a client's tracking.
pub(crate) fn end(session: &mut Session, cx: &Context<'_>) {
    if let Some(tracking) = session.tracking.take() {
        cx.shared.engine.untrack(&tracking.tracker, tracking.prefixes.iter().map(|prefix| &**prefix));
        show(session);
    }
}

/// Ends the tracking of a closing connection, discards the invalidations that it has not written,
/// and notifies the clients that redirect to it.
pub(crate) fn close(session: &mut Session, cx: &Context<'_>) {
    end(session, cx);
    for source in session.untaken.take() {
        return_to_owner(&source, session.client.connection_id, &cx.shared.inboxes);
    }
}

/// Updates what `CLIENT LIST` shows of the client's tracking.
pub(crate) fn show(session: &Session) {
    let (client, tracking) = (&session.client, session.tracking.as_deref());
    client.flag(flags::TRACKING, tracking.is_some());
    client.flag(flags::TRACKING_BROKEN, tracking.is_some_and(|tracking| tracking.is_broken));
    client.flag(flags::TRACKING_BROADCAST, tracking.is_some_and(|tracking| tracking.mode == Mode::Broadcast));
    let redirect = tracking.map_or(-1, |tracking| tracking.redirect.map_or(0, |id| id as i64));
    client.shown.redirect.store(redirect, Ordering::Relaxed);
}
