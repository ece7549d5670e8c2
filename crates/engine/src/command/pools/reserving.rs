//! Reservations: draws that are held until they are confirmed or cancelled.

use super::options::{self, Draws};
use super::{answer, no_pool};
use crate::command::parse;
use crate::context::Context;
use crate::context::pools::refused;
use crate::error::CommandError;
use crate::value::Pool;
use crate::value::pool::{Inner, PoolDurability};
use crate::wire::reply::Reply;
use tidemark_pool::{Ending, Refusal, Reservation};

/// Longest reservation: a year. Milliseconds.
const TERM_MS_MAX: u64 = 366 * 24 * 3600 * 1000;

/// `POOL.RESERVE key milliseconds [COUNT count] [UNIQUE] [USER user] [REQUEST request]`
pub(super) fn reserve(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let key = args[1];
    let term_ms = parse::positive(args[2]).ok().filter(|term| (1..=TERM_MS_MAX).contains(term));
    let Some(term_ms) = term_ms else {
        return Err(CommandError::text("ERR the time must be 1 to 31622400000 milliseconds"));
    };
    let now_us = ctx.keys.now_us();
    let wanted = Draws::parse(&args[3..], now_us)?;
    let until_us = now_us.saturating_add(term_ms * 1000);
    let reserved = ctx.keys.change_pool(key, "pool_reserve", wanted.event_bytes(), |pool| {
        pool.reserve_by(&wanted.by, wanted.count, wanted.repeats, until_us)
    })?;
    let reserved = reserved.ok_or_else(no_pool)?;
    let Some(pool) = ctx.keys.read::<Pool>(key)? else { return Err(no_pool()) };
    show(ctx.reply, pool.inner(), &reserved);
    Ok(())
}

/// Writes a reservation: its number, its deadline, and its draws.
fn show(reply: &mut Reply, pool: &Inner, reservation: &Reservation) {
    reply.map(3);
    answer::number(reply, "reservation", reservation.number());
    answer::number(reply, "until", reservation.until_us / 1000);
    reply.bulk(b"draws");
    answer::draws(reply, pool, &reservation.draws);
}

pub(super) fn confirm(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    end(ctx, args, Ending::Confirmed, Inner::confirm)
}

pub(super) fn cancel(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    end(ctx, args, Ending::Cancelled, Inner::cancel)
}

/// Ends a reservation and answers 1, or 0 if it was ended this way before.
fn end(
    ctx: &mut Context<'_, '_>,
    args: &[&[u8]],
    how: Ending,
    end: impl FnOnce(&mut Inner, u64) -> Result<(), Refusal>,
) -> Result<(), CommandError> {
    let (number, now_us) = (options::number(args[2])?, ctx.keys.now_us());
    let pool = ctx.keys.read::<Pool>(args[1])?.map(Pool::inner);
    if pool.and_then(|pool| pool.reservation(number)).is_some_and(|open| open.until_us <= now_us) {
        // Expired, whether or not that is recorded yet. Without this check, every late call would
        // end all expired reservations and, as a refusal changes nothing, roll that back.
        return Err(refused(&Refusal::Ended { number, how: Ending::Expired }));
    }
    let ended = ctx.keys.change_pool(args[1], "pool_end", 32, |pool| {
        let is_done = pool.ending(number) == Some(how);
        end(pool, number)?;
        Ok(!is_done)
    })?;
    ctx.reply.integer(i64::from(ended.ok_or_else(no_pool)?));
    Ok(())
}

/// Ends some expired reservations. Every other change ends all of them.
pub(super) fn expire(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let ended = ctx.keys.let_time_pass(args[1])?;
    ctx.reply.count(ended);
    Ok(())
}

/// `POOL.RESERVATIONS key [FROM start] [COUNT count]`
pub(super) fn reservations(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let page = options::Page::parse(&args[2..])?;
    let Some(value) = ctx.keys.read::<Pool>(args[1])? else {
        ctx.reply.null();
        return Ok(());
    };
    let (pool, is_durable) = (value.inner(), value.durability() == PoolDurability::Always);
    let from = page.from as u64;
    let open = pool.reservations_from(from).take(page.count);
    let shown: Vec<_> = open.collect();
    ctx.reply.array(shown.len());
    for reservation in shown {
        show(ctx.reply, pool, reservation);
    }
    if is_durable {
        ctx.keys.reveal_durable();
    }
    Ok(())
}
