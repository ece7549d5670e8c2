//! Lists, as Redis 7 answers.

use crate::support::{Client, engine, replayed};

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
const NOT_AN_INTEGER: &str = "-ERR value is not an integer or out of range";

#[test]
fn elements_come_and_go_at_both_ends() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("LPUSH l b a", ":2"),
        ("RPUSH l c d e", ":5"),
        ("LRANGE l 0 -1", "*5 $1 a $1 b $1 c $1 d $1 e"),
        ("LLEN l", ":5"),
        ("LLEN none", ":0"),
        ("TYPE l", "+list"),
        ("OBJECT ENCODING l", "$9 quicklist"),
        ("LPUSHX none a", ":0"),
        ("RPUSHX none a", ":0"),
        ("EXISTS none", ":0"),
        ("LPUSHX l z", ":6"),
        ("RPUSHX l f", ":7"),
        ("LPOP l", "$1 z"),
        ("RPOP l", "$1 f"),
        ("LPOP l 2", "*2 $1 a $1 b"),
        ("RPOP l 2", "*2 $1 e $1 d"),
        ("LPOP l 0", "*0"),
        ("RPOP l 9223372036854775807", "*1 $1 c"),
        ("EXISTS l", ":0"),
        ("LPOP l", "$-1"),
        ("LPOP l 0", "*-1"),
        ("RPOP l 5", "*-1"),
        ("LPOP l -1", "-ERR value is out of range, must be positive"),
        ("LPOP l x", "-ERR value is out of range, must be positive"),
        ("LPOP l 1 1", "-ERR wrong number of arguments for 'lpop' command"),
    ]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn an_element_is_found_by_its_index() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("RPUSH l a b c d", ":4"),
        ("LINDEX l 0", "$1 a"),
        ("LINDEX l -1", "$1 d"),
        ("LINDEX l 4", "$-1"),
        ("LINDEX l -5", "$-1"),
        ("LINDEX l -9223372036854775808", "$-1"),
        ("LINDEX l x", NOT_AN_INTEGER),
        ("LINDEX none x", "$-1"),
        ("LSET l 1 \"a longer element\"", "+OK"),
        ("LSET l -1 D", "+OK"),
        ("LRANGE l 0 -1", "*4 $1 a $16 a longer element $1 c $1 D"),
        ("LSET l 4 x", "-ERR index out of range"),
        ("LSET l x x", NOT_AN_INTEGER),
        ("LSET none x x", "-ERR no such key"),
    ]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn ranges_may_lie_anywhere() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("RPUSH l a b c d", ":4"),
        ("LRANGE l 1 2", "*2 $1 b $1 c"),
        ("LRANGE l -2 100", "*2 $1 c $1 d"),
        ("LRANGE l 3 1", "*0"),
        ("LRANGE l 9 10", "*0"),
        ("LRANGE none 0 -1", "*0"),
        ("LRANGE l -9223372036854775808 9223372036854775807", "*4 $1 a $1 b $1 c $1 d"),
        ("LRANGE l 0 x", NOT_AN_INTEGER),
        ("LTRIM l 1 -2", "+OK"),
        ("LRANGE l 0 -1", "*2 $1 b $1 c"),
        ("LTRIM none 0 0", "+OK"),
        ("LTRIM l 5 9", "+OK"),
        ("EXISTS l", ":0"),
    ]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn what_changes_nothing_is_not_logged() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("RPUSH l a b");
    let before = engine.log().appended();
    for line in [
        "LTRIM l 0 -1",
        "LREM l 0 x",
        "LPOP l 0",
        "LPOP none",
        "LINSERT l BEFORE x y",
        "LPUSHX none a",
        "LMOVE none l LEFT LEFT",
        "LMPOP 1 none LEFT",
    ] {
        client.run(line);
        assert_eq!(engine.log().appended(), before, "{line}");
    }
}

#[test]
fn elements_are_inserted_and_removed_by_value() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("RPUSH l a b a c a", ":5"),
        ("LINSERT l BEFORE b x", ":6"),
        ("LINSERT l after c y", ":7"),
        ("LINSERT l BEFORE none z", ":-1"),
        ("LINSERT none BEFORE a z", ":0"),
        ("LINSERT l BESIDE a z", "-ERR syntax error"),
        ("LRANGE l 0 -1", "*7 $1 a $1 x $1 b $1 a $1 c $1 y $1 a"),
        ("LREM l -1 a", ":1"),
        ("LREM l 1 a", ":1"),
        ("LRANGE l 0 -1", "*5 $1 x $1 b $1 a $1 c $1 y"),
        ("LREM l 0 none", ":0"),
        ("LREM none 0 a", ":0"),
        ("LREM l x a", NOT_AN_INTEGER),
        ("LREM l -9223372036854775808 none", ":0"),
        ("LREM l 0 a", ":1"),
    ]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn positions_are_found_by_rank_count_and_length() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("RPUSH l a b c 1 2 3 c c", ":8"),
        ("LPOS l c", ":2"),
        ("LPOS l c RANK 2", ":6"),
        ("LPOS l c RANK -1", ":7"),
        ("LPOS l c RANK -2 COUNT 0", "*2 :6 :2"),
        ("LPOS l c COUNT 2", "*2 :2 :6"),
        ("LPOS l c COUNT 0 MAXLEN 3", "*1 :2"),
        ("LPOS l c MAXLEN 2", "$-1"),
        ("LPOS l c RANK -1 MAXLEN 1 COUNT 0", "*1 :7"),
        ("LPOS l c RANK 4", "$-1"),
        ("LPOS l none COUNT 0", "*0"),
        ("LPOS none a", "$-1"),
        ("LPOS none a COUNT 1", "*0"),
        (
            "LPOS l c RANK 0",
            "-ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative \
             to start from the end of the list",
        ),
        ("LPOS l c RANK x", NOT_AN_INTEGER),
        (
            "LPOS l c RANK -9223372036854775808",
            "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
        ),
        ("LPOS l c COUNT -1", "-ERR COUNT can't be negative"),
        ("LPOS l c MAXLEN -1", "-ERR MAXLEN can't be negative"),
        ("LPOS l c COUNT", "-ERR syntax error"),
    ]);
}

#[test]
fn elements_move_between_lists() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("RPUSH a 1 2 3", ":3"),
        ("LMOVE a b LEFT RIGHT", "$1 1"),
        ("RPOPLPUSH a b", "$1 3"),
        ("LRANGE b 0 -1", "*2 $1 3 $1 1"),
        ("LMOVE b b LEFT RIGHT", "$1 3"),
        ("LRANGE b 0 -1", "*2 $1 1 $1 3"),
        ("LMOVE a b RIGHT LEFT", "$1 2"),
        ("EXISTS a", ":0"),
        ("LMOVE a b RIGHT LEFT", "$-1"),
        ("SET s x", "+OK"),
        ("LMOVE b s LEFT LEFT", WRONG_TYPE),
        ("LMOVE none s LEFT LEFT", "$-1"),
        ("LLEN b", ":3"),
        ("LMOVE a b UP LEFT", "-ERR syntax error"),
    ]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn several_keys_are_popped_in_order_of_preference() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("RPUSH b 1 2 3", ":3"),
        ("LMPOP 2 a b RIGHT COUNT 2", "*2 $1 b *2 $1 3 $1 2"),
        ("LMPOP 2 a b LEFT", "*2 $1 b *1 $1 1"),
        ("LMPOP 2 a b LEFT", "*-1"),
        ("LMPOP 0 a LEFT", "-ERR numkeys should be greater than 0"),
        ("LMPOP x a LEFT", "-ERR numkeys should be greater than 0"),
        ("LMPOP 2 a LEFT", "-ERR syntax error"),
        ("LMPOP 9223372036854775807 a LEFT", "-ERR syntax error"),
        ("LMPOP 1 a LEFT COUNT 0", "-ERR count should be greater than 0"),
        ("LMPOP 1 a LEFT COUNT 1 COUNT 1", "-ERR syntax error"),
        ("LMPOP 1 a UP", "-ERR syntax error"),
        ("BLPOP l -1", "-ERR timeout is negative"),
        ("BLPOP l x", "-ERR timeout is not a float or out of range"),
        ("BLPOP l 1e300", "-ERR timeout is out of range"),
        ("BLMPOP -1 1 a LEFT", "-ERR timeout is negative"),
        ("BLMPOP -1 0 a LEFT", "-ERR numkeys should be greater than 0"),
    ]);
    let resp3 = Client::resp3(&engine);
    resp3.expect(&[("LMPOP 2 a b LEFT", "_"), ("LPOP a", "_"), ("LPOP a 1", "_"), ("LPOS a x", "_")]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn another_type_is_refused_and_left_alone() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("SET s x");
    for line in [
        "LPUSH s a",
        "RPUSH s a",
        "LPUSHX s a",
        "RPUSHX s a",
        "LPOP s",
        "RPOP s 1",
        "LLEN s",
        "LINDEX s 0",
        "LSET s 0 a",
        "LRANGE s 0 -1",
        "LTRIM s 0 0",
        "LINSERT s BEFORE a b",
        "LREM s 0 a",
        "LPOS s a",
        "LMOVE s l LEFT LEFT",
        "RPOPLPUSH s l",
        "LMPOP 2 none s LEFT",
        "BLPOP none s 0",
        "BRPOP s 0",
        "BLMOVE s l LEFT LEFT 0",
        "BRPOPLPUSH s l 0",
        "BLMPOP 0 1 s LEFT",
    ] {
        assert_eq!(client.run(line), WRONG_TYPE, "{line}");
    }
    client.expect(&[("GET s", "$1 x"), ("DBSIZE", ":1")]);
}

#[test]
fn a_list_of_many_chunks_survives_copy_and_replay() {
    let engine = engine();
    let client = Client::new(&engine);
    for n in 0..5000 {
        client.run(&format!("RPUSH l element:{n}"));
        client.run(&format!("LPUSH l front:{n}"));
    }
    client.expect(&[
        ("LLEN l", ":10000"),
        ("LINDEX l 5000", "$9 element:0"),
        ("LINDEX l -5001", "$7 front:0"),
        ("COPY l m", ":1"),
        ("LRANGE m 4999 5001", "*3 $7 front:0 $9 element:0 $9 element:1"),
        ("LREM m 0 front:7", ":1"),
        ("LTRIM m 4900 5100", "+OK"),
        ("LLEN m", ":201"),
    ]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn an_expired_list_is_absent_to_reads_and_to_writes() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.expect(&[("RPUSH l a b", ":2"), ("PEXPIRE l 100", ":1")]);
    client.sleep_ms(100);
    client.expect(&[("LLEN l", ":0"), ("LPOP l", "$-1"), ("RPUSH l c", ":1"), ("TTL l", ":-1")]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_bad_count_is_refused_before_what_stands_behind_it() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("LMPOP 1 k LEFT COUNT -1 extra", "-ERR count should be greater than 0"),
        ("LMPOP 1 k LEFT COUNT 1 extra", "-ERR syntax error"),
        ("BLMPOP 0.001 1 k LEFT COUNT 0 extra", "-ERR count should be greater than 0"),
    ]);
}
