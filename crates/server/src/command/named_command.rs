//! `X.WATCH ... | AS name`: starts, acknowledges, lists and ends named subscriptions.

use crate::context::Context;
use crate::durability::hold::{self, hold_position};
use crate::session::Session;
use crate::subscription::cursor::{self, Cursor, reads};
use crate::subscription::delivery::{Delivery, Start};
use crate::subscription::lifecycle;
use crate::subscription::ownership::Ownership;
use crate::subscription::pending_resumption::{ResumeRequest, Resumption};
use crate::subscription::reply::{begun, write_read};
use crate::subscription::resume_error::ResumeError;
use crate::subscription::resumption;
use tidemark_engine::CommandError;
use tidemark_engine::command::parse::glob;
use tidemark_engine::watch::{Acknowledged, Acknowledgement, Guarantee, Named, Read, check_name};
use tidemark_log::Lsn;

/// Name and guarantee of a named subscription that a client requests.
pub(crate) struct Naming<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) guarantee: Guarantee,
}

/// Starts a named subscription, or resumes it after its position.
pub(crate) fn watch(
    session: &mut Session,
    read: Read,
    naming: &Naming<'_>,
    (delivery, start): (Delivery, Start),
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    check_name(naming.name)?;
    if let Start::Resume(_) = start {
        return Err(CommandError::text(
            "ERR RESUME is not valid with AS: a named subscription resumes at its own position",
        ));
    }
    match cx.shared.engine.named(naming.name) {
        None => begin(session, read, naming, (delivery, start), cx),
        Some(named) => go_on(session, &read, naming, (delivery, start), &named, cx),
    }
}

fn begin(
    session: &mut Session,
    read: Read,
    naming: &Naming<'_>,
    (delivery, start): (Delivery, Start),
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    let engine = &cx.shared.engine;
    let subscribed = engine.subscribe(read, session.client.worker, cx.now_us)?;
    cx.shared.watching_began(cx.now_us);
    // At least once: the first answer is repeated if the client dies before it acknowledges it.
    let is_repeated = naming.guarantee == Guarantee::AtLeastOnce && start == Start::Snapshot;
    let named = Named {
        query: subscribed.query.clone(),
        base: subscribed.number,
        position: subscribed.lsn,
        has_begun: !is_repeated,
        guarantee: naming.guarantee,
    };
    let record = match engine.name_subscription(naming.name, &named, cx.now_us) {
        Ok(record) => record,
        Err(error) => {
            lifecycle::leave_if_unused(session, &subscribed.query, cx);
            // Another client may have created the name in the meantime.
            return match engine.named(naming.name) {
                Some(named) => go_on(session, subscribed.query.read(), naming, (delivery, start), &named, cx),
                None => Err(error),
            };
        }
    };
    let cursor = Cursor::behind(subscribed.query, named.base, subscribed.number, subscribed.lsn);
    let mark = session.outbox.reply.len();
    let replaced = lifecycle::hold(session, naming.name, &named, (cursor, delivery), cx);
    begun(
        session,
        named.query.id(),
        subscribed.lsn,
        (start == Start::Snapshot).then_some(&*subscribed.answer),
    );
    hold_position(session, mark, record, cx);
    replaced.notify(session);
    Ok(())
}

/// Resumes the subscription that has this name.
fn go_on(
    session: &mut Session,
    read: &Read,
    naming: &Naming<'_>,
    (delivery, start): (Delivery, Start),
    named: &Named,
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    if named.query.read() != read {
        return Err(CommandError::text(
            "ERR the subscription of that name is to another read, by another protocol or with other operators; UNWATCH \
             NAMED ends it",
        ));
    }
    if named.guarantee != naming.guarantee {
        return Err(CommandError::Text(
            format!("ERR the subscription of that name is {}; UNWATCH NAMED ends it", named.guarantee.word())
                .into(),
        ));
    }
    let is_repeated = !named.has_begun && start == Start::Snapshot;
    let value = if is_repeated { named.query.shown_at(named.base) } else { None };
    let (query, lsn, asked) =
        (named.query.clone(), named.position, ResumeRequest::NamedWatch(naming.name.into(), value));
    resumption::go_on(session, Resumption { query, lsn, delivery, asked }, cx)
}

/// `EMITACK` of a named subscription, from any connection.
pub(crate) fn acknowledge(
    session: &mut Session,
    name: &[u8],
    lsn: Lsn,
    cx: &Context<'_>,
) -> Result<Result<(), ResumeError>, CommandError> {
    let mark = session.outbox.reply.len();
    match cx.shared.engine.acknowledge(Acknowledgement { name, lsn }, cx.now_us)? {
        Acknowledged::Unknown => return Ok(Err(ResumeError::NotFound)),
        Acknowledged::Beyond(head) => return Ok(Err(ResumeError::Invalid(head))),
        Acknowledged::Before(_) => {
            session.outbox.reply.ok();
            if cx.waits_for_commit() {
                hold::hold_what_is_shown(session, mark, cx);
            }
        }
        Acknowledged::Moved(record) => {
            session.outbox.reply.ok();
            hold::hold_change(session, mark, record, cx);
        }
    }
    Ok(Ok(()))
}

/// Returns the arguments of a queued `EMITACK key name lsn` of a named subscription.
pub(crate) fn acknowledgement<'a>(args: &[&'a [u8]]) -> Option<(&'a [u8], &'a [u8], &'a [u8])> {
    let [_, key, name, lsn] = args else { return None };
    cursor::parse_name(name).is_none().then_some((key, name, lsn))
}

/// Whether a subscription of this name reads this key.
pub(crate) fn is_of_key(name: &[u8], key: &[u8], cx: &Context<'_>) -> bool {
    cx.shared.engine.named(name).is_some_and(|named| reads(&named.query, key))
}

/// `UNWATCH NAMED name ...`: ends the names, notifies their owners and returns the number ended.
pub(crate) fn end(session: &mut Session, names: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let (mark, mut ended, mut last) = (session.outbox.reply.len(), 0, None);
    for name in names {
        let Some((record, named)) = cx.shared.engine.end_named(name, cx.now_us)? else { continue };
        (ended, last) = (ended + 1, Some(record));
        if let Some(ownership) = cx.shared.name_owners.evict(name, named.query.id()) {
            lifecycle::notify_taken(&ownership, cx);
        }
        cx.shared.watching_began(cx.now_us);
    }
    session.outbox.reply.count(ended);
    if let Some(record) = last {
        hold::hold_change(session, mark, record, cx);
    }
    Ok(())
}

/// `WATCHES NAMED [pattern]`: lists all names of the server.
pub(crate) fn list(session: &mut Session, pattern: Option<&[u8]>, cx: &Context<'_>) {
    let mut all = cx.shared.engine.all_named();
    all.retain(|(name, _)| pattern.is_none_or(|pattern| glob(pattern, name)));
    let reply = &mut session.outbox.reply;
    reply.array(all.len());
    for (name, named) in all {
        let read = named.query.read();
        reply.map(7);
        reply.bulk(b"name");
        reply.bulk(&name);
        write_read(reply, read);
        reply.bulk(b"db");
        reply.count(read.db().into());
        reply.bulk(b"guarantee");
        reply.bulk(named.guarantee.word().as_bytes());
        reply.bulk(b"lsn");
        reply.count(named.position.0 as usize);
        reply.bulk(b"client");
        match cx.shared.name_owners.of(&name) {
            Some(Ownership { owner, .. }) => reply.count(owner.connection_id.client as usize),
            None => reply.null(),
        }
    }
}
