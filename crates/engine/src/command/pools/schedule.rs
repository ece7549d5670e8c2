//! Schedules: arguments of `POOL.CREATE`, and their progress.

use super::options::{self, Page};
use super::{answer, rules};
use crate::command::parse::{self, is};
use crate::context::Context;
use crate::error::CommandError;
use crate::value::Pool;
use tidemark_pool::{Release, Unsold};

/// Parses `id units FROM milliseconds [EVERY milliseconds [TIMES windows] [LAPSES]]`. Returns the
/// release and the remaining words.
pub(super) fn release<'w, 'a>(words: &'w [&'a [u8]]) -> Result<(Release, &'w [&'a [u8]]), CommandError> {
    let [id, units, from, from_ms, rest @ ..] = words else { return Err(CommandError::Syntax) };
    if !is(from, "FROM") {
        return Err(CommandError::text(
            "ERR SCHEDULE takes an id, how many units come, FROM and when, in milliseconds since 1970",
        ));
    }
    let mut release = Release {
        item: options::id(id)?.into(),
        units: parse::positive(units)?,
        from_ms: parse::positive(from_ms)?,
        every_ms: 1,
        times: 1,
        unsold: Unsold::Stays,
    };
    let [word, every_ms, rest @ ..] = rest else { return Ok((release, rest)) };
    if !is(word, "EVERY") {
        return Ok((release, &words[4..]));
    }
    release.every_ms = parse::positive(every_ms)?;
    let mut rest = rest;
    if let [word, times, tail @ ..] = rest
        && is(word, "TIMES")
    {
        (release.times, rest) = (parse::positive(times)?, tail);
    }
    if let [word, tail @ ..] = rest
        && is(word, "LAPSES")
    {
        (release.unsold, rest) = (Unsold::Lapses, tail);
    }
    Ok((release, rest))
}

/// `POOL.SCHEDULE key [FROM start] [COUNT count]`
pub(super) fn show(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let page = Page::parse(&args[2..])?;
    let Some(pool) = ctx.keys.read::<Pool>(args[1])?.map(Pool::inner) else {
        ctx.reply.null();
        return Ok(());
    };
    let (urn, reply) = (pool.urn(), &mut *ctx.reply);
    let (releases, now_ms) = (urn.releases(), urn.released_until_ms());
    let from = page.from.min(releases.len());
    let end = from + page.count.min(releases.len() - from);
    reply.map(4);
    answer::number(reply, "released-until", now_ms);
    reply.bulk(b"next-release");
    rules::number_or_null(reply, urn.next_release_ms());
    reply.bulk(b"releases");
    reply.array(end - from);
    for release in &releases[from..end] {
        reply.map(8);
        answer::text(reply, "id", urn.id(release.item));
        answer::number(reply, "units", release.units);
        answer::number(reply, "from", release.from_ms);
        answer::number(reply, "every", release.every_ms);
        answer::number(reply, "times", release.times);
        answer::text(reply, "unsold", if release.unsold == Unsold::Lapses { "lapses" } else { "stays" });
        answer::number(reply, "released", release.come(now_ms));
        reply.bulk(b"next");
        // A removed item gets no more units.
        rules::number_or_null(reply, release.next_ms(now_ms).filter(|_| urn.has(release.item)));
    }
    reply.bulk(b"next");
    if end < releases.len() {
        reply.count(end);
    } else {
        reply.null();
    }
    Ok(())
}
