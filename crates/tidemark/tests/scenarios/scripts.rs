//! Scripts in the real server: as in Redis, whole or not at all, and never in the way for long.

use crate::support::redis::{Redis, compare_answers};
use crate::support::{Answer, Client, Server, wait_until};
use std::time::Duration;

/// The token bucket that limiters write.
const BUCKET: &str = "local points = redis.call('incrby', KEYS[1], ARGV[1]) \
                      if points == tonumber(ARGV[1]) then redis.call('pexpire', KEYS[1], ARGV[2]) end \
                      return {points, redis.call('pttl', KEYS[1])}";

/// Sends a command; its answer may be an error.
fn call(client: &mut Client, words: &[&str]) -> Answer {
    client.call(words).expect("the server answers")
}

fn error_of(answer: &Answer) -> &str {
    match answer {
        Answer::Error(text) => text,
        other => panic!("not an error: {other:?}"),
    }
}

fn server(arguments: &[&str]) -> (tempfile::TempDir, Server) {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), arguments);
    (directory, server)
}

#[test]
fn scripts_run_by_text_and_by_name() {
    let (_directory, server) = server(&[]);
    let mut client = server.client();
    let id = call(&mut client, &["SCRIPT", "LOAD", BUCKET]);
    let Answer::Bulk(id) = id else { panic!("SCRIPT LOAD answers the id, not {id:?}") };
    assert_eq!(
        call(&mut client, &["SCRIPT", "EXISTS", &id, "none"]),
        Answer::Array(vec![Answer::Integer(1), Answer::Integer(0)])
    );
    for expected in 1..=5 {
        let answer = call(&mut client, &["EVALSHA", &id.to_uppercase(), "1", "limit", "1", "60000"]).array();
        assert_eq!(answer[0], Answer::Integer(expected));
        assert!((1..=60_000).contains(&answer[1].integer()), "{answer:?}");
    }
    assert_eq!(call(&mut client, &["SCRIPT", "FLUSH"]), Answer::Status("OK".into()));
    let unknown = call(&mut client, &["EVALSHA", &id, "1", "limit", "1", "60000"]);
    assert_eq!(error_of(&unknown), "NOSCRIPT No matching script. Please use EVAL.");
    let again = call(&mut client, &["EVAL", BUCKET, "1", "limit", "1", "60000"]).array();
    assert_eq!(again[0], Answer::Integer(6));
    let known = call(&mut client, &["EVALSHA", &id, "1", "limit", "1", "60000"]).array();
    assert_eq!(known[0], Answer::Integer(7), "EVAL has made it known");
}

#[test]
fn a_script_is_part_of_a_transaction_and_can_be_numbered() {
    let (_directory, server) = server(&[]);
    let mut client = server.client();
    call(&mut client, &["MULTI"]);
    call(&mut client, &["SET", "k", "1"]);
    call(&mut client, &["EVAL", "return redis.call('INCR', KEYS[1])", "1", "k"]);
    call(&mut client, &["EVAL", "return redis.call('INCR', 'undeclared')", "0"]);
    let answers = call(&mut client, &["EXEC"]).array();
    assert_eq!(answers[1..], [Answer::Integer(2), Answer::Integer(1)]);
    for _ in 0..2 {
        let numbered = ["ONCE", "s", "1", "EVAL", "return redis.call('INCR', KEYS[1])", "1", "k"];
        assert_eq!(call(&mut client, &numbered), Answer::Integer(3), "it is executed once");
    }
    let durable = call(&mut client, &["DURABLE", "EVAL", "return redis.call('INCR', KEYS[1])", "1", "k"]);
    assert_eq!(durable, Answer::Integer(4));
    let inner = call(&mut client, &["EVAL", "return redis.call('DURABLE', 'INCR', KEYS[1])", "1", "k"]);
    assert_eq!(inner, Answer::Integer(5));
    let ours =
        "redis.call('LIMIT.CHECK', KEYS[1], 'FIXED', 5, 'PER', 60000) return redis.call('TYPE', KEYS[1]).ok";
    let limited = call(&mut client, &["EVAL", ours, "1", "limited"]);
    assert_ne!(limited, Answer::Bulk("none".into()), "our own commands are there");
}

#[test]
fn messages_of_a_script_reach_subscribers() {
    let (_directory, server) = server(&[]);
    let (mut client, mut subscriber) = (server.client(), server.client());
    call(&mut subscriber, &["SUBSCRIBE", "news"]);
    let text = "redis.call('SET', KEYS[1], 'x') return redis.call('PUBLISH', 'news', 'written')";
    assert_eq!(call(&mut client, &["EVAL", text, "1", "k"]), Answer::Integer(1));
    let message = subscriber.read().expect("a message").array();
    assert_eq!(message[2], Answer::Bulk("written".into()));
}

#[test]
fn what_a_script_changes_survives_a_crash_whole_or_not_at_all() {
    let directory = tempfile::tempdir().expect("a directory");
    // The first names its keys, the second none.
    let both = [
        "redis.call('INCR', KEYS[1]) redis.call('INCR', KEYS[2]) return redis.call('RPUSH', KEYS[3], 'x')",
        "redis.call('INCR', 'a') redis.call('INCR', 'b') return redis.call('RPUSH', 'c', 'x')",
    ];
    let mut least = 0;
    for round in 0..4 {
        let server = Server::start(directory.path(), &["--threads", "2", "--durability", "always"]);
        let value = |client: &mut Client, key: &str| call(client, &["INCRBY", key, "0"]).integer();
        let mut client = server.client();
        let before = value(&mut client, "a");
        assert!(before >= least, "{before} changes are there, and {least} were answered");
        assert_eq!(value(&mut client, "b"), before);
        assert_eq!(call(&mut client, &["LLEN", "c"]).integer(), before);
        let writers: Vec<_> = (0..3)
            .map(|number| {
                let (mut client, text) = (server.client(), both[number % 2]);
                let words: Vec<&str> = if number % 2 == 0 {
                    vec!["EVAL", text, "3", "a", "b", "c"]
                } else {
                    vec!["EVAL", text, "0"]
                };
                std::thread::spawn(move || {
                    let mut most = 0;
                    while let Ok(Answer::Integer(answer)) = client.call(&words) {
                        most = most.max(answer);
                    }
                    most
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(100 + 50 * round));
        server.kill();
        let answered = writers.into_iter().map(|writer| writer.join().expect("a writer")).max();
        least = answered.unwrap_or(0).max(before);
    }
    assert!(least > 0);
}

#[test]
fn others_are_told_of_a_script_that_takes_too_long_and_can_end_it() {
    for workers in ["1", "2"] {
        let (_directory, server) = server(&["--threads", workers, "--busy-reply-threshold", "100"]);
        let (mut runner, mut other, mut third) = (server.client(), server.client(), server.client());
        let nothing = call(&mut other, &["SCRIPT", "KILL"]);
        assert_eq!(error_of(&nothing), "NOTBUSY No scripts in execution right now.");
        runner
            .send(&["EVAL", "while true do redis.pcall('GET', 'x') pcall(error) end", "0"])
            .expect("it is sent");
        wait_until("the server is busy", || call(&mut other, &["GET", "k"]).is_error());
        let busy = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
        assert_eq!(error_of(&call(&mut third, &["SET", "k", "v"])), busy);
        assert_eq!(error_of(&call(&mut third, &["EVAL", "return 1", "1", "k"])), busy);
        assert_eq!(error_of(&call(&mut third, &["PING"])), busy, "no key can be had");
        assert_eq!(call(&mut third, &["ECHO", "a"]), Answer::Bulk("a".into()), "what needs no key goes on");
        assert_eq!(call(&mut other, &["SCRIPT", "KILL"]), Answer::Status("OK".into()));
        let ended = runner.read().expect("an answer");
        assert!(error_of(&ended).starts_with("ERR Script killed by user with SCRIPT KILL."), "{ended:?}");
        assert_eq!(call(&mut other, &["SET", "k", "v"]), Answer::Status("OK".into()));

        // With its key alone, it is in the way of that key's commands alone.
        runner
            .send(&["EVAL", "redis.call('SET', KEYS[1], 1) while true do end", "1", "k"])
            .expect("it is sent");
        wait_until("the key is busy", || call(&mut other, &["GET", "k"]).is_error());
        assert_eq!(call(&mut other, &["SET", "far", "v"]), Answer::Status("OK".into()));
        assert_eq!(call(&mut other, &["PING"]), Answer::Status("PONG".into()));
        let refused = call(&mut other, &["SCRIPT", "KILL"]);
        assert!(
            error_of(&refused).starts_with("UNKILLABLE Sorry the script already executed write"),
            "{refused:?}"
        );
        server.kill();
    }
}

#[test]
fn a_server_that_stops_ends_scripts_that_do_not_end() {
    let (_directory, server) = server(&["--shutdown-timeout", "1", "--busy-reply-threshold", "100"]);
    let (mut runner, mut other) = (server.client(), server.client());
    let endless = "redis.call('SET', KEYS[1], 1) while true do pcall(error) end";
    runner.send(&["EVAL", endless, "1", "k"]).expect("it is sent");
    wait_until("the key is busy", || call(&mut other, &["GET", "k"]).is_error());
    let status = server.terminate();
    assert!(status.success(), "{status}");
}

#[test]
fn scripts_that_only_read_change_nothing() {
    let (_directory, server) = server(&[]);
    let mut client = server.client();
    let write = "return redis.call('SET', KEYS[1], 1)";
    for words in [
        vec!["EVAL_RO", write, "1", "k"],
        vec!["EVAL_RO", "return redis.call('PUBLISH', 'channel', 'message')", "0"],
        vec!["EVAL", "#!lua flags=no-writes\nreturn redis.call('SET', KEYS[1], 1)", "1", "k"],
    ] {
        let answer = call(&mut client, &words);
        let expected = "ERR Write commands are not allowed from read-only scripts.";
        assert!(error_of(&answer).starts_with(expected), "{answer:?}");
    }
    let flagged = call(&mut client, &["EVAL_RO", "#!lua\nreturn 1", "0"]);
    assert_eq!(error_of(&flagged), "ERR Can not execute a script with write flag using *_ro command.");
    assert_eq!(call(&mut client, &["EVAL_RO", "return redis.call('GET', KEYS[1])", "1", "k"]), Answer::Null);
}

/// Commands whose answers are those of Redis, in this order.
const ORACLE: &[&[&str]] = &[
    &["EVAL", "return {1, 'a', true, false, {2, {3}}, 1.9, -1.9}", "0"],
    &["EVAL", "return {KEYS, ARGV}", "2", "a", "b", "c", "d"],
    &["EVAL", "return redis.call('SET', KEYS[1], ARGV[1])", "1", "k", "v"],
    &["EVAL", "return redis.call('GET', KEYS[1])", "1", "k"],
    &["EVAL", "return redis.call('GET', 'none')", "0"],
    &["EVAL", "return redis.call('INCR', KEYS[1])", "1", "k"],
    &["EVAL", "return redis.pcall('INCR', KEYS[1])", "1", "k"],
    &["EVAL", "return redis.call('LPUSH', KEYS[1], 'x')", "1", "k"],
    &["EVAL", "local ok, e = pcall(redis.call, 'INCR', KEYS[1]) return e.err", "1", "k"],
    &["EVAL", "return redis.call('NOPE')", "0"],
    &["EVAL", "return redis.call('GET')", "0"],
    &["EVAL", "return redis.call('GET', 'a', 'b')", "0"],
    &["EVAL", "return redis.call()", "0"],
    &["EVAL", "return redis.call('GET', {})", "0"],
    &["EVAL", "return redis.call('GET', nil)", "0"],
    &["EVAL", "return redis.call('SUBSCRIBE', 'x')", "0"],
    &["EVAL", "return redis.call('EVAL', 'return 1', 0)", "0"],
    &["EVAL", "return redis.call('MULTI')", "0"],
    &["EVAL", "return redis.call('BLPOP', 'x', 0)", "0"],
    &["EVAL", "return redis.call('PING')", "0"],
    &["EVAL", "return redis.call('ECHO', 'x')", "0"],
    // The time goes on: the loop ends.
    &[
        "EVAL",
        "local first = redis.call('TIME') local next repeat next = redis.call('TIME') until next[2] ~= first[2] \
         return #next",
        "0",
    ],
    &["EVAL", "return #redis.call('TIME')", "0"],
    &["EVAL", "return redis.call('PUBLISH', 'c', 'm')", "0"],
    &["EVAL", "return redis.call('SELECT', 3)", "0"],
    &["EVAL", "redis.call('SELECT', 3) return redis.call('SET', 'in3', 1)", "0"],
    &["GET", "in3"],
    &["EVAL", "return redis.call('SELECT', 99)", "0"],
    &["EVAL", "return redis.call('HSET', KEYS[1], 'a', 1, 'b', 2)", "1", "h"],
    &["EVAL", "return redis.call('HGETALL', KEYS[1])", "1", "h"],
    &["EVAL", "redis.setresp(3) return redis.call('HGETALL', KEYS[1])", "1", "h"],
    &["EVAL", "redis.setresp(3) return type(redis.call('HGETALL', KEYS[1]).map)", "1", "h"],
    &["EVAL", "redis.setresp(3) return type(redis.call('GET', 'none'))", "0"],
    &["EVAL", "return redis.call('ZADD', KEYS[1], 1.5, 'm')", "1", "z"],
    &["EVAL", "return redis.call('ZSCORE', KEYS[1], 'm')", "1", "z"],
    &["EVAL", "redis.setresp(3) return redis.call('ZSCORE', KEYS[1], 'm').double", "1", "z"],
    &["EVAL", "return redis.call('SET', KEYS[1], 0.1)", "1", "f"],
    &["GET", "f"],
    &["EVAL", "return redis.call('SET', KEYS[1], 1e15)", "1", "f"],
    &["GET", "f"],
    &["EVAL", "return redis.call('SET', KEYS[1], 2^53)", "1", "f"],
    &["GET", "f"],
    &["EVAL", "return redis.status_reply('x')", "0"],
    &["EVAL", "return redis.error_reply('My error')", "0"],
    &["EVAL", "return redis.error_reply('MYERROR')", "0"],
    &["EVAL", "return {err='x y'}", "0"],
    &["EVAL", "return {ok='x\\r\\ny'}", "0"],
    &["EVAL", "return redis.sha1hex('x')", "0"],
    &["EVAL", "return redis.sha1hex()", "0"],
    &["EVAL", "error('boom')", "0"],
    &["EVAL", "\n\nerror('boom')", "0"],
    &["EVAL", "error({err='MY boom'})", "0"],
    &["EVAL", "error({err='MY boom'}) return 1", "0"],
    &["EVAL", "local function f() error('deep') end f()", "0"],
    &["EVAL", "return x", "0"],
    &["EVAL", "x = 1", "0"],
    &["EVAL", "redis.call = 1", "0"],
    &["EVAL", "_G.x = 1", "0"],
    &["EVAL", "rawset(_G, 'x', 1)", "0"],
    &["EVAL", "setmetatable(_G, {})", "0"],
    &["EVAL", "local t = nil return t.x", "0"],
    &["EVAL", "return 1 + {}", "0"],
    &["EVAL", "return 'a' < 1", "0"],
    &["EVAL", "return tostring(1/3)", "0"],
    &["EVAL", "math.randomseed(7) return tostring(math.random())", "0"],
    &["EVAL", "return math.random(0)", "0"],
    &["EVAL", "return redis.setresp(5)", "0"],
    &["EVAL", "return redis.log()", "0"],
    &["EVAL", "return redis.log(9, 'x')", "0"],
    &["EVAL", "return redis.set_repl()", "0"],
    &["EVAL", "return redis.set_repl(9)", "0"],
    &["EVAL", "return redis.replicate_commands()", "0"],
    &["EVAL", "return redis.acl_check_cmd('GET', 'x')", "0"],
    &["EVAL", "return redis.acl_check_cmd('NOPE')", "0"],
    &["EVAL", "return cjson.encode({1, 2, {a = 'x/y'}})", "0"],
    &["EVAL", "return cjson.encode({[1] = 1, [4] = 4})", "0"],
    &["EVAL", "return cjson.encode({[100] = 1})", "0"],
    &["EVAL", "return cjson.encode(function() end)", "0"],
    &["EVAL", "return cjson.encode(0.1)", "0"],
    &["EVAL", "return cjson.encode(1e20)", "0"],
    &["EVAL", "return cjson.decode('{\"a\":[1,2.5,null]}').a", "0"],
    &["EVAL", "return cjson.decode('[1')", "0"],
    &["EVAL", "return cjson.decode('x')", "0"],
    &["EVAL", "return cjson.decode('[1] x')", "0"],
    &["EVAL", "return cjson.decode('\"\\\\ud800\"')", "0"],
    &["EVAL", "local t = {} t[1] = t return cjson.encode(t)", "0"],
    &["EVAL", "return cmsgpack.pack({1, 'x', {a = 1.5}, true, -70000, 3000000000})", "0"],
    &["EVAL", "return {cmsgpack.unpack(cmsgpack.pack(1, 'x', {2}))}", "0"],
    &["EVAL", "return {cmsgpack.unpack_one(cmsgpack.pack(1, 'x'), 1)}", "0"],
    &["EVAL", "return {cmsgpack.unpack_limit(cmsgpack.pack(1, 2, 3), 2, 0)}", "0"],
    &["EVAL", "return cmsgpack.unpack('\\217')", "0"],
    &["EVAL", "return cmsgpack.unpack('\\193')", "0"],
    &["EVAL", "return cmsgpack.pack()", "0"],
    &["EVAL", "return struct.pack('>HhIlbBxs', 1, -2, 3, -4, 5, 6, 'ab')", "0"],
    &["EVAL", "return {struct.unpack('>HhI', struct.pack('>HhI', 1, -2, 3))}", "0"],
    &["EVAL", "return struct.size('!8Bd')", "0"],
    &["EVAL", "return struct.size('s')", "0"],
    &["EVAL", "return struct.pack('i100', 1)", "0"],
    &["EVAL", "return struct.pack('q', 1)", "0"],
    &["EVAL", "return struct.unpack('I4', 'x')", "0"],
    &["EVAL", "return {bit.band(255, 15), bit.bnot(0), bit.tohex(255), bit.bswap(1), bit.rol(1, 31)}", "0"],
    &["EVAL", "return {('hello world'):gsub('o', '0')}", "0"],
    &["EVAL", "return {('hello'):gsub('', '-')}", "0"],
    &["EVAL", "return {('abc'):gsub('%w', '%%%0')}", "0"],
    &["EVAL", "return {('x=1, y=2'):match('(%w+)=(%w+)')}", "0"],
    &["EVAL", "return {('hello'):find('l+')}", "0"],
    &["EVAL", "return {('hello'):find('xyz')}", "0"],
    &["EVAL", "return string.find('x')", "0"],
    &["EVAL", "return ('x'):rep(3)", "0"],
    &["EVAL", "return ('x'):find('[a')", "0"],
    &["EVAL", "return string.format('%d %s %5.2f %q', 1, 'x', 2.5, 'y')", "0"],
    &["EVAL", "return table.concat({1, 2, 3}, ',')", "0"],
    &["EVAL", "local t = {3, 1, 2} table.sort(t) return t", "0"],
    &["EVAL", "return loadstring('return 1 + 1')()", "0"],
    &["EVAL", "return {pcall(function() return 1, 2 end)}", "0"],
    &["EVAL", "return select('#', unpack({1, 2, 3}))", "0"],
    &["EVAL", "return type(os)", "0"],
    &["EVAL", "return print", "0"],
    &["EVAL", "return", "0"],
    &["EVAL", "return 1", "-1"],
    &["EVAL", "return 1", "x"],
    &["EVAL", "return 1", "5", "a"],
    &["EVAL", "#!lua\nreturn 1", "0"],
    &["EVAL", "#!lua flags=no-writes\nreturn redis.call('SET', 'k', 1)", "0"],
    &["EVAL", "#!lua flags=bad\nreturn 1", "0"],
    &["EVAL", "#!python\nreturn 1", "0"],
    &["EVAL", "#!lua name=x\nreturn 1", "0"],
    &["EVAL", "#!lua", "0"],
    &["EVAL_RO", "return redis.call('SET', 'k', 1)", "0"],
    &["EVAL", "return cjson.encode(redis.pcall('MULTI'))", "0"],
    &["EVAL", "return cjson.encode(redis.pcall('NOPE'))", "0"],
    &["EVAL", "return cjson.encode(redis.pcall())", "0"],
    &["EVAL", "return cjson.encode(redis.pcall({}))", "0"],
    &["EVAL_RO", "#!lua\nreturn 1", "0"],
    &["EVAL_RO", "return redis.call('GET', 'k')", "0"],
    &["EVALSHA", "ffffffffffffffffffffffffffffffffffffffff", "0"],
    &["EVALSHA", "short", "0"],
    &["SCRIPT", "LOAD", "return 1"],
    &["SCRIPT", "EXISTS", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "x"],
    &["EVALSHA", "E0E1F9FABFC9D4800C877A703B823AC0578FF8DB", "0"],
    &["SCRIPT", "FLUSH", "NEVER"],
    &["SCRIPT", "FLUSH", "ASYNC"],
    &["EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0"],
    &["SCRIPT", "KILL"],
    &["SCRIPT", "LOAD"],
    &["MULTI"],
    &["EVAL", "return redis.call('INCR', KEYS[1])", "1", "n"],
    &["EVAL", "return redis.call('NOPE')", "0"],
    &["EXEC"],
    &["EVAL", "redis.call('INCR', KEYS[1]) error('late')", "1", "n"],
    &["GET", "n"],
    &["EVAL", "redis.call('SET', KEYS[1], 1, 'PX', 1) return redis.call('EXISTS', KEYS[1])", "1", "short"],
    &["EVAL", "return redis.call('FLUSHALL')", "0"],
    &["DBSIZE"],
];

#[test]
fn a_pause_of_changes_does_not_stop_scripts_that_change_nothing() {
    let (_directory, server) = server(&[]);
    let (mut client, mut other) = (server.client(), server.client());
    let reads = "#!lua flags=no-writes\nreturn redis.call('GET', KEYS[1])";
    let library = "#!lua name=reads\nredis.register_function{function_name='reads', flags={'no-writes'}, \
                   callback=function(keys) return redis.call('GET', keys[1]) end}";
    call(&mut client, &["SET", "k", "v"]);
    call(&mut client, &["FUNCTION", "LOAD", library]);
    let id = call(&mut client, &["SCRIPT", "LOAD", reads]);
    let Answer::Bulk(id) = id else { panic!("{id:?}") };
    call(&mut other, &["CLIENT", "PAUSE", "100000000", "WRITE"]);
    let v = Answer::Bulk("v".into());
    for words in [
        &["EVAL", reads, "1", "k"][..],
        &["EVALSHA", &id, "1", "k"],
        &["EVAL_RO", "return redis.call('GET', KEYS[1])", "1", "k"],
        &["EVALSHA_RO", &id, "1", "k"],
        &["FCALL", "reads", "1", "k"],
        &["FCALL_RO", "reads", "1", "k"],
    ] {
        assert_eq!(call(&mut client, words), v, "{words:?}");
    }
    call(&mut client, &["MULTI"]);
    call(&mut client, &["EVAL", reads, "1", "k"]);
    assert_eq!(call(&mut client, &["EXEC"]), Answer::Array(vec![v]));
    // One that does not say so waits.
    client.send(&["EVAL", "return redis.call('GET', KEYS[1])", "1", "k"]).expect("it is sent");
    wait_until("the script waits", || {
        let clients = call(&mut other, &["INFO", "clients"]);
        matches!(clients, Answer::Bulk(text) if text.contains("blocked_clients:1"))
    });
    call(&mut other, &["CLIENT", "UNPAUSE"]);
    assert_eq!(client.read().expect("an answer"), Answer::Bulk("v".into()));
}

#[test]
fn answers_are_those_of_redis() {
    let (redis, (_directory, server)) = (Redis::start(), server(&[]));
    compare_answers(&redis, server.port, &["SCRIPT", "FLUSH"], ORACLE);
}
