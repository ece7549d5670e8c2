//! Geographic commands: sorted sets whose scores are points on the earth.
//!
//! A score is a [geohash] of 52 bits. Points near each other mostly have scores near each other, so an
//! area is searched by a few ranges of scores.
//!
//! `GEOADD` is logged as the `ZADD` that it amounts to, and a search that stores its result as `DEL` and
//! `ZADD`: replays compute no geometry.

mod geohash;
pub(super) mod rows;
mod search;

use super::parse::is;
use super::sorted_sets::{add_and_reply, score};
use crate::context::Context;
use crate::error::CommandError;
use crate::value::SortedSet;
use crate::wire::reply::{Reply, format_double};
use geohash::{Degrees, Point};

/// Parses a longitude and a latitude.
fn point(longitude: &[u8], latitude: &[u8]) -> Result<Point, CommandError> {
    let point = Point { longitude: score(longitude)?, latitude: score(latitude)? };
    if Degrees::LONGITUDE.contains(point.longitude) && Degrees::LATITUDE.contains(point.latitude) {
        return Ok(point);
    }
    let Point { longitude, latitude } = point;
    Err(CommandError::Text(
        format!("ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}").into(),
    ))
}

/// Returns the length of a unit in metres.
fn unit_m(name: &[u8]) -> Result<f64, CommandError> {
    let units = [("m", 1.0), ("km", 1000.0), ("ft", 0.3048), ("mi", 1609.34)];
    let unit = units.iter().find(|(unit, _)| is(name, unit));
    unit.map(|(_, length)| *length)
        .ok_or(CommandError::text("ERR unsupported unit provided. please use M, KM, FT, MI"))
}

/// Answers a distance, which is not negative, with four digits behind the point.
fn reply_distance(reply: &mut Reply, distance: f64) {
    const UNITS: u64 = 10_000;
    let units = (distance * UNITS as f64).round_ties_even() as u64;
    reply.bulk(format!("{}.{:04}", units / UNITS, units % UNITS).as_bytes());
}

fn reply_point(reply: &mut Reply, point: Point) {
    reply.array(2);
    reply.decimal(point.longitude);
    reply.decimal(point.latitude);
}

fn geoadd(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let key = args[1];
    let is_option = |arg: &&&[u8]| ["NX", "XX", "CH"].iter().any(|option| is(arg, option));
    let options = args[2..].iter().take_while(is_option).count();
    let (options, places) = args[2..].split_at(options);
    let has = |name: &str| options.iter().any(|option| is(option, name));
    let (places, rest) = places.as_chunks::<3>();
    if !rest.is_empty() || (has("NX") && has("XX")) {
        return Err(CommandError::Syntax);
    }
    let mut scores = Vec::with_capacity(places.len());
    for [longitude, latitude, _] in places {
        scores.push(format_double(point(longitude, latitude)?.score()));
    }
    let pairs = scores.iter().zip(places).flat_map(|(score, [_, _, member])| [score.as_bytes(), member]);
    let line: Vec<&[u8]> =
        [&b"zadd"[..], key].into_iter().chain(options.iter().copied()).chain(pairs).collect();
    if add_and_reply(ctx, &line)? {
        ctx.keys.log_instead("zadd", &line[1..]);
    }
    Ok(())
}

/// Answers for each of the members behind the key what `show` writes of its point, or what `absent` does.
fn each_point(
    ctx: &mut Context<'_, '_>,
    args: &[&[u8]],
    show: impl Fn(&mut Reply, Point),
    absent: impl Fn(&mut Reply),
) -> Result<(), CommandError> {
    let set = ctx.keys.read::<SortedSet>(args[1])?;
    ctx.reply.array(args.len() - 2);
    for member in &args[2..] {
        match set.and_then(|set| set.score(member)) {
            Some(score) => show(ctx.reply, Point::of_score(score)),
            None => absent(ctx.reply),
        }
    }
    Ok(())
}

fn geopos(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    each_point(ctx, args, reply_point, Reply::null_array)
}

fn geohash(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    each_point(ctx, args, |reply, point| reply.bulk(&point.geohash()), Reply::null)
}

fn geodist(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let unit_m = match &args[4..] {
        [] => 1.0,
        [unit] => unit_m(unit)?,
        _ => return Err(CommandError::Syntax),
    };
    let set = ctx.keys.read::<SortedSet>(args[1])?;
    let point = |member: &[u8]| set.and_then(|set| set.score(member)).map(Point::of_score);
    match point(args[2]).zip(point(args[3])) {
        Some((one, other)) => reply_distance(ctx.reply, one.distance_m(other) / unit_m),
        None => ctx.reply.null(),
    }
    Ok(())
}
