//! Rotation, recycling, retention and snapshots.

use std::sync::Arc;
use std::time::Duration;

use tidemark_log::{
    Durability, Log, Lsn, MemoryStorage, Options, ReplayError, Retention, SnapshotError, SnapshotWriter,
    Snapshots, Storage,
};

const SECOND_US: u64 = 1_000_000;

fn options() -> Options {
    Options {
        durability: Durability::Always,
        segment_bytes: Options::SEGMENT_BYTES_MIN,
        seed: Some(5),
        ..Options::default()
    }
}

fn open(storage: &MemoryStorage, options: Options) -> Log {
    Log::open(Arc::new(storage.clone()), options).expect("opens").0
}

fn append(log: &Log, time_us: u64, count: usize) {
    for _ in 0..count {
        let lsn = log.append(time_us, 1, |buffer| buffer.extend_from_slice(&[7; 500])).expect("is accepted");
        log.wait_durable(lsn).expect("syncs");
    }
}

fn names(storage: &MemoryStorage, prefix: &str) -> Vec<String> {
    let mut names = storage.list().expect("lists");
    names.retain(|name| name.starts_with(prefix));
    names.sort();
    names
}

fn wait_for_floor(log: &Log, floor: Lsn) {
    while log.floor() < floor {
        std::thread::yield_now();
    }
}

fn snapshot(log: &Log) -> Lsn {
    let lsn = log.durable();
    let mut writer = SnapshotWriter::create(log.storage().clone(), lsn).expect("begins");
    for section in 0..4 {
        for number in 0..10_u32 {
            writer
                .write_frame(section, &[&section.to_le_bytes()[..], &number.to_le_bytes()].concat())
                .expect("writes");
        }
    }
    log.finish_snapshot(writer).expect("finishes");
    lsn
}

#[test]
fn segments_rotate_by_size() {
    let storage = MemoryStorage::new();
    let log = open(&storage, options());
    append(&log, 0, 30);
    log.close().expect("closes");
    assert!(names(&storage, "segment-").len() >= 4);
    for name in names(&storage, "segment-") {
        assert_eq!(storage.read(&name).expect("exists").len(), 8192);
    }
}

#[test]
fn the_first_record_of_a_process_waits_for_a_small_segment_only() {
    let options = Options { segment_bytes: 4 << 20, ..options() };
    let sizes = |storage: &MemoryStorage| {
        names(storage, "segment-")
            .iter()
            .map(|name| storage.read(name).expect("exists").len())
            .collect::<Vec<_>>()
    };
    let storage = MemoryStorage::new();
    let log = open(&storage, options.clone());
    append(&log, 0, 3000);
    assert_eq!(sizes(&storage), [1 << 20, 4 << 20]);
    drop(log);
    // A record that does not fit waits for a segment in which it does.
    let storage = MemoryStorage::new();
    let log = open(&storage, options);
    let lsn = log.append(0, 1, |buffer| buffer.resize(buffer.len() + (3 << 20), 1)).expect("is accepted");
    log.wait_durable(lsn).expect("syncs");
    // The usual size, or just large enough if the record was there when the log created the
    // segment.
    assert!(matches!(sizes(&storage)[..], [bytes] if bytes > 3 << 20), "{:?}", sizes(&storage));
}

#[test]
fn segments_rotate_by_age_of_their_records() {
    let storage = MemoryStorage::new();
    let options = Options { segment_age: Some(Duration::from_mins(1)), segment_bytes: 1 << 20, ..options() };
    let log = open(&storage, options);
    append(&log, 100 * SECOND_US, 3);
    assert_eq!(names(&storage, "segment-").len(), 1);
    // The next segment is prepared in the background; records are accepted meanwhile.
    while names(&storage, "segment-").len() < 2 {
        append(&log, 161 * SECOND_US, 1);
    }
    append(&log, 162 * SECOND_US, 3);
    assert_eq!(names(&storage, "segment-").len(), 2);
}

#[test]
fn nothing_is_dropped_without_release() {
    let storage = MemoryStorage::new();
    let log = open(&storage, options());
    append(&log, 0, 40);
    assert_eq!(log.floor(), Lsn(1));
    assert_eq!(
        log.replay(Lsn(1)).expect("begins").next_batch().expect("reads").expect("has records").first_lsn(),
        Lsn(1)
    );
}

#[test]
fn released_segments_are_used_again_and_cannot_come_back() {
    let storage = MemoryStorage::new();
    let log = open(&storage, options());
    append(&log, 0, 40);
    log.release(Lsn(35));
    wait_for_floor(&log, Lsn(20));
    // The log may release more between the calls.
    let floor = log.floor();
    assert!(
        matches!(log.replay(Lsn(1)), Err(ReplayError::Released { wanted: Lsn(1), floor: at }) if (floor..=Lsn(35)).contains(&at))
    );
    while names(&storage, "spare-").is_empty() {
        std::thread::yield_now();
    }
    // The old frames in a recycled segment continue where new ones stop, at every possible
    // boundary.
    for round in 0..20 {
        append(&log, 0, 1);
        let copy = storage.fork();
        let (again, recovery) = Log::open(Arc::new(copy), options()).expect("opens");
        assert_eq!(recovery.last_lsn, log.appended(), "round {round}");
        append(&again, 0, 1);
        again.close().expect("closes");
    }
    log.close().expect("closes");
    let log = open(&storage, options());
    assert_eq!(log.appended(), Lsn(60));
}

#[test]
fn retention_keeps_bytes_and_age_beyond_the_release() {
    for (retention, kept_segments) in [
        (Retention { bytes: Some(3 * 8192), ..Retention::default() }, 4),
        (Retention { age: Some(Duration::from_hours(1)), ..Retention::default() }, 7),
    ] {
        let storage = MemoryStorage::new();
        let log = open(&storage, Options { retention, ..options() });
        append(&log, SECOND_US, 40);
        let segments = names(&storage, "segment-").len();
        assert!(segments >= kept_segments, "{segments}");
        log.release(Lsn(41));
        log.close().expect("closes");
        let log = open(&storage, Options { retention, ..options() });
        log.release(Lsn(41));
        if retention.age.is_some() {
            append(&log, 2 * SECOND_US, 5);
            assert_eq!(log.floor(), Lsn(1));
        } else {
            wait_for_floor(&log, Lsn(2));
            while names(&storage, "segment-").len() > kept_segments {
                std::thread::yield_now();
            }
            assert!(names(&storage, "segment-").len() >= kept_segments - 1);
        }
    }
}

#[test]
fn a_reader_keeps_the_segment_that_it_reads() {
    let storage = MemoryStorage::new();
    let log = open(&storage, options());
    append(&log, 0, 40);
    let mut tail = log.tail(Lsn(1)).expect("begins");
    log.release(Lsn(41));
    wait_for_floor(&log, Lsn(30));
    append(&log, 0, 20);
    let batch = tail.next_batch().expect("reads on").expect("has records");
    assert_eq!(batch.first_lsn(), Lsn(1));
    assert!(batch.iter().all(|record| record.payload == [7; 500]));
    let error = loop {
        match tail.next_batch() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the next segment is gone"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ReplayError::Released { .. }), "{error}");
}

#[test]
fn snapshots_are_read_by_section_and_two_are_kept() {
    let storage = MemoryStorage::new();
    let log = open(&storage, options());
    let mut lsns = Vec::new();
    for _ in 0..4 {
        append(&log, 0, 10);
        lsns.push(snapshot(&log));
    }
    let snapshots = Snapshots::new(log.storage().clone());
    assert_eq!(snapshots.list().expect("lists"), lsns[2..]);
    wait_for_floor(&log, Lsn(20));
    assert!(log.floor() <= lsns[2].next(), "the log reaches back to the oldest kept snapshot");
    let (latest, damaged) = snapshots.latest(log.floor()).expect("finds");
    let latest = latest.expect("there is one");
    assert_eq!((latest.lsn(), damaged.len()), (lsns[3], 0));
    assert_eq!(latest.sections(), [0, 1, 2, 3]);
    let mut frames = Vec::new();
    latest.read_section(2, |frame| frames.push(frame.to_vec())).expect("reads");
    let expected: Vec<_> =
        (0..10_u32).map(|number| [&2_u32.to_le_bytes()[..], &number.to_le_bytes()].concat()).collect();
    assert_eq!(frames, expected);
}

#[test]
fn a_damaged_snapshot_falls_back_to_the_older_one() {
    let storage = MemoryStorage::new();
    let log = open(&storage, options());
    append(&log, 0, 20);
    let older = snapshot(&log);
    append(&log, 0, 20);
    let newer = snapshot(&log);
    append(&log, 0, 5);
    wait_for_floor(&log, Lsn(10));
    let snapshots = Snapshots::new(log.storage().clone());
    let name = format!("snapshot-{:020}.tide", newer.0);
    let whole = storage.read(&name).expect("exists");
    // Damage to any byte is detected.
    for offset in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[offset] ^= 0x40;
        storage.put(&name, bytes);
        let (found, damaged) = snapshots.latest(log.floor()).expect("falls back");
        assert_eq!((found.expect("is the older").lsn(), damaged.len()), (older, 1), "byte {offset}");
    }
    for size in [0, 10, whole.len() - 1] {
        storage.put(&name, whole[..size].to_vec());
        assert_eq!(snapshots.latest(log.floor()).expect("falls back").0.expect("is the older").lsn(), older);
    }
    let older_name = format!("snapshot-{:020}.tide", older.0);
    storage.put(&older_name, b"gone".to_vec());
    let error = snapshots.latest(log.floor()).expect_err("nothing is left");
    assert!(matches!(error, SnapshotError::NoneUsable { .. }), "{error}");
    assert!(error.to_string().contains(&name), "{error}");
}

/// Takes an incremental snapshot on `base`: one section is unchanged, one is new, and two are
/// removed.
fn incremental(log: &Log, base: Lsn) -> Lsn {
    let lsn = log.durable();
    let mut writer = SnapshotWriter::create_on(log.storage().clone(), lsn, base).expect("begins");
    writer.write_frame(3, b"other").expect("writes");
    writer.keep_section(1);
    log.finish_snapshot(writer).expect("finishes");
    lsn
}

fn incremental_name(lsn: Lsn, base: Lsn) -> String {
    format!("snapshot-{:020}-on-{:020}.tide", lsn.0, base.0)
}

#[test]
fn an_incremental_snapshot_has_what_changed_and_the_rest_from_its_base() {
    let storage = MemoryStorage::new();
    let log = open(&storage, options());
    append(&log, 0, 10);
    let base = snapshot(&log);
    append(&log, 0, 10);
    let lsn = incremental(&log, base);
    let snapshots = Snapshots::new(log.storage().clone());
    assert_eq!(snapshots.list().expect("lists"), [base, lsn]);
    let (latest, damaged) = snapshots.latest(log.floor()).expect("finds");
    let latest = latest.expect("there is one");
    assert_eq!((latest.lsn(), latest.base(), damaged.len()), (lsn, Some(base), 0));
    assert_eq!(latest.sections(), [1, 3]);
    assert_eq!((latest.frames().len(), latest.payload_bytes()), (11, 10 * 8 + 5));
    let file = storage.read(&incremental_name(lsn, base)).expect("exists");
    assert_eq!(latest.file_bytes(), file.len() as u64);
    let frames = |section| {
        let mut frames = Vec::new();
        latest.read_section(section, |frame| frames.push(frame.to_vec())).expect("reads");
        frames
    };
    let kept: Vec<_> =
        (0..10_u32).map(|number| [&1_u32.to_le_bytes()[..], &number.to_le_bytes()].concat()).collect();
    assert_eq!((frames(1), frames(3)), (kept, vec![b"other".to_vec()]));
    // After a restart, the snapshot's name alone gives the position that the log had reached.
    log.close().expect("closes");
    for name in names(&storage, "segment-") {
        storage.remove(&name).expect("removes");
    }
    let log = open(&storage, options());
    append(&log, 0, 1);
    assert_eq!(log.appended(), lsn.next());
}

#[test]
fn of_an_incremental_snapshot_every_byte_counts_and_of_its_base_what_belongs_to_it() {
    let storage = MemoryStorage::new();
    let log = open(&storage, options());
    append(&log, 0, 10);
    let base = snapshot(&log);
    append(&log, 0, 10);
    let lsn = incremental(&log, base);
    let snapshots = Snapshots::new(log.storage().clone());
    let name = incremental_name(lsn, base);
    let whole = storage.read(&name).expect("exists");
    for offset in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[offset] ^= 0x40;
        storage.put(&name, bytes);
        let (found, damaged) = snapshots.latest(log.floor()).expect("falls back");
        assert_eq!((found.expect("is the base").lsn(), damaged.len()), (base, 1), "byte {offset}");
    }
    storage.put(&name, whole);
    let base_name = format!("snapshot-{:020}.tide", base.0);
    let whole = storage.read(&base_name).expect("exists");
    let (mut good, mut fallen) = (0, 0);
    for offset in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[offset] ^= 0x40;
        storage.put(&base_name, bytes);
        match snapshots.latest(log.floor()).expect("the log has all") {
            (Some(found), damaged) => {
                assert_eq!((found.lsn(), damaged.len()), (lsn, 0), "byte {offset}");
                good += 1;
            }
            (None, damaged) => {
                assert_eq!(damaged.len(), 2, "byte {offset}");
                fallen += 1;
            }
        }
    }
    // Three sections of ten frames of 20 bytes each are not part of it.
    assert_eq!((good, fallen), (600, whole.len() - 600));
    storage.remove(&base_name).expect("removes");
    let (found, damaged) = snapshots.latest(log.floor()).expect("the log has all");
    assert!(found.is_none() && damaged[0].to_string().contains(&base_name), "{damaged:?}");
    let orphan = SnapshotWriter::create_on(log.storage().clone(), log.durable(), base).expect_err("no base");
    assert!(orphan.to_string().contains(&base_name), "{orphan}");
}

#[test]
fn a_base_stays_as_long_as_it_is_needed_and_the_log_reaches_back_to_whole_ones() {
    let storage = MemoryStorage::new();
    let log = open(&storage, options());
    append(&log, 0, 10);
    let first = snapshot(&log);
    let on_first: Vec<Lsn> = (0..3)
        .map(|_| {
            append(&log, 0, 10);
            incremental(&log, first)
        })
        .collect();
    let snapshots = Snapshots::new(log.storage().clone());
    assert_eq!(snapshots.list().expect("lists"), [first, on_first[1], on_first[2]]);
    assert_eq!(log.floor(), Lsn(1), "incremental ones are no second way back");
    append(&log, 0, 10);
    let second = snapshot(&log);
    append(&log, 0, 10);
    let on_second = incremental(&log, second);
    assert_eq!(snapshots.list().expect("lists"), [first, on_first[2], second, on_second]);
    wait_for_floor(&log, Lsn(2));
    assert!(log.floor() <= first.next());
    append(&log, 0, 10);
    let third = snapshot(&log);
    assert_eq!(snapshots.list().expect("lists"), [second, on_second, third]);
    // Without its base an incremental snapshot is unusable.
    storage.remove(&format!("snapshot-{:020}.tide", second.0)).expect("removes");
    append(&log, 0, 10);
    let fourth = snapshot(&log);
    assert_eq!(snapshots.list().expect("lists"), [third, fourth]);
    assert_eq!(snapshots.set_aside(Some(third)).expect("renames").len(), 1);
    append(&log, 0, 10);
    let on_third = incremental(&log, third);
    assert_eq!(snapshots.set_aside(Some(third)).expect("renames").len(), 1);
    assert!(storage.read(&format!("{}.unusable", incremental_name(on_third, third))).is_some());
    assert_eq!(snapshots.list().expect("lists"), [third]);
}

#[test]
fn what_was_passed_over_is_set_aside_and_does_not_push_out_what_is_good() {
    let storage = MemoryStorage::new();
    let log = open(&storage, options());
    append(&log, 0, 20);
    let good = snapshot(&log);
    append(&log, 0, 20);
    let bad = snapshot(&log);
    let snapshots = Snapshots::new(log.storage().clone());
    let aside = snapshots.set_aside(Some(good)).expect("renames");
    let name = format!("snapshot-{:020}.tide.unusable", bad.0);
    assert_eq!(aside, [storage.path(&name)]);
    assert!(storage.read(&name).is_some(), "it can still be looked at");
    assert_eq!(snapshots.set_aside(Some(good)).expect("there is nothing to do"), [""; 0]);
    append(&log, 0, 20);
    let new = snapshot(&log);
    assert_eq!(snapshots.list().expect("lists"), [good, new]);
    assert_eq!(snapshots.set_aside(None).expect("renames").len(), 2);
    assert_eq!(snapshots.list().expect("lists"), []);
}

#[test]
fn without_any_snapshot_the_whole_log_is_needed() {
    let storage = MemoryStorage::new();
    let log = open(&storage, options());
    append(&log, 0, 40);
    let snapshots = Snapshots::new(log.storage().clone());
    assert!(snapshots.latest(log.floor()).expect("the log has all").0.is_none());
    log.release(Lsn(30));
    wait_for_floor(&log, Lsn(2));
    assert!(matches!(snapshots.latest(log.floor()), Err(SnapshotError::Missing { .. })));
}

#[test]
fn a_log_without_segments_continues_its_snapshot() {
    let storage = MemoryStorage::new();
    let log = open(&storage, options());
    append(&log, 0, 10);
    let lsn = snapshot(&log);
    log.close().expect("closes");
    for name in names(&storage, "segment-") {
        storage.remove(&name).expect("removes");
    }
    let log = open(&storage, options());
    append(&log, 0, 1);
    assert_eq!(log.appended(), lsn.next());
    log.close().expect("closes");
    assert_eq!(open(&storage, options()).floor(), lsn.next());
}

#[test]
fn a_snapshot_that_is_given_up_leaves_nothing() {
    let storage = MemoryStorage::new();
    let log = open(&storage, options());
    append(&log, 0, 3);
    let mut writer = SnapshotWriter::create(log.storage().clone(), Lsn(3)).expect("begins");
    writer.write_frame(0, b"x").expect("writes");
    assert_eq!(names(&storage, "snapshot-").len(), 1);
    drop(writer);
    assert_eq!(names(&storage, "snapshot-"), Vec::<String>::new());
}

#[test]
fn after_a_restart_the_next_segment_drops_what_the_kept_snapshots_cover() {
    let storage = MemoryStorage::new();
    let log = open(&storage, options());
    append(&log, 0, 20);
    let older = snapshot(&log);
    append(&log, 0, 20);
    // The machine stops between the second snapshot and the retention that it allows.
    SnapshotWriter::create(log.storage().clone(), log.durable())
        .and_then(SnapshotWriter::finish)
        .expect("finishes");
    assert_eq!(log.floor(), Lsn(1));
    log.close().expect("closes");
    let log = open(&storage, options());
    assert_eq!(log.floor(), Lsn(1), "a recovery may need everything");
    append(&log, 0, 10);
    wait_for_floor(&log, Lsn(10));
    assert!(log.floor() <= older.next());
}
