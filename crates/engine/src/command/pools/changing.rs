//! Changes of the catalogue and stock by clients, between draws.

use super::{answer, no_pool, options};
use crate::command::parse::{self, is};
use crate::context::Context;
use crate::error::CommandError;
use crate::value::pool::Inner;
use tidemark_pool::{Item, Refusal, Stock};

enum Change<'a> {
    Weight { id: &'a str, weight: u64 },
    Stock { id: &'a str, stock: Stock },
    Add(Item),
    Remove { id: &'a str },
}

impl<'a> Change<'a> {
    /// Parses one change. Returns it with the remaining words.
    fn parse<'w>(words: &'w [&'a [u8]]) -> Result<(Self, &'w [&'a [u8]]), CommandError> {
        match words {
            [word, id, weight, rest @ ..] if is(word, "WEIGHT") => {
                Ok((Self::Weight { id: options::id(id)?, weight: options::weight(weight)? }, rest))
            }
            [word, id, stock, rest @ ..] if is(word, "STOCK") => {
                Ok((Self::Stock { id: options::id(id)?, stock: options::stock(stock)? }, rest))
            }
            [word, id, weight, stock, rest @ ..] if is(word, "ADD") => {
                let id = options::id(id)?.into();
                let (weight, stock) = (options::weight(weight)?, options::stock(stock)?);
                Ok((Self::Add(Item { id, weight, stock }), rest))
            }
            [word, id, rest @ ..] if is(word, "REMOVE") => Ok((Self::Remove { id: options::id(id)? }, rest)),
            _ => Err(CommandError::Syntax),
        }
    }

    fn make(&self, pool: &mut Inner) -> Result<(), Refusal> {
        match self {
            Self::Weight { id, weight } => pool.reweight(id, *weight),
            Self::Stock { id, stock } => pool.set_stock(id, *stock),
            Self::Add(item) => pool.add(item),
            Self::Remove { id } => pool.remove(id),
        }
    }
}

/// `POOL.UPDATE key change [change ...]`: makes all changes or none. Answers the catalogue's
/// version.
pub(super) fn update(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (mut changes, mut rest) = (Vec::new(), &args[2..]);
    while !rest.is_empty() {
        let (change, tail) = Change::parse(rest)?;
        changes.push(change);
        rest = tail;
    }
    let event_bytes = args.iter().map(|arg| arg.len() + 32).sum();
    let version = ctx.keys.change_pool(args[1], "pool_update", event_bytes, |pool| {
        changes.iter().try_for_each(|change| change.make(pool))?;
        Ok(pool.urn().version())
    })?;
    ctx.reply.integer(answer::signed(version.ok_or_else(no_pool)?));
    Ok(())
}

/// `POOL.RESTOCK key id units`: answers the new stock, or null if it is unlimited.
pub(super) fn restock(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (id, units) = (options::id(args[2])?, parse::integer(args[3])?);
    let stock = ctx.keys.change_pool(args[1], "pool_update", 64, |pool| {
        pool.restock(id, units)?;
        Ok(pool.urn().find(id).and_then(|item| pool.urn().entry(item)).map(|entry| entry.stock))
    })?;
    answer::stock(ctx.reply, stock.ok_or_else(no_pool)?.unwrap_or(Stock::Unlimited));
    Ok(())
}
