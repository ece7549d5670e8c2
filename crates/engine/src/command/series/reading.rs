//! Reading one series.

use super::clock::Clock;
use super::compaction;
use super::creating::series;
use super::errors;
use super::points::reply_row;
use super::range::{Range, Rows, Source};
use crate::command::parse::is;
use crate::context::{Context, Keys, Seen};
use crate::error::CommandError;
use crate::value::{Labels, POLICIES, Rule, TimeSeries, Unit};
use crate::wire::reply::{Protocol, Reply};
use std::ops::ControlFlow;
use tidemark_series::{Ignore, naming};

pub(super) fn get(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    if args.len() > 3 {
        return Err(errors::arity(args));
    }
    if let Some(word) = args.get(2)
        && !is(word, "LATEST")
    {
        return Err(errors::NOT_LATEST);
    }
    let seen = ctx.keys.see(args[1])?.ok_or(errors::NO_SERIES)?;
    let last = last_seen(ctx.keys, args[1], &seen, args.len() == 3)?;
    reply_last(ctx.reply, last);
    Ok(())
}

/// Returns the last point of what a key shows, with the open bucket of a series if it is read.
pub(super) fn last_seen(
    keys: &Keys<'_>,
    key: &[u8],
    seen: &Seen<'_>,
    with_open_bucket: bool,
) -> Result<Option<(i64, f64)>, CommandError> {
    if !seen.view.is_plain() {
        return seen.view.at_or_before(i64::MAX).map_err(errors::not_seen);
    }
    Ok(last_of(keys, key, seen.series, with_open_bucket))
}

/// Returns the last point of a series, with its open bucket if it is read.
pub(super) fn last_of(
    keys: &Keys<'_>,
    key: &[u8],
    series: &TimeSeries,
    with_open_bucket: bool,
) -> Option<(i64, f64)> {
    let open = if with_open_bucket { compaction::open_bucket(keys, key, series) } else { None };
    let last = series.points().last();
    open.filter(|(time, _)| last.is_none_or(|(last, _)| *time >= last)).or(last)
}

/// Writes a series' last point, or an empty array.
pub(super) fn reply_last(reply: &mut Reply, last: Option<(i64, f64)>) {
    match last {
        Some((time, value)) => reply_row(reply, time, &[value]),
        None => reply.array(0),
    }
}

pub(super) fn range(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    read(ctx, args, false)
}

pub(super) fn reverse_range(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    read(ctx, args, true)
}

fn read(ctx: &mut Context<'_, '_>, args: &[&[u8]], reverse: bool) -> Result<(), CommandError> {
    let seen = ctx.keys.see(args[1])?.ok_or(errors::NO_SERIES)?;
    let mut range = Range::between(args[2], args[3], Clock::new(ctx.keys.now_us(), seen.unit()))?;
    range.parse_options(args, 4)?;
    let source = range.source_of_seen(ctx.keys, args[1], &seen)?;
    reply_unlocked(ctx, args[1], range, source, reverse)
}

/// Writes a range of a series or lens once the locks are released. An error names the key.
pub(super) fn reply_unlocked(
    ctx: &mut Context<'_, '_>,
    key: &[u8],
    range: Range,
    source: Source,
    reverse: bool,
) -> Result<(), CommandError> {
    let key: Box<[u8]> = key.into();
    ctx.write_unlocked(move |reply| naming(&key, || reply_range(reply, &range, &source, reverse)))
}

/// Writes the points of a range, or its buckets. Points are written while they are read, so the reply
/// is all that they need memory for.
pub(super) fn reply_range(
    reply: &mut Reply,
    range: &Range,
    source: &Source,
    reverse: bool,
) -> Result<(), CommandError> {
    if !range.is_raw() {
        reply_rows(reply, &range.rows(source, reverse)?);
        return Ok(());
    }
    reply.array(range.count_points(source)?);
    range.for_each_point(source, reverse, |time, value| {
        reply_row(reply, time, &[value]);
        // The client is disconnected, so the rest is of no use.
        if reply.has_overflowed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
}

/// Writes rows.
pub(super) fn reply_rows(reply: &mut Reply, rows: &Rows) {
    reply.array(rows.len());
    rows.iter().for_each(|(time, values)| reply_row(reply, time, values));
}

/// Writes labels: a map, or pairs in RESP2.
pub(super) fn reply_labels<'a>(
    reply: &mut Reply,
    labels: impl ExactSizeIterator<Item = (&'a [u8], Option<&'a [u8]>)>,
) {
    match reply.protocol() {
        Protocol::Resp3 => reply.map(labels.len()),
        Protocol::Resp2 => reply.array(labels.len()),
    }
    for (name, value) in labels {
        if reply.protocol() == Protocol::Resp2 {
            reply.array(2);
        }
        reply.bulk(name);
        reply.bulk_or_null(value);
    }
}

/// Writes all labels.
pub(in crate::command) fn reply_all_labels(reply: &mut Reply, labels: &Labels) {
    let labels: Vec<_> = labels.iter().map(|(name, value)| (name, Some(value))).collect();
    reply_labels(reply, labels.into_iter());
}

pub(super) fn info(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    if args.len() > 3 {
        return Err(errors::arity(args));
    }
    let is_detailed = args.get(2).is_some_and(|word| is(word, "DEBUG"));
    if let Some(word) = args.get(2).filter(|_| !is_detailed) {
        return Err(errors::unknown_option(word));
    }
    let series = series(ctx.keys, args[1])?;
    let (definition, points, reply) = (series.definition(), series.points(), &mut *ctx.reply);
    let has_unit = definition.unit != Unit::default();
    reply.map(14 + 2 * usize::from(is_detailed) + usize::from(has_unit));
    let number = |reply: &mut Reply, name: &str, value: u64| {
        reply.simple(name);
        reply.integer(i64::try_from(value).unwrap_or(i64::MAX));
    };
    let time = |point: Option<(i64, f64)>| point.map_or(0, |(time, _)| time as u64);
    number(reply, "totalSamples", points.len());
    number(reply, "memoryUsage", series.bytes() as u64);
    number(reply, "firstTimestamp", time(points.first()));
    number(reply, "lastTimestamp", time(points.last()));
    number(reply, "retentionTime", definition.retention);
    number(reply, "chunkCount", points.chunks().max(1) as u64);
    number(reply, "chunkSize", u64::from(definition.chunk_bytes));
    reply.simple("chunkType");
    reply.simple(if definition.is_compressed { "compressed" } else { "uncompressed" });
    reply.simple("duplicatePolicy");
    let in_force = definition.policy.unwrap_or_default();
    let (name, _) = POLICIES.iter().find(|(_, policy)| *policy == in_force).expect("every policy has a name");
    reply.simple(name);
    reply.simple("labels");
    reply_all_labels(reply, series.labels());
    reply.simple("sourceKey");
    reply.bulk_or_null(series.source());
    reply.simple("rules");
    reply_rules(reply, series.rules());
    let Ignore { time: ignored_time, value: ignored_value } = definition.ignore;
    number(reply, "ignoreMaxTimeDiff", ignored_time);
    reply.simple("ignoreMaxValDiff");
    reply.double(ignored_value);
    if has_unit {
        reply.simple("unit");
        reply.simple(definition.unit.name());
    }
    if is_detailed {
        reply.simple("keySelfName");
        reply.bulk(args[1]);
        reply.simple("Chunks");
        reply_chunks(reply, series);
    }
    Ok(())
}

/// Writes rules: a map by destination, or lists in RESP2.
fn reply_rules(reply: &mut Reply, rules: &[Rule]) {
    match reply.protocol() {
        Protocol::Resp3 => reply.map(rules.len()),
        Protocol::Resp2 => reply.array(rules.len()),
    }
    for rule in rules {
        match reply.protocol() {
            Protocol::Resp3 => {
                reply.bulk(&rule.destination);
                reply.array(3);
            }
            Protocol::Resp2 => {
                reply.array(4);
                reply.bulk(&rule.destination);
            }
        }
        reply.integer(rule.duration);
        reply.simple(&rule.aggregation.to_string().to_ascii_uppercase());
        reply.integer(rule.align);
    }
}

/// Writes the blocks of a series, and the points that are in none.
fn reply_chunks(reply: &mut Reply, series: &TimeSeries) {
    let chunks = series.points().describe();
    reply.array(chunks.len());
    for chunk in chunks {
        reply.map(5);
        for (name, value) in [
            ("startTimestamp", chunk.first),
            ("endTimestamp", chunk.last),
            ("samples", chunk.points as i64),
            ("size", chunk.bytes as i64),
        ] {
            reply.simple(name);
            reply.integer(value);
        }
        reply.simple("bytesPerSample");
        reply.double(if chunk.points == 0 { 0.0 } else { chunk.bytes as f64 / chunk.points as f64 });
    }
}
