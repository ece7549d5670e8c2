//! Commands that let a client wait: blocking pops, `WAIT`, `WAITAOF`, `DEBUG SLEEP`.

use crate::context::Context;
use crate::net::inbox::{Message, Unblock};
use crate::net::outbox::Until;
use crate::session::{Session, Wait, WaitFor};
use crate::subscription::lifecycle;
use std::sync::Arc;
use std::time::Duration;
use tidemark_engine::command::parse;
use tidemark_engine::{Blocked, CommandError, Delivery, Engine, Waiter};
use tidemark_log::Lsn;

/// Lets a client wait whose command has found nothing to take.
pub(crate) fn block(session: &mut Session, blocked: Blocked<'_>, durable: bool, cx: &Context<'_>) {
    let timeout = blocked.timeout_ms().map(Duration::from_millis);
    let connection_id = session.connection_id();
    let inbox = Arc::clone(&cx.shared.inboxes[session.client.worker]);
    let deliver = move |delivery: Delivery| inbox.send(Message::Deliver(connection_id, delivery));
    let waiter = blocked.wait(deliver, |waiter| session.client.begin_wait(waiter));
    session.wait = Some(Wait::new(WaitFor::Keys(waiter), timeout, durable));
    session.show_state();
}

/// Gives a blocked client what it has waited for.
pub(crate) fn deliver(session: &mut Session, delivery: &Delivery, always: bool) {
    // What it has taken would be lost: a wait that has been served ends by its delivery alone.
    let wait = session.wait.take().expect("a client is delivered what it waits for");
    let mark = session.outbox.reply.len();
    if delivery.overflowed {
        session.outbox.reply.overflow();
    }
    session.outbox.reply.encoded(&delivery.reply);
    if let Some(lsn) = delivery.lsn {
        session.last_write = Some(lsn);
        if always || wait.durable {
            session.outbox.hold(mark, Until::Durable(lsn));
        }
    }
    if wait.is_silent {
        session.outbox.take_back(mark);
    }
    session.show_state();
    session.client.end_wait();
}

/// Ends a wait whose time has passed, or which another client ended. `false` if the answer is already on its way.
pub(crate) fn end(session: &mut Session, how: Unblock, engine: &Engine) -> bool {
    let Some(wait) = &session.wait else { return false };
    match (&wait.what, how) {
        // Its answer is sure to come.
        (WaitFor::Snapshot | WaitFor::Place(_) | WaitFor::Long, _)
        | (WaitFor::Unpaused | WaitFor::Room(_), Unblock::Error) => return false,
        _ => {}
    }
    if let WaitFor::Keys(waiter) = &wait.what {
        // Whoever ends another's wait has stopped it already.
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
        (WaitFor::Keys(_), Unblock::Timeout) => reply.null_array(),
        (WaitFor::Sync(_), Unblock::Timeout) => sync_reply(reply, false),
        (WaitFor::Replicas, Unblock::Timeout) => reply.integer(0),
        (WaitFor::Sleep | WaitFor::Snapshot | WaitFor::Place(_) | WaitFor::Long, Unblock::Timeout) => {
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

/// Whether the client still waits, and if it is `waiter` that was meant, for the same keys as when it was.
pub(crate) fn is_waiting(session: &Session, meant: Option<&Arc<Waiter>>) -> bool {
    match (session.wait.as_ref().map(|wait| &wait.what), meant) {
        (Some(WaitFor::Keys(waiter)), Some(meant)) => Arc::ptr_eq(waiter, meant),
        (Some(WaitFor::Keys(_)) | None, None) | (_, Some(_)) => false,
        (Some(_), None) => true,
    }
}

/// Ends the wait of a client that is gone.
pub(crate) fn abandon(session: &mut Session, cx: &Context<'_>) {
    match session.wait.take().map(|wait| wait.what) {
        // If it has been served meanwhile, what it took is lost with its connection, as a reply in flight would be.
        Some(WaitFor::Keys(waiter)) => {
            cx.shared.engine.stop_waiting(&waiter);
        }
        // Who subscribes listens from the first, so that has to end.
        Some(WaitFor::Place(pending)) => lifecycle::leave_if_unused(session, pending.query(), cx),
        _ => {}
    }
}

/// Ends a wait for the disk if the record is durable; whether it did.
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

/// `WAITAOF numlocal numreplicas timeout`
pub(crate) fn wait_aof(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let [_, local, replicas, timeout] = args else { return Err(CommandError::Syntax) };
    let local = parse::integer_in(local, 0..=1)?;
    // There are no replicas to wait for, so the number only has to be one.
    parse::positive(replicas)?;
    let timeout = timeout_ms(timeout)?;
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
pub(crate) fn wait_replicas(session: &mut Session, args: &[&[u8]]) -> Result<(), CommandError> {
    let [_, replicas, timeout] = args else { return Err(CommandError::Syntax) };
    let replicas = parse::integer(replicas)?;
    let timeout = timeout_ms(timeout)?;
    if replicas <= 0 || session.is_in_transaction() {
        session.outbox.reply.integer(0);
    } else {
        begin(session, WaitFor::Replicas, timeout);
    }
    Ok(())
}

/// `DEBUG SLEEP seconds`: the connection sleeps, others do not notice.
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

/// Lets a client wait for the snapshot that it has asked for.
pub(crate) fn for_snapshot(session: &mut Session) {
    begin(session, WaitFor::Snapshot, None);
}

pub(crate) fn begin(session: &mut Session, what: WaitFor, timeout: Option<Duration>) {
    session.wait = Some(Wait::new(what, timeout, false));
    session.show_state();
}

/// A timeout argument in milliseconds; 0 is for ever.
pub(crate) fn timeout_ms(arg: &[u8]) -> Result<Option<Duration>, CommandError> {
    let value = parse::integer(arg)
        .map_err(|_| CommandError::text("ERR timeout is not an integer or out of range"))?;
    let value = u64::try_from(value).map_err(|_| CommandError::text("ERR timeout is negative"))?;
    Ok((value > 0).then(|| Duration::from_millis(value)))
}

/// `WAITAOF` answers how many disks hold the change: this server's, and replicas'.
fn sync_reply(reply: &mut tidemark_engine::Reply, local: bool) {
    reply.array(2);
    reply.integer(i64::from(local));
    reply.integer(0);
}
