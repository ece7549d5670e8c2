//! Hands subscriptions over between the connections of one client.
//!
//! The connection that a subscription belongs to gets its emissions. To move it, only the query,
//! the numbering offset and the position are sent to the other connection's worker.

use super::fingerprint;
use super::form::Form;
use super::notice::{Handed, Notice};
use crate::context::Context;
use crate::net::connection_id::ConnectionAddress;
use crate::net::inbox::Message;
use crate::session::{NAMES_LIMIT, Session};
use crate::subscription::cursor::{Cursor, ResumePosition};
use crate::subscription::lifecycle;
use crate::subscription::read_subscription::ReadSubscription;
use tidemark_log::Lsn;

/// Adds a subscription to the session.
pub(super) fn place(session: &mut Session, handed: Handed, lsn: Lsn, cx: &Context<'_>) {
    let Handed { place, base, .. } = handed;
    let query = &place.query;
    let Some(mut form) = Form::of(query.read(), fingerprint::of(query, base)) else { return };
    form.register(cx.shared.dice.register(session.client.id, query.id(), base));
    // Subscriptions of this protocol have no name to confirm to the client.
    let _ = lifecycle::begin(
        session,
        ReadSubscription::formed(Cursor::at(place, base, lsn), form, &cx.shared.clock),
        cx,
    );
}

/// Ends the session's subscription with this fingerprint. Returns whether there was one.
pub(super) fn end(session: &mut Session, fingerprint: u64, cx: &Context<'_>) -> bool {
    let is_meant = |subscription: &&ReadSubscription| {
        subscription.form().is_some_and(|form| form.fingerprint() == fingerprint)
    };
    let meant = session
        .subscriptions
        .reads
        .iter()
        .find(is_meant)
        .map(|subscription| subscription.cursor.query().id());
    meant.is_some_and(|query| lifecycle::end(session, query, cx))
}

/// Resumes a subscription at a place, on the connection that listens.
pub(crate) fn go_on(session: &mut Session, place: ResumePosition, base: u64, cx: &Context<'_>) {
    match cx.shared.dice.listener_for(session.client.id) {
        Some(listener) => {
            let place = place.for_another();
            // The worker was registered as a listener with the request.
            lifecycle::leave_if_unused(session, &place.query, cx);
            notify(listener, Notice::TakeOver(vec![Handed { place, base, replaces: true }]), cx);
        }
        None => take_over(session, Handed { place, base, replaces: true }, cx),
    }
}

/// Handles a notice of another connection of the client.
pub(super) fn heed(session: &mut Session, notice: Notice, cx: &Context<'_>) {
    match notice {
        Notice::HandOver(listener) => hand_over(session, listener, cx),
        Notice::TakeOver(all) => match cx.shared.dice.listener_for(session.client.id) {
            // Another connection has started to listen. Each is later than the last, so this ends.
            Some(later) => notify(later, Notice::TakeOver(all), cx),
            None => all.into_iter().for_each(|handed| take_over(session, handed, cx)),
        },
        Notice::End(fingerprint) => drop(end(session, fingerprint, cx)),
    }
}

fn hand_over(session: &mut Session, listener: ConnectionAddress, cx: &Context<'_>) {
    let hand = |subscription: &ReadSubscription| Handed {
        place: subscription.cursor.place(),
        base: subscription.cursor.base(),
        replaces: false,
    };
    let all: Vec<Handed> = session.subscriptions.reads.iter().map(hand).collect();
    if !all.is_empty() {
        lifecycle::end_all(session, cx);
        session.show_state();
        notify(listener, Notice::TakeOver(all), cx);
    }
}

fn take_over(session: &mut Session, handed: Handed, cx: &Context<'_>) {
    let id = handed.place.query.id();
    let reads = &session.subscriptions.reads;
    if session.closing || (reads.contains(id) && !handed.replaces) || reads.len() >= NAMES_LIMIT {
        return;
    }
    lifecycle::end(session, id, cx);
    if cx.shared.engine.listen(id, session.client.worker).is_some() {
        place(session, handed, id, cx);
        lifecycle::catch_up_soon(session, id);
    }
}

/// Notifies the other connections with the same ID that this one listens.
pub(super) fn introduce(session: &Session, id: &str, watches: bool, cx: &Context<'_>) {
    let here = session.address();
    for other in cx.shared.dice.introduce(here, id, watches) {
        notify(other, Notice::HandOver(here), cx);
    }
}

/// Notifies another connection of the client.
pub(super) fn notify(connection: ConnectionAddress, notice: Notice, cx: &Context<'_>) {
    cx.shared.inboxes[connection.worker].send(Message::Dice(connection.connection_id, notice));
}
