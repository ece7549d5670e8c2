//! `SORT` and `SORT_RO`.

use crate::support::{Client, engine, replayed};

const NOT_NUMBERS: &str = "-ERR One or more scores can't be converted into double";

#[test]
fn elements_are_sorted_as_numbers_or_as_text() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("RPUSH l 10 9 -1.5 10", ":4"),
        ("SORT l", "*4 $4 -1.5 $1 9 $2 10 $2 10"),
        ("SORT l DESC", "*4 $2 10 $2 10 $1 9 $4 -1.5"),
        ("SORT l ALPHA", "*4 $4 -1.5 $2 10 $2 10 $1 9"),
        ("SORT l alpha desc asc", "*4 $4 -1.5 $2 10 $2 10 $1 9"),
        ("SORT l LIMIT 1 2", "*2 $1 9 $2 10"),
        ("SORT l LIMIT -5 1", "*1 $4 -1.5"),
        ("SORT l LIMIT 3 -1", "*1 $2 10"),
        ("SORT l LIMIT 9 1", "*0"),
        ("SORT none", "*0"),
        ("SADD s c a b", ":3"),
        ("SORT s ALPHA", "*3 $1 a $1 b $1 c"),
        ("ZADD z 3 1 2 2 1 3", ":3"),
        ("SORT z", "*3 $1 1 $1 2 $1 3"),
        ("SORT_RO z DESC LIMIT 0 1", "*1 $1 3"),
    ]);
}

#[test]
fn elements_are_sorted_by_other_keys() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("RPUSH l a b c d", ":4"),
        ("MSET w:a 3 w:b 1 w:d 2", "+OK"),
        // An element without a weight weighs 0.
        ("SORT l BY w:*", "*4 $1 c $1 b $1 d $1 a"),
        ("SORT l BY w:* ALPHA DESC", "*4 $1 a $1 d $1 b $1 c"),
        // A number ends at a zero byte.
        ("SET w:c 5", "+OK"),
        ("SETRANGE w:c 3 text", ":7"),
        ("SORT l BY w:*", "*4 $1 b $1 d $1 a $1 c"),
        ("DEL w:c", ":1"),
        ("HSET h:a weight 1 name anna", ":2"),
        ("HSET h:b weight 4", ":1"),
        ("SORT l BY h:*->weight", "*4 $1 c $1 d $1 a $1 b"),
        ("SORT l BY h:*->weight GET # GET h:*->name LIMIT 2 2", "*4 $1 a $4 anna $1 b $-1"),
        ("SORT l BY w:* GET w:* GET plain", "*8 $-1 $-1 $1 1 $-1 $1 2 $-1 $1 3 $-1"),
        // A weight of the wrong type counts as absent.
        ("SORT l BY h:*", "*4 $1 a $1 b $1 c $1 d"),
        ("SET w:c x", "+OK"),
        ("SORT l BY w:*", NOT_NUMBERS),
        ("SET w:c \"\"", "+OK"),
        ("SORT l BY w:* LIMIT 0 1", "*1 $1 c"),
        ("SET w:c 1e400", "+OK"),
        ("SORT l BY w:*", NOT_NUMBERS),
        ("SET w:c inf", "+OK"),
        ("SORT l BY w:* DESC LIMIT 0 1", "*1 $1 c"),
    ]);
}

#[test]
fn a_pattern_that_names_no_key_leaves_the_order_as_it_is() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("RPUSH l c a b", ":3"),
        ("SORT l BY nosort", "*3 $1 c $1 a $1 b"),
        ("SORT l BY nosort DESC LIMIT 0 2", "*2 $1 b $1 a"),
        ("ZADD z 1 c 2 a 3 b", ":3"),
        ("SORT z BY nosort", "*3 $1 c $1 a $1 b"),
        ("SORT z BY nosort DESC", "*3 $1 b $1 a $1 c"),
        // A set has no order, so the stored list is sorted.
        ("SADD s c a b", ":3"),
        ("SORT s BY nosort STORE d", ":3"),
        ("LRANGE d 0 -1", "*3 $1 a $1 b $1 c"),
    ]);
}

#[test]
fn the_result_can_be_stored() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("SADD s 3 1 2", ":3"),
        ("SET o:1 one", "+OK"),
        ("SET d before", "+OK"),
        ("SORT s STORE d", ":3"),
        ("LRANGE d 0 -1", "*3 $1 1 $1 2 $1 3"),
        ("SORT s GET # GET o:* STORE d", ":6"),
        ("LRANGE d 0 -1", "*6 $1 1 $3 one $1 2 $0  $1 3 $0"),
        // The source may be the destination.
        ("SORT d ALPHA LIMIT 2 4 STORE d", ":4"),
        ("LRANGE d 0 -1", "*4 $1 1 $1 2 $1 3 $3 one"),
        ("SORT none STORE d", ":0"),
        ("EXISTS d", ":0"),
    ]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn what_cannot_be_sorted_is_refused() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("SET text x", "+OK"),
        ("SORT text", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("RPUSH l a b", ":2"),
        ("SORT l", NOT_NUMBERS),
        ("SORT l LIMIT 0 0", NOT_NUMBERS),
        ("SORT l STORE d", NOT_NUMBERS),
        ("EXISTS d", ":0"),
        ("SORT l LIMIT 0", "-ERR syntax error"),
        ("SORT l LIMIT a b", "-ERR value is not an integer or out of range"),
        ("SORT l STORE", "-ERR syntax error"),
        ("SORT_RO l ALPHA STORE d", "-ERR syntax error"),
        ("SORT", "-ERR wrong number of arguments for 'sort' command"),
    ]);
}
