//! Fault injection over the whole engine. A recorded workload runs commands of the table,
//! transactions, expiry and snapshots. The n-th storage call fails, for every n. Then the process
//! or the machine crashes. The state is recovered as the server does it: the newest snapshot, then
//! the log after it.
//!
//! The invariant: the recovered state is exactly the state after some record, and that record is
//! not before the last one that was acknowledged as durable.

use crate::points;
use crate::support;
use crate::support::commands::{Generator, Line, Random, Times};
use crate::support::crashes::test_every_call;
use crate::support::{START_US, crashes};
use std::io::ErrorKind;
use std::sync::Arc;
use tidemark_engine::section::KEYSPACE;
use tidemark_engine::{Call, Engine, Reply, command};
use tidemark_log::storage::faulty::{Fault, Site};
use tidemark_log::{
    Durability, FaultyStorage, Log, Lsn, MemoryStorage, Options, Retention, Snapshots, Storage,
};

/// Steps of the workload: enough for several segments and snapshots.
const STEPS: usize = 1000;

fn options(retention: Retention) -> Options {
    Options {
        durability: Durability::Always,
        segment_bytes: Options::SEGMENT_BYTES_MIN,
        recycle: 1,
        retention,
        seed: Some(5),
        ..Options::default()
    }
}

/// Opens a log and recovers its state.
fn recover(storage: Arc<dyn Storage>, retention: Retention, case: &str) -> Option<Engine> {
    let (log, _) = Log::open(storage, options(retention)).ok()?;
    let engine = support::engine_with_log(Arc::new(log));
    let log = engine.log();
    let (snapshot, damaged) = Snapshots::new(Arc::clone(log.storage())).latest(log.floor()).ok()?;
    assert!(damaged.is_empty(), "{case}: {damaged:?}");
    let covered = snapshot.as_ref().map_or(Lsn::ZERO, tidemark_log::Snapshot::lsn);
    if let Some(snapshot) = snapshot {
        let loader = engine.load(START_US);
        let read = snapshot.read_section(KEYSPACE, |frame| loader.load_frame(frame).expect("a frame loads"));
        read.ok()?;
        loader.finish().expect("nothing is missing");
        engine.continue_behind(covered);
    }
    if covered < log.appended() {
        let mut scratch = Reply::default();
        let mut replay = log.replay(covered.next()).ok()?;
        while let Some(batch) = replay.next_batch().ok()? {
            for record in batch {
                let applied = engine.apply(&record, &mut scratch);
                applied.unwrap_or_else(|error| panic!("{case}: record {}: {error}", record.lsn));
            }
        }
    }
    Some(engine)
}

/// Runs the workload until the log accepts no more. Returns the last record that was acknowledged
/// as durable.
fn live(engine: &Engine) -> Lsn {
    let mut generator = Generator::new(4, Times::Near, START_US / 1000);
    let mut dice = Random::new(17);
    let mut acknowledged = Lsn::ZERO;
    let mut now_us = START_US;
    for _ in 0..STEPS {
        now_us += dice.below(2_000_000);
        generator.now_ms = now_us / 1000;
        let together = if dice.once_in(10) { 2 + dice.below(4) } else { 1 };
        let lines: Vec<_> = (0..together).map(|_| generator.line()).collect();
        let lsn = if dice.once_in(6) {
            let count = 1 + dice.below(30);
            let lines: Vec<String> = (0..count).map(|at| point(&mut dice, at)).collect();
            points::attempt(engine, now_us, &lines).and_then(|(_, lsn)| lsn)
        } else {
            run(engine, &lines, dice.below(3) as u8, now_us)
        };
        if dice.once_in(8) {
            engine.expire_due(now_us, 10);
        }
        if dice.once_in(3)
            && let Some(lsn) = lsn
        {
            if engine.log().wait_durable(lsn).is_err() {
                return acknowledged;
            }
            acknowledged = lsn;
        }
        if dice.once_in(60)
            && engine.take_snapshot(false, || (), || true).is_err()
            && engine.check_writable().is_err()
        {
            return acknowledged;
        }
        if engine.check_writable().is_err() {
            return acknowledged;
        }
    }
    acknowledged
}

/// A point of one of a few series, which may not exist yet, at a time that may have passed.
fn point(dice: &mut Random, at: u64) -> String {
    let (key, time, value) = (dice.below(5), dice.below(50_000), dice.below(1000));
    format!("TS.ADD points:{key} {} {value}.5 ON_DUPLICATE last", time + at)
}

/// Runs one command alone, or several as a transaction. Returns the record of the change, if there
/// is one.
fn run(engine: &Engine, lines: &[Line], db: u8, now_us: u64) -> Option<Lsn> {
    let args: Vec<Vec<&[u8]>> = lines.iter().map(|line| line.iter().map(Vec::as_slice).collect()).collect();
    let calls: Vec<Call<'_>> = args
        .iter()
        .filter_map(|args| Some(Call { command: command::resolve(args).ok()?, args, db, now_us }))
        .collect();
    match calls.as_slice() {
        [] => None,
        [alone] => engine.execute(alone, &mut Reply::default()).lsn,
        together => engine.execute_transaction(together, None, now_us, &mut Reply::default()).lsn,
    }
}

/// The digest of the state after each record of the workload, beginning with the empty state.
fn digests() -> Vec<u128> {
    let keep_all = Retention { bytes: Some(u64::MAX), ..Retention::default() };
    let engine = recover(Arc::new(MemoryStorage::new()), keep_all, "without faults").expect("opens");
    live(&engine);
    let replica = support::engine();
    let mut digests = vec![replica.digest()];
    let mut scratch = Reply::default();
    engine.log().wait_durable(engine.log().appended()).expect("memory does not fail");
    let mut replay = engine.log().replay(Lsn::FIRST).expect("everything is kept");
    while let Some(batch) = replay.next_batch().expect("the log is sound") {
        for record in batch {
            replica.apply(&record, &mut scratch).expect("applies");
            digests.push(replica.digest());
        }
    }
    assert_eq!(digests.last(), Some(&engine.digest()), "the workload is what its log says");
    assert!(digests.len() > STEPS / 6, "only {} records", digests.len() - 1);
    digests
}

/// Recovers from the surviving storage and compares the state. Then makes one more change, which
/// must survive a restart.
fn check(survivor: &MemoryStorage, acknowledged: Lsn, digests: &[u128], case: &str) {
    let storage: Arc<dyn Storage> = Arc::new(survivor.clone());
    let recovered = recover(Arc::clone(&storage), Retention::default(), case);
    let engine = recovered.unwrap_or_else(|| panic!("{case}: the server does not start again"));
    let last = engine.log().appended();
    assert!(last >= acknowledged, "{case}: {acknowledged} was acknowledged, and the log ends with {last}");
    assert_eq!(engine.digest(), digests[last.0 as usize], "{case}: the state after record {last}");

    let line: Line = ["SET", "life", "goes on"].map(|word| word.as_bytes().to_vec()).to_vec();
    let lsn = run(&engine, &[line], 0, START_US).expect("a change is accepted");
    engine.log().wait_durable(lsn).expect("memory does not fail");
    let digest = engine.digest();
    engine.log().close().expect("memory does not fail");
    let again = recover(storage, Retention::default(), case).expect("starts once more");
    assert_eq!(again.digest(), digest, "{case}: after one more change and a restart");
}

fn every_call(fault: Fault, forever: bool) {
    let digests = digests();
    let run = |storage, case: &str| {
        recover(storage, Retention::default(), case).map_or(Lsn::ZERO, |engine| live(&engine))
    };
    let struck = crashes::every_call(fault, forever, run, |survivor, acknowledged, case| {
        check(survivor, acknowledged, &digests, case);
    });
    assert!(struck > 100, "{fault:?} struck only {struck} times");
}

#[test]
fn the_workload_reaches_segments_and_snapshots() {
    let storage = FaultyStorage::new(Arc::new(MemoryStorage::new()), None);
    live(&recover(Arc::new(storage.clone()), Retention::default(), "without faults").expect("opens"));
    let snapshots = Snapshots::new(Arc::new(storage.clone())).list().expect("lists");
    assert_eq!(snapshots.len(), 2, "snapshots come and go");
    // Segments are renamed when they are created and when they become active, snapshots when they
    // are complete.
    assert!(storage.calls_at(Site::Rename) > 20, "{}", storage.calls_at(Site::Rename));
    assert!(storage.calls_at(Site::Remove) > 5, "{}", storage.calls_at(Site::Remove));
}

test_every_call!(every_call);
