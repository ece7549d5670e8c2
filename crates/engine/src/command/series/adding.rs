//! Adding points, and removing them.

use super::clock::Clock;
use super::creating::{put, series};
use super::options::{Also, Options};
use super::{errors, points};
use crate::command::parse::{self, canonical_integer};
use crate::context::{Context, Keys};
use crate::error::CommandError;
use crate::value::{TimeSeries, Unit};
use tidemark_series::{AppendError, Appended, DuplicatePolicy};

/// Returns the time that a client is answered with.
fn answered(appended: Result<Appended<f64>, AppendError>, time: i64) -> Result<i64, CommandError> {
    match appended.map_err(errors::refused)? {
        Appended::Added | Appended::Replaced(_) => Ok(time),
        Appended::Ignored(last) => Ok(last),
    }
}

/// Whether a point leaves the series as it was.
fn is_unchanged(appended: &Result<Appended<f64>, AppendError>) -> bool {
    matches!(appended, Err(_) | Ok(Appended::Ignored(_)))
}

/// Returns the unit of a series; `None` if the key does not exist.
fn unit_of(keys: &Keys<'_>, key: &[u8]) -> Result<Option<Unit>, CommandError> {
    let series = keys.read::<TimeSeries>(key).map_err(|_| errors::NOT_A_SERIES)?;
    Ok(series.map(|series| series.definition().unit))
}

/// Adds a point to an existing series and reports the change.
fn append(
    keys: &mut Keys<'_>,
    key: &[u8],
    time: i64,
    value: f64,
    policy: Option<DuplicatePolicy>,
    event: &'static str,
) -> Result<i64, CommandError> {
    let appended = keys.update(key, |series: &mut TimeSeries| series.append(time, value, policy))?;
    let appended = appended.ok_or(errors::NO_SERIES)?;
    if !is_unchanged(&appended) {
        keys.changed(key, event);
    }
    answered(appended, time)
}

pub(super) fn add(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let key = args[1];
    let value = points::value(args[3])?;
    points::check_time(args[2])?;
    let unit = unit_of(ctx.keys, key)?;
    let options = Options::parse(args, 4, Also::OnDuplicate)?;
    let policy = options.on_duplicate;
    let time = match unit {
        Some(unit) => {
            let time = points::time(args[2], unit, ctx.keys.now_us())?;
            append(ctx.keys, key, time, value, policy, "ts.add")?
        }
        None => {
            let definition = options.definition();
            let time = points::time(args[2], definition.unit, ctx.keys.now_us())?;
            let mut series = TimeSeries::new(definition);
            series.append(time, value, None).expect("a series without points takes any");
            put(ctx.keys, key, series);
            ctx.keys.changed(key, "ts.add");
            time
        }
    };
    ctx.reply.integer(time);
    Ok(())
}

pub(super) fn add_many(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (triples, rest) = args[1..].as_chunks::<3>();
    if !rest.is_empty() {
        return Err(errors::arity(args));
    }
    ctx.reply.array(triples.len());
    for [key, time, value] in triples {
        match add_one(ctx.keys, key, time, value) {
            Ok(time) => ctx.reply.integer(time),
            Err(error) => ctx.reply.error(&error),
        }
    }
    Ok(())
}

fn add_one(keys: &mut Keys<'_>, key: &[u8], time: &[u8], value: &[u8]) -> Result<i64, CommandError> {
    let value = points::value(value)?;
    points::check_time(time)?;
    let unit = unit_of(keys, key)?;
    let time = points::time(time, unit.unwrap_or_default(), keys.now_us())?;
    if unit.is_none() {
        return Err(errors::NOT_A_SERIES);
    }
    append(keys, key, time, value, None, "ts.add")
}

pub(super) fn increment(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    step(ctx, args, 1.0, "ts.incrby")
}

pub(super) fn decrement(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    step(ctx, args, -1.0, "ts.decrby")
}

/// Adds a point whose value is the last one's plus an amount.
fn step(
    ctx: &mut Context<'_, '_>,
    args: &[&[u8]],
    sign: f64,
    event: &'static str,
) -> Result<(), CommandError> {
    let key = args[1];
    let series = ctx.keys.read::<TimeSeries>(key)?;
    let last = series.map(|series| (series.definition().unit, series.points().last()));
    let options = Options::parse(args, 3, Also::Timestamp)?;
    let amount = parse::float(args[2]).ok().filter(|amount| amount.is_finite()).ok_or(errors::INCREMENT)?;
    let amount = sign * amount;
    let given = options.timestamp.unwrap_or(b"*");
    let now_us = ctx.keys.now_us();
    let time = match last {
        Some((unit, last)) => {
            let time = points::time(given, unit, now_us).map_err(|_| errors::INVALID_TIMESTAMP)?;
            let (last_time, base) = last.unwrap_or((time, 0.0));
            if time < last_time {
                return Err(errors::INCREMENT_TOO_OLD);
            }
            if base.is_nan() {
                return Err(errors::INCREMENT_OF_NAN);
            }
            let sum = Some(base + amount).filter(|sum| sum.is_finite()).ok_or(errors::INCREMENT)?;
            append(ctx.keys, key, time, sum, Some(DuplicatePolicy::Last), event)?
        }
        None => {
            let definition = options.definition();
            let time = points::time(given, definition.unit, now_us).map_err(|_| errors::INVALID_TIMESTAMP)?;
            let mut series = TimeSeries::new(definition);
            // A sum, so that the amount -0 is 0 as in an existing series.
            series.append(time, 0.0 + amount, None).expect("a series without points takes any");
            put(ctx.keys, key, series);
            ctx.keys.changed(key, event);
            time
        }
    };
    ctx.reply.integer(time);
    Ok(())
}

/// Parses an end of a range: a time, one relative to the clock's, or the word for no bound.
pub(super) fn bound(
    arg: &[u8],
    open: &[u8],
    none: i64,
    clock: Clock,
    error: CommandError,
) -> Result<i64, CommandError> {
    if arg == open {
        return Ok(none);
    }
    let time = canonical_integer(arg).filter(|time| *time >= 0);
    time.or_else(|| clock.relative(arg)).ok_or(error)
}

pub(super) fn delete(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let key = args[1];
    // Another type is an error after those of the ends.
    let unit = unit_of(ctx.keys, key).ok().flatten().unwrap_or_default();
    let clock = Clock::new(ctx.keys.now_us(), unit);
    let from = bound(args[2], b"-", 0, clock, errors::FROM)?;
    let to = bound(args[3], b"+", i64::MAX, clock, errors::TO)?;
    series(ctx.keys, key)?;
    let removed = if from > to {
        0
    } else {
        ctx.keys.update(key, |series: &mut TimeSeries| series.remove(from, to))?.unwrap_or(0)
    };
    if removed > 0 {
        ctx.keys.changed(key, "ts.del");
    }
    ctx.reply.integer(i64::try_from(removed).unwrap_or(i64::MAX));
    Ok(())
}
