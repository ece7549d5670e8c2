//! Every read of a block that a change needs fails once, and the change is refused or made whole.

use super::{fill, memory, open, run, snapshot};
use std::io::ErrorKind;
use std::sync::Arc;
use tidemark_engine::Engine;
use tidemark_log::storage::faulty::{Fault, Plan, Site};
use tidemark_log::{FaultyStorage, Retention, Storage};

/// Makes three series of blocks, and rules on the first of them and on a destination.
fn fill_compacted(engine: &Engine) {
    for key in ["a", "b", "c", "d", "twa", "e"] {
        assert_eq!(run(engine, &format!("TS.CREATE {key}")), "+OK ");
    }
    ["a", "b", "c"].into_iter().for_each(|key| fill(engine, key, 0, 3_000));
    for rule in ["a d AGGREGATION avg 10", "a twa AGGREGATION twa 15000", "d e AGGREGATION std.p 1000"] {
        assert_eq!(run(engine, &format!("TS.CREATERULE {rule} BACKFILL")), "+OK ");
    }
}

const CHANGES: [&str; 8] = [
    "TS.ADD a 505 1",
    "TS.ADD a 500 1 ON_DUPLICATE last",
    "TS.DEL a 500 600",
    "TS.INCRBY a 1 TIMESTAMP 40000",
    "TS.APPEND a \u{5}\0\0\0\0\0\0\0\u{6}\0\0\0\0\0\0\0 \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    "TS.CREATERULE a b AGGREGATION sum 77 BACKFILL",
    "TS.DEL a 10000 60000",
    "TS.DEL c 500 600",
];

/// Runs the changes with a fault at one read after another, until a change meets none of it.
fn every_read(forever: bool) {
    let (_, inner) = memory();
    let storage = FaultyStorage::new(inner, None);
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let engine = open(&shared, Retention::default()).expect("opens");
    let twin = open(&memory().1, Retention::default()).expect("opens");
    [&engine, &twin].into_iter().for_each(fill_compacted);
    for line in CHANGES {
        snapshot(&engine).expect("a snapshot");
        engine.limit_series_memory(0);
        assert_eq!(engine.drop_points(|| ()), 0);
        let digest = engine.digest();
        let mut refused = 0;
        let answer = loop {
            let at = storage.calls_at(Site::ReadAt) + 1 + refused;
            let fault = Fault::Error(ErrorKind::Other);
            let case = format!("{line:.40}: read {refused} fails");
            storage.set_plan(Some(Plan { fault, at, site: Some(Site::ReadAt), forever, seed: 1 }));
            let answer = run(&engine, line);
            let is_met = storage.calls_at(Site::ReadAt) >= at;
            storage.set_plan(None);
            if !is_met {
                break answer;
            }
            assert!(
                answer.starts_with("-ERR a block of a series is damaged or cannot be read: "),
                "{case}: {answer}"
            );
            assert_eq!(engine.digest(), digest, "{case}: nothing is changed");
            refused += 1;
        };
        assert!(refused > 0, "{line} reads no file");
        assert_eq!(answer, run(&twin, line), "{line}");
        assert_eq!(engine.digest(), twin.digest(), "{line}");
    }
}

#[test]
fn a_change_is_made_whole_or_not_at_all_whichever_of_its_reads_fails() {
    every_read(false);
}

#[test]
fn a_disk_that_fails_after_a_change_has_looked_ahead_does_not_stop_it() {
    every_read(true);
}
