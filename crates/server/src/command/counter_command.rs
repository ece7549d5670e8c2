//! `COUNTER.TOP`: lists the counters that move most.

use crate::context::Context;
use crate::session::Session;
use tidemark_engine::command::parse;
use tidemark_engine::keyspace::KeyChurn;
use tidemark_engine::{ChurnOrder, Churning, CommandError, Reply};

/// Number of counters that are listed by default.
const TOP: usize = 10;

/// Most counters that are listed.
const TOP_MAX: u64 = 1000;

/// `COUNTER.TOP [count] [BY MOVES | UNITS | CHURN]`
pub(crate) fn top(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let (count, order) = match args.get(1..).unwrap_or_default() {
        [] => (TOP, ChurnOrder::default()),
        [by] if parse::is(by, "BY") => return Err(CommandError::Syntax),
        [count] => (number(count)?, ChurnOrder::default()),
        [by, order] if parse::is(by, "BY") => (TOP, named(order)?),
        [count, by, order] if parse::is(by, "BY") => (number(count)?, named(order)?),
        _ => return Err(CommandError::Syntax),
    };
    let churning = cx.shared.engine.churning(order, count, cx.now_us);
    write(&mut session.outbox.reply, &churning);
    Ok(())
}

fn number(arg: &[u8]) -> Result<usize, CommandError> {
    let count = parse::positive(arg)?;
    if count > TOP_MAX {
        return Err(CommandError::Text(format!("ERR count must be at most {TOP_MAX}").into()));
    }
    Ok(count as usize)
}

fn named(arg: &[u8]) -> Result<ChurnOrder, CommandError> {
    let orders = [("MOVES", ChurnOrder::Moves), ("UNITS", ChurnOrder::Units), ("CHURN", ChurnOrder::Churn)];
    let found = orders.into_iter().find(|(name, _)| parse::is(arg, name));
    found.map(|(_, order)| order).ok_or(CommandError::Syntax)
}

fn write(reply: &mut Reply, churning: &Churning) {
    reply.map(3);
    put(reply, "sample", u64::from(churning.sample));
    put(reply, "window", churning.window_ms);
    reply.bulk(b"keys");
    reply.array(churning.keys.len());
    churning.keys.iter().for_each(|key| write_key(reply, key));
}

fn write_key(reply: &mut Reply, key: &KeyChurn) {
    reply.map(8);
    reply.bulk(b"key");
    reply.bulk(&key.name);
    reply.bulk(b"id");
    reply.bulk(key.id().as_bytes());
    put(reply, "db", u64::from(key.db));
    put(reply, "moves", key.moves);
    put(reply, "error", key.error);
    put(reply, "units", key.units);
    put(reply, "committed", key.committed);
    reply.bulk(b"churn");
    reply.double(key.churn());
}

fn put(reply: &mut Reply, name: &str, value: u64) {
    reply.bulk(name.as_bytes());
    reply.integer(i64::try_from(value).unwrap_or(i64::MAX));
}
