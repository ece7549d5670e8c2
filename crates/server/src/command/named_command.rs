//! `X.WATCH ... | AS name`: subscriptions whose positions the log keeps; and what else is said of names.

use crate::context::Context;
use crate::cursor::{self, Cursor, reads};
use crate::delivery::{Delivery, Start};
use crate::holders::Tenancy;
use crate::holding::{self, hold_position};
use crate::not_resumed::NotResumed;
use crate::session::{Asked, Returning, Session};
use crate::watch_answer::{begun, write_read};
use crate::{returning, watching};
use tidemark_engine::CommandError;
use tidemark_engine::command::parse::glob;
use tidemark_engine::query::{Acknowledged, Acknowledgement, Guarantee, Named, Read, check_name};
use tidemark_log::Lsn;

/// A read that is to be watched under a name.
pub(crate) struct Naming<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) guarantee: Guarantee,
}

/// Begins a named subscription, or goes on with it behind its position.
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
            "ERR a named subscription goes on where it was: RESUME is for others",
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
    // Whoever is to get everything at least once is to get the first answer again, if it dies before it has done with it.
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
            watching::leave_if_unused(session, &subscribed.query, cx);
            // Somebody else may have begun it at the same time.
            return match engine.named(naming.name) {
                Some(named) => go_on(session, subscribed.query.read(), naming, (delivery, start), &named, cx),
                None => Err(error),
            };
        }
    };
    let cursor = Cursor::behind(subscribed.query, named.base, subscribed.number, subscribed.lsn);
    let mark = session.output.reply.len();
    let replaced = watching::hold(session, naming.name, &named, (cursor, delivery), cx);
    begun(
        session,
        named.query.id(),
        subscribed.lsn,
        (start == Start::Snapshot).then_some(&*subscribed.answer),
    );
    hold_position(session, mark, record, cx);
    replaced.tell(session);
    Ok(())
}

/// Goes on with a subscription that has the name already.
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
        (named.query.clone(), named.position, Asked::NamedWatch(naming.name.into(), value));
    returning::go_on(session, Returning { query, lsn, delivery, asked }, cx)
}

/// `EMITACK` of a named subscription, by whatever connection.
pub(crate) fn acknowledge(
    session: &mut Session,
    name: &[u8],
    lsn: Lsn,
    cx: &Context<'_>,
) -> Result<Result<(), NotResumed>, CommandError> {
    let mark = session.output.reply.len();
    match cx.shared.engine.acknowledge(Acknowledgement { name, lsn }, cx.now_us)? {
        Acknowledged::Unknown => return Ok(Err(NotResumed::NotFound)),
        Acknowledged::Beyond(head) => return Ok(Err(NotResumed::Invalid(head))),
        Acknowledged::Before(_) => {
            session.output.reply.ok();
            if cx.always_durable() {
                holding::hold_what_is_shown(session, mark, cx);
            }
        }
        Acknowledged::Moved(record) => {
            session.output.reply.ok();
            holding::hold_change(session, mark, record, cx);
        }
    }
    Ok(Ok(()))
}

/// A queued `EMITACK key name lsn`, if it is of a named subscription.
pub(crate) fn acknowledgement<'a>(args: &[&'a [u8]]) -> Option<(&'a [u8], &'a [u8], &'a [u8])> {
    let [_, key, name, lsn] = args else { return None };
    cursor::parse_name(name).is_none().then_some((key, name, lsn))
}

/// Whether there is a subscription of this name, to a read of this key.
pub(crate) fn is_of_key(name: &[u8], key: &[u8], cx: &Context<'_>) -> bool {
    cx.shared.engine.named(name).is_some_and(|named| reads(&named.query, key))
}

/// `UNWATCH NAMED name ...`: how many names it has ended. Whoever is given one's emissions is told.
pub(crate) fn end(session: &mut Session, names: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let (mark, mut ended, mut last) = (session.output.reply.len(), 0, None);
    for name in names {
        let Some((record, named)) = cx.shared.engine.end_named(name, cx.now_us)? else { continue };
        (ended, last) = (ended + 1, Some(record));
        if let Some(tenancy) = cx.shared.holders.evict(name, named.query.id()) {
            watching::tell_taken(&tenancy, cx);
        }
        cx.shared.watching_began(cx.now_us);
    }
    session.output.reply.count(ended);
    if let Some(record) = last {
        holding::hold_change(session, mark, record, cx);
    }
    Ok(())
}

/// `WATCHES NAMED [pattern]`: all names of the server.
pub(crate) fn list(session: &mut Session, pattern: Option<&[u8]>, cx: &Context<'_>) {
    let mut all = cx.shared.engine.all_named();
    all.retain(|(name, _)| pattern.is_none_or(|pattern| glob(pattern, name)));
    let reply = &mut session.output.reply;
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
        match cx.shared.holders.of(&name) {
            Some(Tenancy { holder: (_, target), .. }) => reply.count(target.client as usize),
            None => reply.null(),
        }
    }
}
