//! HyperLogLogs, as Redis 7 answers.

use crate::support::{Client, engine, replayed};

const NOT_A_SKETCH: &str = "-WRONGTYPE Key is not a valid HyperLogLog string value.";
const CORRUPTED: &str = "-INVALIDOBJ Corrupted HLL object detected";
const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

#[test]
fn distinct_elements_are_counted() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("PFCOUNT h", ":0"),
        ("PFADD h", ":1"),
        ("PFADD h", ":0"),
        ("PFCOUNT h", ":0"),
        ("PFADD h a b c", ":1"),
        ("PFADD h a b c", ":0"),
        ("PFCOUNT h", ":3"),
        ("TYPE h", "+string"),
        ("STRLEN h", ":27"),
        ("PFADD i c d", ":1"),
        ("PFCOUNT h i", ":4"),
        ("PFCOUNT h none i h", ":4"),
        ("PFMERGE u h i none", "+OK"),
        ("PFCOUNT u", ":4"),
        ("PFMERGE new", "+OK"),
        ("PFCOUNT new", ":0"),
        ("PFMERGE h", "+OK"),
        ("PFCOUNT h", ":3"),
    ]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn what_changes_nothing_is_not_logged() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[("PFADD h a", ":1"), ("PFADD h b", ":1")]);
    let before = engine.log().appended();
    client.expect(&[("PFADD h a b", ":0"), ("PFCOUNT h", ":2"), ("PFDEBUG ENCODING h", "+sparse")]);
    assert_eq!(engine.log().appended(), before);
}

#[test]
fn only_a_whole_sketch_is_one() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("SET n 17", "+OK"),
        ("SET s text", "+OK"),
        ("RPUSH l a", ":1"),
        ("PFADD h a b c", ":1"),
        ("PFADD n a", NOT_A_SKETCH),
        ("PFADD s a", NOT_A_SKETCH),
        ("PFADD l a", WRONG_TYPE),
        ("PFCOUNT n", NOT_A_SKETCH),
        ("PFCOUNT h s", NOT_A_SKETCH),
        ("PFCOUNT h l", WRONG_TYPE),
        ("PFMERGE d h s", NOT_A_SKETCH),
        ("PFMERGE s h", NOT_A_SKETCH),
        ("EXISTS d", ":0"),
        ("APPEND h hello", ":32"),
        ("PFADD h a", CORRUPTED),
        ("PFCOUNT h", CORRUPTED),
        ("PFCOUNT h none", CORRUPTED),
        ("PFMERGE d h", CORRUPTED),
        ("PFDEBUG TODENSE h", CORRUPTED),
        ("SETRANGE h 0 h", ":32"),
        ("PFCOUNT h", NOT_A_SKETCH),
    ]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_sketch_is_shown_and_made_dense() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("PFDEBUG ENCODING h", "-ERR The specified key does not exist"),
        ("PFADD h a foo", ":1"),
        ("PFDEBUG DECODE h", "$32 Z:7348 v:5,1 Z:5362 v:2,1 Z:3672"),
        ("PFDEBUG ENCODING h", "+sparse"),
        ("PFDEBUG WRONG h", "-ERR Unknown PFDEBUG subcommand 'WRONG'"),
        ("PFDEBUG TODENSE h", ":1"),
        ("PFDEBUG todense h", ":0"),
        ("PFDEBUG ENCODING h", "+dense"),
        ("PFDEBUG DECODE h", "-ERR HLL encoding is not sparse"),
        ("STRLEN h", ":12304"),
        ("PFCOUNT h", ":2"),
        ("PFADD i b", ":1"),
        ("PFMERGE i h", "+OK"),
        ("PFDEBUG ENCODING i", "+dense"),
        ("PFCOUNT i", ":3"),
        ("PFADD j a", ":1"),
    ]);
    let registers = client.run("PFDEBUG GETREG j");
    assert!(registers.starts_with("*16384 :0 :0 "), "{}", &registers[..40]);
    assert_eq!(registers.matches(":2").count(), 1);
    client.expect(&[("PFDEBUG ENCODING j", "+dense")]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn the_self_test_passes() {
    let engine = engine();
    Client::new(&engine).expect(&[("PFSELFTEST", "+OK"), ("PFSELFTEST", "+OK")]);
}

#[test]
fn a_time_to_live_stays() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("PFADD h a", ":1"),
        ("EXPIRE h 100", ":1"),
        ("PFADD h b", ":1"),
        ("TTL h", ":100"),
        ("PFMERGE h none", "+OK"),
        ("TTL h", ":100"),
    ]);
}
