//! Rows of the commands on streams.

use super::{adding, claiming, groups, info, pending, ranges, reading};
use crate::command::{Answer, Command, Group, Handler, KeySpec, Misses, Run, flags::*, reply_help};
use crate::context::Context;
use crate::error::CommandError;
use crate::persist::level;

/// Row of a command on these keys.
const fn of_keys(
    (id, name): (u16, &'static str),
    arity: i16,
    flags: u32,
    keys: KeySpec,
    run: Handler,
) -> Command {
    Command::new(Group::Stream, id, name, arity, flags, keys, Run::Keys(run)).at_level(level::STREAMS)
}

const fn row(id: u16, name: &'static str, arity: i16, flags: u32, run: Handler) -> Command {
    of_keys((id, name), arity, flags, KeySpec::ONE, run)
}

/// Row of a subcommand, whose key comes behind its name.
const fn sub(id: u16, name: &'static str, arity: i16, flags: u32, run: Handler) -> Command {
    const SECOND: KeySpec = KeySpec::Range { first: 2, last: 2, step: 1 };
    of_keys((id, name), arity, flags, SECOND, run)
}

/// Row of a subcommand without a key.
const fn help(id: u16, run: Handler) -> Command {
    Command::new(Group::Stream, id, "help", 2, LOADING | STALE, KeySpec::None, Run::Keys(run)).doc(
        "5.0.0",
        "O(1)",
        "",
        "Lists the subcommands.",
    )
}

const CHOOSES: &[&str] = &["nondeterministic_output"];

pub(in crate::command) const COMMANDS: &[Command] = &[
    row(750, "xadd", -5, WRITE | DENYOOM | FAST, adding::xadd).using(&["RW update"]).tips(CHOOSES).doc(
        "5.0.0",
        "O(1), and O(N) with N the number of entries that are trimmed",
        "key [NOMKSTREAM] [<MAXLEN | MINID> [= | ~] threshold [LIMIT count]] <* | id> field value [field value ...]",
        "Adds an entry to a stream, which is created if needed, and returns its ID.",
    ),
    row(751, "xlen", 2, READONLY | FAST, ranges::xlen).answering(Answer::Ordered).using(&["RO"]).doc(
        "5.0.0",
        "O(1)",
        "key",
        "Returns the number of entries of a stream.",
    ),
    row(752, "xrange", -4, READONLY, ranges::xrange)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .visiting(|object, args| ranges::effort(object, args, false))
        .doc(
            "5.0.0",
            "O(log(M)+N) with M the number of entries and N the number of entries returned",
            "key start end [COUNT count]",
            "Returns the entries between two IDs.",
        ),
    row(753, "xrevrange", -4, READONLY, ranges::xrevrange)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .visiting(|object, args| ranges::effort(object, args, true))
        .doc(
            "5.0.0",
            "O(log(M)+N) with M the number of entries and N the number of entries returned",
            "key end start [COUNT count]",
            "Returns the entries between two IDs, the newest first.",
        ),
    row(754, "xdel", -3, WRITE | FAST, adding::xdel).using(&["RW delete"]).doc(
        "5.0.0",
        "O(log(M)) for each ID with M the number of entries",
        "key id [id ...]",
        "Deletes entries, and returns how many there were.",
    ),
    row(755, "xtrim", -4, WRITE, adding::xtrim).using(&["RW delete"]).tips(CHOOSES).doc(
        "5.0.0",
        "O(N) with N the number of entries removed, which mostly go by the hundred",
        "key <MAXLEN | MINID> [= | ~] threshold [LIMIT count]",
        "Removes the oldest entries of a stream.",
    ),
    row(756, "xsetid", -3, WRITE | DENYOOM | FAST, adding::xsetid).using(&["RW update"]).doc(
        "5.0.0",
        "O(1)",
        "key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]",
        "Sets which ID a stream continues from, for tools that copy streams.",
    ),
    of_keys((757, "xread"), -4, READONLY | BLOCKING | MOVABLE_KEYS, KeySpec::Streams, reading::xread)
    .answering(Answer::Ordered)
    .using(&["RO access"])
    .doc(
        "5.0.0",
        "O(log(M)+N) for each stream with M the number of its entries and N the number of entries returned",
        "[COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]",
        "Returns the entries of streams behind an ID; waits if there are none.",
    )
    .visiting(|object, args| reading::effort(object, args, false))
    .serving(reading::serve_xread)
    .ready_when(reading::is_readable),
    of_keys((758, "xreadgroup"), -7, WRITE | BLOCKING | MOVABLE_KEYS, KeySpec::Streams, reading::xreadgroup)
    .using(&["RW access update"])
    .doc(
        "5.0.0",
        "O(log(M)+N) for each stream with M the number of its entries and N the number of entries returned",
        "GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key [key ...] id [id ...]",
        "Returns entries that no consumer of the group has got, and waits if there are none; or those that a consumer has got and not acknowledged.",
    )
    .visiting(|object, args| reading::effort(object, args, true))
    .serving(reading::serve_xreadgroup)
    .ready_when(reading::is_deliverable),
    row(759, "xack", -4, WRITE | FAST, groups::xack).using(&["RW update"]).missing(Misses::OfWrites).doc(
        "5.0.0",
        "O(log(M)) for each ID with M the number of pending entries",
        "key group id [id ...]",
        "Notes that entries are done with, and returns how many were pending.",
    ),
    row(760, "xpending", -3, READONLY, pending::xpending)
        .answering(Answer::Unrepeatable)
        .using(&["RO access"])
        .tips(CHOOSES)
        .doc(
            "5.0.0",
            "O(log(M)+N) with M the number of pending entries and N the number of those visited",
            "key group [[IDLE min-idle-time] start end count [consumer]]",
            "Returns what was delivered to a group and not acknowledged.",
        ),
    row(761, "xclaim", -6, WRITE | FAST, claiming::xclaim).using(&["RW update"]).tips(CHOOSES).doc(
        "5.0.0",
        "O(log(M)) for each ID with M the number of pending entries",
        "key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-milliseconds] [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID lastid]",
        "Gives pending entries to another consumer, as if they were delivered to it.",
    ),
    row(762, "xautoclaim", -6, WRITE | FAST, claiming::xautoclaim).using(&["RW delete"]).tips(CHOOSES).doc(
        "6.2.0",
        "O(log(M)+N) with M the number of pending entries and N the number of those visited, at most ten times the count",
        "key group consumer min-idle-time start [COUNT count] [JUSTID]",
        "Gives the next pending entries that have waited for long to another consumer.",
    ),
    Command::new(Group::Stream, 763, "xgroup", -2, 0, KeySpec::None, Run::Container)
        .doc("5.0.0", "Depends on the subcommand", "", "Changes the consumer groups of a stream.")
        .with(GROUP),
    Command::new(Group::Stream, 764, "xinfo", -2, 0, KeySpec::None, Run::Container)
        .doc("5.0.0", "Depends on the subcommand", "", "Tells how a stream and its groups stand.")
        .with(INFO),
];

const GROUP: &[Command] = &[
    sub(770, "create", -5, WRITE | DENYOOM, groups::create).using(&["RW insert"]).doc(
        "5.0.0",
        "O(1)",
        "key group <id | $> [MKSTREAM] [ENTRIESREAD entries-read]",
        "Creates a group that has read up to an ID.",
    ),
    sub(771, "setid", -5, WRITE, groups::set_id).using(&["RW update"]).doc(
        "5.0.0",
        "O(1)",
        "key group <id | $> [ENTRIESREAD entries-read]",
        "Sets up to which ID a group has read.",
    ),
    sub(772, "destroy", 4, WRITE, groups::destroy).using(&["RW delete"]).doc(
        "5.0.0",
        "O(N) with N the number of pending entries",
        "key group",
        "Deletes a group with its consumers and pending entries.",
    ),
    sub(773, "createconsumer", 5, WRITE | DENYOOM, groups::create_consumer).using(&["RW insert"]).doc(
        "6.2.0",
        "O(log(N)) with N the number of consumers",
        "key group consumer",
        "Creates a consumer of a group.",
    ),
    sub(774, "delconsumer", 5, WRITE, groups::delete_consumer).using(&["RW delete"]).doc(
        "5.0.0",
        "O(N) with N the number of its pending entries",
        "key group consumer",
        "Deletes a consumer, and returns how many of its entries were pending.",
    ),
    help(775, group_help),
];

const INFO: &[Command] = &[
    sub(780, "stream", -3, READONLY, info::stream).answering(Answer::Unrepeatable).using(&["RO access"]).doc(
        "5.0.0",
        "O(1), and O(N) with N the number of entries and consumers shown",
        "key [FULL [COUNT count]]",
        "Tells how a stream stands; with FULL, also its groups and consumers.",
    ),
    sub(781, "groups", 3, READONLY, info::groups).answering(Answer::Ordered).using(&["RO access"]).doc(
        "5.0.0",
        "O(N) with N the number of groups",
        "key",
        "Tells how the groups of a stream stand.",
    ),
    sub(782, "consumers", 4, READONLY, info::consumers)
        .answering(Answer::Unrepeatable)
        .using(&["RO access"])
        .tips(CHOOSES)
        .doc(
            "5.0.0",
            "O(N) with N the number of consumers",
            "key group",
            "Tells how the consumers of a group stand.",
        ),
    help(783, info_help),
];

fn group_help(ctx: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<(), CommandError> {
    reply_help(ctx.reply, "XGROUP", GROUP);
    Ok(())
}

fn info_help(ctx: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<(), CommandError> {
    reply_help(ctx.reply, "XINFO", INFO);
    Ok(())
}
