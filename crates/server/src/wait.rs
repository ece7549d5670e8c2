//! Commands that block a client: blocking pops, `WAIT`, `WAITAOF`, `DEBUG SLEEP`.

use crate::context::Context;
use crate::durability::hold::{hold_until_shown, hold_what_is_shown, refuse};
use crate::durability::log_state::CommitLost;
use crate::net::inbox::{Message, Unblock};
use crate::net::outbox::Until;
use crate::session::{Copies, Session, Wait, WaitFor};
use crate::subscription::lifecycle;
use std::sync::Arc;
use std::time::Duration;
use tidemark_engine::command::parse;
use tidemark_engine::{Blocked, CommandError, Delivery, Waiter};
use tidemark_log::Lsn;

/// Blocks a client whose command has found nothing to take.
pub(crate) fn block(session: &mut Session, blocked: Blocked<'_>, durable: bool, cx: &Context<'_>) {
    let timeout = blocked.timeout_ms().map(Duration::from_millis);
    let connection_id = session.connection_id();
    let inbox = Arc::clone(&cx.shared.inboxes[session.client.worker]);
    let deliver = move |delivery: Delivery| inbox.send(Message::Deliver(connection_id, delivery));
    let waiter = blocked.wait(deliver, |waiter| session.client.begin_wait(waiter));
    session.wait = Some(Wait::new(WaitFor::Keys(waiter), timeout, durable, &cx.shared.clock));
    session.show_state();
}

/// Answers a blocked client with its delivery.
pub(crate) fn deliver(session: &mut Session, delivery: &Delivery, cx: &Context<'_>) {
    // A served wait ends only by its delivery: otherwise the element that it took would be lost.
    let wait = session.wait.take().expect("a client is delivered what it waits for");
    let mark = session.outbox.reply.len();
    if delivery.overflowed {
        session.outbox.reply.overflow();
    }
    session.outbox.reply.encoded(&delivery.reply);
    let must_wait = wait.durable || cx.waits_for_commit();
    if let Some(lsn) = delivery.lsn {
        session.last_write = Some(lsn);
        if must_wait {
            match if wait.durable { cx.shared.synced_with(lsn) } else { Ok(lsn) } {
                Ok(until) => session.outbox.hold(mark, Until::Committed(until)),
                Err(CommitLost) => refuse(session, mark),
            }
        }
    } else if must_wait {
        // An error, which may rest on what other clients have changed.
        hold_what_is_shown(session, mark, cx);
    }
    if wait.is_silent {
        session.outbox.take_back(mark);
    }
    session.show_state();
    session.client.end_wait();
}

/// Ends a wait whose deadline has passed, or which another client ended. Returns `false` if the
/// wait cannot end this way or its answer is on its way.
pub(crate) fn end(session: &mut Session, how: Unblock, cx: &Context<'_>) -> bool {
    let engine = &cx.shared.engine;
    let Some(wait) = &session.wait else { return false };
    match (&wait.what, how) {
        // These waits cannot be cut short: their answer is certain to arrive.
        (WaitFor::Snapshot | WaitFor::Resumption(_) | WaitFor::Long, _)
        | (WaitFor::Unpaused | WaitFor::Room(_), Unblock::Error) => return false,
        _ => {}
    }
    cx.note_shown();
    if let WaitFor::Keys(waiter) = &wait.what {
        // A client that ended this wait with `CLIENT UNBLOCK` has stopped it already; stopping is
        // idempotent.
        engine.stop_waiting(waiter);
        if waiter.is_served() {
            return false;
        }
    }
    let is_silent = wait.is_silent;
    let mark = session.outbox.reply.len();
    let reply = &mut session.outbox.reply;
    match (&wait.what, how) {
        (_, Unblock::Error) => reply.error_text("UNBLOCKED client unblocked via CLIENT UNBLOCK"),
        (WaitFor::Keys(waiter), Unblock::Timeout) => {
            let shown = engine.answer_late(waiter, cx.shared.clock.now_us(), reply);
            // That there is nothing to take may rest on another client's pop.
            if wait.durable || cx.waits_for_commit() {
                hold_until_shown(session, mark, shown, cx);
            }
        }
        (WaitFor::Sync(_), Unblock::Timeout) => sync_reply(reply, false),
        (WaitFor::Replicas, Unblock::Timeout) => reply.integer(0),
        (WaitFor::Copies(copies), Unblock::Timeout) => copies.write(reply, cx.shared),
        (WaitFor::Sleep | WaitFor::Snapshot | WaitFor::Resumption(_) | WaitFor::Long, Unblock::Timeout) => {
            reply.ok();
        }
        (WaitFor::Unpaused | WaitFor::Room(_), Unblock::Timeout) => {}
    }
    if is_silent {
        session.outbox.take_back(mark);
    }
    session.wait = None;
    session.show_state();
    session.client.end_wait();
    true
}

/// Whether the client still waits. With `meant`, whether it still waits for the same keys as then.
pub(crate) fn is_waiting(session: &Session, meant: Option<&Arc<Waiter>>) -> bool {
    match (session.wait.as_ref().map(|wait| &wait.what), meant) {
        (Some(WaitFor::Keys(waiter)), Some(meant)) => Arc::ptr_eq(waiter, meant),
        (Some(WaitFor::Keys(_)) | None, None) | (_, Some(_)) => false,
        (Some(_), None) => true,
    }
}

/// Ends the wait of a client that has disconnected.
pub(crate) fn abandon(session: &mut Session, cx: &Context<'_>) {
    match session.wait.take().map(|wait| wait.what) {
        // If it was served concurrently, the element that it took is lost with the connection, like
        // a reply in flight.
        Some(WaitFor::Keys(waiter)) => {
            cx.shared.engine.stop_waiting(&waiter);
        }
        // The worker is registered as a listener since the request: unregister it.
        Some(WaitFor::Resumption(pending)) => lifecycle::leave_if_unused(session, pending.query(), cx),
        _ => {}
    }
}

/// Ends a wait for the disk if the record is durable. Returns whether it did.
pub(crate) fn synced(session: &mut Session, durable: Lsn) -> bool {
    let Some(Wait { what: WaitFor::Sync(lsn), is_silent, .. }) = &session.wait else { return false };
    if *lsn > durable {
        return false;
    }
    if !is_silent {
        sync_reply(&mut session.outbox.reply, true);
    }
    session.wait = None;
    session.show_state();
    true
}

/// Ends a wait for copies on members of the group if they are there. Returns whether it did.
pub(crate) fn copied(session: &mut Session, cx: &Context<'_>) -> bool {
    let Some(Wait { what: WaitFor::Copies(copies), is_silent, .. }) = &mut session.wait else { return false };
    if !copies.are_there(cx.shared) {
        return false;
    }
    if !*is_silent {
        copies.write(&mut session.outbox.reply, cx.shared);
    }
    session.wait = None;
    session.show_state();
    true
}

/// Waits for copies of the client's newest change on members of the group, unless they are there or the
/// client must not wait.
fn wait_for_copies(
    session: &mut Session,
    mut copies: Copies,
    timeout: Option<Duration>,
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    if cx.shared.group.as_ref().is_some_and(|group| !group.leads()) {
        return Err(CommandError::text("ERR WAIT and WAITAOF ask the leader: this member follows another"));
    }
    if copies.are_there(cx.shared) || session.is_in_transaction() {
        copies.write(&mut session.outbox.reply, cx.shared);
    } else {
        begin(session, WaitFor::Copies(Box::new(copies)), timeout);
    }
    Ok(())
}

/// `WAITAOF numlocal numreplicas timeout`
pub(crate) fn wait_aof(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let [_, local, replicas, timeout] = args else { return Err(CommandError::Syntax) };
    let local = parse::integer_in(local, 0..=1)?;
    // A node alone has no replicas: only the number's validity is checked.
    let replicas = parse::positive(replicas)?;
    let timeout = timeout_ms(timeout)?;
    if cx.shared.group.is_some() {
        let wanted = usize::try_from(replicas).unwrap_or(usize::MAX);
        let copies = Copies::synced(session.last_write, local == 1, wanted);
        return wait_for_copies(session, copies, timeout, cx);
    }
    let log = cx.shared.engine.log();
    match session.last_write.filter(|lsn| local == 1 && *lsn > log.durable()) {
        Some(lsn) if !session.is_in_transaction() => {
            log.request_sync(lsn);
            begin(session, WaitFor::Sync(lsn), timeout);
        }
        unsynced => sync_reply(&mut session.outbox.reply, local == 1 && unsynced.is_none()),
    }
    Ok(())
}

/// `WAIT numreplicas timeout`
pub(crate) fn wait_replicas(
    session: &mut Session,
    args: &[&[u8]],
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    let [_, replicas, timeout] = args else { return Err(CommandError::Syntax) };
    let replicas = parse::integer(replicas)?;
    let timeout = timeout_ms(timeout)?;
    if cx.shared.group.is_some() {
        let wanted = usize::try_from(replicas.max(0)).unwrap_or(usize::MAX);
        return wait_for_copies(session, Copies::written(session.last_write, wanted), timeout, cx);
    }
    if replicas <= 0 || session.is_in_transaction() {
        session.outbox.reply.integer(0);
    } else {
        begin(session, WaitFor::Replicas, timeout);
    }
    Ok(())
}

/// `DEBUG SLEEP seconds`: blocks this connection only.
pub(crate) fn sleep(session: &mut Session, args: &[&[u8]]) -> Result<(), CommandError> {
    let seconds = args.get(2).map(|arg| parse::float(arg)).transpose()?.unwrap_or(0.0);
    let time = Duration::try_from_secs_f64(seconds).map_err(|_| CommandError::NotAFloat)?;
    if time.is_zero() || session.is_in_transaction() {
        session.outbox.reply.ok();
    } else {
        begin(session, WaitFor::Sleep, Some(time));
    }
    Ok(())
}

/// Blocks a client until the snapshot that it requested is complete.
pub(crate) fn for_snapshot(session: &mut Session) {
    begin(session, WaitFor::Snapshot, None);
}

pub(crate) fn begin(session: &mut Session, what: WaitFor, timeout: Option<Duration>) {
    session.wait = Some(Wait::new(what, timeout, false, &session.client.clock));
    session.show_state();
}

/// Parses a timeout argument in milliseconds; 0 is for ever.
pub(crate) fn timeout_ms(arg: &[u8]) -> Result<Option<Duration>, CommandError> {
    let value = parse::integer(arg)
        .map_err(|_| CommandError::text("ERR timeout is not an integer or out of range"))?;
    let value = u64::try_from(value).map_err(|_| CommandError::text("ERR timeout is negative"))?;
    Ok((value > 0).then(|| Duration::from_millis(value)))
}

/// Writes the reply of `WAITAOF` at a node alone: the number of local and of replica disks that have the change.
fn sync_reply(reply: &mut tidemark_engine::Reply, local: bool) {
    reply.array(2);
    reply.integer(i64::from(local));
    reply.integer(0);
}
