//! Libraries of functions: data in the log, on every member, and a replay without Lua.

use crate::support;
use crate::support::members::{GroupMember, replicate};
use crate::support::{Client, START_US, replayed};
use tidemark_engine::command::{Group, LibraryAction, ScriptAction, flags};
use tidemark_engine::record::level;
use tidemark_engine::{Call, Command, Engine, KeySpec, Reply, Run};
use tidemark_log::MemoryStorage;

const fn row(id: u16, name: &'static str, flags: u32, action: LibraryAction) -> Command {
    let run = Run::Script(ScriptAction::Libraries(action));
    Command::new(Group::Scripting, id, name, -2, flags, KeySpec::All, run).at_level(level::FUNCTIONS)
}

/// The commands on libraries, which are subcommands of the server's `FUNCTION`.
static LOAD: Command = row(60_001, "load", flags::WRITE, LibraryAction::Load);
static DELETE: Command = row(60_002, "delete", flags::WRITE, LibraryAction::Delete);
static FLUSH: Command = row(60_003, "flush", flags::WRITE, LibraryAction::Flush);
static LIST: Command = row(60_004, "list", flags::READONLY, LibraryAction::List);

fn on_libraries(engine: &Engine, command: &'static Command, args: &[&str]) -> String {
    let mut words: Vec<&[u8]> = vec![b"FUNCTION", command.name.as_bytes()];
    words.extend(args.iter().map(|arg| arg.as_bytes()));
    let mut reply = Reply::default();
    engine.execute(&Call { command, args: &words, db: 3, now_us: START_US }, &mut reply);
    support::shown(reply.bytes())
}

const COUNTER: &str = "#!lua name=counter\nredis.register_function('count', function(keys) return redis.call('INCR', keys[1]) end)";

#[test]
fn libraries_are_in_the_log_and_what_functions_change_is_one_record() {
    let engine = support::engine();
    let client = Client::new(&engine);
    assert_eq!(on_libraries(&engine, &LOAD, &[COUNTER]), "$7 counter");
    assert_eq!(client.run("FCALL COUNT 1 k"), ":1");
    assert_eq!(client.run("FCALL count 1 k"), ":2");
    assert!(on_libraries(&engine, &LOAD, &[COUNTER]).contains("already exists"));
    let again = replayed(&engine);
    assert_eq!(again.digest(), engine.digest());
    assert_eq!(Client::new(&again).run("FCALL count 1 k"), ":3", "the replayed library runs");
    assert_ne!(again.digest(), engine.digest());
    assert_eq!(client.run("FLUSHALL"), "+OK");
    assert_eq!(client.run("DBSIZE"), ":0");
    assert_eq!(client.run("FCALL count 1 k"), ":1", "FLUSHALL keeps libraries");
    for remove in [&DELETE, &FLUSH] {
        let digest = engine.digest();
        on_libraries(&engine, &LOAD, &["REPLACE", COUNTER]);
        assert_eq!(
            on_libraries(&engine, remove, if remove.name == "delete" { &["counter"] } else { &[] }),
            "+OK"
        );
        assert_eq!(client.run("FCALL count 1 k"), "-ERR Function not found");
        assert_eq!(on_libraries(&engine, &LIST, &[]), "*0");
        assert_eq!(replayed(&engine).digest(), engine.digest());
        assert!(remove.name == "flush" || digest != engine.digest(), "a library is part of the state");
    }
    let before = engine.log().appended();
    assert_eq!(on_libraries(&engine, &FLUSH, &[]), "+OK");
    assert_eq!(engine.log().appended(), before, "there was none to remove");
}

#[test]
fn what_is_refused_changes_nothing() {
    let engine = support::engine();
    on_libraries(&engine, &LOAD, &[COUNTER]);
    let before = (engine.log().appended(), engine.digest());
    for (command, args, reason) in [
        (&LOAD, &["#!lua name=x\nreturn ("][..], "-ERR Error compiling function: "),
        (&LOAD, &["#!lua name=x\nerror('no')"], "-ERR Error registering functions: "),
        (&LOAD, &["#!lua name=x\nreturn 1"], "-ERR No functions registered"),
        (
            &LOAD,
            &["#!lua name=x\nredis.register_function('Count', function() end)"],
            "-ERR Function Count already exists",
        ),
        (&LOAD, &["REPLACE", "#!lua name=counter\nreturn 1"], "-ERR No functions registered"),
        (&DELETE, &["none"], "-ERR Library not found"),
        (&FLUSH, &["LATER"], "-ERR FUNCTION FLUSH only supports SYNC|ASYNC option"),
    ] {
        let answer = on_libraries(&engine, command, args);
        assert!(answer.starts_with(reason), "{args:?}: {answer}");
    }
    assert_eq!((engine.log().appended(), engine.digest()), before);
    assert_eq!(Client::new(&engine).run("FCALL count 1 k"), ":1");
}

#[test]
fn libraries_have_a_limit() {
    let engine = support::engine();
    let library = |name: &str, bytes: usize| {
        let text = format!("redis.register_function('{name}', function() end)");
        format!("#!lua name={name}\n{text} -- {}", "x".repeat(bytes))
    };
    assert_eq!(on_libraries(&engine, &LOAD, &[&library("a", 5 << 20)]), "$1 a");
    let refused = on_libraries(&engine, &LOAD, &[&library("b", 5 << 20)]);
    assert!(refused.contains("FUNCTION DELETE removes one"), "{refused}");
    assert_eq!(on_libraries(&engine, &LOAD, &["REPLACE", &library("a", 6 << 20)]), "$1 a");
}

#[test]
fn every_member_has_the_libraries_and_runs_them_when_it_leads() {
    let (leader, follower) = (GroupMember::new(), GroupMember::new());
    leader.lead(START_US);
    let reading = "#!lua name=reader\nredis.register_function{function_name='read', flags={'no-writes'}, \
                   callback=function(keys) return redis.call('GET', keys[1]) end}";
    assert_eq!(on_libraries(&leader.engine, &LOAD, &[COUNTER]), "$7 counter");
    assert_eq!(on_libraries(&leader.engine, &LOAD, &[reading]), "$6 reader");
    assert_eq!(Client::new(&leader.engine).run("FCALL count 1 k"), ":1");
    replicate(&leader, &[&follower]);
    assert_eq!(follower.engine.digest(), leader.engine.digest());
    assert_eq!(Client::new(&follower.engine).run("FCALL_RO read 1 k"), "$1 1");
    let refused = on_libraries(&follower.engine, &DELETE, &["counter"]);
    assert!(refused.contains("does not lead its group"), "{refused}");
}

#[test]
fn a_group_whose_members_may_not_know_libraries_loads_none() {
    let leader = GroupMember::of_first_level(MemoryStorage::new());
    leader.lead(START_US);
    let refused = on_libraries(&leader.engine, &LOAD, &[COUNTER]);
    assert!(refused.contains("'load' needs records of level"), "{refused}");
    let client = Client::new(&leader.engine);
    assert_eq!(
        client.run("EVAL \"return redis.call('INCR', KEYS[1])\" 1 k"),
        ":1",
        "its record is an old one"
    );
    leader.engine.raise_level(level::FUNCTIONS);
    assert_eq!(on_libraries(&leader.engine, &LOAD, &[COUNTER]), "$7 counter");
}
