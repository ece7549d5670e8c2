//! Time series: points, ranges, labels, and what the log and snapshots keep of them.

use crate::support::{Client, START_US, engine, replayed};
use crate::watching::{answers, watch};
use proptest::prelude::*;
use std::collections::BTreeMap;
use tidemark_engine::{Engine, Protocol};

/// Returns an answer in wire form, in which a byte string `$text` also has its length.
pub(crate) fn wire(answer: &str) -> String {
    let with_length = |word: &str| match word.strip_prefix('$') {
        Some(text) if text != "-1" => format!("${} {text}", text.len()),
        _ => word.to_owned(),
    };
    if answer.starts_with('-') {
        return answer.to_owned();
    }
    answer.split(' ').map(with_length).collect::<Vec<_>>().join(" ")
}

/// Runs commands and compares the answers.
pub(crate) fn expect(engine: &Engine, dialogue: &[(&str, &str)]) {
    for (line, answer) in dialogue {
        assert_eq!(Client::new(engine).run(line), wire(answer), "{line}");
    }
}

#[test]
fn a_point_has_the_time_of_the_command_if_the_client_gives_none() {
    let engine = engine();
    expect(
        &engine,
        &[
            ("TS.ADD ms * 1", ":1767225600000"),
            ("TS.ADD ns * 1 UNIT ns", ":1767225600000000000"),
            ("TS.ADD us * 1 UNIT us", ":1767225600000000"),
            ("TS.ADD s * 1 UNIT s", ":1767225600"),
            ("TS.ALTER s UNIT ms", "-ERR the UNIT of a series is fixed when it is created"),
        ],
    );
    assert_eq!(replayed(&engine).digest(), engine.digest());
    let later = Client { now_us: START_US + 5_000_000, ..Client::new(&engine) };
    assert_eq!(later.run("TS.INCRBY s 2"), ":1767225605");
    assert_eq!(later.run("TS.GET s"), "*2 :1767225605 +3");
}

#[test]
fn late_points_are_taken_and_second_points_follow_the_policy() {
    let engine = engine();
    expect(
        &engine,
        &[
            ("TS.CREATE k", "+OK"),
            ("TS.MADD k 30 3 k 10 1 k 20 2", "*3 :30 :10 :20"),
            (
                "TS.ADD k 20 5",
                "-ERR TSDB: Error at upsert, update is not supported when DUPLICATE_POLICY is set to BLOCK mode, or \
                 either current or new value is NaN and DUPLICATE_POLICY is MAX/MIN/SUM",
            ),
            ("TS.ADD k 20 5 ON_DUPLICATE sum", ":20"),
            ("TS.RANGE k - +", "*3 *2 :10 +1 *2 :20 +7 *2 :30 +3"),
            ("TS.ADD k 20 9 ON_DUPLICATE min", ":20"),
            ("TS.REVRANGE k 15 + COUNT 1", "*1 *2 :30 +3"),
            ("TS.GET k", "*2 :30 +3"),
            ("TS.ADD k 30 1e308 ON_DUPLICATE last", ":30"),
            ("TS.ADD k 30 1e308 ON_DUPLICATE sum", "-ERR TSDB: the sum of the two values is out of range"),
        ],
    );
}

#[test]
fn the_first_point_of_an_increment_is_the_sum_of_nothing_and_the_amount() {
    let engine = engine();
    expect(
        &engine,
        &[
            ("TS.DECRBY k 0 TIMESTAMP 5", ":5"),
            ("TS.GET k", "*2 :5 +0"),
            ("TS.DECRBY n 2.5 TIMESTAMP 5", ":5"),
            ("TS.GET n", "*2 :5 +-2.5"),
        ],
    );
}

#[test]
fn what_the_retention_dropped_does_not_come_back() {
    let engine = engine();
    expect(
        &engine,
        &[
            ("TS.CREATE k RETENTION 10", "+OK"),
            ("TS.MADD k 1 1 k 5 5 k 15 15", "*3 :1 :5 :15"),
            ("TS.RANGE k - +", "*2 *2 :5 +5 *2 :15 +15"),
            ("TS.ADD k 4 1", "-ERR TSDB: Timestamp is older than retention"),
            ("TS.ALTER k RETENTION 0", "+OK"),
            ("TS.RANGE k - +", "*2 *2 :5 +5 *2 :15 +15"),
            ("TS.ADD k 4 1", "-ERR TSDB: Timestamp is older than retention"),
        ],
    );
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn what_is_refused_changes_nothing() {
    let engine = engine();
    expect(&engine, &[("TS.ADD k 1 1 LABELS a b", ":1"), ("SET s x", "+OK")]);
    let digest = engine.digest();
    for (line, error) in [
        ("TS.CREATE k", "-ERR TSDB: key already exists"),
        ("TS.CREATE n FOO 1", "-ERR syntax error: 'FOO' is no option of the command"),
        ("TS.CREATE n RETENTION 1 RETENTION 2", "-ERR syntax error: 'RETENTION' is given twice"),
        ("TS.ADD n 1 x", "-ERR TSDB: invalid value"),
        ("TS.ADD n -1 1", "-ERR TSDB: invalid timestamp, must be a nonnegative integer"),
        ("TS.ADD n 9223372036854775808 1", "-ERR TSDB: invalid timestamp"),
        ("TS.ADD s 1 1", "-ERR TSDB: the key is not a TSDB key"),
        ("TS.INCRBY n x", "-ERR TSDB: invalid increase/decrease value"),
        (
            "TS.INCRBY k 1 TIMESTAMP 0",
            "-ERR TSDB: timestamp must be equal to or higher than the maximum existing timestamp",
        ),
        ("TS.ALTER n RETENTION 1", "-ERR TSDB: the key does not exist"),
        ("TS.DEL k 5 x", "-ERR TSDB: wrong toTimestamp"),
        ("TS.RANGE k - + COUNT 0", "-ERR TSDB: Invalid COUNT value"),
        ("TS.RANGE k - + COUNT 1 COUNT 2", "-ERR syntax error: 'COUNT' is given twice"),
        ("TS.RANGE k - + AGGREGATION avg 0", "-ERR TSDB: bucketDuration must be greater than zero"),
        ("TS.RANGE k - + AGGREGATION mean 5", "-ERR TSDB: Unknown aggregation type"),
        (
            "TS.RANGE k - + AGGREGATION quantile:1.5 5",
            "-ERR TSDB: a quantile needs its share, from 0 to 1, such as quantile:0.99",
        ),
        ("TS.MGET FILTER a!=b", "-ERR TSDB: please provide at least one matcher"),
        ("TS.MRANGE - + FILTER a!=b GROUPBY a REDUCE twa", "-ERR TSDB: please provide at least one matcher"),
        ("TS.MRANGE - + FILTER a=b GROUPBY a REDUCE twa", "-ERR TSDB: Invalid reducer type"),
        ("TS.RANGE s - +", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
    ] {
        assert_eq!(Client::new(&engine).run(line), error, "{line}");
    }
    assert_eq!(engine.digest(), digest);
}

#[test]
fn buckets_beyond_a_limit_are_refused_and_not_computed() {
    let engine = engine();
    expect(
        &engine,
        &[
            ("TS.MADD k 0 0", "*1 -ERR TSDB: the key is not a TSDB key"),
            ("TS.ADD k 0 0", ":0"),
            ("TS.ADD k 9223372036854775807 1", ":9223372036854775807"),
            (
                "TS.RANGE k - + AGGREGATION sum 1 EMPTY",
                "-ERR the answer has more than 4194304 values; give a longer bucket or a shorter range",
            ),
            ("TS.RANGE k - + AGGREGATION sum 1 EMPTY COUNT 2", "*2 *2 :0 +0 *2 :1 +0"),
            ("TS.RANGE k - + AGGREGATION sum 9223372036854775807", "*2 *2 :0 +0 *2 :9223372036854775807 +1"),
        ],
    );
}

#[test]
fn the_index_of_labels_follows_every_way_in_which_keys_come_move_and_go() {
    let engine = engine();
    let found = |filter: &str| Client::new(&engine).run(&format!("TS.QUERYINDEX {filter}"));
    expect(
        &engine,
        &[
            ("TS.CREATE a LABELS room kitchen unit c", "+OK"),
            ("TS.CREATE b LABELS room hall unit c", "+OK"),
            ("TS.ADD c 1 1 LABELS room hall unit f", ":1"),
        ],
    );
    assert_eq!(found("unit=c"), wire("*2 $a $b"));
    assert_eq!(found("room=hall unit!=f"), wire("*1 $b"));
    assert_eq!(found("room=(hall,kitchen)"), wire("*3 $a $b $c"));
    for (line, filter, answer) in [
        ("RENAME a z", "unit=c", "*2 $b $z"),
        ("COPY z y", "unit=c", "*3 $b $y $z"),
        ("TS.ALTER y LABELS unit k", "unit=c", "*2 $b $z"),
        ("TS.ALTER y LABELS", "unit=k", "*0"),
        ("SET b string", "unit=c", "*1 $z"),
        ("MOVE z 1", "unit=c", "*0"),
        ("SELECT 0", "room=hall", "*1 $c"),
        ("PEXPIRE c 1", "room=hall", "*1 $c"),
        ("DEL c", "room=hall", "*0"),
        ("SWAPDB 0 1", "unit=c", "*1 $z"),
        ("FLUSHDB", "unit=c", "*0"),
    ] {
        if line != "SELECT 0" {
            Client::new(&engine).run(line);
        }
        assert_eq!(found(filter), wire(answer), "after {line}");
    }
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_regular_expression_finds_series_by_whole_values_of_a_label() {
    let engine = engine();
    let too_large = "TS.QUERYINDEX room=~((a{100}){100}){100}";
    expect(
        &engine,
        &[
            ("TS.CREATE a LABELS room kitchen floor 1", "+OK"),
            ("TS.CREATE b LABELS room hall floor 1", "+OK"),
            ("TS.CREATE c LABELS floor 2", "+OK"),
            ("TS.QUERYINDEX room=~k.*|hall", "*2 $a $b"),
            ("TS.QUERYINDEX room=~kit", "*0"),
            ("TS.QUERYINDEX floor=~[0-9] room!~h.*", "*2 $a $c"),
            ("TS.QUERYINDEX floor=~. room=~(hall)?", "*2 $b $c"),
            ("TS.QUERYLABELS VALUES room FILTER floor=~1", "*2 $hall $kitchen"),
            ("TS.MGET FILTER room=~.+l", "*1 *3 $b *0 *0"),
            ("TS.QUERYINDEX room=~.*", "-ERR TSDB: please provide at least one matcher"),
            ("TS.QUERYINDEX room!~hall", "-ERR TSDB: please provide at least one matcher"),
            ("TS.QUERYINDEX room=~h(", "-ERR TSDB: wrong regular expression in a filter: unclosed group"),
            (
                too_large,
                "-ERR TSDB: wrong regular expression in a filter: compiled, it takes more than 1048576 bytes",
            ),
        ],
    );
    Client::new(&engine).run("DEL b");
    expect(&engine, &[("TS.QUERYINDEX room=~.+", "*1 $a")]);
}

#[test]
fn ends_of_ranges_may_be_relative_to_the_time_of_the_command() {
    let engine = engine();
    expect(
        &engine,
        &[
            ("TS.ADD k 1767225000000 1 LABELS room hall", ":1767225000000"),
            ("TS.ADD k 1767225590000 2", ":1767225590000"),
            ("TS.RANGE k -5m now", "*1 *2 :1767225590000 +2"),
            ("TS.RANGE k - -5m", "*1 *2 :1767225000000 +1"),
            ("TS.REVRANGE k -1h30m + COUNT 1", "*1 *2 :1767225590000 +2"),
            ("TS.RANGE k -5m now ALIGN start AGGREGATION sum 300000", "*1 *2 :1767225300000 +2"),
            ("TS.MRANGE -10s now FILTER room=hall", "*1 *3 $k *0 *1 *2 :1767225590000 +2"),
            ("TS.NRANGE 1 k -10s now", "*1 *2 :1767225590000 *1 +2"),
            ("TS.RANGE k -5 +", "-ERR TSDB: wrong fromTimestamp"),
            ("TS.RANGE k -5m5m +", "-ERR TSDB: wrong fromTimestamp"),
            ("TS.RANGE k 0 -5x", "-ERR TSDB: wrong toTimestamp"),
            ("TS.ADD s 1767225595 3 UNIT s LABELS room hall", ":1767225595"),
            ("TS.RANGE s -10s now", "*1 *2 :1767225595 +3"),
            (
                "TS.MRANGE -10s now FILTER room=hall",
                "-ERR TSDB: a time relative to now needs series of several keys to have the unit ms; give a number",
            ),
            ("TS.DEL k -5m now", ":1"),
            ("TS.RANGE k - +", "*1 *2 :1767225000000 +1"),
        ],
    );
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn an_expired_series_is_not_found() {
    let engine = engine();
    expect(
        &engine,
        &[("TS.CREATE a LABELS l v", "+OK"), ("PEXPIRE a 10", ":1"), ("TS.QUERYINDEX l=v", "*1 $a")],
    );
    let later = Client { now_us: START_US + 20_000, ..Client::new(&engine) };
    assert_eq!(later.run("TS.QUERYINDEX l=v"), "*0");
    assert_eq!(later.run("TS.QUERYLABELS LABELS"), "*0");
}

#[test]
fn several_series_are_read_together_and_joined_to_groups() {
    let engine = engine();
    for (key, room, values) in
        [("a", "hall", [1, 2, 3]), ("b", "hall", [10, 20, 30]), ("c", "attic", [5, 5, 5])]
    {
        for (time, value) in values.into_iter().enumerate() {
            Client::new(&engine)
                .run(&format!("TS.ADD {key} {} {value} LABELS room {room} all yes", time * 10));
        }
    }
    expect(
        &engine,
        &[
            (
                "TS.MGET SELECTED_LABELS room x FILTER all=yes room!=attic",
                "*2 *3 $a *2 *2 $room $hall *2 $x $-1 *2 :20 +3 *3 $b *2 *2 $room $hall *2 $x $-1 *2 :20 +30",
            ),
            (
                "TS.MRANGE 10 + COUNT 1 FILTER all=yes",
                "*3 *3 $a *0 *1 *2 :10 +2 *3 $b *0 *1 *2 :10 +20 *3 $c *0 *1 *2 :10 +5",
            ),
            (
                "TS.MRANGE - + AGGREGATION sum 100 FILTER all=yes GROUPBY room REDUCE max",
                "*2 *3 $room=attic *0 *1 *2 :0 +15 *3 $room=hall *0 *1 *2 :0 +60",
            ),
            ("TS.NRANGE 2 a c 10 + AGGREGATION min,max sum 20", "*2 *2 :0 *3 +2 +2 +5 *2 :20 *3 +3 +3 +5"),
            ("TS.QUERYLABELS VALUES room FILTER all=yes", "*2 $attic $hall"),
        ],
    );
    let third = Client { protocol: Protocol::Resp3, ..Client::new(&engine) };
    assert_eq!(
        third.run("TS.MRANGE 20 + WITHLABELS AGGREGATION avg 10 FILTER room=attic"),
        wire("%1 $c *3 %2 $room $attic $all $yes %1 $aggregators *1 $avg *1 *2 :20 ,5")
    );
}

/// A change of one of two series.
#[derive(Debug, Clone)]
enum Change {
    Add(u8, u16, i16),
    Delete(u8, u16, u16),
    Rename,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        20 => (0_u8..2, 0_u16..3_000, any::<i16>()).prop_map(|(key, time, value)| Change::Add(key, time, value)),
        1 => (0_u8..2, 0_u16..3_000, 0_u16..500).prop_map(|(key, from, length)| Change::Delete(key, from, from + length)),
        1 => Just(Change::Rename),
    ];
    proptest::collection::vec(change, 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn ranges_are_those_of_an_ordered_map(changes in changes(), from in 0_u16..3_000, length in 0_u16..3_000) {
        let engine = engine();
        let mut model: [BTreeMap<u16, i16>; 2] = Default::default();
        expect(&engine, &[("TS.CREATE k0 DUPLICATE_POLICY last", "+OK"), ("TS.CREATE k1 DUPLICATE_POLICY last", "+OK")]);
        // Enough points for several blocks, of which later ones are late.
        for time in (0..3_000).step_by(2) {
            Client::new(&engine).run(&format!("TS.MADD k0 {time} 1 k1 {time} 2"));
            model[0].insert(time, 1);
            model[1].insert(time, 2);
        }
        for change in changes {
            match change {
                Change::Add(key, time, value) => {
                    Client::new(&engine).run(&format!("TS.ADD k{key} {time} {value}"));
                    model[usize::from(key)].insert(time, value);
                }
                Change::Delete(key, from, to) => {
                    let before = model[usize::from(key)].len();
                    model[usize::from(key)].retain(|time, _| !(from..=to).contains(time));
                    let removed = before - model[usize::from(key)].len();
                    let answer = Client::new(&engine).run(&format!("TS.DEL k{key} {from} {to}"));
                    prop_assert_eq!(answer, format!(":{removed}"));
                }
                Change::Rename => {
                    for (from, to) in [("k0", "x"), ("k1", "k0"), ("x", "k1")] {
                        Client::new(&engine).run(&format!("RENAME {from} {to}"));
                    }
                    model.swap(0, 1);
                }
            }
        }
        let to = from.saturating_add(length);
        for engine in [&engine, &replayed(&engine)] {
            for (key, model) in model.iter().enumerate() {
                let points: Vec<String> =
                    model.range(from..=to).map(|(time, value)| format!(" *2 :{time} +{value}")).collect();
                let answer = Client::new(engine).run(&format!("TS.RANGE k{key} {from} {to}"));
                prop_assert_eq!(answer, format!("*{}{}", points.len(), points.concat()));
                let sum: i64 = model.range(from..=to).map(|(_, value)| i64::from(*value)).sum();
                let answer = Client::new(engine).run(&format!("TS.RANGE k{key} {from} {to} AGGREGATION sum 100000"));
                let expected = if points.is_empty() { "*0".to_owned() } else { format!("*1 *2 :0 +{sum}") };
                prop_assert_eq!(answer, expected);
            }
        }
    }
}

#[test]
fn watched_ranges_emit_the_rows_that_have_changed() {
    let engine = engine();
    expect(&engine, &[("TS.ADD k 0 1 LABELS room hall", ":0")]);
    let range = watch(&engine, "TS.RANGE k - + AGGREGATION sum,count 10");
    let recent = watch(&engine, "TS.REVRANGE k - + COUNT 1");
    let all = watch(&engine, "TS.MRANGE - + FILTER room=hall");
    expect(
        &engine,
        &[
            ("TS.ADD k 5 2", ":5"),
            ("TS.ADD k 3 0", ":3"),
            ("SET other x", "+OK"),
            ("TS.ADD l 1 9 LABELS room hall", ":1"),
            ("TS.DEL k 5 5", ":1"),
        ],
    );
    let sums = ["*1 *3 :0 ,3 ,2", "*1 *3 :0 ,3 ,3", "*1 *3 :0 ,1 ,2"];
    assert_eq!(answers(&range), sums);
    assert_eq!(answers(&recent), ["*2 *2 :5 ,2 *1 :0", "*2 *1 :5 *2 :3 ,0"]);
    assert_eq!(answers(&all).len(), 4, "one for each change of a series that matches");
}
