//! Hashes, as Redis 7 answers.

use crate::support::{Client, engine, replayed};

#[test]
fn fields_are_set_read_and_deleted() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("HSET h a 1 b 2", ":2"),
        ("HSET h a 3 c 4", ":1"),
        ("HSET h a", "-ERR wrong number of arguments for 'hset' command"),
        ("HSET h a 3 b", "-ERR wrong number of arguments for 'hset' command"),
        ("HMSET h a 3 b", "-ERR wrong number of arguments for 'hmset' command"),
        ("HMSET h d 5", "+OK"),
        ("HGET h a", "$1 3"),
        ("HGET h nothing", "$-1"),
        ("HGET nothing a", "$-1"),
        ("HMGET h a nothing d", "*3 $1 3 $-1 $1 5"),
        ("HMGET nothing a b", "*2 $-1 $-1"),
        ("HLEN h", ":4"),
        ("HLEN nothing", ":0"),
        ("HEXISTS h a", ":1"),
        ("HEXISTS h nothing", ":0"),
        ("HEXISTS nothing a", ":0"),
        ("HSTRLEN h a", ":1"),
        ("HSTRLEN h nothing", ":0"),
        ("HDEL h a a nothing", ":1"),
        ("HDEL nothing a", ":0"),
        ("HDEL h b c d", ":3"),
        ("EXISTS h", ":0"),
    ]);
}

#[test]
fn a_field_is_set_once_by_hsetnx() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[("HSETNX h f 1", ":1"), ("HSETNX h f 2", ":0"), ("HGET h f", "$1 1")]);
    assert!(client.execute("HSETNX h f 3").1.lsn.is_none(), "what changes nothing is not logged");
}

#[test]
fn all_of_a_hash_comes_in_the_order_of_its_making() {
    let engine = engine();
    let client = Client::new(&engine);
    let typed = Client::resp3(&engine);
    client.expect(&[
        ("HSET h z 1 a 2", ":2"),
        ("HGETALL h", "*4 $1 z $1 1 $1 a $1 2"),
        ("HKEYS h", "*2 $1 z $1 a"),
        ("HVALS h", "*2 $1 1 $1 2"),
        ("HGETALL nothing", "*0"),
        ("HKEYS nothing", "*0"),
        ("HVALS nothing", "*0"),
    ]);
    typed.expect(&[
        ("HGETALL h", "%2 $1 z $1 1 $1 a $1 2"),
        ("HGETALL nothing", "%0"),
        ("HKEYS h", "*2 $1 z $1 a"),
        ("HGET h nothing", "_"),
    ]);
}

#[test]
fn fields_count_in_integers_and_floats() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("HINCRBY h n 5", ":5"),
        ("HINCRBY h n -7", ":-2"),
        ("HINCRBY h n x", "-ERR value is not an integer or out of range"),
        ("HSET h n 9223372036854775807 text abc", ":1"),
        ("HINCRBY h n 1", "-ERR increment or decrement would overflow"),
        ("HINCRBY h text 1", "-ERR hash value is not an integer"),
        ("HINCRBYFLOAT h text 1", "-ERR hash value is not a float"),
        ("HINCRBYFLOAT h f 10.5", "$4 10.5"),
        ("HINCRBYFLOAT h f 0.1", "$4 10.6"),
        ("HINCRBYFLOAT h f 5.0e3", "$22 5010.60000000000000009"),
        ("HINCRBYFLOAT h f x", "-ERR value is not a valid float"),
        ("HINCRBYFLOAT h f nan", "-ERR value is not a valid float"),
        ("HINCRBYFLOAT h f inf", "-ERR value is NaN or Infinity"),
        ("HINCRBY nothing n x", "-ERR value is not an integer or out of range"),
        ("HINCRBYFLOAT nothing f inf", "-ERR value is NaN or Infinity"),
        ("EXISTS nothing", ":0"),
        ("HGET h n", "$19 9223372036854775807"),
    ]);
}

#[test]
fn random_fields_come_alone_or_with_their_values() {
    let engine = engine();
    let client = Client::new(&engine);
    let typed = Client::resp3(&engine);
    client.expect(&[
        ("HRANDFIELD nothing", "$-1"),
        ("HRANDFIELD nothing 3", "*0"),
        ("HSET h a 1", ":1"),
        ("HRANDFIELD h", "$1 a"),
        ("HRANDFIELD h 0", "*0"),
        ("HRANDFIELD h 5", "*1 $1 a"),
        ("HRANDFIELD h -2", "*2 $1 a $1 a"),
        ("HRANDFIELD h 5 WITHVALUES", "*2 $1 a $1 1"),
        ("HRANDFIELD h -2 withvalues", "*4 $1 a $1 1 $1 a $1 1"),
        ("HRANDFIELD h x", "-ERR value is not an integer or out of range"),
        ("HRANDFIELD h 1 VALUES", "-ERR syntax error"),
        ("HRANDFIELD h 1 WITHVALUES x", "-ERR syntax error"),
        ("HRANDFIELD h 9223372036854775807", "*1 $1 a"),
        ("HRANDFIELD h 9223372036854775807 WITHVALUES", "-ERR value is out of range"),
        (
            "HRANDFIELD h -9223372036854775808",
            "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
        ),
        (
            "HRANDFIELD h -9223372036854775807",
            "-ERR value is out of range: at most 16777216 repeated draws at a time",
        ),
    ]);
    typed.expect(&[
        ("HRANDFIELD h 5 WITHVALUES", "*1 *2 $1 a $1 1"),
        ("HRANDFIELD h -2 WITHVALUES", "*2 *2 $1 a $1 1 *2 $1 a $1 1"),
        ("HRANDFIELD h 1", "*1 $1 a"),
        ("HRANDFIELD nothing", "_"),
    ]);
}

#[test]
fn a_scan_finds_every_field_once_it_ends() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("HSCAN nothing 0", "*2 $1 0 *0"),
        ("HSCAN nothing 0 WRONG", "*2 $1 0 *0"),
        ("HSET h a 1 b 2", ":2"),
        ("HSCAN h 0", "*2 $1 0 *4 $1 a $1 1 $1 b $1 2"),
        ("HSCAN h 0 MATCH b* COUNT 1", "*2 $1 0 *2 $1 b $1 2"),
        ("HSCAN h x", "-ERR invalid cursor"),
        ("HSCAN h -+1", "-ERR invalid cursor"),
        ("HSCAN nothing -1", "*2 $1 0 *0"),
        ("HSCAN h 0 WRONG", "-ERR syntax error"),
        ("HSCAN h 0 COUNT 0", "-ERR syntax error"),
        ("HSCAN h 0 COUNT x", "-ERR value is not an integer or out of range"),
        ("HSCAN h 0 TYPE string", "-ERR syntax error"),
        ("HSCAN h 0 COUNT 9223372036854775807", "*2 $1 0 *4 $1 a $1 1 $1 b $1 2"),
    ]);
    for n in 0..1_000 {
        client.run(&format!("HSET large field:{n} {n}"));
    }
    let (mut cursor, mut seen, mut calls) = ("0".to_owned(), std::collections::BTreeSet::new(), 0);
    loop {
        let answer = client.run(&format!("HSCAN large {cursor} COUNT 50"));
        let words: Vec<&str> = answer.split(' ').collect();
        seen.extend(words.iter().filter(|word| word.starts_with("field:")).map(ToString::to_string));
        words[2].clone_into(&mut cursor);
        calls += 1;
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(seen.len(), 1_000);
    assert!((10..=20).contains(&calls), "{calls} calls of about 50 fields each");
}

#[test]
fn other_types_are_refused_before_anything_happens() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("SET s text");
    for line in [
        "HSET s a 1",
        "HSETNX s a 1",
        "HMSET s a 1",
        "HGET s a",
        "HMGET s a",
        "HGETALL s",
        "HDEL s a",
        "HEXISTS s a",
        "HLEN s",
        "HKEYS s",
        "HVALS s",
        "HSTRLEN s a",
        "HINCRBY s a 1",
        "HINCRBYFLOAT s a 1",
        "HRANDFIELD s",
        "HRANDFIELD s 1",
        "HSCAN s 0",
        "HSCAN s 0 WRONG",
    ] {
        let (answer, executed) = client.execute(line);
        assert_eq!(answer, "-WRONGTYPE Operation against a key holding the wrong kind of value", "{line}");
        assert!(executed.lsn.is_none(), "{line}");
    }
    client.expect(&[("GET s", "$4 text")]);
}

#[test]
fn a_hash_says_how_redis_would_keep_it() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[("HSET h f v", ":1"), ("TYPE h", "+hash"), ("OBJECT ENCODING h", "$8 listpack")]);
    client.run(&format!("HSET h f {}", "v".repeat(65)));
    client.expect(&[
        ("OBJECT ENCODING h", "$9 hashtable"),
        ("HSET h f v", ":0"),
        ("COPY h copy", ":1"),
        ("OBJECT ENCODING copy", "$9 hashtable"),
        ("HGETALL copy", "*2 $1 f $1 v"),
    ]);
}

#[test]
fn the_log_gives_the_same_hashes() {
    let engine = engine();
    let client = Client::new(&engine);
    for n in 0..300 {
        client.run(&format!("HSET large {n} {n} {} x", n / 2));
        client.run(&format!("HINCRBY small {} {n}", n % 7));
        client.run(&format!("HINCRBYFLOAT small f{} 0.{n}", n % 3));
        client.run(&format!("HDEL large {}", n * 3 % 100));
        client.run(&format!("HSETNX small {} 1", n % 9));
    }
    assert_eq!(replayed(&engine).digest(), engine.digest());
}
