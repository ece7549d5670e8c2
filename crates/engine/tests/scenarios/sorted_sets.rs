//! Sorted sets, as Redis 7 answers.

use crate::support;
use crate::support::{Client, START_US, engine, replayed, shown};
use std::sync::{Arc, Mutex};
use tidemark_engine::{Call, Delivery, Engine, Reply, command};

const NOT_A_FLOAT: &str = "-ERR value is not a valid float";
const NO_RANGE: &str = "-ERR min or max is not a float";
const NO_LEX_RANGE: &str = "-ERR min or max not valid string range item";
const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
const NOT_AN_INTEGER: &str = "-ERR value is not an integer or out of range";

#[test]
fn zadd_has_every_option_of_redis() {
    let engine = engine();
    Client::new(&engine).expect(&[
        ("ZADD z 1 a 2 b 1 a", ":2"),
        ("ZADD z 5 a 3 c", ":1"),
        ("ZADD z CH 6 a 4 c 9 d", ":3"),
        ("ZADD z CH 6 a", ":0"),
        ("ZADD z NX 7 a 7 e", ":1"),
        ("ZADD z XX CH 8 a 8 f", ":1"),
        ("ZSCORE z f", "$-1"),
        ("ZADD z GT CH 7 a 10 b", ":1"),
        ("ZADD z LT CH 7 a 11 b", ":1"),
        ("ZADD z GT 1 new", ":1"),
        ("ZRANGE z 0 -1 WITHSCORES", "*12 $3 new $1 1 $1 c $1 4 $1 a $1 7 $1 e $1 7 $1 d $1 9 $1 b $2 10"),
        ("ZADD z INCR 2.5 a", "$3 9.5"),
        ("ZADD z NX INCR 1 a", "$-1"),
        ("ZADD z XX INCR 1 nobody", "$-1"),
        ("ZADD z GT INCR -1 a", "$-1"),
        ("ZADD z LT INCR -1 a", "$3 8.5"),
        ("ZADD none XX 1 a", ":0"),
        ("EXISTS none", ":0"),
        ("ZADD z NX XX 1 a", "-ERR XX and NX options at the same time are not compatible"),
        ("ZADD z NX GT 1 a", "-ERR GT, LT, and/or NX options at the same time are not compatible"),
        ("ZADD z LT GT 1 a", "-ERR GT, LT, and/or NX options at the same time are not compatible"),
        ("ZADD z INCR 1 a 2 b", "-ERR INCR option supports a single increment-element pair"),
        ("ZADD z 1", "-ERR wrong number of arguments for 'zadd' command"),
        ("ZADD z 1 a 2", "-ERR syntax error"),
        ("ZADD z NX 1", "-ERR syntax error"),
        ("ZADD z 1 a x b", NOT_A_FLOAT),
        ("ZADD z nan a", NOT_A_FLOAT),
        ("ZADD z 1e400 a", NOT_A_FLOAT),
        ("ZADD z 1e-400 a", NOT_A_FLOAT),
        ("ZSCORE z a", "$3 8.5"),
        ("ZADD s -inf low inf high -0 zero", ":3"),
        ("ZRANGE s 0 -1 WITHSCORES", "*6 $3 low $4 -inf $4 zero $1 0 $4 high $3 inf"),
        ("ZADD s INCR -inf high", "-ERR resulting score is not a number (NaN)"),
        ("ZSCORE s high", "$3 inf"),
        ("SET string x", "+OK"),
        ("ZADD string 1 a", WRONG_TYPE),
        ("TYPE z", "+zset"),
    ]);
}

#[test]
fn a_score_may_be_hexadecimal() {
    let engine = engine();
    Client::new(&engine).expect(&[
        ("ZADD z 0x10 m -0x1.8p1 n", ":2"),
        ("ZRANGE z 0 -1 WITHSCORES", "*4 $1 n $2 -3 $1 m $2 16"),
        ("ZRANGEBYSCORE z (0xF 0x10", "*1 $1 m"),
        ("ZINCRBY z 0x0p0 m", "$2 16"),
        ("ZADD z 0x1p2000 m", NOT_A_FLOAT),
        ("ZADD z 0x1p-2000 m", NOT_A_FLOAT),
        ("ZADD z 0xE m", ":0"),
        ("ZCOUNT z 0 0x1p2000", ":1"),
    ]);
}

#[test]
fn zincrby_adds_and_creates() {
    let engine = engine();
    Client::new(&engine).expect(&[
        ("ZINCRBY z 1.5 a", "$3 1.5"),
        ("ZINCRBY z -2 a", "$4 -0.5"),
        ("ZINCRBY z x a", NOT_A_FLOAT),
        ("ZINCRBY z inf a", "$3 inf"),
        ("ZINCRBY z -inf a", "-ERR resulting score is not a number (NaN)"),
    ]);
    Client::resp3(&engine).expect(&[
        ("ZINCRBY z 1 b", ",1"),
        ("ZADD z INCR 1 b", ",2"),
        ("ZADD z NX INCR 1 b", "_"),
    ]);
}

#[test]
fn scores_and_ranks_are_found_by_member() {
    let engine = engine();
    Client::new(&engine).expect(&[
        ("ZADD z 1 a 1 b 2 c", ":3"),
        ("ZCARD z", ":3"),
        ("ZCARD none", ":0"),
        ("ZMSCORE z a nobody c", "*3 $1 1 $-1 $1 2"),
        ("ZMSCORE none a", "*1 $-1"),
        ("ZRANK z b", ":1"),
        ("ZREVRANK z b", ":1"),
        ("ZREVRANK z a", ":2"),
        ("ZRANK z nobody", "$-1"),
        ("ZRANK z c WITHSCORE", "*2 :2 $1 2"),
        ("ZREVRANK z c withscore", "*2 :0 $1 2"),
        ("ZRANK z nobody WITHSCORE", "*-1"),
        ("ZRANK z a WRONG", "-ERR syntax error"),
        ("ZREM z a nobody c", ":2"),
        ("ZREM z b", ":1"),
        ("EXISTS z", ":0"),
    ]);
    Client::resp3(&engine).expect(&[
        ("ZADD z 1.5 a", ":1"),
        ("ZSCORE z a", ",1.5"),
        ("ZSCORE z b", "_"),
        ("ZMSCORE z a b", "*2 ,1.5 _"),
        ("ZRANK z a WITHSCORE", "*2 :0 ,1.5"),
    ]);
}

#[test]
fn zrange_goes_by_rank_score_or_member_in_both_directions() {
    let engine = engine();
    Client::new(&engine).expect(&[
        ("ZADD z 1 a 2 b 3 c 4 d", ":4"),
        ("ZRANGE z 1 2", "*2 $1 b $1 c"),
        ("ZRANGE z -2 -1", "*2 $1 c $1 d"),
        ("ZRANGE z 0 1 REV WITHSCORES", "*4 $1 d $1 4 $1 c $1 3"),
        ("ZREVRANGE z 0 0 WITHSCORES", "*2 $1 d $1 4"),
        ("ZRANGE z 3 1", "*0"),
        ("ZRANGE z -9223372036854775808 9223372036854775807", "*4 $1 a $1 b $1 c $1 d"),
        ("ZRANGE z (1 3 BYSCORE", "*2 $1 b $1 c"),
        ("ZRANGE z 3 (1 BYSCORE REV", "*2 $1 c $1 b"),
        ("ZRANGE z -inf +inf BYSCORE LIMIT 1 2", "*2 $1 b $1 c"),
        ("ZRANGE z +inf -inf BYSCORE REV LIMIT 1 2", "*2 $1 c $1 b"),
        ("ZRANGE z -inf +inf BYSCORE LIMIT -1 2", "*0"),
        ("ZRANGE z -inf +inf BYSCORE LIMIT 2 -1", "*2 $1 c $1 d"),
        ("ZRANGE z -inf +inf BYSCORE LIMIT 9223372036854775807 9223372036854775807", "*0"),
        ("ZRANGE z (2 (2 BYSCORE", "*0"),
        ("ZRANGEBYSCORE z 2 3 WITHSCORES LIMIT 0 1", "*2 $1 b $1 2"),
        ("ZREVRANGEBYSCORE z 3 2", "*2 $1 c $1 b"),
        ("ZCOUNT z (1 inf", ":3"),
        ("ZCOUNT z 3 1", ":0"),
        ("ZADD l 0 a 0 b 0 c 0 d", ":4"),
        ("ZRANGE l [b + BYLEX", "*3 $1 b $1 c $1 d"),
        ("ZRANGE l + (b BYLEX REV LIMIT 1 5", "*1 $1 c"),
        ("ZRANGEBYLEX l - (c", "*2 $1 a $1 b"),
        ("ZRANGEBYLEX l + -", "*0"),
        ("ZREVRANGEBYLEX l [c -", "*3 $1 c $1 b $1 a"),
        ("ZLEXCOUNT l - +", ":4"),
        ("ZLEXCOUNT l (a [c", ":2"),
        ("ZRANGE none 0 -1", "*0"),
        ("ZRANGE z x 1", NOT_AN_INTEGER),
        ("ZRANGE z x 1 BYSCORE", NO_RANGE),
        ("ZCOUNT z 1 nan", NO_RANGE),
        ("ZRANGE l a b BYLEX", NO_LEX_RANGE),
        ("ZLEXCOUNT l a b", NO_LEX_RANGE),
        ("ZRANGE z 0 -1 BYSCORE BYLEX", "-ERR syntax error"),
        ("ZREVRANGE z 0 -1 REV", "-ERR syntax error"),
        (
            "ZRANGE z 0 -1 LIMIT 0 1",
            "-ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
        ),
        (
            "ZRANGE l - + BYLEX WITHSCORES",
            "-ERR syntax error, WITHSCORES not supported in combination with BYLEX",
        ),
    ]);
    Client::resp3(&engine).expect(&[
        ("ZRANGE z 0 1 WITHSCORES", "*2 *2 $1 a ,1 *2 $1 b ,2"),
        ("ZRANGEBYSCORE z 4 4 WITHSCORES", "*1 *2 $1 d ,4"),
        ("ZRANGE z 0 0", "*1 $1 a"),
    ]);
}

#[test]
fn a_range_can_be_stored_and_removed() {
    let engine = engine();
    Client::new(&engine).expect(&[
        ("ZADD z 1 a 2 b 3 c 4 d 5 e", ":5"),
        ("SET to x EX 100", "+OK"),
        ("ZRANGESTORE to z 1 3", ":3"),
        ("ZRANGE to 0 -1 WITHSCORES", "*6 $1 b $1 2 $1 c $1 3 $1 d $1 4"),
        ("TTL to", ":-1"),
        ("ZRANGESTORE to z 4 2 BYSCORE REV LIMIT 1 1", ":1"),
        ("ZRANGE to 0 -1", "*1 $1 c"),
        ("ZRANGESTORE to z 0 1 WITHSCORES", "-ERR syntax error"),
        ("ZRANGESTORE to none 0 -1", ":0"),
        ("EXISTS to", ":0"),
        ("ZREMRANGEBYRANK z 0 0", ":1"),
        ("ZREMRANGEBYSCORE z (2 3", ":1"),
        ("ZREMRANGEBYSCORE z 7 9", ":0"),
        ("ZREMRANGEBYLEX z [x [y", ":0"),
        ("ZRANGE z 0 -1", "*3 $1 b $1 d $1 e"),
        ("ZREMRANGEBYRANK z 0 -1", ":3"),
        ("EXISTS z", ":0"),
        ("ZADD l 0 a 0 b 0 c", ":3"),
        ("ZREMRANGEBYLEX l (a +", ":2"),
        ("ZRANGE l 0 -1", "*1 $1 a"),
        ("ZREMRANGEBYSCORE l a b", NO_RANGE),
    ]);
}

#[test]
fn members_are_popped_from_either_end() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("ZADD z 1 a 2 b 3 c 4 d 5 e 6 f", ":6"),
        ("ZPOPMIN z", "*2 $1 a $1 1"),
        ("ZPOPMAX z 2", "*4 $1 f $1 6 $1 e $1 5"),
        ("ZPOPMIN z 0", "*0"),
        ("ZPOPMIN z -1", "-ERR value is out of range, must be positive"),
        ("ZPOPMIN z x", "-ERR value is out of range, must be positive"),
        ("ZPOPMIN z 1 2", "-ERR syntax error"),
        ("ZPOPMIN none", "*0"),
        ("ZMPOP 2 none z MIN", "*2 $1 z *1 *2 $1 b $1 2"),
        ("ZMPOP 1 z MAX COUNT 10", "*2 $1 z *2 *2 $1 d $1 4 *2 $1 c $1 3"),
        ("EXISTS z", ":0"),
        ("ZMPOP 1 z MAX", "*-1"),
        ("ZMPOP 0 z MAX", "-ERR numkeys should be greater than 0"),
        ("ZMPOP 1 z MAX COUNT 0", "-ERR count should be greater than 0"),
        ("ZMPOP 2 z MAX", "-ERR syntax error"),
        ("ZMPOP 1 z MIN COUNT 1 COUNT 1", "-ERR syntax error"),
    ]);
    Client::resp3(&engine).expect(&[
        ("ZADD z 1 a 2 b 3 c", ":3"),
        ("ZPOPMIN z", "*2 $1 a ,1"),
        ("ZPOPMIN z 1", "*1 *2 $1 b ,2"),
        ("ZMPOP 1 z MIN", "*2 $1 z *1 *2 $1 c ,3"),
        ("ZMPOP 1 z MIN", "_"),
    ]);
}

/// Runs a command that blocks. Its answer appears in the returned cell.
fn wait(engine: &Engine, line: &str) -> Arc<Mutex<String>> {
    let words = support::words(line);
    let args: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    let command = command::resolve(&args).expect("a command of the table");
    let call = Call { command, args: &args, db: 0, now_us: START_US };
    let mut reply = Reply::default();
    let block = engine.execute(&call, &mut reply).into_blocked().expect("there is nothing to take yet");
    assert!(reply.is_empty(), "a client that waits has no answer");
    let answer = Arc::new(Mutex::new(String::new()));
    let cell = Arc::clone(&answer);
    let deliver = move |delivery: Delivery| *cell.lock().expect("not poisoned") = shown(&delivery.reply);
    block.wait(deliver, |_| ());
    answer
}

#[test]
fn a_client_waits_for_a_member() {
    let engine = engine();
    let client = Client::new(&engine);
    let answer_of = |cell: &Mutex<String>| cell.lock().expect("not poisoned").clone();
    client.expect(&[
        ("ZADD z 1 a 2 b", ":2"),
        ("BZPOPMIN none z 0", "*3 $1 z $1 a $1 1"),
        ("BZMPOP 0 1 z MAX COUNT 5", "*2 $1 z *1 *2 $1 b $1 2"),
        ("BZPOPMIN z -1", "-ERR timeout is negative"),
        ("BZPOPMAX z x", "-ERR timeout is not a float or out of range"),
        ("BZPOPMAX z 1e300", "-ERR timeout is out of range"),
        ("BZMPOP 0 0 z MIN", "-ERR numkeys should be greater than 0"),
    ]);
    let (first, second) = (wait(&engine, "BZPOPMAX other z 0"), wait(&engine, "BZPOPMIN z 0.5"));
    client.expect(&[("ZADD z 1 low 5 middle 9 high", ":3")]);
    assert_eq!(answer_of(&first), "*3 $1 z $4 high $1 9");
    assert_eq!(answer_of(&second), "*3 $1 z $3 low $1 1");
    client.expect(&[("ZRANGE z 0 -1", "*1 $6 middle"), ("ZREM z middle", ":1")]);
    let third = wait(&engine, "BZMPOP 0 2 none z MAX COUNT 2");
    client.expect(&[("ZINCRBY z 3 x", "$1 3"), ("EXISTS z", ":0")]);
    assert_eq!(answer_of(&third), "*2 $1 z *1 *2 $1 x $1 3");
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn random_members_are_members_and_distinct_where_asked() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("ZRANDMEMBER none", "$-1"),
        ("ZRANDMEMBER none 3", "*0"),
        ("ZADD z 1 a 1 b 1 c 1 d", ":4"),
        ("ZRANDMEMBER z 0", "*0"),
        ("ZRANDMEMBER z 9 WITHSCORES", "*8 $1 a $1 1 $1 b $1 1 $1 c $1 1 $1 d $1 1"),
        ("ZRANDMEMBER z x", NOT_AN_INTEGER),
        ("ZRANDMEMBER z 1 WRONG", "-ERR syntax error"),
        ("ZRANDMEMBER z -9223372036854775807 WITHSCORES", "-ERR value is out of range"),
        (
            "ZRANDMEMBER z -9223372036854775807",
            "-ERR value is out of range: at most 16777216 repeated draws at a time",
        ),
    ]);
    for _ in 0..50 {
        let three = client.run("ZRANDMEMBER z 3");
        let mut members: Vec<&str> = three.split(" $1 ").skip(1).collect();
        assert!(members.iter().all(|member| ["a", "b", "c", "d"].contains(member)), "{three}");
        members.dedup();
        assert_eq!(members.len(), 3, "{three}");
        assert!(client.run("ZRANDMEMBER z").starts_with("$1 "));
    }
    assert!(client.run("ZRANDMEMBER z -10").starts_with("*10 "));
    assert!(Client::resp3(&engine).run("ZRANDMEMBER z -2 WITHSCORES").starts_with("*2 *2 $1 "));
}

#[test]
fn a_scan_finds_every_member_once_nothing_changes() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("ZSCAN none 0", "*2 $1 0 *0"),
        ("ZSCAN none x", "-ERR invalid cursor"),
        ("ZADD z 1 a 2.5 b", ":2"),
        ("ZSCAN z 0", "*2 $1 0 *4 $1 a $1 1 $1 b $3 2.5"),
        ("ZSCAN z 0 MATCH b* COUNT 1", "*2 $1 0 *2 $1 b $3 2.5"),
        ("ZSCAN z 0 COUNT 0", "-ERR syntax error"),
    ]);
    let members: Vec<String> = (0..1000).map(|n| format!("{n} member:{n}")).collect();
    client.run(&format!("ZADD large {}", members.join(" ")));
    let (mut cursor, mut found) = ("0".to_owned(), Vec::new());
    loop {
        let answer = client.run(&format!("ZSCAN large {cursor} COUNT 50"));
        found.extend(answer.split(' ').filter(|word| word.starts_with("member:")).map(str::to_owned));
        cursor = answer.split(' ').nth(2).expect("a cursor").to_owned();
        if cursor == "0" {
            break;
        }
    }
    found.sort();
    let mut expected: Vec<String> = (0..1000).map(|n| format!("member:{n}")).collect();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn what_changes_nothing_is_not_logged() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[("ZADD z 1 a", ":1")]);
    for line in [
        "ZADD z 1 a",
        "ZADD z NX 2 a",
        "ZINCRBY z 0 a",
        "ZREM z b",
        "ZREMRANGEBYSCORE z 5 6",
        "ZPOPMIN none",
        "ZMPOP 1 none MIN",
        "ZRANGESTORE none nothing 0 -1",
        "ZADD none XX 1 a",
    ] {
        assert!(client.execute(line).1.lsn.is_none(), "{line}");
    }
}

#[test]
fn encodings_are_those_of_redis() {
    let engine = engine();
    let client = Client::new(&engine);
    let many = |count: usize| (0..count).map(|n| format!("{n} m{n}")).collect::<Vec<_>>().join(" ");
    client.run(&format!("ZADD small {}", many(128)));
    client.run(&format!("ZADD large {}", many(129)));
    client.run(&format!("ZADD long 1 {}", "x".repeat(65)));
    client.expect(&[
        ("OBJECT ENCODING small", "$8 listpack"),
        ("OBJECT ENCODING large", "$8 skiplist"),
        ("OBJECT ENCODING long", "$8 skiplist"),
        ("ZREMRANGEBYRANK large 1 -1", ":128"),
        ("OBJECT ENCODING large", "$8 skiplist"),
        ("COPY large copy", ":1"),
        ("OBJECT ENCODING copy", "$8 skiplist"),
        ("ZRANGESTORE again large 0 -1", ":1"),
        ("OBJECT ENCODING again", "$8 listpack"),
    ]);
}

#[test]
fn sets_and_sorted_sets_are_united_intersected_and_subtracted() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("ZADD x 1 a 2 b 3 c", ":3"),
        ("ZADD y 10 b 20 c 30 d", ":3"),
        ("SADD plain a b 7", ":3"),
        ("SADD numbers 7 8", ":2"),
        ("ZUNION 2 x y", "*4 $1 a $1 b $1 c $1 d"),
        ("ZUNION 2 x y WITHSCORES", "*8 $1 a $1 1 $1 b $2 12 $1 c $2 23 $1 d $2 30"),
        ("ZUNION 2 x y WEIGHTS 2 -1 WITHSCORES", "*8 $1 d $3 -30 $1 c $3 -14 $1 b $2 -6 $1 a $1 2"),
        ("ZUNION 2 x y AGGREGATE MIN WITHSCORES", "*8 $1 a $1 1 $1 b $1 2 $1 c $1 3 $1 d $2 30"),
        ("ZINTER 2 x y WITHSCORES", "*4 $1 b $2 12 $1 c $2 23"),
        ("ZINTER 2 x y AGGREGATE MAX WITHSCORES", "*4 $1 b $2 10 $1 c $2 20"),
        ("ZINTER 2 x plain WITHSCORES", "*4 $1 a $1 2 $1 b $1 3"),
        ("ZINTER 2 plain numbers WITHSCORES", "*2 $1 7 $1 2"),
        ("ZINTER 2 x none", "*0"),
        ("ZDIFF 2 x y WITHSCORES", "*2 $1 a $1 1"),
        ("ZDIFF 2 plain x", "*1 $1 7"),
        ("ZDIFF 2 none x", "*0"),
        ("ZINTERCARD 2 x y", ":2"),
        ("ZINTERCARD 2 x y LIMIT 1", ":1"),
        ("ZINTERCARD 2 x y LIMIT 0", ":2"),
        ("ZUNIONSTORE x 2 x y WEIGHTS 1 0.5", ":4"),
        ("ZRANGE x 0 -1 WITHSCORES", "*8 $1 a $1 1 $1 b $1 7 $1 c $2 13 $1 d $2 15"),
        ("ZINTERSTORE to 1 numbers", ":2"),
        ("ZRANGE to 0 -1 WITHSCORES", "*4 $1 7 $1 1 $1 8 $1 1"),
        ("ZDIFFSTORE to 2 x x", ":0"),
        ("EXISTS to", ":0"),
        ("ZADD inf inf a", ":1"),
        ("ZADD minus -inf a", ":1"),
        ("ZUNION 2 inf minus WITHSCORES", "*2 $1 a $1 0"),
        ("ZINTER 1 inf WEIGHTS 0 WITHSCORES", "*2 $1 a $1 0"),
    ]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
    Client::resp3(&engine).expect(&[("ZUNION 1 numbers WITHSCORES", "*2 *2 $1 7 ,1 *2 $1 8 ,1")]);
}

#[test]
fn set_algebra_refuses_what_redis_refuses() {
    let engine = engine();
    Client::new(&engine).expect(&[
        ("SET string x", "+OK"),
        ("ZADD x 1 a", ":1"),
        ("ZUNION 0 x", "-ERR at least 1 input key is needed for 'zunion' command"),
        ("ZINTERSTORE to 0 x", "-ERR at least 1 input key is needed for 'zinterstore' command"),
        ("ZUNION a x", NOT_AN_INTEGER),
        ("ZUNION 2 x", "-ERR syntax error"),
        ("ZUNION 9223372036854775807 x", "-ERR syntax error"),
        ("ZUNION 2 x string WRONG", WRONG_TYPE),
        ("ZUNION 1 x WRONG", "-ERR syntax error"),
        ("ZUNION 1 x WEIGHTS", "-ERR syntax error"),
        ("ZUNION 1 x WEIGHTS y", "-ERR weight value is not a float"),
        ("ZUNION 1 x AGGREGATE AVERAGE", "-ERR syntax error"),
        ("ZDIFF 1 x WEIGHTS 1", "-ERR syntax error"),
        ("ZUNIONSTORE to 1 x WITHSCORES", "-ERR syntax error"),
        ("ZINTERCARD 1 x WITHSCORES", "-ERR syntax error"),
        ("ZINTERCARD 1 x LIMIT -1", "-ERR LIMIT can't be negative"),
        ("EXISTS to", ":0"),
    ]);
}
