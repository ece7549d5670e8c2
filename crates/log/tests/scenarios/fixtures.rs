//! Files of every released version of the format stay readable.

use std::sync::Arc;

use tidemark_log::{Log, Lsn, MemoryStorage, Options, Snapshots, Storage};

const SEGMENT: &str = "segment-00000000000000000001.tide";
const SNAPSHOT: &str = "snapshot-00000000000000000002.tide";

/// Opens a directory of version 1: three records, and a snapshot of the second.
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

/// Opens a directory with a version 1 segment of one record and, after a gap, a version 2 segment
/// of two.
fn assert_reads_version_2(first: &[u8], second: &[u8], end: &[u8]) {
    let storage = MemoryStorage::new();
    storage.put(SEGMENT, first.to_vec());
    storage.put("segment-00000000004294967296.tide", second.to_vec());
    storage.put("END", end.to_vec());
    let (log, recovery) = Log::open(Arc::new(storage), Options::default()).expect("opens");
    assert_eq!((recovery.first_lsn, recovery.last_lsn, recovery.records), (Lsn(1), Lsn((1 << 32) + 1), 3));
    assert_eq!((recovery.torn, recovery.gap), (None, None));
    assert!(log.is_lost(Lsn(2)) && log.is_lost(Lsn((1 << 32) - 1)));
    let mut replay = log.replay(Lsn(1)).expect("begins");
    let mut records = Vec::new();
    while let Some(batch) = replay.next_batch().expect("reads") {
        records.extend(batch.iter().map(|record| (record.lsn.0, record.payload.to_vec())));
    }
    let expected = [(1, "one"), (1 << 32, "two"), ((1 << 32) + 1, "three")];
    assert_eq!(records, expected.map(|(lsn, text)| (lsn, text.as_bytes().to_vec())));
}

#[test]
fn version_2_binary() {
    assert_reads_version_2(
        include_bytes!("fixtures/v2-binary/segment-00000000000000000001.tide"),
        include_bytes!("fixtures/v2-binary/segment-00000000004294967296.tide"),
        include_bytes!("fixtures/v2-binary/END"),
    );
}

#[test]
fn version_2_jsonl() {
    assert_reads_version_2(
        include_bytes!("fixtures/v2-jsonl/segment-00000000000000000001.tide"),
        include_bytes!("fixtures/v2-jsonl/segment-00000000004294967296.tide"),
        include_bytes!("fixtures/v2-jsonl/END"),
    );
}

#[test]
fn version_2_text() {
    assert_reads_version_2(
        include_bytes!("fixtures/v2-text/segment-00000000000000000001.tide"),
        include_bytes!("fixtures/v2-text/segment-00000000004294967296.tide"),
        include_bytes!("fixtures/v2-text/END"),
    );
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
