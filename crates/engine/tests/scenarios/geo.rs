//! Points on the earth, as Redis 7 answers.

use crate::support::{Client, engine, replayed, transaction};

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
const SYNTAX: &str = "-ERR syntax error";
const NO_FLOAT: &str = "-ERR value is not a valid float";
const BAD_UNIT: &str = "-ERR unsupported unit provided. please use M, KM, FT, MI";

fn with_sicily(client: &Client<'_>) {
    client.expect(&[("GEOADD Sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania", ":2")]);
}

#[test]
fn members_are_placed_and_found_again() {
    let engine = engine();
    let client = Client::new(&engine);
    with_sicily(&client);
    client.expect(&[
        ("ZSCORE Sicily Palermo", "$16 3479099956230698"),
        ("TYPE Sicily", "+zset"),
        ("GEOPOS Sicily Palermo x", "*2 *2 $20 13.36138933897018433 $20 38.11555639549629859 *-1"),
        ("GEOHASH Sicily Palermo x Catania", "*3 $11 sqc8b49rny0 $-1 $11 sqdtr74hyu0"),
        ("GEODIST Sicily Palermo Catania", "$11 166274.1516"),
        ("GEODIST Sicily Palermo Catania km", "$8 166.2742"),
        ("GEODIST Sicily Palermo Palermo", "$6 0.0000"),
        ("GEODIST Sicily Palermo x", "$-1"),
        ("GEODIST none Palermo x", "$-1"),
        ("GEODIST Sicily Palermo Catania feet", BAD_UNIT),
        ("GEODIST Sicily Palermo Catania m m", SYNTAX),
        ("GEOPOS none a", "*1 *-1"),
        ("GEOPOS none", "*0"),
        ("GEOHASH none a", "*1 $-1"),
        ("GEOADD Sicily 13.361389 38.115556 Palermo", ":0"),
        ("GEOADD Sicily NX 1 1 Palermo 2 2 Ragusa", ":1"),
        ("GEOADD Sicily XX CH 13 38 Palermo 3 3 Enna", ":1"),
        ("GEOADD Sicily XX NX 1 1 Palermo", SYNTAX),
        ("GEOADD Sicily 1 1", "-ERR wrong number of arguments for 'geoadd' command"),
        ("GEOADD Sicily 1 1 a 2", SYNTAX),
        ("GEOADD Sicily CH NX CH", SYNTAX),
        ("GEOADD Sicily x 1 a", NO_FLOAT),
        ("GEOADD Sicily 1 1 a 200 10 b", "-ERR invalid longitude,latitude pair 200.000000,10.000000"),
        ("GEOADD Sicily 1 86 a", "-ERR invalid longitude,latitude pair 1.000000,86.000000"),
        ("ZCARD Sicily", ":3"),
        ("SET s text", "+OK"),
        ("GEOADD s 1 1 a", WRONG_TYPE),
        ("GEOPOS s a", WRONG_TYPE),
        ("GEOHASH s a", WRONG_TYPE),
        ("GEODIST s a b", WRONG_TYPE),
    ]);
    let client = Client::resp3(&engine);
    client.expect(&[("GEOPOS Sicily Catania", "*1 *2 ,15.08726745843887329 ,37.50266842333162032")]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn an_area_is_searched() {
    let engine = engine();
    let client = Client::new(&engine);
    with_sicily(&client);
    let both = "*2 $7 Palermo $7 Catania";
    client.expect(&[
        ("GEORADIUS Sicily 15 37 200 km", both),
        ("GEORADIUS_RO Sicily 15 37 200 km ASC", "*2 $7 Catania $7 Palermo"),
        ("GEORADIUS Sicily 15 37 200 km WITHDIST", "*2 *2 $7 Palermo $8 190.4424 *2 $7 Catania $7 56.4413"),
        (
            "GEORADIUS Sicily 15 37 100 km WITHCOORD WITHHASH WITHDIST",
            "*1 *4 $7 Catania $7 56.4413 :3479447370796909 *2 $20 15.08726745843887329 $20 37.50266842333162032",
        ),
        ("GEORADIUS Sicily 15 37 200 km COUNT 1", "*1 $7 Catania"),
        ("GEORADIUS Sicily 15 37 200 km COUNT 1 DESC", "*1 $7 Palermo"),
        ("GEORADIUS Sicily 15 37 200 km COUNT 1 ANY", "*1 $7 Palermo"),
        ("GEORADIUSBYMEMBER Sicily Palermo 1 m", "*1 $7 Palermo"),
        ("GEORADIUSBYMEMBER_RO Sicily Palermo 200000 m DESC", "*2 $7 Catania $7 Palermo"),
        ("GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 400 400 km ASC", "*2 $7 Catania $7 Palermo"),
        ("GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 400 150 km", "*1 $7 Catania"),
        ("GEOSEARCH Sicily FROMMEMBER Palermo BYRADIUS 100 mi", "*1 $7 Palermo"),
        ("GEOSEARCH Sicily BYRADIUS 200 km FROMMEMBER Palermo FROMMEMBER Catania ASC", "*2 $7 Catania $7 Palermo"),
        ("GEOSEARCH Sicily FROMLONLAT 0 0 BYRADIUS 1 km", "*0"),
        ("GEOSEARCH none FROMMEMBER x BYRADIUS 1 km", "*0"),
        ("GEORADIUSBYMEMBER none x y z", "*0"),
        ("GEORADIUSBYMEMBER none x y z COUNT 0", "-ERR COUNT must be > 0"),
    ]);
}

#[test]
fn a_search_is_refused_in_the_words_of_redis() {
    let engine = engine();
    let client = Client::new(&engine);
    with_sicily(&client);
    client.expect(&[
        ("SET s text", "+OK"),
        ("GEORADIUS s x x x x", WRONG_TYPE),
        ("GEORADIUS Sicily x 37 200 km", NO_FLOAT),
        ("GEORADIUS Sicily 15 37 x km", "-ERR need numeric radius"),
        ("GEORADIUS Sicily 15 37 -1 km", "-ERR radius cannot be negative"),
        ("GEORADIUS Sicily 15 37 1 parsec", BAD_UNIT),
        ("GEORADIUS Sicily 15 37 1 km COUNT", SYNTAX),
        ("GEORADIUS Sicily 15 37 1 km COUNT x", "-ERR value is not an integer or out of range"),
        ("GEORADIUS Sicily 15 37 1 km ANY", "-ERR the ANY argument requires COUNT argument"),
        ("GEORADIUS_RO Sicily 15 37 1 km STORE x", SYNTAX),
        (
            "GEORADIUS Sicily 15 37 1 km WITHDIST STORE x",
            "-ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options",
        ),
        ("GEORADIUSBYMEMBER Sicily x 1 km", "-ERR could not decode requested zset member"),
        ("GEOSEARCH Sicily FROMMEMBER x BYRADIUS 1 km", "-ERR could not decode requested zset member"),
        (
            "geosearch Sicily BYRADIUS 1 km ASC WITHDIST",
            "-ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for geosearch",
        ),
        (
            "geosearch Sicily FROMMEMBER Palermo ASC WITHDIST WITHCOORD",
            "-ERR exactly one of BYRADIUS and BYBOX can be specified for geosearch",
        ),
        ("GEOSEARCH Sicily FROMMEMBER Palermo FROMLONLAT 1 1 BYRADIUS 1 km", SYNTAX),
        ("GEOSEARCH Sicily FROMMEMBER Palermo BYRADIUS 1 km BYBOX 1 1 km", SYNTAX),
        ("GEOSEARCH Sicily FROMMEMBER Palermo BYBOX x 1 km", "-ERR need numeric width"),
        ("GEOSEARCH Sicily FROMMEMBER Palermo BYBOX 1 x km", "-ERR need numeric height"),
        ("GEOSEARCH Sicily FROMMEMBER Palermo BYBOX 1 -1 km", "-ERR height or width cannot be negative"),
        ("GEOSEARCH Sicily FROMMEMBER Palermo BYRADIUS 1 km STOREDIST", SYNTAX),
        (
            "GEOSEARCHSTORE d Sicily FROMMEMBER Palermo BYRADIUS 1 km WITHDIST",
            "-ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options",
        ),
        ("EXISTS d x", ":0"),
    ]);
}

#[test]
fn a_result_is_stored() {
    let engine = engine();
    let mut client = Client::new(&engine);
    with_sicily(&client);
    client.expect(&[
        ("SET d text EX 1", "+OK"),
        ("GEOSEARCHSTORE d Sicily FROMLONLAT 15 37 BYRADIUS 200 km", ":2"),
        ("ZRANGE d 0 -1 WITHSCORES", "*4 $7 Palermo $16 3479099956230698 $7 Catania $16 3479447370796909"),
        ("TTL d", ":-1"),
        ("GEOSEARCHSTORE d Sicily FROMLONLAT 15 37 BYRADIUS 200 km COUNT 1 STOREDIST", ":1"),
        ("ZRANGE d 0 -1", "*1 $7 Catania"),
        ("ZCOUNT d 56.441 56.442", ":1"),
        ("GEORADIUS Sicily 15 37 200 km STORE e STOREDIST f", ":2"),
        ("EXISTS e f", ":1"),
        ("GEORADIUSBYMEMBER Sicily Palermo 1 km STORE Sicily", ":1"),
        ("GEOSEARCHSTORE d Sicily FROMLONLAT 0 0 BYRADIUS 1 km", ":0"),
        ("EXISTS d", ":0"),
        ("GEOSEARCHSTORE d Sicily FROMLONLAT 0 0 BYRADIUS 1 km", ":0"),
        ("GEORADIUS none 15 37 200 km STORE f", ":0"),
        ("EXISTS f", ":0"),
        ("SET g text PX 10", "+OK"),
        ("SET h text PX 10", "+OK"),
    ]);
    client.sleep_ms(20);
    client.expect(&[
        ("GEOSEARCHSTORE g Sicily FROMLONLAT 13 38 BYRADIUS 100 km", ":1"),
        ("GEOSEARCHSTORE h none FROMLONLAT 13 38 BYRADIUS 100 km", ":0"),
    ]);
    assert_eq!(
        transaction(
            &engine,
            None,
            &["SET x 1", "GEOSEARCHSTORE no none FROMLONLAT 0 0 BYRADIUS 1 km", "GEOADD Sicily 1 1 Palermo"]
        ),
        "*3 +OK :0 :0"
    );
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn the_log_has_no_geometry() {
    let engine = engine();
    let client = Client::new(&engine);
    with_sicily(&client);
    client.expect(&[("GEOSEARCHSTORE d Sicily FROMLONLAT 15 37 BYRADIUS 200 km STOREDIST", ":2")]);
    let mut names = Vec::new();
    crate::support::for_each_record(&engine, tidemark_log::Lsn(1), |record| {
        let changes = tidemark_engine::change::Changes::of(record).expect("data");
        for change in changes {
            if let tidemark_engine::change::Change::Command { command, .. } = change.expect("a change") {
                names.push(command.name);
            }
        }
    });
    assert_eq!(names, ["zadd", "zadd"]);
}
