//! `XCLAIM` and `XAUTOCLAIM`: pending entries change their consumer.
//!
//! Which do, and when they count as delivered, follows from the stream, the arguments and the time.

use super::ids;
use super::pending::no_key_or_group;
use super::replying::{write_entry, write_id};
use crate::command::parse::{self, is};
use crate::context::Context;
use crate::error::CommandError;
use crate::value::Stream;
use crate::value::stream::{Group, Id, Pending};
use crate::watch::touched::Touched;
use crate::wire::reply::Reply;

/// How entries are claimed.
struct Claim<'a> {
    group: &'a [u8],
    consumer: &'a [u8],
    /// Shortest time since the last delivery, in milliseconds.
    min_idle_ms: u64,
    now_ms: u64,
    /// Time that counts as that of the delivery, in milliseconds since 1970.
    delivered_ms: u64,
    /// Number of deliveries that is set.
    deliveries: Option<u64>,
    /// Whether entries become pending that were not.
    forced: bool,
    /// Whether only IDs are answered, and it does not count as a delivery.
    only_ids: bool,
}

/// What happened to one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// It is the consumer's now.
    Claimed,
    /// It is not in the stream any more, and was pending until now.
    Removed,
    /// Nothing.
    Left,
}

impl Claim<'_> {
    /// Claims one entry. Creates the consumer with the first one, and notes that.
    fn claim(&self, stream: &mut Stream, id: Id, has_created: &mut bool) -> Outcome {
        let is_there = stream.contains(id);
        let Some(group) = stream.group_mut(self.group) else { return Outcome::Left };
        if !is_there {
            return if group.acknowledge(id) { Outcome::Removed } else { Outcome::Left };
        }
        let before = group.pending_entry(id).copied();
        let is_due = match before {
            Some(pending) => self.is_idle(&pending),
            None => self.forced,
        };
        if !is_due {
            return Outcome::Left;
        }
        let number = group.see(self.consumer, self.now_ms).or_else(|| {
            *has_created = true;
            group.create_consumer(self.consumer, self.now_ms)
        });
        let Some(consumer) = number else { return Outcome::Left };
        let counted = before.map_or(1, |pending| pending.deliveries);
        let counted = if self.only_ids { counted } else { counted.saturating_add(1) };
        let deliveries = self.deliveries.unwrap_or(counted);
        group.assign(Pending { id, delivered_ms: self.delivered_ms, deliveries, consumer });
        Outcome::Claimed
    }

    fn is_idle(&self, pending: &Pending) -> bool {
        self.min_idle_ms == 0 || self.now_ms.saturating_sub(pending.delivered_ms) >= self.min_idle_ms
    }

    fn write(&self, reply: &mut Reply, stream: &Stream, claimed: &[Id]) {
        reply.array(claimed.len());
        for id in claimed {
            match stream.get(*id) {
                Some(entry) if !self.only_ids => write_entry(reply, entry),
                _ => write_id(reply, *id),
            }
        }
    }
}

/// Parses the least idle time.
fn min_idle(arg: &[u8], otherwise: &'static str) -> Result<u64, CommandError> {
    let value = parse::integer(arg).map_err(|_| CommandError::text(otherwise))?;
    Ok(u64::try_from(value).unwrap_or(0))
}

/// Reports what a claim has changed.
fn report(ctx: &mut Context<'_, '_>, key: &[u8], has_changed: bool, has_created: bool) {
    if has_changed {
        ctx.keys.changed_unannounced(key, || Touched::Everything);
    }
    if has_created {
        ctx.keys.happened(key, "xgroup-createconsumer");
    }
}

pub(super) fn xclaim(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (key, now_ms) = (args[1], ctx.keys.now_ms());
    let stream = ctx.keys.read::<Stream>(key)?;
    let last = stream.and_then(|stream| stream.group(args[2])).map(Group::last);
    let last = last.ok_or_else(|| no_key_or_group(key, args[2]))?;
    let mut claim = Claim {
        group: args[2],
        consumer: args[3],
        min_idle_ms: min_idle(args[4], "ERR Invalid min-idle-time argument for XCLAIM")?,
        now_ms,
        delivered_ms: now_ms,
        deliveries: None,
        forced: false,
        only_ids: false,
    };
    let claimed_ids: Vec<Id> = args[5..].iter().map_while(|arg| ids::id(arg, 0).ok()).collect();
    let new_last = claim.parse_options(&args[5 + claimed_ids.len()..])?.filter(|id| *id > last);
    let reply = &mut *ctx.reply;
    let done = ctx.keys.update(key, |stream: &mut Stream| {
        if let Some((group, last)) = stream.group_mut(claim.group).zip(new_last) {
            group.pass(last);
        }
        let (mut has_changed, mut has_created) = (new_last.is_some(), false);
        let mut claimed = Vec::new();
        for id in &claimed_ids {
            let outcome = claim.claim(stream, *id, &mut has_created);
            has_changed |= outcome != Outcome::Left;
            if outcome == Outcome::Claimed {
                claimed.push(*id);
            }
        }
        claim.write(reply, stream, &claimed);
        (has_changed, has_created)
    })?;
    let (has_changed, has_created) = done.unwrap_or((false, false));
    report(ctx, key, has_changed, has_created);
    Ok(())
}

impl Claim<'_> {
    /// Parses the options of `XCLAIM`. Returns the ID that the group has read up to at least.
    fn parse_options(&mut self, options: &[&[u8]]) -> Result<Option<Id>, CommandError> {
        let integer = |arg: &[u8], otherwise| parse::integer(arg).map_err(|_| CommandError::text(otherwise));
        let (mut last, mut delivered) = (None, None);
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let more = options.as_slice().first();
            match more {
                _ if is(option, "FORCE") => self.forced = true,
                _ if is(option, "JUSTID") => self.only_ids = true,
                Some(value) if is(option, "IDLE") => {
                    let idle = integer(value, "ERR Invalid IDLE option argument for XCLAIM")?;
                    delivered = Some(self.now_ms.cast_signed().wrapping_sub(idle));
                }
                Some(value) if is(option, "TIME") => {
                    delivered = Some(integer(value, "ERR Invalid TIME option argument for XCLAIM")?);
                }
                Some(value) if is(option, "RETRYCOUNT") => {
                    let count = integer(value, "ERR Invalid RETRYCOUNT option argument for XCLAIM")?;
                    self.deliveries = u64::try_from(count).ok();
                }
                Some(value) if is(option, "LASTID") => last = Some(ids::id(value, 0)?),
                _ => {
                    let option = String::from_utf8_lossy(option);
                    return Err(CommandError::Text(
                        format!("ERR Unrecognized XCLAIM option '{option}'").into(),
                    ));
                }
            }
            if !is(option, "FORCE") && !is(option, "JUSTID") {
                options.next();
            }
        }
        // A time that cannot be is taken for now.
        let delivered = delivered.and_then(|ms| u64::try_from(ms).ok());
        self.delivered_ms = delivered.filter(|ms| *ms <= self.now_ms).unwrap_or(self.now_ms);
        Ok(last)
    }
}

/// Entries that `XAUTOCLAIM` looks at, for each that it may claim.
const ATTEMPTS: usize = 10;
/// Most entries that may be asked for, as in Redis.
const COUNT_MAX: i64 = i64::MAX / 16;

pub(super) fn xautoclaim(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (key, now_ms) = (args[1], ctx.keys.now_ms());
    let min_idle_ms = min_idle(args[4], "ERR Invalid min-idle-time argument for XAUTOCLAIM")?;
    let from = ids::start(args[5])?;
    let (mut count, mut only_ids) = (100, false);
    let mut options = args[6..].iter();
    while let Some(option) = options.next() {
        match options.as_slice().first() {
            Some(value) if is(option, "COUNT") => {
                let wrong = CommandError::text("ERR COUNT must be > 0");
                let value = parse::integer_in(value, 1..=COUNT_MAX).map_err(|_| wrong)?;
                count = usize::try_from(value).unwrap_or(usize::MAX);
                options.next();
            }
            _ if is(option, "JUSTID") => only_ids = true,
            _ => return Err(CommandError::Syntax),
        }
    }
    let stream = ctx.keys.read::<Stream>(key)?;
    if stream.and_then(|stream| stream.group(args[2])).is_none() {
        return Err(no_key_or_group(key, args[2]));
    }
    let claim = Claim {
        group: args[2],
        consumer: args[3],
        min_idle_ms,
        now_ms,
        delivered_ms: now_ms,
        deliveries: None,
        forced: false,
        only_ids,
    };
    let reply = &mut *ctx.reply;
    let done = ctx.keys.update(key, |stream: &mut Stream| {
        let found = claim.claim_from(stream, from, count);
        reply.array(3);
        write_id(reply, found.next);
        claim.write(reply, stream, &found.claimed);
        reply.array(found.removed.len());
        found.removed.iter().for_each(|id| write_id(reply, *id));
        (!found.claimed.is_empty() || !found.removed.is_empty(), found.has_created)
    })?;
    let (has_changed, has_created) = done.unwrap_or((false, false));
    report(ctx, key, has_changed, has_created);
    Ok(())
}

/// What a walk over the pending entries has found.
struct Found {
    claimed: Vec<Id>,
    removed: Vec<Id>,
    /// Where the next walk begins; the smallest ID if this one has reached the end.
    next: Id,
    has_created: bool,
}

impl Claim<'_> {
    /// Claims up to `count` pending entries from an ID on.
    fn claim_from(&self, stream: &mut Stream, from: Id, count: usize) -> Found {
        let mut found = Found { claimed: Vec::new(), removed: Vec::new(), next: Id::MIN, has_created: false };
        let Some(group) = stream.group(self.group) else { return found };
        let attempts = count.saturating_mul(ATTEMPTS);
        let ids: Vec<Id> =
            group.pending_from(from).take(attempts.saturating_add(1)).map(|pending| pending.id).collect();
        for (number, id) in ids.iter().enumerate() {
            if number == attempts || found.claimed.len() + found.removed.len() == count {
                found.next = *id;
                break;
            }
            match self.claim(stream, *id, &mut found.has_created) {
                Outcome::Claimed => found.claimed.push(*id),
                Outcome::Removed => found.removed.push(*id),
                Outcome::Left => {}
            }
        }
        found
    }
}
