//! The rows of the command table for sorted sets.

use super::range::Preset;
use super::{
    algebra, pops, ranges, zadd, zcard, zincrby, zmscore, zrandmember, zrank, zrem, zrevrank, zscan, zscore,
};
use crate::command::{Answer, Command, Group, Handler, KeySpec, Run, flags::*};
use crate::value::Type;
use crate::watch::part::Part;

const fn row(id: u16, name: &'static str, arity: i16, flags: u32, keys: KeySpec, run: Handler) -> Command {
    Command::new(Group::SortedSet, id, name, arity, flags, keys, Run::Keys(run))
}

const GROWS: u32 = WRITE | DENYOOM;

/// Keys, then a timeout.
const KEYS_THEN_TIMEOUT: KeySpec = KeySpec::Range { first: 1, last: -2, step: 1 };

pub(in crate::command) const COMMANDS: &[Command] = &[
    row(350, "zadd", -4, GROWS | FAST, KeySpec::ONE, zadd).using(&["RW update"]).doc(
        "1.2.0",
        "O(log(N)) for each member with N the number of members",
        "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]",
        "Adds members to a sorted set, or changes their scores.",
    ),
    row(351, "zincrby", 4, GROWS | FAST, KeySpec::ONE, zincrby).using(&["RW access update"]).doc(
        "1.2.0",
        "O(log(N)) with N the number of members",
        "key increment member",
        "Adds to the score of a member, which starts at 0.",
    ),
    row(352, "zrem", -3, WRITE | FAST, KeySpec::ONE, zrem).using(&["RW delete"]).doc(
        "1.2.0",
        "O(M*log(N)) with N the number of members and M those removed",
        "key member [member ...]",
        "Removes members from a sorted set.",
    ),
    row(353, "zcard", 2, READONLY | FAST, KeySpec::ONE, zcard)
        .answering(Answer::Ordered)
        .using(&["RO"])
        .doc("1.2.0", "O(1)", "key", "Returns the number of members of a sorted set.")
        .looking_at(|_| Part::names(Type::SortedSet)),
    row(354, "zscore", 3, READONLY | FAST, KeySpec::ONE, zscore)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc("1.2.0", "O(1)", "key member", "Returns the score of a member.")
        .looking_at(|_| Part::elements(Type::SortedSet)),
    row(355, "zmscore", -3, READONLY | FAST, KeySpec::ONE, zmscore)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            "6.2.0",
            "O(N) with N the number of members asked for",
            "key member [member ...]",
            "Returns the scores of several members.",
        )
        .looking_at(|_| Part::elements(Type::SortedSet)),
    row(356, "zrank", -3, READONLY | FAST, KeySpec::ONE, zrank)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            "2.0.0",
            "O(log(N)) with N the number of members",
            "key member [WITHSCORE]",
            "Returns how many members have a lower place than a member.",
        )
        .looking_at(|_| Part::place(false)),
    row(357, "zrevrank", -3, READONLY | FAST, KeySpec::ONE, zrevrank)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            "2.0.0",
            "O(log(N)) with N the number of members",
            "key member [WITHSCORE]",
            "Returns how many members have a higher place than a member.",
        )
        .looking_at(|_| Part::place(true)),
    row(358, "zcount", 4, READONLY | FAST, KeySpec::ONE, ranges::zcount)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            "2.0.0",
            "O(log(N)) with N the number of members",
            "key min max",
            "Counts the members in a range of scores.",
        )
        .looking_at(Part::counted_scores),
    row(359, "zlexcount", 4, READONLY | FAST, KeySpec::ONE, ranges::zlexcount)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            "2.8.9",
            "O(log(N)) with N the number of members",
            "key min max",
            "Counts the members in a range of members that share one score.",
        )
        .looking_at(|_| Part::counted_members()),
    row(360, "zrange", -4, READONLY, KeySpec::ONE, ranges::zrange)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            "1.2.0",
            "O(log(N)+M) with N the number of members and M those returned",
            "key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]",
            "Returns members in a range of ranks, scores or members.",
        )
        .looking_at(|args| Part::window(args, Preset::RANGE)),
    row(361, "zrangestore", -5, GROWS, KeySpec::TWO, ranges::zrangestore)
        .using(&["OW update", "RO access"])
        .doc(
            "6.2.0",
            "O(log(N)+M) with N the number of members and M those stored",
            "dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]",
            "Stores the members of a range in another key.",
        ),
    row(362, "zrevrange", -4, READONLY, KeySpec::ONE, ranges::zrevrange)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            "1.2.0",
            "O(log(N)+M) with N the number of members and M those returned",
            "key start stop [WITHSCORES]",
            "Returns members in a range of ranks that are counted from the highest score.",
        )
        .looking_at(|args| Part::window(args, Preset::REVERSED)),
    row(363, "zrangebyscore", -4, READONLY, KeySpec::ONE, ranges::zrangebyscore)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            "1.0.5",
            "O(log(N)+M) with N the number of members and M those returned",
            "key min max [WITHSCORES] [LIMIT offset count]",
            "Returns members in a range of scores.",
        )
        .looking_at(|args| Part::window(args, Preset::BY_SCORE)),
    row(364, "zrevrangebyscore", -4, READONLY, KeySpec::ONE, ranges::zrevrangebyscore)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            "2.2.0",
            "O(log(N)+M) with N the number of members and M those returned",
            "key max min [WITHSCORES] [LIMIT offset count]",
            "Returns members in a range of scores, the highest first.",
        )
        .looking_at(|args| Part::window(args, Preset::BY_SCORE_REVERSED)),
    row(365, "zrangebylex", -4, READONLY, KeySpec::ONE, ranges::zrangebylex)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            "2.8.9",
            "O(log(N)+M) with N the number of members and M those returned",
            "key min max [LIMIT offset count]",
            "Returns members in a range of members that share one score.",
        )
        .looking_at(|args| Part::window(args, Preset::BY_LEX)),
    row(366, "zrevrangebylex", -4, READONLY, KeySpec::ONE, ranges::zrevrangebylex)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            "2.8.9",
            "O(log(N)+M) with N the number of members and M those returned",
            "key max min [LIMIT offset count]",
            "Returns members in a range of members that share one score, the highest first.",
        )
        .looking_at(|args| Part::window(args, Preset::BY_LEX_REVERSED)),
    row(367, "zremrangebyrank", 4, WRITE, KeySpec::ONE, ranges::zremrangebyrank).using(&["RW delete"]).doc(
        "2.0.0",
        "O(log(N)+M) with N the number of members and M those removed",
        "key start stop",
        "Removes the members in a range of ranks.",
    ),
    row(368, "zremrangebyscore", 4, WRITE, KeySpec::ONE, ranges::zremrangebyscore).using(&["RW delete"]).doc(
        "1.2.0",
        "O(log(N)+M) with N the number of members and M those removed",
        "key min max",
        "Removes the members in a range of scores.",
    ),
    row(369, "zremrangebylex", 4, WRITE, KeySpec::ONE, ranges::zremrangebylex).using(&["RW delete"]).doc(
        "2.8.9",
        "O(log(N)+M) with N the number of members and M those removed",
        "key min max",
        "Removes the members in a range of members that share one score.",
    ),
    row(370, "zpopmin", -2, WRITE | FAST, KeySpec::ONE, pops::zpopmin).using(&["RW access delete"]).doc(
        "5.0.0",
        "O(log(N)+M) with N the number of members and M those taken",
        "key [count]",
        "Takes and returns the members with the lowest scores.",
    ),
    row(371, "zpopmax", -2, WRITE | FAST, KeySpec::ONE, pops::zpopmax).using(&["RW access delete"]).doc(
        "5.0.0",
        "O(log(N)+M) with N the number of members and M those taken",
        "key [count]",
        "Takes and returns the members with the highest scores.",
    ),
    row(372, "zmpop", -4, WRITE | MOVABLE_KEYS, KeySpec::Counted { at: 1 }, pops::zmpop)
        .using(&["RW access delete"])
        .doc(
            "7.0.0",
            "O(K+log(N)+M) with K the number of keys, N of members and M of members taken",
            "numkeys key [key ...] <MIN | MAX> [COUNT count]",
            "Takes members with the lowest or highest scores from the first key that has any.",
        ),
    row(373, "bzpopmin", -3, WRITE | FAST | BLOCKING, KEYS_THEN_TIMEOUT, pops::bzpopmin)
        .using(&["RW access delete"])
        .doc(
            "5.0.0",
            "O(log(N)) with N the number of members",
            "key [key ...] timeout",
            "Takes the member with the lowest score from the first key that has any, or waits for one.",
        )
        .serving(pops::serve_bzpopmin),
    row(374, "bzpopmax", -3, WRITE | FAST | BLOCKING, KEYS_THEN_TIMEOUT, pops::bzpopmax)
        .using(&["RW access delete"])
        .doc(
            "5.0.0",
            "O(log(N)) with N the number of members",
            "key [key ...] timeout",
            "Takes the member with the highest score from the first key that has any, or waits for one.",
        )
        .serving(pops::serve_bzpopmax),
    row(375, "bzmpop", -5, WRITE | BLOCKING | MOVABLE_KEYS, KeySpec::Counted { at: 2 }, pops::bzmpop)
        .using(&["RW access delete"])
        .doc(
            "7.0.0",
            "O(K+log(N)+M) with K the number of keys, N of members and M of members taken",
            "timeout numkeys key [key ...] <MIN | MAX> [COUNT count]",
            "Takes members from the first key that has any, or waits for some.",
        )
        .serving(pops::serve_bzmpop),
    row(376, "zrandmember", -2, READONLY, KeySpec::ONE, zrandmember)
        .answering(Answer::Unrepeatable)
        .using(&["RO access"])
        .tips(&["nondeterministic_output"])
        .doc(
            "6.2.0",
            "O(M*log(N)) with N the number of members and M those returned",
            "key [count [WITHSCORES]]",
            "Returns members at random.",
        ),
    row(377, "zscan", -3, READONLY, KeySpec::ONE, zscan)
        .answering(Answer::Iterated(2))
        .using(&["RO access"])
        .tips(&["nondeterministic_output"])
        .doc(
            "2.8.0",
            "O(1) for every call, O(N) for a complete iteration with N the number of members",
            "key cursor [MATCH pattern] [COUNT count]",
            "Iterates over the members of a sorted set and their scores.",
        )
        .looking_at(|args| Part::scan(Type::SortedSet, args)),
    row(378, "zunion", -3, READONLY | MOVABLE_KEYS, KeySpec::Counted { at: 1 }, algebra::zunion)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .visiting_all()
        .doc(
            "6.2.0",
            "O(N+M*log(M)) with N the members of all inputs and M those of the result",
            "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]",
            "Returns the members of any of several sets, their scores combined.",
        ),
    row(379, "zunionstore", -4, GROWS | MOVABLE_KEYS, KeySpec::OneAndCounted { at: 2 }, algebra::zunionstore)
        .using(&["OW update", "RO access"])
        .visiting_all()
        .doc(
            "2.0.0",
            "O(N+M*log(M)) with N the members of all inputs and M those of the result",
            "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]",
            "Stores the members of any of several sets, their scores combined.",
        ),
    row(380, "zinter", -3, READONLY | MOVABLE_KEYS, KeySpec::Counted { at: 1 }, algebra::zinter)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .visiting_all()
        .doc(
            "6.2.0",
            "O(N*K+M*log(M)) with N the members of the smallest of K inputs and M those of the result",
            "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]",
            "Returns the members that several sets have in common, their scores combined.",
        ),
    row(381, "zinterstore", -4, GROWS | MOVABLE_KEYS, KeySpec::OneAndCounted { at: 2 }, algebra::zinterstore)
        .using(&["OW update", "RO access"])
        .visiting_all()
        .doc(
            "2.0.0",
            "O(N*K+M*log(M)) with N the members of the smallest of K inputs and M those of the result",
            "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]",
            "Stores the members that several sets have in common, their scores combined.",
        ),
    row(382, "zintercard", -3, READONLY | MOVABLE_KEYS, KeySpec::Counted { at: 1 }, algebra::zintercard)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .visiting_all()
        .doc(
            "7.0.0",
            "O(N*K) with N the members of the smallest of K inputs",
            "numkeys key [key ...] [LIMIT limit]",
            "Counts the members that several sets have in common.",
        ),
    row(383, "zdiff", -3, READONLY | MOVABLE_KEYS, KeySpec::Counted { at: 1 }, algebra::zdiff)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .visiting_all()
        .doc(
            "6.2.0",
            "O(N*K) with N the members of the first of K inputs",
            "numkeys key [key ...] [WITHSCORES]",
            "Returns the members of the first set that no other set has.",
        ),
    row(384, "zdiffstore", -4, GROWS | MOVABLE_KEYS, KeySpec::OneAndCounted { at: 2 }, algebra::zdiffstore)
        .using(&["OW update", "RO access"])
        .visiting_all()
        .doc(
            "6.2.0",
            "O(N*K) with N the members of the first of K inputs",
            "destination numkeys key [key ...]",
            "Stores the members of the first set that no other set has.",
        ),
];
