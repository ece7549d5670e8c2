//! Sets, as Redis 7 answers.

use crate::support::{Client, engine, replayed};

/// The members in an answer, sorted.
fn members(answer: &str) -> Vec<String> {
    let mut members: Vec<String> =
        answer.split(' ').filter(|word| !word.starts_with(['*', '$', '~'])).map(str::to_owned).collect();
    members.sort();
    members
}

#[test]
fn members_are_added_found_and_removed() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("SADD s a b a", ":2"),
        ("SADD s b c", ":1"),
        ("SCARD s", ":3"),
        ("SCARD nothing", ":0"),
        ("SISMEMBER s a", ":1"),
        ("SISMEMBER s x", ":0"),
        ("SISMEMBER nothing a", ":0"),
        ("SMISMEMBER s a x c", "*3 :1 :0 :1"),
        ("SMISMEMBER nothing a b", "*2 :0 :0"),
        ("SREM s a x", ":1"),
        ("SREM nothing a", ":0"),
        ("SREM s b c d", ":2"),
        ("EXISTS s", ":0"),
    ]);
    client.run("SADD s a");
    assert!(client.execute("SADD s a").1.lsn.is_none(), "what changes nothing is not logged");
    assert!(client.execute("SREM s x").1.lsn.is_none(), "what changes nothing is not logged");
}

#[test]
fn integers_come_sorted_and_a_set_is_a_type_of_resp3() {
    let engine = engine();
    let client = Client::new(&engine);
    let typed = Client::resp3(&engine);
    client.expect(&[
        ("SADD s 10 -1 2", ":3"),
        ("SMEMBERS s", "*3 $2 -1 $1 2 $2 10"),
        ("SMEMBERS nothing", "*0"),
        ("OBJECT ENCODING s", "$6 intset"),
        ("SADD s 02", ":1"),
        ("OBJECT ENCODING s", "$9 hashtable"),
        ("SREM s 02", ":1"),
        ("OBJECT ENCODING s", "$9 hashtable"),
    ]);
    typed.expect(&[
        ("SADD t 1 2", ":2"),
        ("SMEMBERS t", "~2 $1 1 $1 2"),
        ("SMEMBERS nothing", "~0"),
        ("SINTER t s", "~1 $1 2"),
        ("SDIFF t s", "~1 $1 1"),
        ("SUNION t", "~2 $1 1 $1 2"),
        ("SINTER t nothing", "~0"),
        ("SPOP t 5", "~2 $1 1 $1 2"),
        ("SPOP t 5", "~0"),
        ("SPOP t", "_"),
    ]);
}

#[test]
fn sets_are_compared() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("SADD a 1 2 3 4", ":4"),
        ("SADD b 3 4 5", ":3"),
        ("SADD c 4 6 x", ":3"),
        ("SINTER a b", "*2 $1 3 $1 4"),
        ("SINTER a b c", "*1 $1 4"),
        ("SINTER a nothing", "*0"),
        ("SINTER a a", "*4 $1 1 $1 2 $1 3 $1 4"),
        ("SUNION a b nothing", "*5 $1 1 $1 2 $1 3 $1 4 $1 5"),
        ("SDIFF a b c", "*2 $1 1 $1 2"),
        ("SDIFF a nothing", "*4 $1 1 $1 2 $1 3 $1 4"),
        ("SDIFF a a", "*0"),
        ("SDIFF nothing a", "*0"),
        ("SINTERCARD 2 a b", ":2"),
        ("SINTERCARD 2 a b LIMIT 1", ":1"),
        ("SINTERCARD 2 a b LIMIT 0", ":2"),
        ("SINTERCARD 2 a nothing", ":0"),
        ("SINTERCARD 0 a", "-ERR numkeys should be greater than 0"),
        ("SINTERCARD x a", "-ERR numkeys should be greater than 0"),
        ("SINTERCARD 3 a b", "-ERR Number of keys can't be greater than number of args"),
        ("SINTERCARD 9223372036854775807 a", "-ERR Number of keys can't be greater than number of args"),
        ("SINTERCARD 1 a LIMIT", "-ERR syntax error"),
        ("SINTERCARD 1 a LIMIT -1", "-ERR LIMIT can't be negative"),
        ("SINTERCARD 1 a b", "-ERR syntax error"),
    ]);
    assert_eq!(members(&client.run("SUNION a c")), ["1", "2", "3", "4", "6", "x"]);
}

#[test]
fn comparisons_are_stored_in_place_of_anything() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("SADD a 1 2 3", ":3"),
        ("SADD b 2 3 4", ":3"),
        ("SET string text EX 100", "+OK"),
        ("SINTERSTORE string a b", ":2"),
        ("SMEMBERS string", "*2 $1 2 $1 3"),
        ("TTL string", ":-1"),
        ("SUNIONSTORE a a b", ":4"),
        ("SMEMBERS a", "*4 $1 1 $1 2 $1 3 $1 4"),
        ("SDIFFSTORE a a b", ":1"),
        ("SMEMBERS a", "*1 $1 1"),
        ("SINTERSTORE a a nothing", ":0"),
        ("EXISTS a", ":0"),
        ("SDIFFSTORE nowhere nothing", ":0"),
    ]);
    assert!(
        client.execute("SUNIONSTORE nowhere nothing").1.lsn.is_none(),
        "what changes nothing is not logged"
    );
}

#[test]
fn a_member_moves_between_sets() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("SADD a 1 2", ":2"),
        ("SMOVE a b 1", ":1"),
        ("SMEMBERS b", "*1 $1 1"),
        ("SMOVE a b 1", ":0"),
        ("SMOVE a a 2", ":1"),
        ("SMOVE a a 1", ":0"),
        ("SADD b 2", ":1"),
        ("SMOVE a b 2", ":1"),
        ("EXISTS a", ":0"),
        ("SCARD b", ":2"),
        ("SET s text", "+OK"),
        ("SMOVE nothing s 1", ":0"),
        ("SMOVE b s 1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("SMOVE b s none", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("SMOVE s b 1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("SCARD b", ":2"),
    ]);
}

#[test]
fn popped_members_are_gone() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("SPOP nothing", "$-1"),
        ("SPOP nothing 3", "*0"),
        ("SPOP nothing x", "-ERR value is out of range, must be positive"),
        ("SADD s 1 2 3", ":3"),
        ("SPOP s -1", "-ERR value is out of range, must be positive"),
        ("SPOP s 1 2", "-ERR syntax error"),
        ("SPOP s 0", "*0"),
    ]);
    let mut popped = members(&client.run("SPOP s"));
    popped.extend(members(&client.run("SPOP s 1")));
    assert_eq!(client.run("SCARD s"), ":1");
    popped.extend(members(&client.run("SPOP s 9223372036854775807")));
    popped.sort();
    assert_eq!(popped, ["1", "2", "3"]);
    client.expect(&[("EXISTS s", ":0")]);
}

#[test]
fn random_members_stay() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("SRANDMEMBER nothing", "$-1"),
        ("SRANDMEMBER nothing 2", "*0"),
        ("SADD s a", ":1"),
        ("SRANDMEMBER s", "$1 a"),
        ("SRANDMEMBER s 0", "*0"),
        ("SRANDMEMBER s 3", "*1 $1 a"),
        ("SRANDMEMBER s -3", "*3 $1 a $1 a $1 a"),
        ("SRANDMEMBER s x", "-ERR value is not an integer or out of range"),
        ("SRANDMEMBER s 1 2", "-ERR syntax error"),
        ("SRANDMEMBER s 9223372036854775807", "*1 $1 a"),
        (
            "SRANDMEMBER s -9223372036854775808",
            "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
        ),
        ("SCARD s", ":1"),
    ]);
    Client::resp3(&engine).expect(&[("SRANDMEMBER s 3", "*1 $1 a"), ("SRANDMEMBER nothing", "_")]);
}

#[test]
fn a_scan_finds_every_member_once_it_ends() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("SSCAN nothing 0", "*2 $1 0 *0"),
        ("SADD s 3 1 12", ":3"),
        ("SSCAN s 0", "*2 $1 0 *3 $1 1 $1 3 $2 12"),
        ("SSCAN s 0 MATCH 1* COUNT 1", "*2 $1 0 *2 $1 1 $2 12"),
        ("SSCAN s x", "-ERR invalid cursor"),
        ("SSCAN s 0 WRONG x", "-ERR syntax error"),
    ]);
    for n in 0..1_000 {
        client.run(&format!("SADD large member:{n}"));
    }
    let (mut cursor, mut seen, mut calls) = ("0".to_owned(), std::collections::BTreeSet::new(), 0);
    loop {
        let answer = client.run(&format!("SSCAN large {cursor} COUNT 50"));
        let words: Vec<&str> = answer.split(' ').collect();
        seen.extend(words.iter().filter(|word| word.starts_with("member:")).map(ToString::to_string));
        words[2].clone_into(&mut cursor);
        calls += 1;
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(seen.len(), 1_000);
    assert!((10..=20).contains(&calls), "{calls} calls of about 50 members each");
}

#[test]
fn other_types_are_refused_before_anything_happens() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("SET string text");
    client.run("SADD s 1");
    for line in [
        "SADD string a",
        "SREM string a",
        "SISMEMBER string a",
        "SMISMEMBER string a",
        "SMEMBERS string",
        "SCARD string",
        "SPOP string",
        "SPOP string 1",
        "SRANDMEMBER string",
        "SRANDMEMBER string 1",
        "SMOVE string s 1",
        "SMOVE s string 1",
        "SINTER s string",
        "SINTER nothing string",
        "SINTERCARD 2 s string",
        "SINTERSTORE to s string",
        "SUNION s string",
        "SUNIONSTORE to s string",
        "SDIFF s string",
        "SDIFF nothing string",
        "SDIFFSTORE to s string",
        "SSCAN string 0",
    ] {
        let (answer, executed) = client.execute(line);
        assert_eq!(answer, "-WRONGTYPE Operation against a key holding the wrong kind of value", "{line}");
        assert!(executed.lsn.is_none(), "{line}");
    }
    client.expect(&[("GET string", "$4 text"), ("SCARD s", ":1"), ("EXISTS to", ":0")]);
}

#[test]
fn the_log_gives_the_same_sets_whatever_chance_has_decided() {
    let engine = engine();
    let client = Client::new(&engine);
    for n in 0..300 {
        client.run(&format!("SADD integers {n} {}", n * 1_000));
        client.run(&format!("SADD words word:{n} word:{}", n * 7));
        client.run(&format!("SPOP {}", ["integers", "words"][n % 2]));
        client.run(&format!("SPOP words {}", n % 3));
        client.run(&format!("SMOVE words moved word:{n}"));
        client.run(&format!("SRANDMEMBER words -{n}"));
    }
    for line in ["SUNIONSTORE all integers words", "SDIFFSTORE some all moved", "SPOP moved 1000"] {
        client.run(line);
    }
    let replica = replayed(&engine);
    assert_eq!(replica.digest(), engine.digest());
    let other = Client::new(&replica);
    for key in ["integers", "words", "all", "some"] {
        let line = format!("SMEMBERS {key}");
        assert_eq!(members(&other.run(&line)), members(&client.run(&line)), "{key}");
    }
    assert_eq!(other.run("EXISTS moved"), ":0");
}
