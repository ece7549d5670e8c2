//! Functions in the real server: libraries that are data, and Redis's answers.

use crate::support::redis::{Redis, compare_answers};
use crate::support::wire::{Pipeline, Value};
use crate::support::{Answer, Client, Server, wait_until};

/// A library with one function that counts, and one that only reads.
const COUNTER: &str = "#!lua name=counter
local function shown(value) return 'value ' .. (value or 'none') end
redis.register_function('count', function(keys, args)
  return redis.call('INCRBY', keys[1], args[1] or 1)
end)
redis.register_function{
  function_name = 'show',
  description = 'Shows a counter.',
  callback = function(keys) return shown(redis.call('GET', keys[1])) end,
  flags = {'no-writes', 'allow-stale'},
}";

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

fn names(client: &mut Client) -> Vec<Answer> {
    let libraries = call(client, &["FUNCTION", "LIST"]).array();
    libraries.into_iter().map(|library| library.array()[1].clone()).collect()
}

#[test]
fn libraries_survive_a_crash_with_and_without_a_snapshot() {
    let directory = tempfile::tempdir().expect("a directory");
    let counter = Answer::Bulk("counter".into());
    for round in 0..3 {
        let server = Server::start(directory.path(), &[]);
        let mut client = server.client();
        if round == 0 {
            assert_eq!(call(&mut client, &["DURABLE", "FUNCTION", "LOAD", COUNTER]), counter);
        }
        assert_eq!(names(&mut client), std::slice::from_ref(&counter), "round {round}");
        assert_eq!(call(&mut client, &["FCALL", "count", "1", "k"]), Answer::Integer(round + 1));
        let shown = Answer::Bulk(format!("value {}", round + 1));
        assert_eq!(call(&mut client, &["FCALL_RO", "SHOW", "1", "k"]), shown);
        assert_eq!(call(&mut client, &["FLUSHALL"]), Answer::Status("OK".into()));
        assert_eq!(names(&mut client), std::slice::from_ref(&counter), "FLUSHALL keeps libraries");
        assert_eq!(
            call(&mut client, &["DURABLE", "SET", "k", &(round + 1).to_string()]),
            Answer::Status("OK".into())
        );
        if round == 1 {
            assert_eq!(call(&mut client, &["SAVE"]), Answer::Status("OK".into()));
        }
        server.kill();
    }
    let server = Server::start(directory.path(), &[]);
    let mut client = server.client();
    assert_eq!(call(&mut client, &["DURABLE", "FUNCTION", "DELETE", "counter"]), Answer::Status("OK".into()));
    server.kill();
    let server = Server::start(directory.path(), &[]);
    let mut client = server.client();
    assert_eq!(names(&mut client), []);
    assert_eq!(error_of(&call(&mut client, &["FCALL", "count", "1", "k"])), "ERR Function not found");
    assert_eq!(call(&mut client, &["DBSIZE"]), Answer::Integer(1), "a library is no key");
}

#[test]
fn a_function_that_takes_too_long_is_shown_and_can_be_ended() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &["--busy-reply-threshold", "50"]);
    let (mut runner, mut other) = (server.client(), server.client());
    let endless = "#!lua name=endless\nredis.register_function('endless', function() while true do end end)";
    assert_eq!(call(&mut other, &["FUNCTION", "LOAD", endless]), Answer::Bulk("endless".into()));
    let nothing = call(&mut other, &["FUNCTION", "KILL"]);
    assert_eq!(error_of(&nothing), "NOTBUSY No scripts in execution right now.");
    runner.send(&["FCALL", "endless", "0"]).expect("it is sent");
    wait_until("the server is busy", || call(&mut other, &["GET", "k"]).is_error());
    let stats = call(&mut other, &["FUNCTION", "STATS"]).array();
    let running = stats[1].clone().array();
    assert_eq!(running[1], Answer::Bulk("endless".into()));
    let words = ["FCALL", "endless", "0"].map(|word| Answer::Bulk(word.into()));
    assert_eq!(running[3], Answer::Array(words.to_vec()));
    let other_kind = call(&mut other, &["SCRIPT", "KILL"]);
    assert!(error_of(&other_kind).starts_with("BUSY"), "{other_kind:?}");
    assert_eq!(call(&mut other, &["FUNCTION", "KILL"]), Answer::Status("OK".into()));
    let ended = runner.read().expect("an answer");
    assert!(error_of(&ended).starts_with("ERR Script killed by user with FUNCTION KILL."), "{ended:?}");
    let stats = call(&mut other, &["FUNCTION", "STATS"]).array();
    assert_eq!(stats[1], Answer::Null);
}

#[test]
fn an_endless_function_in_place_of_a_quick_one_is_in_nobodys_way() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &["--busy-reply-threshold", "50", "--threads", "1"]);
    let (mut runner, mut other) = (server.client(), server.client());
    let library = |body: &str| format!("#!lua name=x\nredis.register_function('f', function() {body} end)");
    call(&mut other, &["FUNCTION", "LOAD", &library("return 1")]);
    for _ in 0..3 {
        assert_eq!(call(&mut runner, &["FCALL", "f", "0"]), Answer::Integer(1));
    }
    call(&mut other, &["FUNCTION", "LOAD", "REPLACE", &library("while true do end")]);
    runner.send(&["FCALL", "f", "0"]).expect("it is sent");
    wait_until("the server is busy", || call(&mut other, &["PING"]).is_error());
    assert_eq!(call(&mut other, &["FUNCTION", "KILL"]), Answer::Status("OK".into()));
    let ended = runner.read().expect("an answer");
    assert!(error_of(&ended).starts_with("ERR Script killed by user with FUNCTION KILL."), "{ended:?}");
}

#[test]
fn a_library_that_takes_too_long_to_load_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    let mut client = server.client();
    let endless = "#!lua name=endless\nwhile true do end";
    let refused = call(&mut client, &["FUNCTION", "LOAD", endless]);
    assert!(error_of(&refused).contains("FUNCTION LOAD timeout"), "{refused:?}");
    assert_eq!(names(&mut client), []);
}

/// Commands whose answers are those of Redis, in this order.
const ORACLE: &[&[&str]] = &[
    &["FUNCTION", "LOAD", COUNTER],
    &["FUNCTION", "LOAD", COUNTER],
    &["FUNCTION", "LOAD", "REPLACE", COUNTER],
    &["FUNCTION", "LOAD", "OTHER", COUNTER],
    &["FUNCTION", "LOAD", ""],
    &["FUNCTION", "LOAD", "return 1"],
    &["FUNCTION", "LOAD", "#!lua name=x"],
    &["FUNCTION", "LOAD", "#!lua\nreturn 1"],
    &["FUNCTION", "LOAD", "#! name=x\nreturn 1"],
    &["FUNCTION", "LOAD", "#!js name=x\nreturn 1"],
    &["FUNCTION", "LOAD", "#!lua name=x-y\nreturn 1"],
    &["FUNCTION", "LOAD", "#!lua name=x name=y\nreturn 1"],
    &["FUNCTION", "LOAD", "#!lua name=x other=y\nreturn 1"],
    &["FUNCTION", "LOAD", "#!lua name=x\nreturn 1"],
    &["FUNCTION", "LOAD", "#!lua name=x\nreturn ("],
    &["FUNCTION", "LOAD", "#!lua name=x\nx = 1"],
    &["FUNCTION", "LOAD", "#!lua name=x\nreturn math.random()"],
    &["FUNCTION", "LOAD", "#!lua name=x\nreturn redis.call('PING')"],
    &["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function()"],
    &["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function('f')"],
    &["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function('f', 1)"],
    &["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function({}, function() end)"],
    &["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function('a-b', function() end)"],
    &["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function('f', function() end, {})"],
    &["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function{callback = function() end}"],
    &["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function{function_name = 'f'}"],
    &["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function{function_name = {}}"],
    &["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function{other = 1}"],
    &["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function{flags = 1}"],
    &[
        "FUNCTION",
        "LOAD",
        "#!lua name=x\nredis.register_function{function_name='f', callback=function() end, flags={'bad'}}",
    ],
    &["FUNCTION", "LOAD", "#!lua name=x\nlocal f = redis.register_function f('f', f) f('f', f)"],
    &["FUNCTION", "LOAD", "#!lua name=other\nredis.register_function('count', function() end)"],
    &["FCALL", "count", "1", "k"],
    &["FCALL", "COUNT", "1", "k", "5"],
    &["FCALL", "show", "1", "k"],
    &["FCALL_RO", "show", "1", "k"],
    &["FCALL_RO", "count", "1", "k"],
    &["FCALL", "none", "0"],
    &["FCALL", "count", "x"],
    &["FCALL", "count", "-1"],
    &["FCALL", "count", "2", "k"],
    &["FCALL", "count", "1"],
    &["FCALL", "count"],
    &["SET", "text", "x"],
    &["FCALL", "count", "1", "text"],
    &["FCALL", "count", "0"],
    &["FUNCTION", "LIST", "LIBRARYNAME", "COUNT*", "WITHCODE", "x"],
    &["FUNCTION", "LIST", "LIBRARYNAME"],
    &["FUNCTION", "LIST", "LIBRARYNAME", "none"],
    &["FUNCTION", "STATS"],
    &["FUNCTION", "DELETE", "none"],
    &["FUNCTION", "DELETE", "counter"],
    &["FUNCTION", "LIST", "WITHCODE"],
    &[
        "FUNCTION",
        "LOAD",
        "#!lua name=one\nredis.register_function('one', function(...) return select('#', ...) end)",
    ],
    &["FUNCTION", "LIST", "WITHCODE"],
    &["FUNCTION", "LIST", "LIBRARYNAME", "ONE"],
    &["FCALL", "one", "1", "a", "b"],
    &[
        "FUNCTION",
        "LOAD",
        "#!lua name=two\nredis.register_function('two', function() return redis.register_function end)",
    ],
    &["FCALL", "two", "0"],
    &[
        "FUNCTION",
        "LOAD",
        "REPLACE",
        "#!lua name=two\nlocal own = redis\nown.register_function('two', function() own.register_function('x', own) end)",
    ],
    &["FCALL", "two", "0"],
    &[
        "FUNCTION",
        "LOAD",
        "REPLACE",
        "#!lua name=two\nredis.register_function('two', function() return {KEYS == nil, _G.KEYS} end)",
    ],
    &["FCALL", "two", "0"],
    &[
        "FUNCTION",
        "LOAD",
        "REPLACE",
        "#!lua name=two\nredis.register_function('two', function(keys)\n  local t = nil\n  return t.x\nend)",
    ],
    &["FCALL", "two", "0"],
    &[
        "FUNCTION",
        "LOAD",
        "REPLACE",
        "#!lua name=two\nredis.register_function{function_name='two', flags={'no-writes'}, callback=function() return redis.call('SET', 'x', 1) end}",
    ],
    &["FCALL", "two", "0"],
    &["FUNCTION", "STATS"],
    &["FUNCTION", "FLUSH", "NEVER"],
    &["FUNCTION", "FLUSH", "SYNC", "x"],
    &["FUNCTION", "FLUSH", "ASYNC"],
    &["FUNCTION", "LIST"],
    &["FUNCTION", "STATS"],
    &["FUNCTION", "KILL"],
    &["MULTI"],
    &["FUNCTION", "LOAD", COUNTER],
    &["FCALL", "count", "1", "in"],
    &["FUNCTION", "FLUSH"],
    &["FCALL", "count", "1", "in"],
    &["EXEC"],
    &["DBSIZE"],
];

#[test]
fn answers_are_those_of_redis() {
    let redis = Redis::start();
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    compare_answers(&redis, server.port, &["FUNCTION", "FLUSH"], ORACLE);
}

/// Returns a payload with the content, as Redis 7.0 would write it.
fn sealed(content: &[u8]) -> Vec<u8> {
    let mut payload = content.to_vec();
    tidemark_engine::rdb::seal(&mut payload);
    payload
}

/// Returns the content of a payload of libraries.
fn libraries(texts: &[&str]) -> Vec<u8> {
    let mut content = Vec::new();
    for text in texts {
        content.push(245);
        tidemark_engine::rdb::put_string(&mut content, text.as_bytes());
    }
    content
}

/// The libraries, in an order that does not depend on the server.
fn listed(side: &mut Pipeline) -> Vec<String> {
    let libraries = side.call(&[b"FUNCTION", b"LIST", b"WITHCODE"]).expect("an answer");
    let shown = libraries.elements().iter().map(|library| {
        let fields = library.elements();
        let mut functions: Vec<String> = fields[5].elements().iter().map(|one| format!("{one:?}")).collect();
        functions.sort();
        format!("{:?} {functions:?} {:?}", fields[1], fields[7])
    });
    let mut shown: Vec<String> = shown.collect();
    shown.sort();
    shown
}

#[test]
fn payloads_of_libraries_go_to_redis_and_come_back() {
    let redis = Redis::start();
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    let connect = |port: u16| Pipeline::connect(port).expect("a connection");
    let (mut ours, mut theirs) = (connect(server.port), connect(redis.port));
    let long = format!("{COUNTER}\n{}", "-- a comment that can be compressed\n".repeat(200));
    let digits = "#!lua name=n\nredis.register_function('n', function() return 1 end)";
    for texts in [&[][..], &[digits], &[COUNTER], &[&long], &[digits, COUNTER]] {
        for side in [&mut ours, &mut theirs] {
            side.call(&[b"FUNCTION", b"FLUSH"]).expect("an answer");
            for text in texts {
                side.call(&[b"FUNCTION", b"LOAD", text.as_bytes()]).expect("an answer");
            }
        }
        let dump = |side: &mut Pipeline| side.call(&[b"FUNCTION", b"DUMP"]).expect("an answer");
        let (before, dumps) = (listed(&mut theirs), [dump(&mut ours), dump(&mut theirs)]);
        // Compression is the server's own; this text is not compressed.
        if texts.iter().all(|text| *text == digits) {
            assert_eq!(dumps[0], dumps[1], "payloads of {} libraries", texts.len());
        }
        for (number, side) in [&mut theirs, &mut ours].into_iter().enumerate() {
            let payload = dumps[number].bytes();
            for policy in ["FLUSH", "REPLACE"] {
                let answer = side.call(&[b"FUNCTION", b"RESTORE", payload, policy.as_bytes()]);
                assert_eq!(answer.expect("an answer"), Value::Status("OK".into()), "{texts:?}");
                assert_eq!(listed(side), before);
            }
        }
    }
}

#[test]
fn restored_libraries_are_refused_as_by_redis_and_whole() {
    let redis = Redis::start();
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    let connect = |port: u16| Pipeline::connect(port).expect("a connection");
    let (mut ours, mut theirs) = (connect(server.port), connect(redis.port));
    let one = "#!lua name=one\nredis.register_function('one', function() return 1 end)";
    let other_one = "#!lua name=one\nredis.register_function('two', function() return 2 end)";
    let same_function = "#!lua name=three\nredis.register_function('one', function() return 3 end)";
    let broken = "#!lua name=four\nreturn (";
    let good = sealed(&libraries(&[one, COUNTER]));
    let mut wrong = good.clone();
    *wrong.last_mut().expect("a checksum") ^= 1;
    let cut = {
        let content = libraries(&[one]);
        sealed(&content[..content.len() / 2])
    };
    let refused = |content: &[u8], policy: &str| vec![sealed(content), policy.as_bytes().to_vec()];
    let whole = |payload: &[u8], policy: &[&str]| {
        let policy = policy.iter().map(|word| word.as_bytes().to_vec());
        std::iter::once(payload.to_vec()).chain(policy).collect::<Vec<_>>()
    };
    let lines = [
        whole(&good, &[]),
        refused(&libraries(&[one]), "APPEND"),
        refused(&libraries(&[one]), "append"),
        whole(&good, &["replace"]),
        whole(&good, &["flush"]),
        whole(&good, &["OTHER"]),
        whole(&good, &["FLUSH", "x"]),
        vec![],
        whole(b"", &[]),
        whole(b"short", &[]),
        whole(&wrong, &[]),
        whole(&cut, &[]),
        whole(&sealed(b""), &[]),
        refused(b"\x00", "APPEND"),
        refused(b"\xf5", "APPEND"),
        refused(b"\xf5\x01a", "APPEND"),
        refused(&libraries(&[broken]), "FLUSH"),
        refused(&libraries(&[other_one, broken]), "FLUSH"),
        refused(&libraries(&[one, one]), "FLUSH"),
        refused(&libraries(&[one, same_function]), "FLUSH"),
        refused(&libraries(&[same_function]), "APPEND"),
        refused(&libraries(&[same_function]), "REPLACE"),
        refused(&libraries(&[other_one]), "APPEND"),
        refused(&libraries(&[other_one]), "REPLACE"),
        refused(&libraries(&[same_function]), "APPEND"),
        refused(b"", "FLUSH"),
    ];
    for args in &lines {
        let mut words: Vec<&[u8]> = vec![b"FUNCTION", b"RESTORE"];
        words.extend(args.iter().map(Vec::as_slice));
        let words = &words;
        let expected = theirs.call(words).expect("an answer of Redis");
        let got = ours.call(words).expect("an answer");
        assert_eq!(got, expected, "{}", words.join(&b' ').escape_ascii());
        assert_eq!(listed(&mut ours), listed(&mut theirs), "{}", words.join(&b' ').escape_ascii());
    }
}

#[test]
fn restored_libraries_survive_a_crash() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    let mut ours = Pipeline::connect(server.port).expect("a connection");
    let payload = sealed(&libraries(&[COUNTER]));
    ours.call(&[b"FUNCTION", b"LOAD", b"#!lua name=old\nredis.register_function('old', function() end)"])
        .expect("an answer");
    let restored = ours.call(&[b"DURABLE", b"FUNCTION", b"RESTORE", &payload, b"FLUSH"]);
    assert_eq!(restored.expect("an answer"), Value::Status("OK".into()));
    server.kill();
    let server = Server::start(directory.path(), &[]);
    let mut client = server.client();
    assert_eq!(names(&mut client), [Answer::Bulk("counter".into())]);
    assert_eq!(call(&mut client, &["FCALL", "count", "1", "k"]), Answer::Integer(1));
}
