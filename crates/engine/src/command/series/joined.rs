//! Reading several series by their keys, joined by their times.

use super::clock::{self, Clock};
use super::errors;
use super::points::reply_joined_row;
use super::range::{self, Range, Source, VALUES_MAX};
use super::several::{check_milliseconds, milliseconds};
use crate::command::parse::{canonical_integer, is};
use crate::context::Context;
use crate::error::CommandError;
use crate::wire::reply::Reply;
use std::collections::BTreeMap;
use tidemark_series::Aggregation;

/// A read of ranges of series that are joined by their times: a column for each aggregation of each.
#[derive(Debug)]
pub(super) struct Join {
    /// The range, with no aggregations of its own.
    pub(super) range: Range,
    /// The aggregations of each key, if there are any.
    columns: Option<Vec<Vec<Aggregation>>>,
    count: usize,
}

impl Join {
    /// Returns the keys.
    pub(super) fn keys<'s, 'a>(args: &'s [&'a [u8]]) -> Result<&'s [&'a [u8]], CommandError> {
        let count = canonical_integer(args[1]).and_then(|count| usize::try_from(count).ok());
        let count = count.filter(|count| *count > 0).ok_or(errors::NUMKEYS)?;
        args.get(2..2_usize.saturating_add(count)).ok_or_else(|| errors::arity(args))
    }

    pub(super) fn parse(args: &[&[u8]], clock: Clock) -> Result<Self, CommandError> {
        let count = Self::keys(args)?.len();
        let ends = 2 + count;
        let ([from, to], _) = args[ends..].split_first_chunk::<2>().ok_or_else(|| errors::arity(args))?;
        let mut range = Range::between(from, to, clock)?;
        let columns = parse_columns(&mut range, args, ends + 2, count)?;
        range.check()?;
        Ok(Self { range, columns, count })
    }

    /// Returns the range of each key.
    pub(super) fn ranges(&self) -> Vec<Range> {
        let own = |index: usize| self.columns.as_ref().map(|columns| &columns[index][..]);
        (0..self.count).map(|index| self.range.for_one_of_several(own(index))).collect()
    }
}

pub(super) fn range_of_keys(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    read_keys(ctx, args, false)
}

pub(super) fn reverse_range_of_keys(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    read_keys(ctx, args, true)
}

fn read_keys(ctx: &mut Context<'_, '_>, args: &[&[u8]], reverse: bool) -> Result<(), CommandError> {
    let join = Join::parse(args, milliseconds(ctx))?;
    let mut members = Vec::with_capacity(join.count);
    for (key, own) in Join::keys(args)?.iter().zip(join.ranges()) {
        let seen = ctx.keys.see(key)?.ok_or(errors::NO_SERIES)?;
        if clock::is_relative(args) {
            check_milliseconds(seen.unit())?;
        }
        let source = own.source_of_seen(ctx.keys, key, &seen)?;
        members.push((own, source));
    }
    ctx.write_unlocked(move |reply| reply_joined(reply, &members, join.range.count(), reverse))
}

/// Writes the rows of several series, joined by their times.
fn reply_joined(
    reply: &mut Reply,
    members: &[(Range, Source)],
    count: usize,
    reverse: bool,
) -> Result<(), CommandError> {
    let width: usize = members.iter().map(|(range, _)| range.width()).sum();
    let mut joined: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    let mut column = 0;
    for (range, source) in members {
        let rows = range.rows(source, false)?;
        for (time, values) in rows.iter() {
            let row = joined.entry(time).or_insert_with(|| vec![f64::NAN; width]);
            row[column..column + values.len()].copy_from_slice(values);
        }
        if joined.len().saturating_mul(width) > VALUES_MAX {
            return Err(errors::TOO_MANY_ROWS);
        }
        column += rows.width;
    }
    let rows = joined.len().min(count);
    reply.array(rows);
    let mut write = |(time, values): (&i64, &Vec<f64>)| reply_joined_row(reply, *time, values);
    if reverse {
        joined.iter().rev().take(rows).for_each(&mut write);
    } else {
        joined.iter().take(rows).for_each(&mut write);
    }
    Ok(())
}

/// Parses the options of a join; the aggregations of each key come before the bucket's duration.
fn parse_columns(
    range: &mut Range,
    args: &[&[u8]],
    mut at: usize,
    count: usize,
) -> Result<Option<Vec<Vec<Aggregation>>>, CommandError> {
    let mut columns = None;
    while at < args.len() {
        if !is(args[at], "AGGREGATION") {
            at = range.parse_option(args, at)?.ok_or_else(|| errors::unknown_option(args[at]))?;
            continue;
        }
        let specs = args[at + 1..].iter().position(|word| canonical_integer(word).is_some());
        let specs = specs.ok_or(errors::AGGREGATION)?;
        let words = &args[at + 1..at + 1 + specs];
        let parse = |word: &&[u8]| {
            let names = word.split(|byte| *byte == b',');
            names.map(range::aggregation).collect::<Result<Vec<_>, _>>()
        };
        let parsed = words.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        if parsed.len() != count {
            return Err(errors::AGGREGATIONS_OF_KEYS);
        }
        let (word, duration) =
            (args[at], canonical_integer(args[at + 1 + specs]).ok_or(errors::AGGREGATION)?);
        at += 2 + specs;
        range.aggregate(word, Vec::new(), Vec::new(), duration, at)?;
        columns = Some(parsed);
    }
    Ok(columns)
}
