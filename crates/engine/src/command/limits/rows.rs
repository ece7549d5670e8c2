//! The rows of the command table for limiters.

use super::{leases, policies, rates, throttle};
use crate::command::{Answer, Command, Group, Handler, KeySpec, Run, flags::*};

const fn row(id: u16, name: &'static str, arity: i16, flags: u32, keys: KeySpec, run: Handler) -> Command {
    Command::new(Group::Limit, id, name, arity, flags, keys, Run::Keys(run))
}

const SINCE: &str = "tidemark 0.1.0";
const GROWS: u32 = WRITE | DENYOOM | FAST;

/// Syntax of a definition of a rate limiter.
macro_rules! rate {
    () => {
        "<GCRA | TOKEN | LEAKY | FIXED | SLIDING | LOG> limit PER milliseconds [BURST burst]"
    };
}

/// Syntax of a definition of a limiter with leases.
macro_rules! leases {
    () => {
        "CONCURRENCY limit TTL milliseconds"
    };
}

/// Syntax of any definition.
macro_rules! definition {
    () => {
        concat!("<", rate!(), " | ", leases!(), ">")
    };
}

/// Syntax of commands that ask several keys.
const ALL: &str =
    concat!("numkeys key [key ...] [AMOUNT amount [amount ...]] [<DEFINED | ", definition!(), "> ...]");

pub(in crate::command) const COMMANDS: &[Command] = &[
    row(450, "cl.throttle", -5, GROWS, KeySpec::ONE, throttle::throttle).using(&["RW access update"]).doc(
        "redis-cell 0.1.0",
        "O(1)",
        "key max-burst count-per-period period [quantity]",
        "Limits a rate by GCRA as redis-cell does: answers limited (0 or 1), limit, remaining, and the seconds after which \
         to retry (-1 if not limited) and after which nothing counts any more.",
    ),
    row(451, "limit.create", -4, GROWS, KeySpec::ONE, policies::create).using(&["RW update"]).doc(
        SINCE,
        "O(1)",
        concat!("key ", definition!(), " [NX | XX]"),
        "Defines a limiter, or changes one and keeps what was used, and lets it stay: its own definition wins over \
         that of any call.",
    ),
    row(452, "limit.check", -2, GROWS | VOLATILE, KeySpec::ONE, rates::check)
        .using(&["RW access update"])
        .doc(
            SINCE,
            "O(1)",
            concat!("key [AMOUNT amount] [", rate!(), "]"),
            "Takes units if the limiter allows it, of one that the call defines if there is none: answers allowed (1 or 0), \
             limit, remaining, and the milliseconds after which to retry (-1 if allowed, or never) and after which nothing \
             counts any more (-1 if never). A counter is a limiter that no time gives anything back to; -1 says that it has no limit.",
        ),
    row(453, "limit.peek", -2, READONLY | FAST, KeySpec::ONE, rates::peek)
        .answering(Answer::Unrepeatable)
        .using(&["RO"])
        .doc(
            SINCE,
            "O(1)",
            concat!("key [AMOUNT amount] [", definition!(), "]"),
            "Answers what LIMIT.CHECK or LIMIT.ACQUIRE would answer, and takes nothing.",
        ),
    row(454, "limit.checkall", -3, GROWS | VOLATILE | MOVABLE_KEYS, KeySpec::Counted { at: 1 }, rates::check_all)
        .using(&["RW access update"])
        .doc(
            SINCE,
            "O(N) with N the number of keys",
            ALL,
            "Takes units of several limiters and counters if all of them allow it, otherwise of none: answers as LIMIT.CHECK for the \
             one that decides, which one that is, and if some have leases the one that was granted of each, or 0.",
        ),
    row(455, "limit.refund", -2, WRITE | FAST | VOLATILE, KeySpec::ONE, rates::refund)
        .using(&["RW access update"])
        .doc(
            SINCE,
            "O(1)",
            "key [AMOUNT amount]",
            "Gives units back that were taken: answers how many still counted.",
        ),
    row(466, "limit.peekall", -3, READONLY | FAST | MOVABLE_KEYS, KeySpec::Counted { at: 1 }, rates::peek_all)
        .answering(Answer::Unrepeatable)
        .using(&["RO"])
        .doc(
            SINCE,
            "O(N) with N the number of keys",
            ALL,
            "Answers what LIMIT.CHECKALL would answer, and takes nothing.",
        ),
    row(456, "limit.acquire", -2, GROWS, KeySpec::ONE, leases::acquire).using(&["RW access update"]).doc(
        SINCE,
        "O(N) with N the number of leases",
        concat!("key [AMOUNT amount] [TTL milliseconds] [", leases!(), "]"),
        "Takes a lease of units of a concurrency limit, which ends by itself: answers as LIMIT.CHECK, and behind that the \
         lease, or 0.",
    ),
    row(457, "limit.renew", -3, WRITE | FAST, KeySpec::ONE, leases::renew).using(&["RW access update"]).doc(
        SINCE,
        "O(N) with N the number of leases",
        "key id [TTL milliseconds]",
        "Has a lease last for its whole time from now on: answers the milliseconds until it ends, or 0 if there is no such \
         lease any more.",
    ),
    row(458, "limit.release", -3, WRITE | FAST, KeySpec::ONE, leases::release).using(&["RW delete"]).doc(
        SINCE,
        "O(N + M*log(M)) with N the number of leases and M the number of those that are named",
        "key id [id ...]",
        "Gives leases back: answers how many of them there were that had not ended.",
    ),
    row(459, "limit.leases", -2, READONLY, KeySpec::ONE, leases::leases)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            SINCE,
            "O(N) with N the number of leases that are returned",
            "key [COUNT count]",
            "Returns the leases of a concurrency limit, 100 unless COUNT is given, those that end first: for each its units and \
             when it ends, in milliseconds since 1970.",
        ),
    row(460, "limit.state", 2, READONLY | FAST, KeySpec::ONE, policies::state)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            SINCE,
            "O(1)",
            "key",
            "Returns what a limiter allows and what it has noted, in a form that does not change as time passes.",
        ),
    row(461, "limit.reset", 2, WRITE | FAST, KeySpec::ONE, policies::reset).using(&["RW delete"]).doc(
        SINCE,
        "O(1)",
        "key",
        "Forgets what was used of a limiter: answers whether there was one.",
    ),
];
