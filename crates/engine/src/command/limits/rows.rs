//! The rows of the command table for limiters.

use super::{policies, rates, throttle};
use crate::command::{Command, Group, Handler, KeySpec, Run, flags::*};

const fn row(id: u16, name: &'static str, arity: i16, flags: u32, keys: KeySpec, run: Handler) -> Command {
    Command::new(Group::Limit, id, name, arity, flags, keys, Run::Keys(run))
}

const SINCE: &str = "tidemark 0.1.0";
const GROWS: u32 = WRITE | DENYOOM | FAST;

/// Most that is said in the table of what a call may define.
macro_rules! rate {
    () => {
        "<GCRA | TOKEN | LEAKY | FIXED | SLIDING | LOG> limit PER milliseconds [BURST burst]"
    };
}

pub(in crate::command) const COMMANDS: &[Command] = &[
    row(450, "cl.throttle", -5, GROWS, KeySpec::ONE, throttle::throttle).doc(
        "redis-cell 0.1.0",
        "O(1)",
        "key max-burst count-per-period period [quantity]",
        "Limits a rate by GCRA as redis-cell does: answers limited (0 or 1), limit, remaining, and the seconds after which \
         to retry (-1 if not limited) and after which nothing counts any more.",
    ),
    row(451, "limit.create", -4, GROWS, KeySpec::ONE, policies::create).doc(
        SINCE,
        "O(1)",
        concat!("key ", rate!(), " [NX | XX]"),
        "Defines a limiter, or changes one and keeps what was used, and lets it stay: its own definition wins over \
         that of any call.",
    ),
    row(452, "limit.check", -2, GROWS, KeySpec::ONE, rates::check).doc(
        SINCE,
        "O(1)",
        concat!("key [AMOUNT amount] [", rate!(), "]"),
        "Takes units if the limiter allows it, of one that the call defines if there is none: answers allowed (1 or 0), \
         limit, remaining, and the milliseconds after which to retry (-1 if allowed, or never) and after which nothing \
         counts any more.",
    ),
    row(453, "limit.peek", -2, READONLY | FAST, KeySpec::ONE, rates::peek).doc(
        SINCE,
        "O(1)",
        concat!("key [AMOUNT amount] [", rate!(), "]"),
        "Answers what LIMIT.CHECK would answer, and takes nothing.",
    ),
    row(454, "limit.checkall", -3, GROWS | MOVABLE_KEYS, KeySpec::Counted { at: 1 }, rates::check_all).doc(
        SINCE,
        "O(N) with N the number of keys",
        concat!("numkeys key [key ...] [AMOUNT amount [amount ...]] [", rate!(), " ...]"),
        "Takes units of several limiters if all of them allow it, otherwise of none: answers as LIMIT.CHECK for the limiter \
         that decides, and which one that is.",
    ),
    row(455, "limit.refund", -2, WRITE | FAST, KeySpec::ONE, rates::refund).doc(
        SINCE,
        "O(1)",
        "key [AMOUNT amount]",
        "Gives units back that were taken: answers how many still counted.",
    ),
    row(460, "limit.state", 2, READONLY | FAST, KeySpec::ONE, policies::state).doc(
        SINCE,
        "O(1)",
        "key",
        "Returns what a limiter allows and what it has noted, in a form that does not change as time passes.",
    ),
    row(461, "limit.reset", 2, WRITE | FAST, KeySpec::ONE, policies::reset).doc(
        SINCE,
        "O(1)",
        "key",
        "Forgets what was used of a limiter: answers whether there was one.",
    ),
];
