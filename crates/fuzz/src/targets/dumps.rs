//! Payloads of `RESTORE`: each is refused, or gives a value that `DUMP` and `RESTORE` copy, and that commands
//! read.
//!
//! ```text
//! input    flags u8 │ content of a payload
//! flags    1: the content is a whole payload, with its footer
//! ```

use super::{Target, state};
use crate::input::Input;
use tidemark_engine::{Call, Engine, Protocol, Reply, command, rdb};

const WHOLE: u8 = 1;

pub(super) const TARGET: Target = Target {
    name: "dumps",
    run,
    corpus,
    words: &[
        b"\xc0\x7f",
        b"\xc1\xff\x7f",
        b"\xc2\xff\xff\xff\x7f",
        b"\xc3\x05\x40\xff",
        b"\xe0\xff\0",
        b"\x80\xff\xff\xff\xff",
        b"\x81\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\xf0\xff\xff\xff\xff",
        b"\xfe\xff\xff\xff\xff",
        b"\xff\xff\0\0\0\0\xff",
        b"\x09\0\0\0\x01\0\x05\x01\xff",
        b"\x0d\0\0\0\x0a\0\0\0\x01\0\0\xf8\xff",
        b"\x02\0\0\0\x01\0\0\0",
        b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80\x7f\xff",
        b"\0\0\0\0\0\0\xf8\x7f",
        b"\x10\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01",
        b"\x02\x01\0\x01\0\x01\x01\x01",
        b"\x81\xff\xff\xff\xff\xff\xff\xff\xff",
    ],
};

fn call(engine: &Engine, words: &[&[u8]]) -> Vec<u8> {
    let mut reply = Reply::new(Protocol::Resp2);
    let command = command::resolve(words).expect("a command");
    engine.execute(&Call { command, args: words, db: 0, now_us: state::NOW_US }, &mut reply);
    reply.bytes().to_vec()
}

/// Returns the payload of a key.
fn dump(engine: &Engine, key: &[u8]) -> Vec<u8> {
    let answer = call(engine, &[b"DUMP", key]);
    let start = answer.iter().position(|byte| *byte == b'\n').expect("a length") + 1;
    answer[start..answer.len() - 2].to_vec()
}

fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let flags = input.u8();
    let mut payload = input.rest().to_vec();
    if flags & WHOLE == 0 {
        rdb::seal(&mut payload);
    }
    let engine = state::engine();
    if call(&engine, &[b"RESTORE", b"k", b"0", &payload]) != b"+OK\r\n" {
        return false;
    }
    let (dumped, again) = (dump(&engine, b"k"), state::engine());
    assert_eq!(call(&again, &[b"RESTORE", b"k", b"0", &dumped]), b"+OK\r\n", "our payloads are restored");
    assert_eq!(again.digest(), engine.digest(), "a value survives DUMP and RESTORE");
    for words in [
        &[&b"PFCOUNT"[..], b"k"][..],
        &[b"PFADD", b"k", b"a", b"b", b"c"],
        &[b"PFMERGE", b"m", b"k"],
        &[b"GEOSEARCH", b"k", b"FROMLONLAT", b"1", b"1", b"BYRADIUS", b"9000", b"km", b"WITHHASH"],
        &[b"LRANGE", b"k", b"0", b"-1"],
        &[b"SMEMBERS", b"k"],
        &[b"SADD", b"k", b"a", b"1"],
        &[b"HGETALL", b"k"],
        &[b"HSET", b"k", b"a", b"1"],
        &[b"ZRANGE", b"k", b"0", b"-1", b"REV"],
        &[b"ZADD", b"k", b"1", b"a"],
        &[b"LPOP", b"k", b"2"],
        &[b"XINFO", b"STREAM", b"k", b"FULL", b"COUNT", b"0"],
        &[b"XINFO", b"GROUPS", b"k"],
        &[b"XINFO", b"CONSUMERS", b"k", b"g"],
        &[b"XRANGE", b"k", b"-", b"+"],
        &[b"XREVRANGE", b"k", b"+", b"-"],
        &[b"XPENDING", b"k", b"g", b"-", b"+", b"9"],
        &[b"XADD", b"k", b"*", b"a", b"1"],
        &[b"XREADGROUP", b"GROUP", b"g", b"d", b"STREAMS", b"k", b">"],
        &[b"XREADGROUP", b"GROUP", b"g", b"c", b"STREAMS", b"k", b"0"],
        &[b"XAUTOCLAIM", b"k", b"g", b"d", b"0", b"0"],
        &[b"XGROUP", b"DELCONSUMER", b"k", b"g", b"c"],
        &[b"COPY", b"k", b"copy"],
        &[b"XDEL", b"k", b"1-1", b"1-2"],
        &[b"XTRIM", b"k", b"MAXLEN", b"~", b"1"],
        &[b"XTRIM", b"k", b"MAXLEN", b"1"],
        &[b"XSETID", b"k", b"18446744073709551615-9"],
        &[b"XGROUP", b"DESTROY", b"k", b"g"],
    ] {
        call(&engine, words);
    }
    true
}

fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let mut inputs: Vec<(&'static str, Vec<u8>)> = vec![
        ("zipmap", b"\0\x09\x10\x02\x02f1\x02\0v1\x02f2\x02\0v2\xff".to_vec()),
        (
            "hash_ziplist",
            b"\0\x0d\x1b\x1b\0\0\0\x16\0\0\0\x04\0\0\x02f1\x04\x02v1\x04\x02f2\x04\x02v2\xff".to_vec(),
        ),
        (
            "sorted_set_ziplist",
            b"\0\x0c\x19\x19\0\0\0\x16\0\0\0\x04\0\0\x03one\x05\xf2\x02\x03two\x05\xf3\xff".to_vec(),
        ),
        ("quicklist", b"\0\x0e\x01\x0d\x0d\0\0\0\x0a\0\0\0\x01\0\0\xf8\xff".to_vec()),
        ("plain_node", b"\0\x12\x01\x01\x03abc".to_vec()),
        ("list", b"\0\x01\x02\x01a\xc0\x05".to_vec()),
        ("sorted_set_as_text", b"\0\x03\x03\x02bb\x0220\x01c\x035e1\x01d\xfe".to_vec()),
        ("set_listpack", b"\0\x14\x0c\x0c\0\0\0\x02\0\x81a\x02\x05\x01\xff".to_vec()),
        ("stream", b"\0\x0f\x01\x10".to_vec()),
        ("empty_stream", b"\0\x0f\x00\x00\x05\x00\x01\x01g\x00\x00\x00\x00".to_vec()),
    ];
    let engine = state::engine();
    let long = b"abcdefgh".repeat(40);
    for (name, words) in [
        ("string", &[&b"SET"[..], &long][..]),
        ("integer", &[b"SET", b"70000"]),
        ("hyper_log_log", &[b"PFADD", b"a", b"b", b"c"]),
        ("places", &[b"GEOADD", b"13.36", b"38.11", b"Palermo", b"15.08", b"37.5", b"Catania"]),
        ("list_of_all", &[b"RPUSH", b"1", b"-1", b"300", b"-70000", b"9223372036854775807", b"a", &long]),
        ("integers", &[b"SADD", b"1", b"2", b"-300", b"70000"]),
        ("members", &[b"SADD", b"1", b"a", &long]),
        ("fields", &[b"HSET", b"f", b"v", b"g", b"12"]),
        ("long_fields", &[b"HSET", b"f", &long]),
        ("scores", &[b"ZADD", b"1", b"a", b"2.5", b"b", b"-inf", b"c"]),
        ("stream_of_all", &[b"XADD", b"7-0", b"a", b"1", b"b", b"text"]),
        ("long_members", &[b"ZADD", b"1.25", &long, b"3", b"b"]),
    ] {
        let (first, rest) = words.split_first().expect("a command");
        call(&engine, &[&[*first, name.as_bytes()], rest].concat());
        let payload = dump(&engine, name.as_bytes());
        let content = rdb::open(&payload).expect("our own payload");
        inputs.push((name, [&[0], content].concat()));
        if name == "stream_of_all" {
            let mut of_group = Vec::new();
            for words in [
                &[&b"XADD"[..], b"stream_of_all", b"7-1", b"b", b"-5", b"c", &long][..],
                &[b"XADD", b"stream_of_all", b"7-2", b"b", b"6", b"c", b""],
                &[b"XDEL", b"stream_of_all", b"7-1"],
                &[b"XGROUP", b"CREATE", b"stream_of_all", b"g", b"0"],
                &[b"XGROUP", b"CREATE", b"stream_of_all", b"h", b"$"],
                &[b"XREADGROUP", b"GROUP", b"g", b"c", b"STREAMS", b"stream_of_all", b">"],
                &[b"XGROUP", b"CREATECONSUMER", b"stream_of_all", b"g", b"d"],
            ] {
                call(&engine, words);
                let payload = dump(&engine, name.as_bytes());
                of_group = rdb::open(&payload).expect("our own payload").to_vec();
            }
            inputs.push(("stream_of_groups", [&[0], &of_group[..]].concat()));
            of_group[0] = 0x15;
            inputs.push(("stream_of_redis_7_2", [&[0], &of_group[..]].concat()));
        }
        if name == "string" {
            inputs.push(("whole", [&[WHOLE], &payload[..]].concat()));
        }
    }
    inputs
}
