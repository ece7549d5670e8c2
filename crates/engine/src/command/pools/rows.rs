//! The rows of the command table for pools.

use super::{changing, creating, drawing, epochs, following, reading, reserving, rules, schedule};
use crate::command::{Answer, Command, Group, Handler, KeySpec, Run, flags::*};

const SINCE: &str = "tidemark 0.1.0";

const fn row(id: u16, name: &'static str, arity: i16, flags: u32, run: Handler) -> Command {
    Command::new(Group::Pool, id, name, arity, flags, KeySpec::ONE, Run::Keys(run))
}

pub(in crate::command) const COMMANDS: &[Command] = &[
    row(500, "pool.create", -4, WRITE | DENYOOM, creating::create).using(&["OW insert"]).doc(
        SINCE,
        "O(N) with N the number of items",
        "key [SELECTOR <TREE | ALIAS | FENWICK | PREFIX-SUM>] [DURABILITY <ALWAYS | SERVER>] [FROM number] [MODE <FIXED | UNIT>] \
         [SOLDOUT <RENORMALISE | NOPRIZE | FALLBACK id>] \
         [LIMIT <DRAWS max | WINS max> [PER milliseconds] [OF numitems id [id ...]]] \
         [GUARANTEE after [POOL] [SOFT from step] OF numitems id [id ...]] \
         [SCHEDULE id units FROM milliseconds [EVERY milliseconds [TIMES windows] [LAPSES]]] \
         [TABLE name numitems id weight <quantity | TABLE:name> [id weight <quantity | TABLE:name> ...]] \
         <JSON catalogue | YAML catalogue | TOML catalogue | \
         ITEMS id weight <quantity | TABLE:name> [id weight <quantity | TABLE:name> ...]>",
        "Creates a pool of a catalogue, and returns what is published of the secrets of its first two epochs.",
    ),
    row(501, "pool.draw", -2, WRITE | FAST, drawing::draw).using(&["RW access update"]).doc(
        SINCE,
        "O(log N) for each draw with N the number of items",
        "key [COUNT count] [UNIQUE] [USER user] [REQUEST request]",
        "Draws once, or so many times or not at all, and returns the number of each draw and the item that it has given.",
    ),
    row(502, "pool.reserve", -3, WRITE | DENYOOM, reserving::reserve).using(&["RW access update"]).doc(
        SINCE,
        "O(log N) for each draw with N the number of items",
        "key milliseconds [COUNT count] [UNIQUE] [USER user] [REQUEST request]",
        "Draws and reserves what was drawn, until it is confirmed or cancelled, or for this long.",
    ),
    row(503, "pool.confirm", 3, WRITE | FAST, reserving::confirm).using(&["RW access update"]).doc(
        SINCE,
        "O(log N) with N the number of reservations",
        "key number",
        "Confirms a reservation: its draws count as drawn. Returns 1, or 0 if it was confirmed before.",
    ),
    row(504, "pool.cancel", 3, WRITE | FAST, reserving::cancel).using(&["RW access update"]).doc(
        SINCE,
        "O(log N) for each draw with N the number of items",
        "key number",
        "Cancels a reservation: its draws are given back. Returns 1, or 0 if it was cancelled before.",
    ),
    row(505, "pool.expire", 2, WRITE | FAST, reserving::expire).using(&["RW access update"]).doc(
        SINCE,
        "O(log N) for each reservation that is over",
        "key",
        "Ends expired reservations and advances the schedule, as the server does by itself. Returns the number of ended reservations.",
    ),
    row(506, "pool.reservations", -2, READONLY, reserving::reservations)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            SINCE,
            "O(log N + M) with M the draws that are shown",
            "key [FROM start] [COUNT count]",
            "Returns the open reservations, in the order of their numbers.",
        ),
    row(507, "pool.return", -3, WRITE | FAST, drawing::give_back).using(&["RW access update"]).doc(
        SINCE,
        "O(log N) with N the number of items",
        "key id [count] [USER user]",
        "Gives back what was drawn of an item, and returns what is left of it then, which is null without an end.",
    ),
    row(508, "pool.update", -4, WRITE | DENYOOM, changing::update).using(&["RW access update"]).doc(
        SINCE,
        "O(log N) for each change with N the number of items",
        "key <WEIGHT id weight | STOCK id quantity | ADD id weight quantity | REMOVE id> \
         [<WEIGHT id weight | STOCK id quantity | ADD id weight quantity | REMOVE id> ...]",
        "Changes the catalogue, all that is said or nothing, and returns its version.",
    ),
    row(509, "pool.restock", 4, WRITE | FAST, changing::restock).using(&["RW access update"]).doc(
        SINCE,
        "O(log N) with N the number of items",
        "key id units",
        "Adds units to an item or takes some out, and returns what is left of it then, which is null without an end.",
    ),
    row(510, "pool.epoch", -2, WRITE | FAST, epochs::begin).using(&["RW access update"]).doc(
        SINCE,
        "O(1)",
        "key [SEED seed]",
        "Ends the epoch and begins the next, to whose secret a client may add a seed, and returns the secret that is over.",
    ),
    row(511, "pool.state", -2, READONLY, reading::state).answering(Answer::Ordered).using(&["RO access"]).doc(
        SINCE,
        "O(N) with N the number of items that are shown",
        "key [FROM start] [COUNT count]",
        "Returns what a pool goes by, and the items with what is left of them, at most 1000 unless more are asked for.",
    ),
    row(512, "pool.odds", -2, READONLY, reading::odds).answering(Answer::Ordered).using(&["RO access"]).doc(
        SINCE,
        "O(N) with N the number of items that are shown, or of all where the weight of what is sold out is kept",
        "key [FROM start] [COUNT count]",
        "Returns the odds of the next draw, of at most 1000 items unless more are asked for.",
    ),
    row(513, "pool.reveal", -2, READONLY | FAST, epochs::reveal)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            SINCE,
            "O(1)",
            "key [epoch]",
            "Returns the secret of an epoch that is over, and which draws follow from it.",
        ),
    row(514, "pool.history", -2, READONLY, reading::history)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            SINCE,
            "O(N) with N the number of draws that are shown",
            "key [COUNT count]",
            "Returns the last draws, the latest first, of up to 256 that are kept.",
        ),
    row(517, "pool.user", 3, READONLY | FAST, rules::user)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            SINCE,
            "O(N) with N the rules and the items that they name",
            "key user",
            "Returns what the rules of a pool have counted of a user, what limits leave, and how far guarantees are.",
        ),
    row(518, "pool.schedule", -2, READONLY, schedule::show)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            SINCE,
            "O(N) with N the number of releases that are shown",
            "key [FROM start] [COUNT count]",
            "Returns what comes to the stock and when, how much of it has come, and when something comes or lapses next.",
        ),
    row(515, "pool.drop", 2, WRITE | FAST, creating::remove).using(&["RM delete"]).doc(
        SINCE,
        "O(1)",
        "key",
        "Deletes a pool, and nothing else, and returns whether there was one.",
    ),
    Command::new(Group::Pool, 516, "pool.list", -2, READONLY, KeySpec::Each, Run::Keys(reading::list)).answering(Answer::Unrepeatable).doc(
        SINCE,
        "O(1) for every call, O(N) for a complete iteration with N the number of keys in the database",
        "cursor [MATCH pattern] [COUNT count]",
        "Iterates over the pools of the database.",
    ),
];

/// Rows that only the log has.
pub(in crate::command) const LOGGED: &[Command] = &[
    row(520, "pool.load", 3, WRITE, following::load).using(&["OW update"]).doc(
        SINCE,
        "O(N)",
        "key image",
        "A pool was made.",
    ),
    row(521, "pool.step", 3, WRITE, following::step).using(&["RW access update"]).doc(
        SINCE,
        "O(N)",
        "key frame",
        "A pool has done something.",
    ),
];
