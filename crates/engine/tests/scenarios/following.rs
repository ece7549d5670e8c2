//! Memory that follows the log of a group: it is that of the leader at the same record, a reader sees
//! each record whole, and a key is there until a record removes it.

use crate::replay::Sequence;
use crate::support::members::{GroupMember, replicate};
use crate::support::{Client, START_US, transaction};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tidemark_engine::watch::{Filter, Read, Resumed, SharedQuery};
use tidemark_engine::{Call, DUE_WORK, Engine, Protocol, Reply, WatchedKeys, command};
use tidemark_log::MemoryStorage;

/// A leader, and a member that follows it.
fn pair() -> (GroupMember, GroupMember) {
    let (leader, follower) = (GroupMember::new(), GroupMember::new());
    leader.lead(START_US);
    replicate(&leader, &[&follower]);
    (leader, follower)
}

fn assert_equal(one: &GroupMember, other: &GroupMember) {
    assert_eq!(one.engine.applied(), other.engine.applied());
    let lsn = one.engine.applied();
    assert_eq!(one.engine.digest(), other.engine.digest(), "the digests of two members at record {lsn}");
}

/// Lets a new member load a snapshot that is taken while commands run, and follow behind it.
fn join(sequence: &mut Sequence, leader: &GroupMember) -> GroupMember {
    let new = GroupMember::new();
    sequence.fill();
    // The snapshot is cut within an entry: the one before it is the last that it covers whole.
    leader.write();
    let entry = leader.member.last_entry();
    (0..20).for_each(|_| sequence.step());
    let engine = Arc::clone(&leader.engine);
    let mut snapshot = engine.snapshot();
    let lsn = snapshot.lsn();
    assert_eq!(lsn, engine.applied());
    let loader = new.engine.load(START_US);
    while let Some(frame) = snapshot.next_frame() {
        loader.load_frame(&frame).expect("a frame loads");
        (0..5).for_each(|_| sequence.step());
        leader.write();
    }
    loader.finish().expect("nothing is missing");
    new.member.restart_behind(entry).expect("begins behind the snapshot");
    new.engine.continue_behind(lsn);
    new
}

fn members_agree(seed: u64) {
    let (leader, follower) = pair();
    let mut sequence = Sequence::on(Arc::clone(&leader.engine), seed);
    for _ in 0..12 {
        for _ in 0..25 {
            sequence.step();
            if sequence.dice.once_in(4) {
                leader.write();
            }
        }
        replicate(&leader, &[&follower]);
        assert_equal(&leader, &follower);
    }
    let third = join(&mut sequence, &leader);
    replicate(&leader, &[&follower, &third]);
    assert_equal(&leader, &follower);
    assert_equal(&leader, &third);
    // The lead moves, and the old leader's memory goes on.
    assert_eq!(leader.engine.commit_all(sequence.now_us), 0);
    replicate(&leader, &[&follower, &third]);
    leader.step_down();
    third.lead(sequence.now_us);
    replicate(&third, &[&leader, &follower]);
    sequence.engine = Arc::clone(&third.engine);
    for _ in 0..150 {
        sequence.step();
        if sequence.dice.once_in(10) {
            replicate(&third, &[&leader, &follower]);
        }
    }
    replicate(&third, &[&leader, &follower]);
    assert_equal(&third, &leader);
    assert_equal(&third, &follower);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn members_at_the_same_record_have_the_same_state_over_every_command(seed: u64) {
        members_agree(seed);
    }
}

#[test]
fn memory_that_follows_is_behind_its_log() {
    let (leader, follower) = pair();
    Client::new(&leader.engine).run("SET k 1");
    leader.write();
    let (before, last) = (follower.engine.applied(), follower.receive(&leader));
    assert_eq!((follower.engine.log().appended(), follower.engine.applied()), (last, before));
    assert_eq!(follower.engine.snapshot().lsn(), before, "a snapshot is cut where memory is");
    let reader = Client::new(&follower.engine);
    assert_eq!((reader.run("GET k"), leader.engine.applied()), ("$-1".to_owned(), last));
    assert!(reader.run("SET k 2").contains("does not lead its group"));
    follower.commit(last);
    assert_eq!((reader.run("GET k"), follower.engine.applied()), ("$1 1".to_owned(), last));
}

#[test]
fn a_snapshot_of_a_follower_is_the_state_at_its_cut() {
    let (leader, follower) = pair();
    let client = Client::new(&leader.engine);
    client.run("SET k 1");
    let entry = leader.write().expect("a record");
    let cut = replicate(&leader, &[&follower]);
    client.run("SET k 2");
    leader.write();
    // The log has more than memory.
    let last = follower.receive(&leader);
    let mut snapshot = follower.engine.snapshot();
    let frames: Vec<_> = std::iter::from_fn(|| snapshot.next_frame()).collect();
    follower.commit(last);
    assert_eq!(snapshot.lsn(), cut);
    let third = GroupMember::new();
    let loader = third.engine.load(START_US);
    frames.iter().for_each(|frame| loader.load_frame(frame).expect("a frame loads"));
    loader.finish().expect("nothing is missing");
    third.member.restart_behind(entry).expect("begins behind the snapshot");
    third.engine.continue_behind(cut);
    replicate(&leader, &[&follower, &third]);
    assert_equal(&leader, &third);
}

#[test]
fn a_member_that_starts_again_has_nothing_in_memory_that_is_not_committed() {
    let storage = MemoryStorage::new();
    let leader = GroupMember::on(storage.clone());
    leader.lead(START_US);
    let client = Client::new(&leader.engine);
    client.run("SET k 1");
    let committed = leader.write().expect("a record").last;
    leader.commit(committed);
    let digest = leader.engine.digest();
    for value in ["2", "3"] {
        client.run(&format!("SET k {value}"));
        leader.write();
    }
    let again = GroupMember::on(storage.fork());
    let (log, mut scratch) = (again.engine.log(), Reply::default());
    let mut replay = log.replay(log.floor()).expect("begins");
    while let Some(batch) = replay.next_batch().expect("reads") {
        batch.iter().for_each(|record| again.engine.apply(&record, &mut scratch).expect("is applied"));
    }
    assert_eq!((again.engine.applied(), again.engine.digest()), (committed, digest));
    assert!(log.written() > committed);
    again.commit(log.written());
    assert_eq!(Client::new(&again.engine).run("GET k"), "$1 3");
    assert_equal(&leader, &again);
}

#[test]
#[should_panic(expected = "memory leads at record 4294967296, and the log ends with 4294967297")]
fn memory_that_lacks_records_cannot_lead() {
    let (leader, follower) = pair();
    Client::new(&leader.engine).run("SET k 1");
    leader.write();
    follower.receive(&leader);
    follower.engine.lead(START_US);
}

#[test]
fn memory_with_a_change_that_the_log_refused_cannot_follow() {
    let leader = Arc::new(GroupMember::new());
    let losing = Arc::clone(&leader);
    // The lead is lost while a command runs, behind its admission.
    let secrets = move |bytes: &mut [u8]| {
        losing.member.pause();
        bytes.fill(1);
        Ok(())
    };
    let engine = Engine::new(Arc::clone(leader.engine.log()), 8, 42).with_secrets(Box::new(secrets));
    leader.lead(START_US);
    engine.continue_behind(leader.engine.applied());
    engine.lead(START_US);
    let answer = Client::new(&engine).run("POOL.CREATE p ITEMS car 1 1");
    assert!(answer.starts_with("-MISCONF") && answer.contains("does not lead its group"), "{answer}");
    let refused = engine.follow(engine.applied()).expect_err("memory is ahead");
    assert!(refused.to_string().contains("an earlier change could not be logged"), "{refused}");
}

#[test]
fn memory_with_moves_of_counters_that_are_in_no_record_cannot_follow() {
    let (leader, follower) = pair();
    let client = Client::new(&leader.engine);
    client.run("COUNTER.CREATE c");
    client.run("COUNTER.ADD c 5");
    assert!(leader.engine.counter_figures().exposure.counters > 0, "a move waits for its commit");
    replicate(&leader, &[&follower]);
    leader.member.pause();
    let refused = leader.engine.follow(leader.engine.applied()).expect_err("memory is ahead");
    assert!(refused.to_string().contains("moves of counters are in no record"), "{refused}");
    leader.member.lead();
    assert_eq!(leader.engine.commit_all(START_US), 0);
    replicate(&leader, &[&follower]);
    leader.step_down();
    assert_equal(&leader, &follower);
}

#[test]
fn a_pause_refuses_changes_and_leaves_nothing_to_commit() {
    let (leader, follower) = pair();
    let client = Client::new(&leader.engine);
    client.run("COUNTER.CREATE c");
    client.run("COUNTER.ADD c 5");
    client.run("SET k 1");
    leader.engine.pause_changes(START_US).expect("the log takes commits");
    for line in ["SET k 2", "COUNTER.ADD c 1", "COUNTER.COMMIT c", "DEL k"] {
        let answer = client.run(line);
        assert!(answer.starts_with("-TRYAGAIN"), "{line}: {answer}");
    }
    assert_eq!(client.run("GET k"), "$1 1", "reads go on");
    replicate(&leader, &[&follower]);
    leader.step_down();
    assert_equal(&leader, &follower);
    // The lead comes back.
    leader.engine.resume_changes();
    leader.lead(START_US);
    assert_eq!(client.run("SET k 3"), "+OK");
}

#[test]
fn a_pause_that_ends_changes_nothing() {
    let (leader, follower) = pair();
    let client = Client::new(&leader.engine);
    leader.engine.pause_changes(START_US).expect("the log takes commits");
    leader.engine.resume_changes();
    assert_eq!(client.run("SET k 2"), "+OK");
    replicate(&leader, &[&follower]);
    assert_equal(&leader, &follower);
}

#[test]
fn memory_can_follow_behind_a_pause_however_many_commands_run() {
    let (leader, follower) = pair();
    let (is_done, refused) = (AtomicBool::new(false), std::sync::atomic::AtomicU64::new(0));
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let (engine, is_done, refused) = (&leader.engine, &is_done, &refused);
            scope.spawn(move || {
                let client = Client::new(engine);
                client.run(&format!("COUNTER.CREATE c:{writer}"));
                for number in 0.. {
                    let lines = [
                        format!("INCR k:{}", number % 7),
                        format!("COUNTER.ADD c:{writer} 1"),
                        format!("SET short:{writer} 1 PX 1"),
                    ];
                    for line in &lines {
                        if client.run(line).starts_with("-TRYAGAIN") {
                            refused.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    if is_done.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
        }
        for _ in 0..50 {
            leader.engine.pause_changes(START_US).expect("the log takes commits");
            // As the group does it: it refuses records, writes what there is, and then another may lead.
            leader.member.pause();
            leader.write();
            let end = leader.engine.log().appended();
            leader.engine.follow(end).expect("nothing is ahead of the log");
            leader.engine.resume_changes();
            leader.lead(START_US);
        }
        is_done.store(true, Ordering::Relaxed);
    });
    replicate(&leader, &[&follower]);
    assert_equal(&leader, &follower);
}

#[test]
fn a_reader_of_a_follower_sees_all_changes_of_a_record_or_none() {
    let (leader, follower) = pair();
    let is_done = AtomicBool::new(false);
    let keys: Vec<String> = (0..6).map(|number| format!("k{number}")).collect();
    let read = format!("MGET {}", keys.join(" "));
    let points = "TS.MGET FILTER kind=same";
    let setup: Vec<String> = keys.iter().map(|key| format!("TS.CREATE s:{key} LABELS kind same")).collect();
    transaction(&leader.engine, None, &setup.iter().map(String::as_str).collect::<Vec<_>>());
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let client = Client::new(&follower.engine);
            let mut seen = 0;
            while !is_done.load(Ordering::Relaxed) {
                let answer = client.run(&read);
                let values: Vec<&str> =
                    answer.split(' ').skip(1).filter(|word| !word.starts_with('$')).collect();
                assert!(values.windows(2).all(|two| two[0] == two[1]), "half a transaction: {answer}");
                let answer = client.run(points);
                let latest: Vec<&str> = answer.split(' ').filter(|word| word.starts_with('+')).collect();
                assert!(latest.windows(2).all(|two| two[0] == two[1]), "half a record of points: {answer}");
                seen += 1;
            }
            seen
        });
        for round in 0..200 {
            let sets: Vec<String> = keys.iter().map(|key| format!("SET {key} {round}")).collect();
            transaction(&leader.engine, None, &sets.iter().map(String::as_str).collect::<Vec<_>>());
            let points: Vec<String> = keys.iter().map(|key| format!("s:{key} {round} {round}")).collect();
            Client::new(&leader.engine).run(&format!("TS.MADD {}", points.join(" ")));
            if round % 3 == 0 {
                transaction(
                    &leader.engine,
                    None,
                    &[&format!("DEL {}", keys[..3].join(" ")), &format!("DEL {}", keys[3..].join(" "))],
                );
            }
            replicate(&leader, &[&follower]);
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(reader.join().expect("sees whole records") > 0);
    });
    assert_equal(&leader, &follower);
}

#[test]
fn watched_reads_emit_on_a_follower_what_they_emit_at_the_leader() {
    let (leader, follower) = pair();
    let client = Client::new(&leader.engine);
    client.run("SADD s a");
    let watch = |line: &[&[u8]]| {
        let read = Read::new(0, Protocol::Resp3, line, Filter::default()).expect("a read");
        leader.engine.subscribe(read, 0, START_US).expect("it can be watched")
    };
    let subscribed = [watch(&[b"GET", b"k"]), watch(&[b"SUNION", b"s", b"t"])];
    let mut marks = Vec::new();
    for round in 0..6 {
        client.run(&format!("SET k {round}"));
        transaction(
            &leader.engine,
            None,
            &[&format!("SADD t {round}"), "SPOP s", "SET k between", &format!("SET k {round}!")],
        );
        marks.push(replicate(&leader, &[&follower]));
    }
    leader.step_down();
    follower.lead(START_US);
    for first in &subscribed {
        let here = follower.engine.query(first.query.id()).expect("it is watched here, too");
        let emissions = |query: &SharedQuery| {
            let mut emissions = Vec::new();
            query.emissions_after(0, usize::MAX, &mut emissions).expect("they are retained");
            emissions
                .into_iter()
                .map(|one| (one.number, one.lsn, one.time_us, one.answer))
                .collect::<Vec<_>>()
        };
        let (told, known) = (emissions(&first.query), emissions(&here));
        assert!(told.len() >= 6 && told == known, "{told:?} and {known:?}");
        // A subscriber that has heard of the third round goes on here.
        let resumed = follower.engine.resume(first.query.id(), marks[2], 1);
        let behind = told.iter().filter(|(_, lsn, ..)| *lsn <= marks[2]).count() as u64;
        assert!(matches!(resumed, Resumed::Behind { number, .. } if number == behind), "{resumed:?}");
    }
}

#[test]
fn a_key_of_a_follower_is_there_until_a_record_removes_it() {
    let (leader, follower) = pair();
    let mut at_leader = Client::new(&leader.engine);
    at_leader.expect(&[("SET k v PX 1000", "+OK"), ("SET other v PX 1000", "+OK")]);
    replicate(&leader, &[&follower]);
    let mut reader = Client::new(&follower.engine);
    reader.sleep_ms(5000);
    reader.expect(&[
        ("GET k", "$1 v"),
        ("EXISTS k other", ":2"),
        ("DBSIZE", ":2"),
        ("PTTL k", ":0"),
        ("TTL k", ":0"),
    ]);
    for work in DUE_WORK {
        assert_eq!(
            ((work.next)(&follower.engine), (work.run)(&follower.engine, reader.now_us, 10)),
            (None, None)
        );
    }
    let mut watched = WatchedKeys::new();
    follower.engine.watch(&mut watched, 0, b"k", reader.now_us);
    assert_eq!(transaction(&follower.engine, Some(&watched), &["GET k"]), "*1 $1 v", "nothing has changed");
    at_leader.sleep_ms(1000);
    leader.engine.expire_due(at_leader.now_us, 10);
    replicate(&leader, &[&follower]);
    reader.expect(&[("GET k", "$-1"), ("DBSIZE", ":0")]);
    assert_equal(&leader, &follower);
}

#[test]
fn a_leader_that_shows_a_key_as_expired_has_removed_it_by_a_record() {
    for line in [
        "GET k",
        "EXISTS k",
        "TTL k",
        "KEYS *",
        "DBSIZE",
        "RANDOMKEY",
        "SCAN 0",
        "SUNION k",
        "SMOVE k other m",
        "WATCH",
    ] {
        let (leader, follower) = pair();
        let mut client = Client::new(&leader.engine);
        client.run(if line.starts_with('S') && line != "SCAN 0" { "SADD k m" } else { "SET k v" });
        client.run("PEXPIRE k 1000");
        replicate(&leader, &[&follower]);
        client.sleep_ms(1000);
        let before = leader.engine.applied();
        if line == "WATCH" {
            let mut watched = WatchedKeys::new();
            leader.engine.watch(&mut watched, 0, b"k", client.now_us);
        } else {
            let answer = client.run(line);
            assert!(["$-1", ":0", ":-2", "*0", "*2 $1 0 *0"].contains(&&*answer), "{line}: {answer}");
        }
        assert_eq!(leader.engine.applied(), before.next(), "{line}: the removal is logged");
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        if let Ok(command) = command::resolve(&words) {
            assert_eq!(
                leader.engine.newest_shown(command, &words),
                before.next(),
                "{line}: its answer shows that"
            );
        }
        replicate(&leader, &[&follower]);
        leader.step_down();
        follower.lead(START_US);
        // The clock of the new leader is behind.
        assert_eq!(Client::new(&follower.engine).run("EXISTS k"), ":0", "{line}: it does not come back");
    }
}

#[test]
fn a_transaction_and_a_run_of_points_meet_no_key_whose_time_has_come() {
    let (leader, follower) = pair();
    let mut client = Client::new(&leader.engine);
    client.expect(&[("SET a 1 PX 1", "+OK"), ("TS.ADD s 5 5", ":5"), ("PEXPIRE s 1", ":1")]);
    client.sleep_ms(10);
    let before = leader.engine.applied();
    let now_us = client.now_us;
    let args: [&[u8]; 2] = [b"GET", b"a"];
    let get = Call { command: command::resolve(&args).expect("a command"), args: &args, db: 0, now_us };
    let mut reply = Reply::default();
    leader.engine.execute_transaction(&[get], None, now_us, &mut reply);
    assert_eq!((reply.bytes(), leader.engine.applied()), (&b"*1\r\n$-1\r\n"[..], before.next()));
    let args: [&[u8]; 4] = [b"TS.ADD", b"s", b"3", b"3"];
    let add = Call { command: command::resolve(&args).expect("a command"), args: &args, db: 0, now_us };
    reply.truncate(0);
    leader.engine.execute_run(&[add, add], &mut reply).expect("they run together");
    assert!(leader.engine.applied() > before.next().next(), "the removal, and the points");
    replicate(&leader, &[&follower]);
    assert_equal(&leader, &follower);
}

#[test]
fn a_read_whose_key_cannot_be_removed_sees_it() {
    let (leader, _) = pair();
    let mut client = Client::new(&leader.engine);
    client.run("SET k v PX 1000");
    client.sleep_ms(1000);
    let before = leader.engine.applied();
    leader.engine.hold_removals(u64::MAX);
    assert_eq!((client.run("GET k"), leader.engine.applied()), ("$1 v".to_owned(), before));
    leader.engine.hold_removals(0);
    assert_eq!((client.run("GET k"), leader.engine.applied()), ("$-1".to_owned(), before.next()));
}
