//! `X.WATCH`, `UNWATCH` of subscriptions, `WATCHES`, `EMITRECONNECT`, `EMITACK`.

use crate::command::channel_command;
use crate::command::named_command::{self, Naming};
use crate::command::rows::read_of;
use crate::context::Context;
use crate::durability::hold::hold_position;
use crate::session::{NAMES_LIMIT, Session};
use crate::subscription::cursor::{self, Cursor, reads};
use crate::subscription::delivery::{Delivery, Options, Start, read_options};
use crate::subscription::lifecycle;
use crate::subscription::pending_resumption::{ResumeRequest, Resumption};
use crate::subscription::read_subscription::ReadSubscription;
use crate::subscription::reply::{begun, integer, refusal, refuse, write_read};
use crate::subscription::resume_error::ResumeError;
use crate::subscription::resumption;
use std::cmp::Reverse;
use tidemark_engine::command::parse;
use tidemark_engine::watch::{Filter, QueryFigures, Read, SharedQuery};
use tidemark_engine::{Command, CommandError, Protocol};
use tidemark_log::Lsn;

/// Most reads that are listed; a pattern selects among more.
const LISTED: usize = 1000;

/// Separator between a read and the options of its subscription.
const OPTIONS: &[u8] = b"|";

/// `X.WATCH argument ... [| option ...]`: answers the read now and sends later emissions. A read
/// that the client already watches is answered again, and its subscription continues.
pub(crate) fn watch(
    session: &mut Session,
    command: &Command,
    args: &[&[u8]],
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    let (args, options) = split(args);
    let Options { delivery, start, name, channel, guarantee, operators } = read_options(options)?;
    if channel.is_none() && session.subscriptions.reads.len() >= NAMES_LIMIT {
        return Err(CommandError::text("ERR too many subscriptions"));
    }
    let mut words = args.to_vec();
    words[0] = read_of(command).as_bytes();
    let filter = Filter::parse(&operators)?;
    if let Some(channel) = channel {
        // RESP3 distinguishes maps, doubles and nulls, as JSON does.
        let read = Read::new(session.db, Protocol::Resp3, &words, filter)?;
        return channel_command::watch(session, channel, read, start, cx);
    }
    let read = Read::new(session.db, session.outbox.reply.protocol(), &words, filter)?;
    check_old(delivery, &read)?;
    if let Some(name) = name {
        let naming = Naming { name, guarantee: guarantee.unwrap_or_default() };
        return named_command::watch(session, read, &naming, (delivery, start), cx);
    }
    let (engine, listener) = (&cx.shared.engine, session.client.worker);
    if matches!(start, Start::Resume(_)) && engine.query_of(&read).is_none() {
        // There was no emission to resume after, and a resumption starts no new query.
        return Err(CommandError::Text(refusal(ResumeError::NotFound).into()));
    }
    if let Some(query) = engine.query_of(&read).filter(|query| query.is_dormant()) {
        if let Start::Resume(lsn) = start {
            let known = session.subscriptions.reads.get_mut(query.id());
            let asked = ResumeRequest::Watch(known.map(|known| known.cursor.base()), engine.log().appended());
            return resumption::go_on(session, Resumption { query, lsn, delivery, asked }, cx);
        }
        if session.subscriptions.reads.contains(query.id()) {
            return Err(CommandError::text(
                "TRYAGAIN the read is watched already, and its emissions are being replayed from the log",
            ));
        }
    }
    let subscribed = engine.subscribe(read, listener, cx.now_us)?;
    cx.shared.watching_began(cx.now_us);
    let id = subscribed.query.id();
    let base = session.subscriptions.reads.get_mut(id).map(|known| known.cursor.base());
    if let Start::Resume(lsn) = start {
        let (query, asked) = (subscribed.query, ResumeRequest::Watch(base, subscribed.lsn));
        return resumption::go_on(session, Resumption { query, lsn, delivery, asked }, cx);
    }
    let (number, lsn) = (subscribed.number, subscribed.lsn);
    let cursor = Cursor::behind(subscribed.query, base.unwrap_or(number), number, lsn);
    let replaced = lifecycle::begin(session, ReadSubscription::new(cursor, delivery, &cx.shared.clock), cx);
    let mark = session.outbox.reply.len();
    begun(session, id, lsn, (start == Start::Snapshot).then_some(&*subscribed.answer));
    hold_position(session, mark, lsn, cx);
    replaced.notify(session);
    Ok(())
}

/// Refuses `OLD` for a read that emits changes: the answer before is not kept.
fn check_old(delivery: Delivery, read: &Read) -> Result<(), CommandError> {
    if delivery.old && read.emits_changes() {
        return Err(CommandError::text(
            "ERR OLD is not valid for a read that emits changes: apply them to the answer before",
        ));
    }
    Ok(())
}

/// Splits a command from its options.
pub(crate) fn split<'a, 'b>(args: &'a [&'b [u8]]) -> (&'a [&'b [u8]], &'a [&'b [u8]]) {
    match args.iter().position(|arg| *arg == OPTIONS) {
        Some(at) => (&args[..at], &args[at + 1..]),
        None => (args, &[]),
    }
}

/// `UNWATCH subscription ...`: returns the number ended. `UNWATCH NAMED name ...` ends names for
/// good, `UNWATCH CHANNEL channel ...` watches of a channel, `UNWATCH QUERY id ...` watched reads.
pub(crate) fn unwatch(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    if let [_, named, names @ ..] = args
        && parse::is(named, "NAMED")
    {
        return named_command::end(session, names, cx);
    }
    if let [_, query, ids @ ..] = args
        && parse::is(query, "QUERY")
    {
        return end_queries(session, ids, cx);
    }
    if let [_, channel, args @ ..] = args
        && parse::is(channel, "CHANNEL")
    {
        return channel_command::end(session, args, cx);
    }
    let mut ended = 0;
    for name in args.iter().skip(1) {
        let named = cursor::query_of(&cx.shared.engine, name);
        let is_known = named.is_some_and(|query| is_named(session, query, name));
        ended += usize::from(is_known && named.is_some_and(|query| lifecycle::end(session, query, cx)));
    }
    session.outbox.reply.count(ended);
    Ok(())
}

fn is_named(session: &mut Session, query: Lsn, name: &[u8]) -> bool {
    session.subscriptions.reads.get_mut(query).is_some_and(|subscription| *subscription.name() == *name)
}

/// `UNWATCH QUERY id ...`: ends watched reads for all their subscribers and returns their number.
fn end_queries(session: &mut Session, ids: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    if ids.is_empty() {
        return Err(CommandError::Arity("unwatch".into()));
    }
    let mut ended = 0;
    for id in ids {
        ended += usize::from(cx.shared.engine.end_query(position(id)?, cx.now_us)?);
    }
    session.outbox.reply.count(ended);
    Ok(())
}

/// `WATCHES ALL [pattern]`: lists the reads that any client watches, the most expensive first.
fn list_all(session: &mut Session, pattern: Option<&[u8]>, cx: &Context<'_>) {
    let fits = |query: &SharedQuery| {
        pattern.is_none_or(|pattern| query.read().args().any(|arg| parse::glob(pattern, arg)))
    };
    let mut all: Vec<(QueryFigures, SharedQuery)> = cx
        .shared
        .engine
        .all_queries()
        .into_iter()
        .filter(fits)
        .map(|query| (query.figures(), query))
        .collect();
    all.sort_by_key(|(figures, query)| (Reverse(figures.cost_ns), query.id()));
    all.truncate(LISTED);
    let reply = &mut session.outbox.reply;
    reply.array(all.len());
    for (figures, query) in all {
        reply.map(9);
        reply.bulk(b"query");
        integer(reply, query.id().0);
        write_read(reply, query.read());
        reply.bulk(b"db");
        reply.count(query.read().db().into());
        reply.bulk(b"subscribed");
        reply.count(figures.is_subscribed.into());
        reply.bulk(b"names");
        reply.count(figures.names);
        reply.bulk(b"emissions");
        integer(reply, figures.emissions);
        reply.bulk(b"dormant");
        reply.count(figures.is_dormant.into());
        reply.bulk(b"cost-ns");
        integer(reply, figures.cost_ns);
    }
}

/// `WATCHES`, `WATCHES NAMED [pattern]`, `WATCHES CHANNELS [pattern]`, `WATCHES ALL [pattern]`
pub(crate) fn watches(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    match args {
        [_] => {}
        [_, named] | [_, named, _] if parse::is(named, "NAMED") => {
            named_command::list(session, args.get(2).copied(), cx);
            return Ok(());
        }
        [_, channels] | [_, channels, _] if parse::is(channels, "CHANNELS") => {
            channel_command::list(session, args.get(2).copied(), cx);
            return Ok(());
        }
        [_, all] | [_, all, _] if parse::is(all, "ALL") => {
            list_all(session, args.get(2).copied(), cx);
            return Ok(());
        }
        _ => return Err(CommandError::Syntax),
    }
    let Session { subscriptions, outbox, .. } = session;
    let reply = &mut outbox.reply;
    reply.array(subscriptions.reads.len());
    for subscription in subscriptions.reads.iter() {
        reply.map(7);
        reply.bulk(b"sub_id");
        reply.bulk(&subscription.name());
        write_read(reply, subscription.cursor.query().read());
        reply.bulk(b"lsn");
        integer(reply, subscription.cursor.lsn().0);
        reply.bulk(b"seq");
        integer(reply, subscription.cursor.sequence());
        reply.bulk(b"lag");
        integer(reply, subscription.cursor.lag());
        reply.bulk(b"acked");
        integer(reply, subscription.acknowledged().0);
    }
    Ok(())
}

/// `EMITRECONNECT key subscription lsn [| option ...]`
pub(crate) fn reconnect(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let (args, options) = split(args);
    let [_, key, name, lsn] = args else { return Err(CommandError::Syntax) };
    let lsn = position(lsn)?;
    let Options { delivery, name: naming, channel, operators, .. } = read_options(options)?;
    if channel.is_some() {
        return Err(CommandError::text(
            "ERR CHANNEL is only valid with X.WATCH; resume with X.WATCH ... | CHANNEL name RESUME lsn",
        ));
    }
    if naming.is_some() {
        return Err(CommandError::text(
            "ERR AS is only valid with X.WATCH; resume a named subscription by its name",
        ));
    }
    if !operators.is_empty() {
        return Err(CommandError::text(
            "ERR operators are only valid with X.WATCH; a resumed subscription keeps its own",
        ));
    }
    if session.subscriptions.reads.len() >= NAMES_LIMIT {
        return Err(CommandError::text("ERR too many subscriptions"));
    }
    let engine = &cx.shared.engine;
    let named = engine.named(name);
    let known = named.as_ref().map(|named| (named.query.clone(), named.base));
    let known = known.or_else(|| cursor::find(engine, name)).filter(|(query, _)| reads(query, key));
    let Some((query, base)) = known else {
        refuse(session, ResumeError::NotFound, cx);
        return Ok(());
    };
    if query.read().protocol() != session.outbox.reply.protocol() {
        return Err(CommandError::text(
            "ERR the subscription began under the other protocol; send HELLO 3 or HELLO 2 first",
        ));
    }
    check_old(delivery, query.read())?;
    let asked = match &named {
        Some(_) => ResumeRequest::NamedReconnect((*name).into()),
        None => ResumeRequest::Reconnect(base),
    };
    resumption::go_on(session, Resumption { query, lsn, delivery, asked }, cx)
}

/// `EMITACK key subscription lsn`
pub(crate) fn acknowledge(
    session: &mut Session,
    args: &[&[u8]],
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    let [_, key, name, lsn] = args else { return Err(CommandError::Syntax) };
    let lsn = position(lsn)?;
    if named_command::is_of_key(name, key, cx) {
        // The owning connection may not acknowledge beyond what it was sent: it would lose the
        // emissions in between.
        let given = watched(session, name, cx).map(|subscription| subscription.given());
        let outcome = match given.filter(|given| lsn > *given) {
            Some(given) => Err(ResumeError::Invalid(given)),
            None => named_command::acknowledge(session, name, lsn, cx)?,
        };
        match (outcome, watched(session, name, cx)) {
            (Err(not_resumed), _) => refuse(session, not_resumed, cx),
            (Ok(()), Some(subscription)) => subscription.acknowledge(lsn),
            (Ok(()), None) => {}
        }
        return Ok(());
    }
    let reads = &mut session.subscriptions.reads;
    let known = cursor::parse_name(name).and_then(|(id, _)| reads.get_mut(id));
    match known.filter(|known| *known.name() == **name && cursor::reads(known.cursor.query(), key)) {
        None => refuse(session, ResumeError::NotFound, cx),
        Some(known) if lsn > known.cursor.lsn() => {
            let last = known.cursor.lsn();
            refuse(session, ResumeError::Invalid(last), cx);
        }
        Some(known) => {
            known.acknowledge(lsn);
            session.outbox.reply.ok();
        }
    }
    Ok(())
}

/// Returns the session's subscription of this name.
pub(crate) fn watched<'s>(
    session: &'s mut Session,
    name: &[u8],
    cx: &Context<'_>,
) -> Option<&'s mut ReadSubscription> {
    let query = cursor::query_of(&cx.shared.engine, name)?;
    let subscription = session.subscriptions.reads.get_mut(query)?;
    (*subscription.name() == *name).then_some(subscription)
}

pub(crate) fn position(arg: &[u8]) -> Result<Lsn, CommandError> {
    parse::canonical_integer(arg)
        .and_then(|lsn| u64::try_from(lsn).ok())
        .map(Lsn)
        .ok_or(CommandError::text("ERR the LSN is not an integer or out of range"))
}
