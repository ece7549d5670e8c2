//! Contents, odds and latest draws of a pool.

use super::options::Page;
use super::{answer, rules};
use crate::command::keyspace_wide::scan_of;
use crate::command::parse::{self, is};
use crate::context::Context;
use crate::error::CommandError;
use crate::value::pool::{Inner, PoolDurability};
use crate::value::{Pool, Type};
use crate::wire::reply::Reply;
use tidemark_pool::{Entry, Mode, Odds};

/// `POOL.STATE key [FROM start] [COUNT count]`
pub(super) fn state(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let page = Page::parse(&args[2..])?;
    let Some(value) = ctx.keys.read::<Pool>(args[1])? else {
        ctx.reply.null();
        return Ok(());
    };
    let (pool, reply) = (value.inner(), &mut *ctx.reply);
    let (urn, epoch) = (pool.urn(), pool.epoch());
    let mode = match urn.mode() {
        Mode::FixedOdds => "fixed-odds",
        Mode::PerUnit => "per-unit",
    };
    let sold_out = match urn.fallback() {
        Some(_) => "fallback",
        None if urn.keeps_odds() => "no-prize",
        None => "renormalise",
    };
    reply.map(23);
    answer::text(reply, "mode", mode);
    answer::text(reply, "sold-out", sold_out);
    reply.bulk(b"fallback");
    answer::item(reply, pool, urn.fallback());
    answer::text(reply, "selector", value.encoding());
    answer::text(reply, "durability", value.durability().name());
    answer::number(reply, "version", urn.version());
    answer::number(reply, "items", urn.len() as u64);
    answer::number(reply, "total-weight", urn.total_weight());
    answer::number(reply, "draws", pool.next_draw());
    answer::number(reply, "reservations", pool.reservations().len() as u64);
    answer::number(reply, "epoch", epoch.index);
    answer::number(reply, "epoch-first-draw", epoch.first_draw);
    reply.bulk(b"client-seed");
    reply.bulk(&epoch.client_seed);
    answer::text(reply, "commitment", &pool.commitment().to_string());
    answer::text(reply, "next-commitment", &pool.next_commitment().to_string());
    answer::text(reply, "chain", &value.chain().to_string());
    answer::number(reply, "users", pool.users() as u64);
    answer::number(reply, "released-until", urn.released_until_ms());
    reply.bulk(b"next-release");
    rules::number_or_null(reply, urn.next_release_ms());
    rules::write_limits(reply, pool, None);
    rules::write_guarantees(reply, pool, None);
    write_page(reply, pool, &page, |reply, entry| {
        reply.map(9);
        answer::number(reply, "item", u64::from(entry.item));
        answer::text(reply, "id", entry.id);
        answer::number(reply, "weight", entry.weight);
        reply.bulk(b"left");
        answer::stock(reply, entry.stock);
        answer::number(reply, "drawn", entry.drawn);
        answer::number(reply, "reserved", pool.held(entry.item));
        answer::number(reply, "to-come", entry.to_come);
        write_tables(reply, entry);
    });
    Ok(())
}

/// `POOL.ODDS key [FROM start] [COUNT count]`
pub(super) fn odds(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let page = Page::parse(&args[2..])?;
    let Some(pool) = ctx.keys.read::<Pool>(args[1])?.map(Pool::inner) else {
        ctx.reply.null();
        return Ok(());
    };
    let (urn, reply) = (pool.urn(), &mut *ctx.reply);
    let odds = Odds::of(urn);
    reply.map(6);
    answer::number(reply, "version", urn.version());
    answer::number(reply, "total-weight", odds.total());
    reply.bulk(b"next-release");
    rules::number_or_null(reply, urn.next_release_ms());
    reply.bulk(b"nothing");
    reply.double(odds.share_of_nothing());
    write_page(reply, pool, &page, |reply, entry| {
        reply.map(5);
        answer::text(reply, "id", entry.id);
        answer::number(reply, "weight", odds.weight(entry));
        reply.bulk(b"odds");
        reply.double(odds.share_of(urn, entry));
        write_tables(reply, entry);
    });
    Ok(())
}

/// Writes the table that an item is in, and the one that it leads to; null for the first table, or
/// for none.
fn write_tables(reply: &mut Reply, entry: &Entry<'_>) {
    for (name, table) in [(&b"table"[..], entry.table), (b"leads-to", entry.leads_to)] {
        reply.bulk(name);
        reply.bulk_or_null(table.map(str::as_bytes));
    }
}

/// Writes the items of a page as the field `entries`, and the start of the next page as `next`.
fn write_page(reply: &mut Reply, pool: &Inner, page: &Page, write: impl Fn(&mut Reply, &Entry<'_>)) {
    let items = pool.urn().len();
    let from = page.from.min(items);
    let end = from + page.count.min(items - from);
    let entries: Vec<Entry<'_>> =
        (from as u32..end as u32).filter_map(|item| pool.urn().entry(item)).collect();
    reply.bulk(b"entries");
    reply.array(entries.len());
    entries.iter().for_each(|entry| write(reply, entry));
    reply.bulk(b"next");
    if end < items {
        reply.count(end);
    } else {
        reply.null();
    }
}

/// `POOL.HISTORY key [COUNT count]`
pub(super) fn history(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let count = match &args[2..] {
        [] => 10,
        [word, count] if is(word, "COUNT") => {
            parse::at_least(1, count, "ERR value is out of range, must be positive")?
        }
        _ => return Err(CommandError::Syntax),
    };
    let Some(value) = ctx.keys.read::<Pool>(args[1])? else {
        ctx.reply.null();
        return Ok(());
    };
    let is_durable = value.durability() == PoolDurability::Always;
    let past = value.past();
    ctx.reply.array(past.len().min(count));
    for draw in past.take(count) {
        ctx.reply.array(3);
        ctx.reply.integer(answer::signed(draw.number));
        ctx.reply.integer(answer::signed(draw.time_us / 1000));
        answer::item(ctx.reply, value.inner(), draw.item);
    }
    if is_durable {
        ctx.keys.reveal_durable();
    }
    Ok(())
}

pub(super) fn list(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    scan_of(ctx, args, Some(Type::Pool))
}
