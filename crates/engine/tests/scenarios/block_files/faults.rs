//! A workload of series, snapshots and dropped points runs once for every storage call that it makes,
//! with a fault at that call. What is recovered is the state after some record that is not before the
//! last acknowledged one, and no block file is left that no snapshot needs.

use super::{memory, open, run, run_bytes, snapshot, wait_for_files};
use crate::support::crashes::test_every_call;
use crate::support::{self, crashes};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Arc;
use tidemark_engine::Engine;
use tidemark_log::storage::faulty::Fault;
use tidemark_log::{Lsn, MemoryStorage, Retention, Snapshots, Storage};

/// A step of the workload: a command, a snapshot, or dropped points.
enum Step {
    Run(Vec<Vec<u8>>),
    Snapshot,
    Drop,
}

fn workload() -> Vec<Step> {
    let line = |line: &str| Step::Run(support::words(line).into_iter().map(String::into_bytes).collect());
    let create = |key: &str| line(&format!("TS.CREATE {key}"));
    // A block and some points.
    let points = |key: &str| {
        let points = (0..1_300).map(|index: u64| format!("{key} {} {}", index * 10, (index * index) % 1_009));
        line(&format!("TS.MADD {}", points.collect::<Vec<_>>().join(" ")))
    };
    vec![
        create("a"),
        points("a"),
        Step::Snapshot,
        create("b"),
        points("b"),
        line("TS.ADD a 50000 1"),
        line("COPY a c"),
        Step::Snapshot,
        Step::Drop,
        line("DEL a"),
        line("TS.DEL b 100 9000"),
        Step::Snapshot,
        Step::Drop,
        create("d"),
        points("d"),
        line("TS.ADD d 5 9"),
        Step::Snapshot,
        line("DEL b c"),
        line("SET k v"),
        Step::Snapshot,
        line("DEL d"),
        create("e"),
        points("e"),
        Step::Snapshot,
        Step::Drop,
        line("RENAME e f"),
        Step::Snapshot,
    ]
}

/// Runs the workload until a command fails. Returns the last record that was acknowledged as durable.
fn live(engine: &Engine, steps: &[Step]) -> Lsn {
    let mut acknowledged = Lsn::ZERO;
    engine.limit_series_memory(0);
    for step in steps {
        match step {
            Step::Run(words) => {
                let args: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                if run_bytes(engine, &args).first() == Some(&b'-') {
                    return acknowledged;
                }
                let lsn = engine.log().appended();
                if engine.log().wait_durable(lsn).is_err() {
                    return acknowledged;
                }
                acknowledged = lsn;
            }
            Step::Snapshot => {
                if snapshot(engine).is_err() && engine.check_writable().is_err() {
                    return acknowledged;
                }
            }
            Step::Drop => {
                engine.drop_points(|| ());
            }
        }
    }
    acknowledged
}

/// The digest of the state after each record of the workload, beginning with the empty state.
fn digests(steps: &[Step]) -> Vec<u128> {
    let replica = support::engine();
    let mut digests = vec![replica.digest()];
    for step in steps {
        if let Step::Run(words) = step {
            let args: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            assert_ne!(run_bytes(&replica, &args).first(), Some(&b'-'));
            digests.push(replica.digest());
        }
    }
    digests
}

/// Recovers what survived. Changes it and recovers again.
fn check(survivor: &MemoryStorage, acknowledged: Lsn, digests: &[u128], case: &str) {
    let storage: Arc<dyn Storage> = Arc::new(survivor.clone());
    let engine = open(&storage, Retention::default()).unwrap_or_else(|error| panic!("{case}: {error}"));
    let last = engine.log().appended();
    assert!(last >= acknowledged, "{case}: {acknowledged} was acknowledged, and the log ends with {last}");
    assert_eq!(engine.digest(), digests[last.0 as usize], "{case}: the state after record {last}");
    let snapshots = Snapshots::new(Arc::clone(&storage));
    let listed: BTreeSet<u64> = snapshots
        .list()
        .expect("memory lists")
        .into_iter()
        .flat_map(|lsn| snapshots.open(lsn).expect(case).block_files().expect(case))
        .map(|file| file.number)
        .collect();
    wait_for_files(&engine, &storage, listed.len());
    let there = engine.log().block_files().list().expect("memory lists");
    assert_eq!(there, listed.into_iter().collect::<Vec<_>>(), "{case}: files that snapshots need");
    assert_eq!(run(&engine, "SET life goes-on"), "+OK ");
    snapshot(&engine).unwrap_or_else(|error| panic!("{case}: a snapshot afterwards: {error}"));
    let digest = engine.digest();
    engine.log().close().expect("memory does not fail");
    drop(engine);
    let again = open(&storage, Retention::default()).unwrap_or_else(|error| panic!("{case}: {error}"));
    assert_eq!(again.digest(), digest, "{case}: after one more change and a restart");
}

fn every_call(fault: Fault, forever: bool) {
    let steps = workload();
    let digests = digests(&steps);
    let run = |storage, _: &str| {
        open(&storage, Retention::default()).map_or(Lsn::ZERO, |engine| live(&engine, &steps))
    };
    let struck = crashes::every_call(fault, forever, run, |survivor, acknowledged, case| {
        check(survivor, acknowledged, &digests, case);
    });
    assert!(struck > 40, "{fault:?} struck only {struck} times");
}

#[test]
fn the_workload_reaches_block_files() {
    let (_, storage) = memory();
    let steps = workload();
    let engine = open(&storage, Retention::default()).expect("opens");
    live(&engine, &steps);
    assert_eq!(engine.digest(), *digests(&steps).last().expect("a state"));
    assert!(engine.log().block_files().next_number().expect("lists") > 4, "files come and go");
    wait_for_files(&engine, &storage, 2);
}

test_every_call!(every_call);
