//! Making and ending rules by which a series is compacted into another.

use super::compaction::Backfill;
use super::creating::series;
use super::errors;
use super::range;
use crate::command::parse::{canonical_integer, is};
use crate::context::{Context, Keys};
use crate::error::CommandError;
use crate::value::{Relations, Rule, TimeSeries, TypedValue};

/// Most series that are connected by rules: a change of one may lock the shards of all.
const CONNECTED_MAX: usize = 1024;

/// Most rules one behind the other.
const CHAIN_MAX: usize = 16;

/// A rule as a client asks for it.
struct Request {
    rule: Rule,
    is_backfilled: bool,
}

impl Request {
    fn parse(args: &[&[u8]]) -> Result<Self, CommandError> {
        let (words, is_backfilled) = match args {
            [words @ .., last] if is(last, "BACKFILL") => (words, true),
            words => (words, false),
        };
        let (word, name, duration, align) = match words {
            [_, _, _, word, name, duration] => (word, name, duration, None),
            [_, _, _, word, name, duration, align] => (word, name, duration, Some(align)),
            _ => return Err(errors::arity(args)),
        };
        if !is(word, "AGGREGATION") {
            return Err(errors::arity(args));
        }
        let duration = canonical_integer(duration).ok_or(errors::AGGREGATION)?;
        let aggregation = range::aggregation(name)?;
        if duration <= 0 {
            return Err(errors::BUCKET);
        }
        let align = match align {
            None => 0,
            Some(align) => canonical_integer(align).filter(|align| *align >= 0).ok_or(errors::RULE_ALIGN)?,
        };
        Ok(Self { rule: Rule { destination: args[2].into(), aggregation, duration, align }, is_backfilled })
    }
}

pub(super) fn create(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let Request { rule, is_backfilled } = Request::parse(args)?;
    let (source, destination) = (args[1], args[2]);
    if source == destination {
        return Err(errors::RULE_TO_ITSELF);
    }
    check_relations(ctx.keys, source, destination)?;
    let backfill = is_backfilled.then(|| Backfill::of(ctx.keys, source, &rule)).transpose()?;
    relate(ctx.keys, source, |relations| relations.rules.push(rule));
    relate(ctx.keys, destination, |relations| relations.source = Some(source.into()));
    if let Some(backfill) = backfill {
        backfill.apply(ctx.keys);
    }
    ctx.keys.changed(source, "ts.createrule:src");
    ctx.keys.changed(destination, "ts.createrule:dest");
    ctx.reply.ok();
    Ok(())
}

pub(super) fn delete(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (source, destination) = (args[1], args[2]);
    if !series(ctx.keys, source)?.rules().iter().any(|rule| *rule.destination == *destination) {
        return Err(errors::NO_RULE);
    }
    relate(ctx.keys, source, |relations| relations.rules.retain(|rule| *rule.destination != *destination));
    relate(ctx.keys, destination, |relations| relations.source = None);
    ctx.keys.changed(source, "ts.deleterule:src");
    ctx.keys.changed(destination, "ts.deleterule:dest");
    ctx.reply.ok();
    Ok(())
}

fn relate(keys: &mut Keys<'_>, key: &[u8], change: impl FnOnce(&mut Relations)) {
    keys.change_links(key, |object| {
        TimeSeries::from_object_mut(object).expect("the keys of a rule hold series").relate(change);
    });
}

/// Checks that a rule between two keys may be made.
fn check_relations(keys: &Keys<'_>, source: &[u8], destination: &[u8]) -> Result<(), CommandError> {
    let from = series(keys, source)?;
    let to = series(keys, destination)?;
    if to.source().is_some() {
        return Err(errors::RULE_SECOND_SOURCE);
    }
    if from.definition().unit != to.definition().unit {
        return Err(errors::RULE_UNITS);
    }
    let mut above = 0;
    let mut root = (source, from);
    while let Some(key) = root.1.source() {
        if key == destination {
            return Err(errors::RULE_CIRCLE);
        }
        root = (key, series(keys, key)?);
        above += 1;
    }
    let (depth, below) = measure(keys, to)?;
    let (_, beside) = measure(keys, root.1)?;
    if above + 1 + depth > CHAIN_MAX {
        return Err(errors::RULE_CHAIN);
    }
    if below + beside > CONNECTED_MAX {
        return Err(errors::RULE_CONNECTED);
    }
    Ok(())
}

/// Returns how many rules follow each other from a series on, and how many series they connect.
fn measure(keys: &Keys<'_>, root: &TimeSeries) -> Result<(usize, usize), CommandError> {
    let (mut deepest, mut count) = (0, 0);
    let mut open = vec![(root, 0)];
    while let Some((at, depth)) = open.pop() {
        deepest = deepest.max(depth);
        count += 1;
        for rule in at.rules() {
            open.push((series(keys, &rule.destination)?, depth + 1));
        }
    }
    Ok((deepest, count))
}
