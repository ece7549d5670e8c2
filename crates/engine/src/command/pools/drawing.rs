//! Drawing, and giving back what was drawn.

use super::options::{self, Draws};
use super::{answer, no_pool};
use crate::command::parse;
use crate::context::Context;
use crate::error::CommandError;
use crate::value::Pool;

pub(super) fn draw(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (key, wanted) = (args[1], Draws::parse(&args[2..])?);
    if !wanted.is_counted {
        let draw = ctx.keys.change_pool(key, "pool_draw", 32, |pool| Ok(pool.draw()?))?;
        let draw = draw.ok_or_else(no_pool)?;
        if let Some(pool) = ctx.keys.read::<Pool>(key)? {
            answer::draw(ctx.reply, pool.inner(), &draw);
        }
        return Ok(());
    }
    let drawn = ctx.keys.change_pool(key, "pool_draw", wanted.event_bytes(), |pool| {
        let mut drawn = Vec::new();
        pool.draw_many(wanted.count, wanted.repeats, &mut drawn)?;
        Ok(drawn)
    })?;
    let drawn = drawn.ok_or_else(no_pool)?;
    if let Some(pool) = ctx.keys.read::<Pool>(key)? {
        answer::draws(ctx.reply, pool.inner(), &drawn);
    }
    Ok(())
}

/// `POOL.RETURN key id [count]`
pub(super) fn give_back(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let id = options::id(args[2])?;
    let count = match &args[3..] {
        [] => 1,
        [count] => parse::positive(count)?,
        _ => return Err(CommandError::Syntax),
    };
    let returned = ctx.keys.change_pool(args[1], "pool_return", 32, |pool| {
        pool.give_back(id, count)?;
        Ok(pool.urn().find(id).and_then(|item| pool.urn().entry(item)).map(|entry| entry.stock))
    })?;
    match returned.ok_or_else(no_pool)? {
        Some(stock) => answer::stock(ctx.reply, stock),
        None => ctx.reply.null(),
    }
    Ok(())
}
