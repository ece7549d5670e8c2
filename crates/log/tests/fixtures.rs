//! Files of every released version of the format stay readable.

use std::sync::Arc;

use tidemark_log::{Log, Lsn, MemoryStorage, Options, Snapshots, Storage};

const SEGMENT: &str = "segment-00000000000000000001.tide";
const SNAPSHOT: &str = "snapshot-00000000000000000002.tide";

/// Opens a directory that version 1 wrote: three records, and a snapshot of the second.
fn assert_reads_version_1(segment: &[u8], snapshot: &[u8]) {
    let storage = MemoryStorage::new();
    storage.put(SEGMENT, segment.to_vec());
    storage.put(SNAPSHOT, snapshot.to_vec());
    let storage: Arc<dyn Storage> = Arc::new(storage);
    let (log, recovery) = Log::open(storage.clone(), Options::default()).expect("opens");
    assert_eq!((recovery.first_lsn, recovery.last_lsn, recovery.torn), (Lsn(1), Lsn(3), None));
    let mut replay = log.replay(Lsn(1)).expect("begins");
    let batch = replay.next_batch().expect("reads").expect("has records");
    assert_eq!(batch.len(), 3);
    for (record, number) in batch.iter().zip(1_u8..) {
        assert_eq!((record.kind, record.time_us), (number, 1_700_000_000_000_000 + u64::from(number)));
        assert_eq!(record.payload, format!("record {number}\0\u{fe}").as_bytes());
    }
    let (snapshot, damaged) = Snapshots::new(storage).latest(log.floor()).expect("finds");
    let snapshot = snapshot.expect("is usable");
    assert_eq!((snapshot.lsn(), snapshot.sections(), damaged.len()), (Lsn(2), vec![7], 0));
    snapshot.read_section(7, |frame| assert_eq!(frame, b"state")).expect("reads");
}

#[test]
fn version_1_binary() {
    assert_reads_version_1(
        include_bytes!("fixtures/v1-binary/segment-00000000000000000001.tide"),
        include_bytes!("fixtures/v1-binary/snapshot-00000000000000000002.tide"),
    );
}

#[test]
fn version_1_jsonl() {
    assert_reads_version_1(
        include_bytes!("fixtures/v1-jsonl/segment-00000000000000000001.tide"),
        include_bytes!("fixtures/v1-jsonl/snapshot-00000000000000000002.tide"),
    );
}

#[test]
fn version_1_text() {
    assert_reads_version_1(
        include_bytes!("fixtures/v1-text/segment-00000000000000000001.tide"),
        include_bytes!("fixtures/v1-text/snapshot-00000000000000000002.tide"),
    );
}
