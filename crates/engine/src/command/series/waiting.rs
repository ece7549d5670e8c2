//! `TS.READ`: points from a time on, for which a client may wait.

use super::errors;
use super::range::Range;
use super::reading::reply_unlocked;
use crate::blocking::waiter::Block;
use crate::command::parse::{canonical_integer, is};
use crate::context::{Context, Keys, Seen};
use crate::error::CommandError;
use crate::value::Type;

/// A read as a client asks for it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    /// How long to wait, in milliseconds, and for how many points; 0 milliseconds wait for ever.
    wait: Option<(u64, u64)>,
    /// Most points that are answered.
    count: Option<usize>,
}

impl Request {
    fn parse(args: &[&[u8]]) -> Result<Self, CommandError> {
        let positive = |word: &[u8]| canonical_integer(word).and_then(|count| u64::try_from(count).ok());
        let (mut request, mut at) = (Self::default(), 3);
        while at < args.len() {
            match &args[at..] {
                [word, duration, count, ..] if is(word, "BLOCK") && request.wait.is_none() => {
                    let duration = positive(duration).ok_or(errors::BLOCK_DURATION)?;
                    canonical_integer(count).ok_or(errors::BLOCK_DURATION)?;
                    let count = positive(count).filter(|count| *count > 0).ok_or(errors::BLOCK_COUNT)?;
                    request.wait = Some((duration, count));
                    at += 3;
                }
                [word, count, ..] if is(word, "MAX_COUNT") && request.count.is_none() => {
                    let count = positive(count).filter(|count| *count > 0).ok_or(errors::MAX_COUNT)?;
                    request.count = Some(usize::try_from(count).unwrap_or(usize::MAX));
                    at += 2;
                }
                _ => return Err(errors::arity(args)),
            }
        }
        match (request.wait, request.count) {
            (Some((_, least)), Some(most)) if least > most as u64 => Err(errors::BLOCK_COUNT_RANGE),
            _ => Ok(request),
        }
    }
}

/// Most points that a change reads and makes, for each client that waits for a lens, to find out whether
/// there are enough. They are looked at while the shards of the lens and of its sources are locked.
const SEEN_MAX: usize = 1 << 15;

/// Returns the time from which on points are read; `None` if no point can be that late.
fn cursor(word: &[u8], seen: Option<&Seen<'_>>) -> Result<Option<i64>, CommandError> {
    let first = || match seen {
        None => Ok(None),
        Some(seen) if seen.view.is_plain() => Ok(seen.series.points().first()),
        Some(seen) => seen.view.at_or_after(i64::MIN).map_err(errors::not_seen),
    };
    let last = || match seen {
        None => Ok(None),
        Some(seen) if seen.view.is_plain() => Ok(seen.series.points().last()),
        Some(seen) => seen.view.at_or_before(i64::MAX).map_err(errors::not_seen),
    };
    Ok(match word {
        b"-" => Some(first()?.map_or(0, |(time, _)| time)),
        b"+" => Some(last()?.map_or(0, |(time, _)| time)),
        b"$" => last()?.map_or(Some(0), |(time, _)| time.checked_add(1)),
        word => Some(canonical_integer(word).filter(|time| *time >= 0).ok_or(errors::INVALID_TIMESTAMP)?),
    })
}

/// Whether there are so many points from a cursor on. For a lens also if that is not known within
/// [`SEEN_MAX`] points: a client that waited longer would hold up those that add points.
fn has_enough(seen: Option<&Seen<'_>>, cursor: Option<i64>, least: u64) -> Result<bool, CommandError> {
    let Some((seen, from)) = seen.zip(cursor) else { return Ok(least == 0) };
    if seen.view.is_plain() {
        return Ok(seen.series.points().count_in(from..=i64::MAX) >= least);
    }
    let least = usize::try_from(least).unwrap_or(usize::MAX);
    seen.view.may_have(from..=i64::MAX, least, SEEN_MAX).map_err(errors::not_seen)
}

pub(super) fn read(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let request = Request::parse(args)?;
    cursor(args[2], None)?;
    let seen = ctx.keys.see(args[1])?;
    let from = cursor(args[2], seen.as_ref())?;
    if let Some((duration, least)) = request.wait
        && !has_enough(seen.as_ref(), from, least)?
    {
        if !ctx.keys.can_wait() {
            return Err(errors::BLOCK_FORBIDDEN);
        }
        // The cursor is fixed now; behind the greatest time, there will be nothing to read.
        let from = from.map_or_else(|| b"$".to_vec(), |from| from.to_string().into_bytes());
        let resolved = args.iter().map(|arg| arg.to_vec());
        let resolved = resolved.enumerate().map(|(at, arg)| if at == 2 { from.clone() } else { arg });
        let timeout_ms = Some(duration).filter(|duration| *duration > 0);
        let block = Block::new(Type::Series, &args[1..2], timeout_ms);
        ctx.keys.block(block.reading(resolved.collect()));
        return Ok(());
    }
    answer(ctx, args[1], from, &request)
}

/// Answers a client that has waited with what there is.
pub(super) fn serve(ctx: &mut Context<'_, '_>, key: &[u8], args: &[&[u8]]) -> Result<(), CommandError> {
    let request = Request::parse(args)?;
    let from = cursor(args[2], ctx.keys.see(key)?.as_ref())?;
    answer(ctx, key, from, &request)
}

/// Whether a client waits no longer: there are enough points, they cannot be read, or the key is gone.
pub(super) fn is_ready(keys: &Keys<'_>, key: &[u8], args: &[&[u8]]) -> bool {
    let least = Request::parse(args).ok().and_then(|request| request.wait).map_or(0, |(_, least)| least);
    let is_ready = || {
        if keys.peek(key).is_some_and(|entry| ![Type::Series, Type::Lens].contains(&entry.type_of())) {
            return Ok(false);
        }
        let Some(seen) = keys.see(key)? else { return Ok(true) };
        has_enough(Some(&seen), cursor(args[2], Some(&seen))?, least)
    };
    // A client whose points cannot be read is answered with the error.
    CommandError::guard(is_ready).unwrap_or(true)
}

fn answer(
    ctx: &mut Context<'_, '_>,
    key: &[u8],
    from: Option<i64>,
    request: &Request,
) -> Result<(), CommandError> {
    let Some((seen, from)) = ctx.keys.see(key)?.zip(from) else {
        ctx.reply.array(0);
        return Ok(());
    };
    let range = Range::from_time(from, request.count);
    let source = range.source_of_seen(ctx.keys, key, &seen)?;
    reply_unlocked(ctx, key, range, source, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_in_any_order_and_once() {
        let parse = |line: &str| {
            Request::parse(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
                .map_err(|error| error.to_string())
        };
        let all = Ok(Request { wait: Some((10, 2)), count: Some(3) });
        assert_eq!(parse("ts.read k 1 BLOCK 10 2 MAX_COUNT 3"), all);
        assert_eq!(parse("ts.read k 1 max_count 3 block 10 2"), all);
        assert_eq!(parse("ts.read k 1"), Ok(Request::default()));
        for (line, error) in [
            ("FOO", errors::arity(&[b"ts.read"])),
            ("MAX_COUNT", errors::arity(&[b"ts.read"])),
            ("BLOCK 10", errors::arity(&[b"ts.read"])),
            ("MAX_COUNT 1 MAX_COUNT 1", errors::arity(&[b"ts.read"])),
            ("MAX_COUNT 0", errors::MAX_COUNT),
            ("BLOCK -1 1", errors::BLOCK_DURATION),
            ("BLOCK 10 x", errors::BLOCK_DURATION),
            ("BLOCK 10 0", errors::BLOCK_COUNT),
            ("BLOCK 10 3 MAX_COUNT 2", errors::BLOCK_COUNT_RANGE),
        ] {
            assert_eq!(parse(&format!("ts.read k 1 {line}")), Err(error.to_string()), "{line}");
        }
    }
}
