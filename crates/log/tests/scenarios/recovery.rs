//! Opening after a crash or with a damaged disk: the log cuts torn tails, reports damage, and reads
//! nothing false.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tidemark_log::{Clock, Durability, Log, Lsn, ManualClock, MemoryStorage, OpenError, Options, Recovery};

const FIRST: &str = "segment-00000000000000000001.tide";
const HEADER_BYTES: usize = 4096;

fn options() -> Options {
    Options {
        durability: Durability::Always,
        segment_bytes: Options::SEGMENT_BYTES_MIN,
        seed: Some(3),
        ..Options::default()
    }
}

fn payload(number: u64) -> Vec<u8> {
    (0..20 + number % 50).map(|index| (number * 7 + index) as u8).collect()
}

fn append(log: &Log, count: u64) {
    for _ in 0..count {
        let number = log.appended().next().0;
        log.append(number, 1, |buffer| buffer.extend_from_slice(&payload(number))).expect("is accepted");
    }
}

fn open(storage: &MemoryStorage) -> Result<(Log, Recovery), OpenError> {
    Log::open(Arc::new(storage.clone()), options())
}

/// A closed log of `count` records.
fn closed_log(count: u64) -> MemoryStorage {
    let storage = MemoryStorage::new();
    let (log, _) = open(&storage).expect("opens");
    for _ in 0..count.div_ceil(10) {
        append(&log, 10.min(count - log.appended().0));
        log.wait_durable(log.appended()).expect("syncs");
    }
    log.close().expect("closes");
    storage
}

/// Reads everything and compares it with what was appended.
fn assert_true_prefix(log: &Log, recovery: &Recovery) {
    let mut replay = log.replay(Lsn(1)).expect("begins");
    let (mut last, mut count) = (Lsn(0), 0);
    while let Some(batch) = replay.next_batch().expect("reads") {
        for record in batch {
            assert_eq!(log.records_between(last, record.lsn), 1, "nothing is missing but what a gap has");
            assert_eq!(record.payload, payload(record.time_us));
            (last, count) = (record.lsn, count + 1);
        }
    }
    assert_eq!((last, count), (recovery.last_lsn, recovery.records));
}

/// Returns the bytes of the first segment and the end of its records.
fn segment_bytes(storage: &MemoryStorage) -> (Vec<u8>, usize) {
    let bytes = storage.read(FIRST).expect("exists");
    let end = bytes.iter().rposition(|byte| *byte != 0).expect("is not empty") + 1;
    (bytes, end)
}

#[test]
fn a_tail_torn_at_any_byte_is_cut_there() {
    let storage = MemoryStorage::new();
    let (log, _) = open(&storage).expect("opens");
    append(&log, 5);
    log.wait_durable(Lsn(5)).expect("syncs");
    let (_, durable_end) = segment_bytes(&storage);
    append(&log, 5);
    log.wait_durable(Lsn(10)).expect("syncs");
    let (whole, end) = segment_bytes(&storage);
    let running = storage.fork();
    log.close().expect("closes");

    let mut lasts = Vec::new();
    for cut in durable_end..=end {
        let torn = running.fork();
        let mut bytes = whole.clone();
        bytes[cut..].fill(0);
        torn.put(FIRST, bytes);
        let (log, recovery) = open(&torn).unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        assert!((5..=10).contains(&recovery.last_lsn.0));
        assert_true_prefix(&log, &recovery);
        if let Some(tail) = &recovery.torn {
            assert!(tail.path.ends_with(FIRST) && tail.offset + tail.bytes <= cut as u64);
        }
        lasts.push(recovery.last_lsn.0);
        append(&log, 3);
        log.close().expect("closes");
        let (log, again) = open(&torn).expect("opens again");
        assert_eq!((again.records, again.torn.clone(), again.gap), (recovery.records + 3, None, None));
        assert_true_prefix(&log, &again);
    }
    lasts.dedup();
    assert_eq!(lasts, [5, 6, 7, 8, 9, 10], "each further byte keeps as much or more");
}

#[test]
fn an_unsynced_batch_may_reach_the_disk_in_any_pieces() {
    let storage = MemoryStorage::with_crashes();
    let (log, _) = open(&storage).expect("opens");
    append(&log, 10);
    log.wait_durable(Lsn(10)).expect("syncs");
    // 40 records are about 5 sectors: every subset of them is tried.
    let (before, begin) = segment_bytes(&storage);
    append(&log, 30);
    log.wait_durable(Lsn(40)).expect("syncs");
    let (after, end) = segment_bytes(&storage);
    let running = storage.fork();
    drop(log);
    let sectors: Vec<usize> = (begin / 512..=end / 512).collect();
    assert!((3..=9).contains(&sectors.len()), "{}", sectors.len());
    for subset in 0..1_u32 << sectors.len() {
        let mut bytes = before.clone();
        for (bit, sector) in sectors.iter().enumerate().filter(|(bit, _)| subset & (1 << bit) != 0) {
            let _ = bit;
            bytes[sector * 512..(sector + 1) * 512].copy_from_slice(&after[sector * 512..(sector + 1) * 512]);
        }
        let crashed = running.fork();
        crashed.put(FIRST, bytes);
        let (log, recovery) = open(&crashed).unwrap_or_else(|error| panic!("{subset:b}: {error}"));
        assert!(recovery.last_lsn >= Lsn(10), "{subset:b}");
        assert_true_prefix(&log, &recovery);
        // Bytes from after the cut must not reappear when the space is filled again, byte for byte.
        while log.appended() < Lsn(20) {
            append(&log, 1);
        }
        log.wait_durable(log.appended()).expect("syncs");
        let appended = log.appended();
        drop(log);
        let (_, again) = open(&crashed).expect("opens again");
        assert_eq!(again.last_lsn, appended, "{subset:b}");
    }
}

#[test]
fn every_flipped_bit_of_a_closed_log_is_noticed() {
    let storage = closed_log(12);
    let (whole, end) = segment_bytes(&storage);
    let mut refused = 0;
    for bit in 0..end * 8 {
        // The header is one checksummed block; a sample of its bits suffices.
        if bit < HEADER_BYTES * 8 && bit > 64 * 8 && bit % 16 != 0 {
            continue;
        }
        let damaged = storage.fork();
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        damaged.put(FIRST, bytes);
        match open(&damaged) {
            Err(OpenError::Damaged(damage)) => {
                refused += 1;
                assert!(damage.path.ends_with(FIRST));
                assert!(damage.offset <= bit as u64 / 8);
                assert!(damage.to_string().contains("tidemark log repair"));
            }
            // Only the closing marker may be lost, with a report, and no record with it.
            Ok((_, recovery)) => {
                assert!(recovery.torn.is_some(), "bit {bit}");
                assert_eq!(recovery.last_lsn, Lsn(12), "bit {bit}");
            }
            Err(error) => panic!("bit {bit}: {error}"),
        }
    }
    assert!(refused > (end - HEADER_BYTES - 64) * 8);
}

/// Without further writes, the log marks what is durable after a while.
#[test]
fn damage_to_the_last_batch_before_a_silence_is_not_a_torn_tail() {
    let storage = MemoryStorage::new();
    let clock = ManualClock::new();
    let with_clock = Options { clock: Clock::from(&clock), ..options() };
    let (log, _) = Log::open(Arc::new(storage.clone()), with_clock).expect("opens");
    append(&log, 10);
    log.wait_durable(log.appended()).expect("syncs");
    let last = payload(10);
    for attempt in 0.. {
        let damaged = storage.fork();
        let mut bytes = damaged.read(FIRST).expect("is there");
        let at =
            bytes.windows(last.len()).position(|window| window == last).expect("the last record is written");
        bytes[at] ^= 1;
        damaged.put(FIRST, bytes);
        match open(&damaged) {
            Err(OpenError::Damaged(_)) => break,
            Ok(_) if attempt < 10_000 => {
                clock.advance(Duration::from_millis(10));
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok((_, recovery)) => panic!("no marker came: {recovery:?}"),
            Err(error) => panic!("{error}"),
        }
    }
    let written = storage.read(FIRST);
    clock.advance(Duration::from_hours(1));
    // A thread with a deadline would look at the clock every millisecond.
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(storage.read(FIRST), written, "an idle log writes nothing more");
}

#[test]
fn damage_in_a_segment_that_has_a_successor_is_never_a_torn_tail() {
    let storage = closed_log(150);
    let (bytes, end) = segment_bytes(&storage);
    for offset in [HEADER_BYTES, end - 1] {
        let damaged = storage.fork();
        let mut bytes = bytes.clone();
        bytes[offset] ^= 0x10;
        damaged.put(FIRST, bytes);
        assert!(matches!(open(&damaged), Err(OpenError::Damaged(_))));
    }
    let cut = storage.fork();
    cut.put(FIRST, bytes[..end - 1].to_vec());
    assert!(matches!(open(&cut), Err(OpenError::Damaged(_))), "a segment that was cut");
}

#[test]
fn a_missing_segment_is_damage() {
    let storage = closed_log(200);
    let names = tidemark_log::Storage::list(&storage).expect("lists");
    let mut segments: Vec<_> = names.iter().filter(|name| name.starts_with("segment-")).collect();
    segments.sort();
    assert!(segments.len() >= 3);
    tidemark_log::Storage::remove(&storage, segments[1]).expect("removes");
    assert!(matches!(open(&storage), Err(OpenError::Damaged(_))));
}

#[test]
fn a_payload_that_looks_like_frames_changes_nothing() {
    let storage = closed_log(12);
    let (whole, end) = segment_bytes(&storage);
    let copied = whole[HEADER_BYTES..end].to_vec();
    let other = MemoryStorage::new();
    let (log, _) = Log::open(Arc::new(other.clone()), Options { seed: None, ..options() }).expect("opens");
    log.append(0, 1, |buffer| buffer.extend_from_slice(&copied)).expect("is accepted");
    log.wait_durable(Lsn(1)).expect("syncs");
    // Not closed and torn: the search for proof covers the copied markers.
    let (mut bytes, end) = segment_bytes(&other);
    bytes[end - 1] ^= 1;
    let torn = other.fork();
    torn.put(FIRST, bytes);
    let (_, recovery) = open(&torn).expect("the frames of another segment prove nothing");
    assert_eq!(recovery.last_lsn, Lsn(0));
    assert!(recovery.torn.is_some());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_appended_is_read_back(
        records in prop::collection::vec((any::<u64>(), 1_u8.., prop::collection::vec(any::<u8>(), 0..2000)), 1..60),
        syncs in prop::collection::vec(any::<bool>(), 60),
    ) {
        let storage = MemoryStorage::new();
        let (log, _) = open(&storage).expect("opens");
        for ((time_us, kind, payload), sync) in records.iter().zip(&syncs) {
            let lsn = log.append(*time_us, *kind, |buffer| buffer.extend_from_slice(payload)).expect("is accepted");
            if *sync {
                log.wait_durable(lsn).expect("syncs");
            }
        }
        log.close().expect("closes");
        let (log, recovery) = open(&storage).expect("opens again");
        prop_assert_eq!(recovery.records, records.len() as u64);
        let mut replay = log.replay(Lsn(1)).expect("begins");
        let mut read = Vec::new();
        while let Some(batch) = replay.next_batch().expect("reads") {
            read.extend(batch.iter().map(|record| (record.time_us, record.kind, record.payload.to_vec())));
        }
        prop_assert_eq!(read, records);
    }

    #[test]
    fn any_garbage_in_place_of_a_closed_segment_is_an_error_or_behind_its_records(
        offset in 0..8192_usize,
        garbage in prop::collection::vec(any::<u8>(), 1..600),
    ) {
        let storage = closed_log(12);
        let (mut bytes, _) = segment_bytes(&storage);
        let end = (offset + garbage.len()).min(bytes.len());
        bytes[offset..end].copy_from_slice(&garbage[..end - offset]);
        storage.put(FIRST, bytes);
        if let Ok((log, recovery)) = open(&storage) {
            // Garbage over the whole end, proofs included, looks like a torn tail, except that
            // `END` records the clean close.
            prop_assert_eq!(recovery.last_lsn, Lsn(12));
            assert_true_prefix(&log, &recovery);
        }
    }
}
