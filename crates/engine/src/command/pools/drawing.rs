//! Draws, and the return of drawn items.

use super::options::{self, Draws};
use super::{answer, no_pool};
use crate::command::parse::{self, is};
use crate::context::Context;
use crate::error::CommandError;
use crate::value::Pool;
use tidemark_pool::{By, NAME_BYTES_MAX};

/// `POOL.DRAW key [COUNT count] [UNIQUE] [USER user] [REQUEST request]`
pub(super) fn draw(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (key, wanted) = (args[1], Draws::parse(&args[2..], ctx.keys.now_us())?);
    let Draws { count, repeats, by, is_counted } = wanted;
    let drawn = ctx.keys.change_pool(key, "pool_draw", wanted.event_bytes(), |pool| {
        let mut drawn = Vec::new();
        pool.draw_by(&by, count, repeats, &mut drawn)?;
        Ok(drawn)
    })?;
    let drawn = drawn.ok_or_else(no_pool)?;
    let Some(pool) = ctx.keys.read::<Pool>(key)? else { return Err(no_pool()) };
    match &drawn[..] {
        [draw] if !is_counted => answer::draw(ctx.reply, pool.inner(), draw),
        draws => answer::draws(ctx.reply, pool.inner(), draws),
    }
    Ok(())
}

/// `POOL.RETURN key id [count] [USER user]`
pub(super) fn give_back(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let id = options::id(args[2])?;
    let (user, rest) = match &args[3..] {
        [rest @ .., word, user] if is(word, "USER") => (Some(*user), rest),
        rest => (None, rest),
    };
    let count = match rest {
        [] => 1,
        [count] => parse::positive(count)?,
        _ => return Err(CommandError::Syntax),
    };
    let by = By { user, request: None, now_ms: ctx.keys.now_us() / 1000 };
    let returned = ctx.keys.change_pool(args[1], "pool_return", 64 + NAME_BYTES_MAX, |pool| {
        pool.give_back_by(&by, id, count)?;
        Ok(pool.urn().find(id).and_then(|item| pool.urn().entry(item)).map(|entry| entry.stock))
    })?;
    match returned.ok_or_else(no_pool)? {
        Some(stock) => answer::stock(ctx.reply, stock),
        None => ctx.reply.null(),
    }
    Ok(())
}
