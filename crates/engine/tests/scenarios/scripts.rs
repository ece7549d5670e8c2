//! Scripts: one record of what they changed, the locks that they need, and a replay without Lua.

use crate::support;
use crate::support::members::{GroupMember, replicate};
use crate::support::{Client, START_US, replayed, run_on_threads, transaction};
use tidemark_engine::record::kind;
use tidemark_log::Lsn;

/// Kinds of the records behind `from`.
fn kinds_behind(engine: &tidemark_engine::Engine, from: Lsn) -> Vec<u8> {
    let mut kinds = Vec::new();
    support::for_each_record(engine, from.next(), |record| kinds.push(record.kind));
    kinds
}

#[test]
fn a_script_leaves_one_record_of_what_it_changed() {
    let engine = support::engine();
    let client = Client::new(&engine);
    for (line, answer, records) in [
        (
            "EVAL \"redis.call('INCR', KEYS[1]) return redis.call('INCR', KEYS[2])\" 2 a b",
            ":1",
            &[kind::TRANSACTION][..],
        ),
        (
            "EVAL \"redis.call('GET', KEYS[1]) return redis.call('INCR', KEYS[1])\" 1 a",
            ":2",
            &[kind::COMMAND],
        ),
        ("EVAL \"return redis.call('GET', KEYS[1])\" 1 a", "$1 2", &[]),
        ("EVAL \"return redis.call('DEL', KEYS[1])\" 1 none", ":0", &[]),
        ("EVAL \"redis.call('INCR', 'x') return redis.call('INCR', 'y')\" 0", ":1", &[kind::TRANSACTION]),
    ] {
        let before = engine.log().appended();
        assert_eq!(client.run(line), answer, "{line}");
        assert_eq!(kinds_behind(&engine, before), records, "{line}");
    }
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_script_that_fails_has_changed_what_it_had_changed() {
    let engine = support::engine();
    let client = Client::new(&engine);
    let failed = client.run("EVAL \"redis.call('SET', KEYS[1], 1) redis.call('LPUSH', KEYS[1], 2)\" 1 k");
    assert!(failed.starts_with("-WRONGTYPE"), "{failed}");
    let failed = client.run("EVAL \"redis.call('INCR', KEYS[1]) error('late')\" 1 k");
    assert!(failed.starts_with("-ERR user_script:1: late"), "{failed}");
    assert_eq!(client.run("GET k"), "$1 2");
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn commands_that_choose_are_logged_as_what_they_chose() {
    let engine = support::engine();
    let client = Client::new(&engine);
    client.run("SADD set a b c d e f g h i j");
    client.run("EVAL \"for i = 1, 3 do redis.call('SPOP', KEYS[1]) end redis.call('SPOP', 'set', 2)\" 1 set");
    client.run(
        "EVAL \"redis.call('SET', KEYS[1], 1, 'PX', 50) redis.call('SET', KEYS[2], math.random())\" 2 p q",
    );
    assert_eq!(client.run("SCARD set"), ":5");
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn scripts_on_several_threads_lose_nothing() {
    let engine = support::engine();
    run_on_threads(&engine, |thread, step| {
        let (one, two) = (format!("k{}", (thread + step) % 5), format!("k{}", step % 7));
        match (thread + step) % 4 {
            0 => format!(
                "EVAL \"redis.call('INCR', KEYS[1]) redis.call('INCR', KEYS[2]) redis.call('INCR', 'total')\" 2 {one} {two}"
            ),
            1 => format!("EVAL \"redis.call('INCR', KEYS[1]) return redis.call('INCR', KEYS[2])\" 2 {one} total"),
            2 => "EVAL \"for i = 0, 6 do redis.call('INCR', 'k' .. i) end return redis.call('INCR', 'total')\" 0".into(),
            _ => "INCR total".into(),
        }
    });
    let client = Client::new(&engine);
    assert_eq!(client.run("GET total"), "$3 480");
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_script_serves_clients_that_wait_and_is_part_of_a_transaction() {
    let engine = support::engine();
    let client = Client::new(&engine);
    let (_, executed) = client.execute("BLPOP queue 0");
    assert!(executed.blocks());
    drop(executed);
    let both = transaction(
        &engine,
        None,
        &[
            "SET k 1",
            "EVAL \"return redis.call('INCR', KEYS[1])\" 1 k",
            "EVAL \"return redis.call('INCR', 'k')\" 0",
        ],
    );
    assert_eq!(both, "*3 +OK :2 :3");
    assert_eq!(kinds_behind(&engine, engine.log().appended().previous()), [kind::TRANSACTION]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_script_reads_series_that_another_key_shows() {
    let engine = support::engine();
    let client = Client::new(&engine);
    client.run("TS.ADD source 1 -5");
    client.run("LENS.CREATE lens source abs");
    for line in [
        "EVAL \"return redis.call('TS.GET', KEYS[1])[2].ok or redis.call('TS.GET', KEYS[1])[2]\" 1 lens",
        "EVAL_RO \"return redis.call('TS.GET', KEYS[1])[2].ok or redis.call('TS.GET', KEYS[1])[2]\" 1 lens",
    ] {
        let answer = client.run(line);
        assert!(!answer.starts_with("-ERR no"), "{answer}");
    }
    client.run("EVAL \"redis.call('TS.ADD', KEYS[1], 2, 7)\" 1 source");
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn in_a_group_a_script_meets_no_key_whose_time_has_come() {
    let (leader, follower) = (GroupMember::new(), GroupMember::new());
    leader.lead(START_US);
    let mut client = Client::new(&leader.engine);
    client.run("SET declared 1 PX 10");
    client.run("SET undeclared 1 PX 10");
    client.sleep_ms(20);
    assert_eq!(client.run("EVAL \"return redis.call('INCR', KEYS[1])\" 1 declared"), ":1");
    assert_eq!(client.run("EVAL \"return redis.call('GET', 'undeclared')\" 0"), "$-1");
    assert_eq!(client.run("EVAL \"return redis.call('INCR', 'undeclared')\" 0"), ":1");
    replicate(&leader, &[&follower]);
    assert_eq!(follower.engine.digest(), leader.engine.digest());
    let reader = Client::new(&follower.engine);
    assert_eq!(reader.run("EVAL_RO \"return redis.call('GET', KEYS[1])\" 1 declared"), "$1 1");
}

#[test]
fn what_a_script_may_not_do_is_refused_and_changes_nothing() {
    let engine = support::engine();
    let client = Client::new(&engine);
    client.run("SET k v");
    let before = (engine.log().appended(), engine.digest());
    for (line, reason) in [
        (
            "EVAL_RO \"return redis.call('DEL', KEYS[1])\" 1 k",
            "-ERR Write commands are not allowed from read-only scripts.",
        ),
        (
            "EVAL \"return redis.call('BLPOP', KEYS[1], 0)\" 1 k",
            "-ERR This Redis command is not allowed from script",
        ),
        (
            "EVAL \"return redis.call('EVAL', 'return 1', 0)\" 0",
            "-ERR This Redis command is not allowed from script",
        ),
        ("EVAL \"return 1\" 2 k", "-ERR Number of keys can't be greater than number of args"),
        ("EVAL \"return 1\" -1", "-ERR Number of keys can't be negative"),
        ("EVAL \"return 1\" x", "-ERR value is not an integer or out of range"),
        ("EVAL \"return (\" 0", "-ERR Error compiling script (new function): user_script:1:"),
        (
            "EVALSHA ffffffffffffffffffffffffffffffffffffffff 0",
            "-NOSCRIPT No matching script. Please use EVAL.",
        ),
    ] {
        let answer = client.run(line);
        assert!(answer.starts_with(reason), "{line}: {answer}");
    }
    assert_eq!((engine.log().appended(), engine.digest()), before);
}
