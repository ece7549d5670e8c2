//! Behaviour that only Tidemark's own log has.

use super::{batch, positions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use tidemark_counter::store::{Error, Receipt, Store};
use tidemark_log::{FileStorage, Snapshots};
use tidemark_stores::{LogOptions, LogStore};

/// Makes this test binary, as a child process, commit in this folder until it is killed.
const FOLDER: &str = "TIDEMARK_STORES_FOLDER";

/// Uses small segments and frequent snapshots.
pub(crate) fn options(directory: &Path) -> LogOptions {
    LogOptions { segment_bytes: 64 << 10, snapshot_after_bytes: 16 << 10, ..LogOptions::new(directory) }
}

pub(crate) fn survives_kills() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        commit_until_killed(Path::new(&folder));
    }
    let directory = tempfile::tempdir().expect("a directory");
    for round in 1..=5 {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args([
                "--exact",
                "conformance::log::what_was_acknowledged_is_there_once_after_kills",
                "--nocapture",
            ])
            .env(FOLDER, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program runs");
        let mut acknowledged = 0;
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        for line in lines.map_while(Result::ok) {
            // The child also prints the test harness's lines.
            let Some(number) = line.strip_prefix("acknowledged ") else { continue };
            acknowledged = number.parse().expect("a number");
            if acknowledged >= round * 300 {
                break;
            }
        }
        child.kill().expect("it runs");
        child.wait().expect("it has ended");
        assert!(acknowledged >= round * 300, "it has committed in round {round}");
        let mut store = LogStore::open(&options(directory.path())).expect("a log that was killed");
        let last = store.claim("writer").expect("a claim").last_sequence;
        assert!(last >= acknowledged, "{last} batches are there, and {acknowledged} were acknowledged");
        assert_eq!(positions(&mut store, &["batches"]), [Some(last as i64)]);
    }
}

fn commit_until_killed(folder: &Path) -> ! {
    let mut store = LogStore::open(&options(folder)).expect("a log");
    let claim = store.claim("writer").expect("a claim");
    for sequence in claim.last_sequence + 1.. {
        let other = format!("key {}", sequence % 100);
        let receipt = store.commit(&batch("writer", claim, sequence, &[("batches", 1), (&other, 1)]));
        assert_eq!(receipt.expect("a receipt"), Receipt::Applied);
        println!("acknowledged {sequence}");
        std::io::stdout().flush().expect("a reader is there");
    }
    unreachable!("numbers do not end")
}

pub(crate) fn refuses_a_second_opener() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = LogStore::open(&options(directory.path())).expect("a log");
    let error = LogStore::open(&options(directory.path())).expect_err("it is in use");
    assert!(matches!(error, Error::Refused(_)) && error.to_string().contains("in use"), "{error}");
    drop(store);
    LogStore::open(&options(directory.path())).expect("it is free again");
}

pub(crate) fn is_cut_by_snapshots() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut store = LogStore::open(&options(directory.path())).expect("a log");
    let claim = store.claim("writer").expect("a claim");
    let long = "key".repeat(100);
    for sequence in 1..=2_000 {
        store.commit(&batch("writer", claim, sequence, &[(&long, 1), ("short", 2)])).expect("a receipt");
    }
    assert_eq!(store.snapshot_failure(), None);
    drop(store);
    let storage = FileStorage::existing(directory.path()).expect("the folder");
    let snapshots = Snapshots::new(std::sync::Arc::new(storage)).list().expect("a list");
    assert_eq!(snapshots.len(), 2, "as many as are kept");
    let bytes: u64 = std::fs::read_dir(directory.path())
        .expect("the folder")
        .map(|entry| entry.expect("a file").metadata().expect("its size").len())
        .sum();
    // 2,000 records of 350 bytes are 700 kB.
    assert!(bytes < 500_000, "{bytes} bytes are left");
    let mut store = LogStore::open(&options(directory.path())).expect("a log");
    assert_eq!(store.claim("writer").expect("a claim").last_sequence, 2_000);
    assert_eq!(positions(&mut store, &[&long, "short", "other"]), [Some(2_000), Some(4_000), None]);
}
