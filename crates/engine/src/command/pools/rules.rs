//! Rules on draws, which are limits and guarantees: their arguments of `POOL.CREATE`, and their
//! state in replies.

use super::{answer, options};
use crate::command::parse::{self, is};
use crate::context::Context;
use crate::error::CommandError;
use crate::value::Pool;
use crate::value::pool::Inner;
use crate::wire::reply::Reply;
use tidemark_pool::{Counted, Guarantee, Limit, NAME_BYTES_MAX, RULE_ITEMS_MAX, Scope, Soft};

/// A parsed value, and the words after it.
type Parsed<'w, 'a, T> = Result<(T, &'w [&'a [u8]]), CommandError>;

/// Parses `<DRAWS max [PER milliseconds] | WINS max [PER milliseconds] OF numitems id [id ...]>`.
pub(super) fn limit<'w, 'a>(words: &'w [&'a [u8]]) -> Parsed<'w, 'a, Limit> {
    let [kind, max, rest @ ..] = words else { return Err(CommandError::Syntax) };
    let max = parse::positive(max)?;
    let (per_ms, rest) = match rest {
        [word, per_ms, rest @ ..] if is(word, "PER") => (Some(parse::positive(per_ms)?), rest),
        rest => (None, rest),
    };
    if is(kind, "DRAWS") {
        return Ok((Limit { max, per_ms, wins_of: None }, rest));
    }
    if !is(kind, "WINS") {
        return Err(CommandError::text("ERR LIMIT must be followed by DRAWS or WINS and a number"));
    }
    let (wins_of, rest) = item_list(rest)?;
    Ok((Limit { max, per_ms, wins_of: Some(wins_of) }, rest))
}

/// Parses `after [POOL] [SOFT from step] OF numitems id [id ...]`.
pub(super) fn guarantee<'w, 'a>(words: &'w [&'a [u8]]) -> Parsed<'w, 'a, Guarantee> {
    let [after, rest @ ..] = words else { return Err(CommandError::Syntax) };
    let mut rest = rest;
    let after = parse::positive(after)?;
    let mut scope = Scope::User;
    if let [word, tail @ ..] = rest
        && is(word, "POOL")
    {
        (scope, rest) = (Scope::Pool, tail);
    }
    let mut soft = None;
    if let [word, from, step, tail @ ..] = rest
        && is(word, "SOFT")
    {
        soft = Some(Soft { from: parse::positive(from)?, step: parse::positive(step)? });
        rest = tail;
    }
    let (of, rest) = item_list(rest)?;
    Ok((Guarantee { after, of, scope, soft }, rest))
}

/// Parses `OF numitems id [id ...]` into the ids. Whether such items exist is not checked here.
fn item_list<'w, 'a>(words: &'w [&'a [u8]]) -> Parsed<'w, 'a, Vec<Box<str>>> {
    let [word, count, rest @ ..] = words else { return Err(CommandError::Syntax) };
    if !is(word, "OF") {
        return Err(CommandError::Syntax);
    }
    let count = parse::positive(count).ok().and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|count| (1..=RULE_ITEMS_MAX).contains(count)).ok_or_else(|| {
        CommandError::Text(
            format!("ERR OF must be followed by the number of items, 1 to {RULE_ITEMS_MAX}, and their ids")
                .into(),
        )
    })?;
    let (ids, rest) = rest.split_at_checked(count).ok_or(CommandError::Syntax)?;
    let ids = ids.iter().map(|id| options::id(id).map(Box::from)).collect::<Result<_, _>>()?;
    Ok((ids, rest))
}

/// `POOL.USER key user`: what the pool's rules have counted for a user. Null if there is no pool,
/// empty lists if it has no rules.
pub(super) fn user(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let user = args[2];
    if !(1..=NAME_BYTES_MAX).contains(&user.len()) {
        return Err(CommandError::Text(
            format!("ERR a user's name must have 1 to {NAME_BYTES_MAX} bytes").into(),
        ));
    }
    let Some(pool) = ctx.keys.read::<Pool>(args[1])?.map(Pool::inner) else {
        ctx.reply.null();
        return Ok(());
    };
    let without_rules = || Counted { limits: Vec::new(), misses: Vec::new() };
    let counted = pool.counted(user).unwrap_or_else(without_rules);
    ctx.reply.map(2);
    write_limits(ctx.reply, pool, Some(&counted));
    write_guarantees(ctx.reply, pool, Some(&counted));
    Ok(())
}

/// Writes the limits of a pool as the field `limits`, with what they have counted for a user if
/// `counted` is given.
pub(super) fn write_limits(reply: &mut Reply, pool: &Inner, counted: Option<&Counted>) {
    let limits = pool.rules().map_or(&[][..], |rules| rules.limits());
    reply.bulk(b"limits");
    reply.array(limits.len());
    for (index, limit) in limits.iter().enumerate() {
        reply.map(if counted.is_some() { 6 } else { 3 });
        answer::number(reply, if limit.wins_of.is_some() { "wins" } else { "draws" }, limit.max);
        reply.bulk(b"per");
        number_or_null(reply, limit.per_ms);
        write_items(reply, pool, limit.wins_of.as_deref().unwrap_or_default());
        if let Some((used, until_ms)) = counted.map(|counted| counted.limits[index]) {
            answer::number(reply, "used", used);
            answer::number(reply, "left", limit.max.saturating_sub(used));
            reply.bulk(b"until");
            number_or_null(reply, until_ms.filter(|_| used > 0));
        }
    }
}

/// Writes the guarantees of a pool as the field `guarantees`, with a user's progress if `counted`
/// is given.
pub(super) fn write_guarantees(reply: &mut Reply, pool: &Inner, counted: Option<&Counted>) {
    let guarantees = pool.rules().map_or(&[][..], |rules| rules.guarantees());
    reply.bulk(b"guarantees");
    reply.array(guarantees.len());
    for (index, guarantee) in guarantees.iter().enumerate() {
        reply.map(if counted.is_some() { 6 } else { 5 });
        answer::number(reply, "after", guarantee.after);
        answer::text(reply, "scope", if guarantee.scope == Scope::Pool { "pool" } else { "user" });
        reply.bulk(b"soft-from");
        number_or_null(reply, guarantee.soft.map(|soft| soft.from));
        reply.bulk(b"soft-step");
        number_or_null(reply, guarantee.soft.map(|soft| soft.step));
        write_items(reply, pool, &guarantee.of);
        if let Some(counted) = counted {
            answer::number(reply, "without", counted.misses[index]);
        }
    }
}

/// Writes the items that a rule names as the field `of`; empty for a limit on all draws.
fn write_items(reply: &mut Reply, pool: &Inner, items: &[u32]) {
    reply.bulk(b"of");
    reply.array(items.len());
    items.iter().for_each(|item| answer::item(reply, pool, Some(*item)));
}

/// Writes a number, or null if there is none.
pub(super) fn number_or_null(reply: &mut Reply, number: Option<u64>) {
    match number {
        Some(number) => reply.integer(answer::signed(number)),
        None => reply.null(),
    }
}
