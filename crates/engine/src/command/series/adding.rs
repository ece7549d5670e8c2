//! Adding points, and removing them.

use super::clock::Clock;
use super::compaction;
use super::creating::{put, series};
use super::options::{Also, Options};
use super::points::{self, GivenTime};
use super::{errors, foresight};
use crate::command::parse::{self, canonical_integer, is};
use crate::context::{Context, Keys};
use crate::error::CommandError;
use crate::persist::points::PointsRun;
use crate::value::series::PointsBefore;
use crate::value::{Definition, TimeSeries};
use crate::watch::touched::Touched;
use crate::wire::reply::Reply;
use tidemark_series::{Appended, DuplicatePolicy, guarded};

/// Event of points that are added.
const ADDED: &str = "ts.add";

/// What becomes of a point by one command.
#[derive(Debug, Clone, Copy)]
struct NewPoint {
    time: GivenTime,
    value: f64,
    policy: Option<DuplicatePolicy>,
}

/// Adds a point to a series, reports the change and collects the point for the log. Returns the time
/// with which the client is answered; `None` if the key does not exist. Every point of a client and of
/// the log takes this path or that of [`extend`].
#[inline]
fn append(
    keys: &mut Keys<'_>,
    key: &[u8],
    point: NewPoint,
    event: &'static str,
) -> Result<Option<i64>, CommandError> {
    let NewPoint { time, value, policy } = point;
    let now_us = keys.now_us();
    let mut before = keys.points_before(key);
    let tried = keys.fill_series(key, |series| {
        let time = time.in_unit(series.definition().unit, now_us);
        (time, (!series.has_rules()).then(|| series.append_noting(time, value, policy, &mut before)))
    })?;
    let Some((time, appended)) = tried else { return Ok(None) };
    let has_rules = appended.is_none();
    let appended = match appended {
        Some(appended) => appended,
        None => compaction::append(keys, key, (time, value), policy, Some(event))?,
    };
    let appended = appended.map_err(|error| errors::refused(error).of_series(key))?;
    if let Appended::Ignored(last) = appended {
        return Ok(Some(last));
    }
    keys.note_point(key, policy, time, value);
    if !has_rules {
        keys.changed_in(key, event, || Touched::points(&before));
    }
    Ok(Some(time))
}

/// Adds points to a series one by one, and reports each to the series that it is compacted into. Calls
/// `added` with each that was not ignored.
fn append_each(
    keys: &mut Keys<'_>,
    key: &[u8],
    points: impl Iterator<Item = (i64, f64)>,
    policy: Option<DuplicatePolicy>,
    before: &mut PointsBefore,
    mut added: impl FnMut(&mut Keys<'_>, i64, f64),
) -> Result<(), CommandError> {
    for (time, value) in points {
        let appended = keys.fill_series(key, |series| {
            (!series.has_rules()).then(|| series.append_noting(time, value, policy, before))
        })?;
        let appended = match appended.ok_or(errors::NO_SERIES)? {
            Some(appended) => appended,
            None => compaction::append(keys, key, (time, value), policy, None)?,
        };
        if !matches!(appended.map_err(errors::refused)?, Appended::Ignored(_)) {
            added(keys, time, value);
        }
    }
    Ok(())
}

/// Adds points at rising times to a series, reports the change and collects the points for the log.
/// Returns how many were added or have replaced others.
///
/// # Errors
/// The series refuses a point: then it takes none.
fn extend(
    keys: &mut Keys<'_>,
    key: &[u8],
    times: &[i64],
    values: &[f64],
    policy: Option<DuplicatePolicy>,
) -> Result<usize, CommandError> {
    let mut before = keys.points_before(key);
    if extend_at_once(keys, key, times, values, &mut before)? {
        keys.note_points(key, policy, times, values);
        keys.changed_in(key, ADDED, || Touched::points(&before));
        return Ok(times.len());
    }
    let series = keys.series_mut(key)?.ok_or(errors::NO_SERIES)?;
    for (at, (time, value)) in times.iter().zip(values).enumerate() {
        series.check(*time, *value, policy).map_err(|error| errors::refused_at(at, *time, error))?;
    }
    let _pinned = match (times, times) {
        ([first, ..], [.., last]) => foresight::look(keys, key, *first..=*last)?,
        _ => None,
    };
    let mut added = 0;
    let points = times.iter().copied().zip(values.iter().copied());
    let appended = append_each(keys, key, points, policy, &mut before, |keys, time, value| {
        added += 1;
        keys.note_point(key, policy, time, value);
    });
    appended.expect("points that were checked are taken");
    if added > 0 {
        keys.changed_in(key, ADDED, || Touched::points(&before));
    }
    Ok(added)
}

/// Adds points at rising times behind all others. Returns `false`, with nothing done, if they are not,
/// or if each must be looked at.
fn extend_at_once(
    keys: &mut Keys<'_>,
    key: &[u8],
    times: &[i64],
    values: &[f64],
    before: &mut PointsBefore,
) -> Result<bool, CommandError> {
    let extend = |series: &mut TimeSeries| !series.has_rules() && series.extend_noting(times, values, before);
    keys.fill_series(key, extend)?.ok_or(errors::NO_SERIES)
}

/// Creates a series, to which the caller adds points.
fn create(keys: &mut Keys<'_>, key: &[u8], definition: Definition) {
    keys.note_created(key, &definition);
    put(keys, key, TimeSeries::new(definition));
}

/// Adds the first point of a new series.
fn append_first(
    keys: &mut Keys<'_>,
    key: &[u8],
    definition: Definition,
    point: NewPoint,
    event: &'static str,
) -> i64 {
    create(keys, key, definition);
    // No policy: there is no point that it could concern.
    let first = append(keys, key, NewPoint { policy: None, ..point }, event);
    first.ok().flatten().expect("a series without points takes any")
}

/// Adds the points of a record, as when they first came.
///
/// # Errors
/// They cannot have come like this.
pub(crate) fn replay(keys: &mut Keys<'_>, run: PointsRun<'_>) -> Result<(), CommandError> {
    let PointsRun { key, definition, policy, times, values } = run;
    if let Some(definition) = definition {
        put(keys, key, TimeSeries::new(definition));
    }
    if let ([time], [value]) = (times, values) {
        let point = NewPoint { time: GivenTime::At(*time), value: *value, policy };
        return append(keys, key, point, ADDED)?.map(|_| ()).ok_or(errors::NO_SERIES);
    }
    let mut before = keys.points_before(key);
    if !extend_at_once(keys, key, times, values, &mut before)? {
        let points = times.iter().copied().zip(values.iter().copied());
        append_each(keys, key, points, policy, &mut before, |_, _, _| ())?;
    }
    keys.changed_in(key, ADDED, || Touched::points(&before));
    Ok(())
}

pub(super) fn add(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let key = args[1];
    let value = points::value(args[3])?;
    let time = GivenTime::parse(args[2])?;
    let mut options = None;
    if args.len() > 4 {
        check_type(ctx.keys, key)?;
        options = Some(Options::parse(args, 4, Also::OnDuplicate)?);
    }
    let policy = options.as_ref().and_then(|options| options.on_duplicate);
    let point = NewPoint { time, value, policy };
    let added = append(ctx.keys, key, point, ADDED).map_err(not_a_series)?;
    let time = added.unwrap_or_else(|| {
        let definition = options.unwrap_or_default().definition();
        append_first(ctx.keys, key, definition, point, ADDED)
    });
    match point.time {
        // The client has written it as it is answered.
        GivenTime::At(given) if given == time => ctx.reply.integer_text(args[2]),
        _ => ctx.reply.integer(time),
    }
    Ok(())
}

/// Checks that a key holds a series or nothing.
fn check_type(keys: &Keys<'_>, key: &[u8]) -> Result<(), CommandError> {
    keys.read::<TimeSeries>(key).map(|_| ()).map_err(not_a_series)
}

/// The error of commands that add points to a key of another type.
fn not_a_series(error: CommandError) -> CommandError {
    if matches!(error, CommandError::WrongType) { errors::NOT_A_SERIES } else { error }
}

/// `TS.MADD key time value … [CREATE]`. The arguments before `CREATE` come in threes, so no other
/// word can be meant by it: with one more, this command was always refused.
pub(super) fn add_many(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (triples, rest) = args[1..].as_chunks::<3>();
    let creates = match rest {
        [] => false,
        [word] if is(word, "CREATE") => true,
        _ => return Err(errors::arity(args)),
    };
    ctx.reply.array(triples.len());
    for run in triples.chunk_by(|[key, ..], [next, ..]| key == next) {
        let Context { keys, reply } = ctx;
        let [key, ..] = run[0];
        keys.with_named(key, |keys| add_to_one(&mut Context { keys, reply }, run, creates))?;
    }
    Ok(())
}

/// Key, time and value of a point, as the client writes them.
type Triple<'a> = [&'a [u8]; 3];

/// Adds points to one series, and answers each.
///
/// # Errors
/// A point that the log has cannot be taken.
fn add_to_one(ctx: &mut Context<'_, '_>, run: &[Triple<'_>], creates: bool) -> Result<(), CommandError> {
    let (first, rest) = run.split_first().expect("a run has points");
    // It may create the series.
    add_one(ctx, first, creates)?;
    if !rest.is_empty() && !add_run(ctx, rest)? {
        rest.iter().try_for_each(|point| add_one(ctx, point, creates))?;
    }
    Ok(())
}

/// Adds points to one series with one lookup, and answers each. Returns `false`, with nothing done, if
/// each must be looked at by itself.
fn add_run(ctx: &mut Context<'_, '_>, run: &[Triple<'_>]) -> Result<bool, CommandError> {
    let Context { keys, reply } = ctx;
    let ([key, ..], now_us, is_replayed) = (run[0], keys.now_us(), keys.is_replayed());
    // An event follows each point.
    if keys.events.are_wanted() {
        return Ok(false);
    }
    let (mut times, mut values) = (Vec::new(), Vec::new());
    let mut before = keys.points_before(key);
    let added = keys.fill_series(key, |series| {
        if series.has_rules() {
            return Ok(false);
        }
        times.reserve_exact(run.len());
        values.reserve_exact(run.len());
        let unit = series.definition().unit;
        for [_, time, value] in run {
            // Returns the time to answer, if it is not the one that the client has written.
            let mut add = || {
                let value = points::value(value)?;
                let given = GivenTime::parse(time)?;
                let time = given.in_unit(unit, now_us);
                let appended = series.append_noting(time, value, None, &mut before);
                match appended.map_err(|error| errors::refused(error).of_series(key))? {
                    Appended::Ignored(last) => Ok(Some(last)),
                    Appended::Added | Appended::Replaced(_) => {
                        times.push(time);
                        values.push(value);
                        Ok(matches!(given, GivenTime::Now).then_some(time))
                    }
                }
            };
            match add() {
                Ok(None) => reply.integer_text(time),
                Ok(Some(time)) => reply.integer(time),
                Err(error) => refuse(reply, error, is_replayed)?,
            }
        }
        Ok(true)
    });
    // A key without a series is answered for each point.
    let Ok(Some(added)) = added else { return Ok(false) };
    if !added? {
        return Ok(false);
    }
    if !times.is_empty() {
        keys.note_points(key, None, &times, &values);
        keys.changed_in(key, ADDED, || Touched::points(&before));
    }
    Ok(true)
}

/// Adds a point, and answers it.
fn add_one(ctx: &mut Context<'_, '_>, point: &Triple<'_>, creates: bool) -> Result<(), CommandError> {
    match try_add_one(ctx.keys, point, creates) {
        Ok(time) => ctx.reply.integer(time),
        Err(error) => refuse(ctx.reply, error, ctx.keys.is_replayed())?,
    }
    Ok(())
}

/// Answers that a point is refused. The log has a point that is replayed: a state without it would not
/// be what the log says.
fn refuse(reply: &mut Reply, error: CommandError, is_replayed: bool) -> Result<(), CommandError> {
    if is_replayed && matches!(error, CommandError::UnreadableBlock(_)) {
        return Err(error);
    }
    reply.error(&error);
    Ok(())
}

fn try_add_one(
    keys: &mut Keys<'_>,
    [key, time, value]: &Triple<'_>,
    creates: bool,
) -> Result<i64, CommandError> {
    let value = points::value(value)?;
    let point = NewPoint { time: GivenTime::parse(time)?, value, policy: None };
    match append(keys, key, point, ADDED).map_err(not_a_series)? {
        Some(time) => Ok(time),
        None if creates => Ok(append_first(keys, key, Definition::default(), point, ADDED)),
        None => Err(errors::NOT_A_SERIES),
    }
}

/// Most points of one `TS.APPEND`: they are added under one lock.
const BATCH_MAX: usize = 65_536;

/// `TS.APPEND key times values [option …]`
pub(super) fn append_batch(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let key = args[1];
    let (times, values) = batch(args[2], args[3])?;
    check_type(ctx.keys, key)?;
    let options = Options::parse(args, 4, Also::OnDuplicate)?;
    let policy = options.on_duplicate;
    if !ctx.keys.exists(key) {
        create(ctx.keys, key, options.definition());
    }
    let added = extend(ctx.keys, key, &times, &values, policy)?;
    ctx.reply.integer(added as i64);
    Ok(())
}

/// Reads the columns of a batch.
fn batch(times: &[u8], values: &[u8]) -> Result<(Vec<i64>, Vec<f64>), CommandError> {
    let (times, times_rest) = times.as_chunks::<8>();
    let (values, values_rest) = values.as_chunks::<8>();
    if !times_rest.is_empty() || !values_rest.is_empty() || times.len() != values.len() || times.is_empty() {
        return Err(errors::BATCH_BYTES);
    }
    if times.len() > BATCH_MAX {
        return Err(errors::BATCH_LENGTH);
    }
    let times: Vec<i64> = times.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect();
    let values: Vec<f64> = values.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
    if times[0] < 0 || times.windows(2).filter(|pair| pair[0] >= pair[1]).count() > 0 {
        return Err(errors::BATCH_TIMES);
    }
    if values.iter().filter(|value| value.is_infinite()).count() > 0 {
        return Err(errors::INVALID_VALUE);
    }
    Ok((times, values))
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
    let last =
        series.map(|series| guarded(|| (series.definition().unit, series.points().last()))).transpose();
    let last = last.map_err(CommandError::unreadable)?;
    let options = Options::parse(args, 3, Also::Timestamp)?;
    let amount = parse::float(args[2]).ok().filter(|amount| amount.is_finite()).ok_or(errors::INCREMENT)?;
    let amount = sign * amount;
    let given = GivenTime::parse(options.timestamp.unwrap_or(b"*")).map_err(|_| errors::INVALID_TIMESTAMP)?;
    let point =
        |time, value| NewPoint { time: GivenTime::At(time), value, policy: Some(DuplicatePolicy::Last) };
    let now_us = ctx.keys.now_us();
    let time = match last {
        Some((unit, last)) => {
            let time = given.in_unit(unit, now_us);
            let (last_time, base) = last.unwrap_or((time, 0.0));
            if time < last_time {
                return Err(errors::INCREMENT_TOO_OLD);
            }
            if base.is_nan() {
                return Err(errors::INCREMENT_OF_NAN);
            }
            let sum = Some(base + amount).filter(|sum| sum.is_finite()).ok_or(errors::INCREMENT)?;
            append(ctx.keys, key, point(time, sum), event)?.ok_or(errors::NO_SERIES)?
        }
        None => {
            let definition = options.definition();
            let time = given.in_unit(definition.unit, now_us);
            // A sum, so that the amount -0 is 0 as in an existing series.
            append_first(ctx.keys, key, definition, point(time, 0.0 + amount), event)
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
    let unit = ctx.keys.read::<TimeSeries>(key).ok().flatten().map(|series| series.definition().unit);
    let clock = Clock::new(ctx.keys.now_us(), unit.unwrap_or_default());
    let from = bound(args[2], b"-", 0, clock, errors::FROM)?;
    let to = bound(args[3], b"+", i64::MAX, clock, errors::TO)?;
    if compaction::is_beyond_retention(series(ctx.keys, key)?, from) {
        return Err(errors::BEYOND_RETENTION);
    }
    let removed = if from > to { 0 } else { compaction::remove(ctx.keys, key, from, to, Some("ts.del"))? };
    ctx.reply.integer(i64::try_from(removed).unwrap_or(i64::MAX));
    Ok(())
}
