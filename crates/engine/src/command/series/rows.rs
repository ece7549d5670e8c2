//! The rows of the command table for time series.

use super::{adding, creating, joined, range, reading, ruling, several, waiting};
use crate::command::{Answer, Command, Group, Handler, KeySpec, Run, WriteReach, flags::*};
use crate::watch::part::Part;

const fn row(id: u16, name: &'static str, arity: i16, flags: u32, keys: KeySpec, run: Handler) -> Command {
    Command::new(Group::Series, id, name, arity, flags, keys, Run::Keys(run))
}

const GROWS: u32 = WRITE | DENYOOM;

/// Syntax of the options of a definition.
macro_rules! definition {
    () => {
        "[RETENTION period] [ENCODING <COMPRESSED | UNCOMPRESSED>] [CHUNK_SIZE size] [DUPLICATE_POLICY policy] \
         [IGNORE max-time-diff max-val-diff] [UNIT <ms | us | ns | s>]"
    };
}

/// Syntax of the options of a range.
macro_rules! range {
    () => {
        "[LATEST] [FILTER_BY_TS timestamp [timestamp ...]] [FILTER_BY_VALUE min max] [COUNT count] \
         [[ALIGN align] AGGREGATION aggregator bucket-duration [BUCKETTIMESTAMP bucket-timestamp] [EMPTY]]"
    };
}

/// Syntax of the options of a range of several series.
macro_rules! ranges {
    () => {
        concat!(
            "from to ",
            "[WITHLABELS | SELECTED_LABELS label [label ...]] ",
            range!(),
            " [EXCLUDEEMPTY] FILTER filter [filter ...] [GROUPBY label REDUCE reducer]"
        )
    };
}

const O_RANGE: &str = "O(N) with N the number of points in the range, less the blocks that lie in one bucket";

pub(in crate::command) const COMMANDS: &[Command] = &[
    row(550, "ts.create", -2, GROWS, KeySpec::ONE, creating::create).using(&["OW insert"]).doc(
        "RedisTimeSeries 1.0.0",
        "O(1)",
        concat!("key ", definition!(), " [LABELS [label value ...]]"),
        "Creates a time series without points.",
    ),
    row(551, "ts.alter", -2, GROWS, KeySpec::ONE, creating::alter).using(&["RW update"]).doc(
        "RedisTimeSeries 1.0.0",
        "O(N) with N the number of points that a shorter retention drops",
        concat!("key ", definition!(), " [LABELS [label value ...]]"),
        "Changes what a series was created with; its encoding and unit stay.",
    ),
    row(552, "ts.add", -4, GROWS | COLUMNS | RUNS, KeySpec::ONE, adding::add).using(&["RW update"]).doc(
        "RedisTimeSeries 1.0.0",
        "O(1) behind the last point, O(log N) for a late one",
        concat!(
            "key <timestamp | *> value ",
            definition!(),
            " [ON_DUPLICATE policy] [LABELS [label value ...]]"
        ),
        "Adds a point to a series, and creates the series if it does not exist: answers the point's time.",
    ),
    row(553, "ts.madd", -4, GROWS | COLUMNS, KeySpec::Range { first: 1, last: -1, step: 3 }, adding::add_many)
        .using(&["RW update"])
        .reaching(WriteReach::EachKey)
        .doc(
            "RedisTimeSeries 1.0.0",
            "O(N) with N the number of points",
            "key timestamp value [key timestamp value ...] [CREATE]",
            "Adds points to existing series, or creates them: answers a time or an error for each.",
        ),
    row(554, "ts.incrby", -3, GROWS, KeySpec::ONE, adding::increment).using(&["RW access update"]).doc(
        "RedisTimeSeries 1.0.0",
        "O(1)",
        concat!("key addend [TIMESTAMP timestamp] ", definition!(), " [LABELS [label value ...]]"),
        "Adds a point whose value is the last one's plus an amount, or changes the last point if it has the same time.",
    ),
    row(555, "ts.decrby", -3, GROWS, KeySpec::ONE, adding::decrement).using(&["RW access update"]).doc(
        "RedisTimeSeries 1.0.0",
        "O(1)",
        concat!("key subtrahend [TIMESTAMP timestamp] ", definition!(), " [LABELS [label value ...]]"),
        "Like TS.INCRBY, with the amount subtracted.",
    ),
    row(556, "ts.del", 4, WRITE, KeySpec::ONE, adding::delete).using(&["RW delete"]).doc(
        "RedisTimeSeries 1.6.0",
        "O(N) with N the number of blocks in the range",
        "key from to",
        "Removes the points between two times: answers their number.",
    ),
    row(557, "ts.get", -2, READONLY | FAST, KeySpec::ONE, reading::get)
        .answering(Answer::Ordered)
        .looking_at(|args| Part::points(args, 2))
        .using(&["RO access"])
        .doc("RedisTimeSeries 1.0.0", "O(1)", "key [LATEST]", "Returns the last point of a series."),
    row(558, "ts.range", -4, READONLY, KeySpec::ONE, reading::range)
        .answering(Answer::Rows { newest_first: false }).visiting(|object, args| range::effort(object, args[2], args[3]))
        .looking_at(|args| Part::points(args, 2))
        .using(&["RO access"])
        .doc(
            "RedisTimeSeries 1.0.0",
            O_RANGE,
            concat!("key from to ", range!()),
            "Returns points between two times, or their aggregation by buckets, the oldest first.",
        ),
    row(559, "ts.revrange", -4, READONLY, KeySpec::ONE, reading::reverse_range)
        .answering(Answer::Rows { newest_first: true }).visiting(|object, args| range::effort(object, args[2], args[3]))
        .looking_at(|args| Part::points(args, 2))
        .using(&["RO access"])
        .doc(
            "RedisTimeSeries 1.4.0",
            O_RANGE,
            concat!("key from to ", range!()),
            "Returns points between two times, or their aggregation by buckets, the newest first.",
        ),
    row(560, "ts.mget", -3, READONLY, KeySpec::All, several::get).answering(Answer::Ordered).looking_at(Part::last_points).selecting(several::selected_of_get).visiting_all().doc(
        "RedisTimeSeries 1.0.0",
        "O(N) with N the number of series that have the rarest of the labels",
        "[LATEST] [WITHLABELS | SELECTED_LABELS label [label ...]] FILTER filter [filter ...]",
        "Returns the last point of each series whose labels match.",
    ),
    row(561, "ts.mrange", -4, READONLY, KeySpec::All, several::range)
        .answering(Answer::RowsOfSeveral { newest_first: false }).visiting(several::effort)
        .looking_at(|args| Part::points(args, 1)).selecting(several::selected_of_range)
        .doc(
        "RedisTimeSeries 1.0.0",
        "O(N) with N the number of points in the ranges",
        ranges!(),
        "Returns points between two times of each series whose labels match, or of groups of them, the oldest first.",
    ),
    row(562, "ts.mrevrange", -4, READONLY, KeySpec::All, several::reverse_range)
        .answering(Answer::RowsOfSeveral { newest_first: true }).visiting(several::effort)
        .looking_at(|args| Part::points(args, 1)).selecting(several::selected_of_range)
        .doc(
            "RedisTimeSeries 1.4.0",
            "O(N) with N the number of points in the ranges",
            ranges!(),
            "Returns points between two times of each series whose labels match, or of groups of them, the newest first.",
        ),
    row(
        563,
        "ts.nrange",
        -5,
        READONLY | MOVABLE_KEYS,
        KeySpec::Counted { at: 1 },
        joined::range_of_keys,
    )
    .answering(Answer::Rows { newest_first: false }).visiting(several::effort)
    .using(&["RO access"])
    .doc(
        "RedisTimeSeries 8.10.0",
        "O(N*log(N)) with N the number of points in the ranges",
        concat!("numkeys key [key ...] from to ", range!()),
        "Returns points between two times of several series joined by time, the oldest first.",
    ),
    row(
        564,
        "ts.nrevrange",
        -5,
        READONLY | MOVABLE_KEYS,
        KeySpec::Counted { at: 1 },
        joined::reverse_range_of_keys,
    )
    .answering(Answer::Rows { newest_first: true }).visiting(several::effort)
    .using(&["RO access"])
    .doc(
        "RedisTimeSeries 8.10.0",
        "O(N*log(N)) with N the number of points in the ranges",
        concat!("numkeys key [key ...] from to ", range!()),
        "Returns points between two times of several series joined by time, the newest first.",
    ),
    row(565, "ts.queryindex", -2, READONLY, KeySpec::All, several::query_index)
        .answering(Answer::Ordered).looking_at(|_| Part::Labels).selecting(several::selected_of_index).visiting_all()
        .doc(
            "RedisTimeSeries 1.0.0",
            "O(N) with N the number of series that have the rarest of the labels",
            "filter [filter ...]",
            "Returns the keys of the series whose labels match.",
        ),
    row(566, "ts.querylabels", -2, READONLY, KeySpec::All, several::query_labels)
        .answering(Answer::Ordered).looking_at(|_| Part::Labels).selecting(several::selected_of_labels).visiting_all()
        .doc(
            "RedisTimeSeries 8.10.0",
            "O(N) with N the number of series",
            "<LABELS | VALUES label> [FILTER filter [filter ...]]",
            "Returns the names of labels, or the values of one, of all series or of those whose labels match.",
        ),
    row(567, "ts.info", -2, READONLY | FAST, KeySpec::ONE, reading::info)
        .answering(Answer::Unrepeatable)
        .using(&["RO access"])
        .doc(
            "RedisTimeSeries 1.0.0",
            "O(N) with N the number of blocks",
            "key [DEBUG]",
            "Returns what a series was created with, how many points it has, and its memory.",
        ),
    row(568, "ts.createrule", -6, GROWS, KeySpec::TWO, ruling::create)
        .using(&["RW access update", "RW update"])
        .visiting_all()
        .doc(
            "RedisTimeSeries 1.0.0",
            "O(1), O(N) with BACKFILL and N the number of points of the source",
            "source destination AGGREGATION aggregator bucket-duration [align-timestamp] [BACKFILL]",
            "Compacts a series into another: one point for every bucket of time that is over.",
        ),
    row(569, "ts.deleterule", 3, WRITE, KeySpec::TWO, ruling::delete).using(&["RW update", "RW update"]).doc(
        "RedisTimeSeries 1.0.0",
        "O(N) with N the number of rules of the source",
        "source destination",
        "Ends the compaction of a series into another, which keeps its points.",
    ),
    row(570, "ts.read", -3, READONLY | NOSCRIPT | BLOCKING, KeySpec::ONE, waiting::read)
        .answering(Answer::Unrepeatable)
        .using(&["RO access"])
        .doc(
            "RedisTimeSeries 8.10.0",
            "O(N) with N the number of points that are answered",
            "key <timestamp | - | + | $> [BLOCK milliseconds min-count] [MAX_COUNT count]",
            "Returns points from a time on, the oldest first; waits until there are enough.",
        )
        .serving(waiting::serve)
        .ready_when(waiting::is_ready),
    row(571, "ts.append", -4, GROWS | COLUMNS, KeySpec::ONE, adding::append_batch).using(&["RW update"]).doc(
        "tidemark 0.1.0",
        "O(N) with N the number of points",
        concat!(
            "key times values ",
            definition!(),
            " [ON_DUPLICATE policy] [LABELS [label value ...]]"
        ),
        "Adds a batch of points to a series, all or none, and creates the series if it does not exist: answers how \
         many it took. The times are 64-bit integers, the values 64-bit floats, both little endian, one after the \
         other, in a string of bytes each; the times rise.",
    ),
];
