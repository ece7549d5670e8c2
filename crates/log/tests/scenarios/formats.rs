//! The same guarantees in every record format and on every storage.

use std::sync::Arc;

use proptest::prelude::*;
use tidemark_log::{
    Clock, Durability, FileStorage, Format, Log, Lsn, ManualClock, MemoryStorage, MmapStorage, OpenError,
    Options, Storage,
};

const FIRST: &str = "segment-00000000000000000001.tide";

fn options(format: Format) -> Options {
    Options {
        format,
        durability: Durability::Always,
        segment_bytes: Options::SEGMENT_BYTES_MIN,
        seed: Some(9),
        ..Options::default()
    }
}

fn read_all(log: &Log) -> Vec<(u64, u8, Vec<u8>)> {
    let mut replay = log.replay(log.floor()).expect("begins");
    let mut records = Vec::new();
    while let Some(batch) = replay.next_batch().expect("reads") {
        records.extend(batch.iter().map(|record| (record.time_us, record.kind, record.payload.to_vec())));
    }
    records
}

/// Appends, closes, and reads back.
fn round_trip(storage: &Arc<dyn Storage>, format: Format, records: &[(u64, u8, Vec<u8>)]) {
    let (log, recovery) = Log::open(storage.clone(), options(format)).expect("opens");
    let before = recovery.last_lsn.0;
    for (number, (time_us, kind, payload)) in records.iter().enumerate() {
        let lsn =
            log.append(*time_us, *kind, |buffer| buffer.extend_from_slice(payload)).expect("is accepted");
        assert_eq!(lsn.0, before + number as u64 + 1);
        if number % 5 == 0 {
            log.wait_durable(lsn).expect("syncs");
        }
    }
    log.close().expect("closes");
    let (log, recovery) = Log::open(storage.clone(), options(format)).expect("opens again");
    assert_eq!((recovery.last_lsn.0, recovery.torn), (before + records.len() as u64, None));
    assert_eq!(read_all(&log)[before as usize..], *records);
    log.close().expect("closes");
}

fn sample() -> Vec<(u64, u8, Vec<u8>)> {
    let mut records: Vec<_> =
        (0..=255_u8).map(|byte| (u64::from(byte), 1, vec![byte; byte as usize % 7])).collect();
    records.push((u64::MAX, 255, "quotes \" \\ and ünïcödé\n\t\r\u{1}".into()));
    records.push((0, 2, vec![0xFF; 30_000]));
    records.push((0, 3, Vec::new()));
    records
}

#[test]
fn every_format_on_every_storage() {
    for format in Format::ALL {
        let directory = tempfile::tempdir().expect("has a directory");
        let mapped = tempfile::tempdir().expect("has a directory");
        let storages: [Arc<dyn Storage>; 3] = [
            Arc::new(MemoryStorage::new()),
            Arc::new(FileStorage::new(directory.path()).expect("is made")),
            Arc::new(MmapStorage::new(mapped.path()).expect("is made")),
        ];
        for storage in &storages {
            round_trip(storage, format, &sample());
            round_trip(storage, format, &sample());
        }
    }
}

#[test]
fn a_log_may_change_its_format_and_keep_its_past() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    for format in [Format::Text, Format::Binary, Format::Jsonl, Format::Binary, Format::Text] {
        round_trip(&storage, format, &sample());
    }
    let (log, _) = Log::open(storage, options(Format::Binary)).expect("opens");
    assert_eq!(read_all(&log).len(), 5 * sample().len());
}

#[test]
fn line_formats_are_what_their_description_shows() {
    for (format, expected) in [
        (Format::Text, " 1 1700 1 SET greeting hello\\x00\\n"),
        (Format::Jsonl, "\"lsn\":1,\"time_us\":1700,\"kind\":1,\"text\":\"SET greeting hello\\u0000\\n\"}"),
    ] {
        let storage = MemoryStorage::new();
        let (log, _) = Log::open(Arc::new(storage.clone()), options(format)).expect("opens");
        log.append(1700, 1, |buffer| buffer.extend_from_slice(b"SET greeting hello\0\n"))
            .expect("is accepted");
        log.close().expect("closes");
        let text = String::from_utf8(storage.read(FIRST).expect("exists")).expect("is text");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3, "header, record, marker");
        assert!(lines[1].ends_with(expected), "{}", lines[1]);
        assert!(lines[2].contains("00000000000000000001"), "{}", lines[2]);
    }
}

#[test]
fn every_flipped_bit_of_a_line_format_is_noticed() {
    for format in [Format::Text, Format::Jsonl] {
        let storage = MemoryStorage::new();
        let (log, _) = Log::open(Arc::new(storage.clone()), options(format)).expect("opens");
        for number in 0..4_u8 {
            log.append(1, 1, |buffer| buffer.extend_from_slice(&[b'a', number])).expect("is accepted");
            log.wait_durable(log.appended()).expect("syncs");
        }
        log.close().expect("closes");
        let whole = storage.read(FIRST).expect("exists");
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let damaged = storage.fork();
            damaged.put(FIRST, bytes);
            match Log::open(Arc::new(damaged), options(format)) {
                Err(OpenError::Damaged(_)) => {}
                Ok((_, recovery)) => {
                    assert!(recovery.torn.is_some(), "{format} bit {bit}");
                    assert_eq!(recovery.last_lsn, Lsn(4), "{format} bit {bit}");
                }
                Err(error) => panic!("{format} bit {bit}: {error}"),
            }
        }
    }
}

#[test]
fn a_line_log_torn_at_any_byte_is_cut_there() {
    for format in [Format::Text, Format::Jsonl] {
        let storage = MemoryStorage::new();
        // As time stands still, `END` does not prove the records while the log is open.
        let standing = Options { clock: Clock::from(&ManualClock::new()), ..options(format) };
        let (log, _) = Log::open(Arc::new(storage.clone()), standing).expect("opens");
        log.append(1, 1, |buffer| buffer.push(b'a')).expect("is accepted");
        log.wait_durable(Lsn(1)).expect("syncs");
        let durable = storage.read(FIRST).expect("exists").len();
        log.append(1, 1, |buffer| buffer.push(b'b')).expect("is accepted");
        log.append(1, 1, |buffer| buffer.push(b'c')).expect("is accepted");
        log.wait_durable(Lsn(3)).expect("syncs");
        let whole = storage.read(FIRST).expect("exists");
        for cut in durable..=whole.len() {
            let torn = storage.fork();
            torn.put(FIRST, whole[..cut].to_vec());
            let (log, recovery) = Log::open(Arc::new(torn.clone()), options(format)).expect("opens");
            assert!((1..=3).contains(&recovery.last_lsn.0));
            let lsn = log.append(1, 1, |buffer| buffer.push(b'd')).expect("is accepted");
            assert_eq!(lsn, Lsn(1 << 32), "behind everything that may have been handed out");
            log.close().expect("closes");
            let (_, again) = Log::open(Arc::new(torn), options(format)).expect("opens again");
            assert_eq!((again.last_lsn, again.torn, again.gap), (lsn, None, None));
            assert_eq!(again.records, recovery.records + 1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_records_in_any_format(
        format in prop::sample::select(&Format::ALL[..]),
        records in prop::collection::vec((any::<u64>(), 1_u8.., prop::collection::vec(any::<u8>(), 0..500)), 1..30),
    ) {
        round_trip(&(Arc::new(MemoryStorage::new()) as Arc<dyn Storage>), format, &records);
    }
}
