//! The log under every single fault: the n-th storage call fails, for every n and every kind of
//! fault, once and permanently; then the process or the machine dies, and the log is reopened.
//!
//! Each time the recovered log must be exactly a prefix of what was appended and contain everything
//! that was acknowledged as durable. The log never assigns an LSN twice. Only a disk that reports a
//! false success may lose acknowledged records; even then the log reads nothing false.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidemark_log::storage::faulty::{Fault, Plan, Site};
use tidemark_log::{
    Clock, Durability, FaultyStorage, Health, Log, Lsn, ManualClock, MemoryStorage, OpenError, Options,
    Retention, Room, SnapshotWriter, Snapshots, Storage,
};

const BATCHES: u64 = 5;
const BATCH_RECORDS: u64 = 3;

/// Longer than the log waits before it retries to make or to drop a segment.
const RETRY_DELAY: Duration = Duration::from_secs(1);

fn options() -> Options {
    Options {
        durability: Durability::Always,
        segment_bytes: Options::SEGMENT_BYTES_MIN,
        retention: Retention::default(),
        recycle: 1,
        seed: Some(11),
        ..Options::default()
    }
}

/// What the workload has done.
#[derive(Debug, Default)]
struct Model {
    /// The records that the log should have, in order.
    history: BTreeMap<Lsn, Vec<u8>>,
    /// Every record up to this LSN was acknowledged.
    acknowledged: Lsn,
    /// The newest LSN that was ever assigned.
    newest: Lsn,
    /// Whether the storage may have reported a false success.
    liar: bool,
}

/// Two sessions of a log: batches, each awaited, with snapshots in between. Stops at the first
/// error.
fn run_workload(storage: &FaultyStorage, model: &mut Model) {
    for session in 0..2 {
        let Ok((log, recovery)) = Log::open(Arc::new(storage.clone()), options()) else {
            return;
        };
        assert!(model.liar || recovery.last_lsn >= model.acknowledged);
        model.history.retain(|lsn, _| *lsn <= recovery.last_lsn);
        model.acknowledged = recovery.last_lsn;
        let finished = run_session(&log, session, model);
        let closed = log.close().is_ok();
        if closed {
            model.acknowledged = log.appended();
        }
        if !finished || !closed {
            return;
        }
    }
}

fn run_session(log: &Log, session: u64, model: &mut Model) -> bool {
    let mut base = None;
    for batch in 0..BATCHES {
        for _ in 0..BATCH_RECORDS {
            let number = model.history.len() as u64 + 1;
            let payload = payload(number, session);
            let Ok(lsn) = log.append(number, 1, |buffer| buffer.extend_from_slice(&payload)) else {
                return false;
            };
            assert!(lsn > model.newest || model.liar, "{lsn} is handed out again");
            model.newest = lsn;
            model.history.insert(lsn, payload);
        }
        if log.wait_durable(log.appended()).is_err() {
            assert!(matches!(log.health(), Health::Failed(_)));
            assert!(log.check_writable().is_err());
            assert!(log.append(0, 1, |_| ()).is_err(), "nothing is accepted after a failed sync");
            return false;
        }
        model.acknowledged = log.durable();
        let is_taken = batch % 2 == 0 || write_snapshot(log, &mut base).is_some();
        if !is_taken && matches!(log.health(), Health::Failed(_)) {
            return false;
        }
    }
    true
}

/// Content of every snapshot; an incremental one has it from its base.
const KEPT: &[u8] = b"as it was";

/// Writes full and incremental snapshots in turn, each incremental one on the full one before it.
fn write_snapshot(log: &Log, base: &mut Option<Lsn>) -> Option<()> {
    let (lsn, on) = (log.durable(), base.take());
    let storage = log.storage().clone();
    let mut writer = match on {
        Some(base) => SnapshotWriter::create_on(storage, lsn, base).ok()?,
        None => SnapshotWriter::create(storage, lsn).ok()?,
    };
    writer.write_frame(1, &lsn.0.to_le_bytes()).ok()?;
    match on {
        Some(_) => writer.keep_section(2),
        None => writer.write_frame(2, KEPT).ok()?,
    }
    log.finish_snapshot(writer).ok()?;
    *base = on.is_none().then_some(lsn);
    Some(())
}

fn payload(number: u64, session: u64) -> Vec<u8> {
    let size = 300 + (number * 97 % 400) as usize;
    (0..size).map(|index| (number as usize * 31 + session as usize * 7 + index) as u8).collect()
}

/// Opens what survived and compares it with the model.
fn check(survivor: &MemoryStorage, model: &Model, case: &str) {
    let honest = !model.liar;
    let (log, recovery) = match Log::open(Arc::new(survivor.clone()), options()) {
        Ok(opened) => opened,
        Err(OpenError::Damaged(_) | OpenError::Missing(_)) if !honest => return,
        Err(error) => panic!("{case}: {error}"),
    };
    let mut replay = log.replay(log.floor()).expect("begins");
    let mut expected = model.history.range(recovery.first_lsn..);
    let mut last = recovery.first_lsn.previous();
    while let Some(batch) = replay.next_batch().unwrap_or_else(|error| panic!("{case}: {error}")) {
        for record in batch {
            let (lsn, written) =
                expected.next().unwrap_or_else(|| panic!("{case}: {record:?} was never written"));
            assert_eq!((record.lsn, record.payload), (*lsn, written.as_slice()), "{case}");
            last = *lsn;
        }
    }
    assert_eq!(last, recovery.last_lsn, "{case}");
    if honest {
        assert!(recovery.last_lsn >= model.acknowledged, "{case}: {recovery:?} {}", model.acknowledged);
        let storage: Arc<dyn Storage> = Arc::new(survivor.clone());
        let (snapshot, damaged) = Snapshots::new(storage).latest(log.floor()).expect(case);
        assert!(damaged.is_empty(), "{case}: {damaged:?}");
        let covered = snapshot.map_or(Lsn::ZERO, |snapshot| {
            snapshot.read_section(1, |frame| assert_eq!(frame, snapshot.lsn().0.to_le_bytes())).expect(case);
            snapshot.read_section(2, |frame| assert_eq!(frame, KEPT)).expect(case);
            assert_eq!(snapshot.sections(), [1, 2]);
            snapshot.lsn()
        });
        assert!(covered.next() >= log.floor(), "{case}: the log continues the snapshot");
        assert!(covered <= recovery.last_lsn, "{case}: a snapshot is never ahead of the log");
    }
    let lsn = log.append(0, 1, |buffer| buffer.extend_from_slice(b"life goes on")).expect(case);
    assert!(lsn > model.newest || model.liar, "{case}: {lsn} is handed out again");
    log.close().expect(case);
}

/// Runs the workload once for each of its calls, with the fault at that call. Returns how often a
/// fault occurred.
fn every_call(fault: Fault, forever: bool, crash_seeds: u64) -> u64 {
    let liar = matches!(fault, Fault::BitFlip | Fault::Lost);
    let mut struck = 0;
    // The housekeeper's calls interleave with the committer's, so the number of calls varies a
    // little.
    for at in 1.. {
        let memory = MemoryStorage::with_crashes();
        let plan = Plan { fault, at, site: None, forever, seed: at };
        let storage = FaultyStorage::new(Arc::new(memory.clone()), Some(plan));
        let mut model = Model { liar, ..Model::default() };
        run_workload(&storage, &mut model);
        struck += u64::from(storage.fired());
        if storage.calls() < at {
            break;
        }
        let case = format!("{fault:?} at call {at}, forever: {forever}");
        for seed in 0..crash_seeds {
            check(&memory.crash(seed), &model, &format!("{case}, crash {seed}"));
        }
        check(&memory, &model, &case);
    }
    assert!(struck > 25, "{fault:?} struck only {struck} times");
    struck
}

#[test]
fn io_error_at_every_call() {
    every_call(Fault::Error(io::ErrorKind::Other), false, 2);
}

#[test]
fn full_disk_at_every_call() {
    every_call(Fault::Error(io::ErrorKind::StorageFull), true, 1);
}

#[test]
fn power_failure_at_every_call() {
    every_call(Fault::Error(io::ErrorKind::NotConnected), true, 5);
}

#[test]
fn interruption_at_every_read_or_write_is_harmless() {
    for site in [Site::ReadAt, Site::WriteAt] {
        for at in 1..60 {
            let memory = MemoryStorage::new();
            let plan = Plan {
                fault: Fault::Error(io::ErrorKind::Interrupted),
                at,
                site: Some(site),
                forever: false,
                seed: 0,
            };
            let storage = FaultyStorage::new(Arc::new(memory.clone()), Some(plan));
            let mut model = Model::default();
            run_workload(&storage, &mut model);
            assert_eq!(model.acknowledged, Lsn(2 * BATCHES * BATCH_RECORDS), "{site:?} {at}");
        }
    }
}

#[test]
fn short_transfer_at_every_call_is_harmless() {
    for forever in [false, true] {
        every_call(Fault::Short, forever, 1);
    }
    let memory = MemoryStorage::new();
    let plan = Plan { fault: Fault::Short, at: 1, site: None, forever: true, seed: 0 };
    let mut model = Model::default();
    run_workload(&FaultyStorage::new(Arc::new(memory), Some(plan)), &mut model);
    assert_eq!(model.acknowledged, Lsn(2 * BATCHES * BATCH_RECORDS));
}

#[test]
fn torn_write_at_every_call() {
    for forever in [false, true] {
        every_call(Fault::Torn, forever, 2);
    }
}

#[test]
fn failed_sync_at_every_call() {
    for forever in [false, true] {
        every_call(Fault::SyncFailure, forever, 3);
    }
}

#[test]
fn flipped_bit_at_every_call_never_shows_a_false_value() {
    for forever in [false, true] {
        every_call(Fault::BitFlip, forever, 0);
    }
}

#[test]
fn a_bit_that_one_read_of_recovery_flips_does_not_get_into_the_log() {
    const RECORDS: u64 = 200;
    // All records in one batch, as far as possible: its marker proves nothing of the batch itself.
    let durability = Durability::Interval(Duration::from_mins(1));
    let in_one_segment = || Options { segment_bytes: 1 << 20, durability, ..options() };
    let written = MemoryStorage::new();
    let (log, _) = Log::open(Arc::new(written.clone()), in_one_segment()).expect("an empty log opens");
    let mut last = Lsn::ZERO;
    for number in 0..RECORDS {
        last = log.append(0, 1, |buffer| buffer.extend_from_slice(&payload(number, 0))).expect("is taken");
    }
    log.wait_durable(last).expect("memory does not fail");
    let mut struck = 0;
    for seed in 0..6 {
        for at in 1.. {
            let memory = written.fork();
            let plan = Plan { fault: Fault::BitFlip, at, site: Some(Site::ReadAt), forever: false, seed };
            let faulty = FaultyStorage::new(Arc::new(memory.clone()), Some(plan));
            // It opens, or is refused.
            drop(Log::open(Arc::new(faulty.clone()), in_one_segment()));
            if !faulty.fired() {
                break;
            }
            struck += 1;
            let case = format!("after a flipped bit in read {at}, seed {seed}");
            let (_, recovery) = Log::open(Arc::new(memory), in_one_segment())
                .unwrap_or_else(|error| panic!("{case}: {error}"));
            assert_eq!(recovery.last_lsn, last, "{case}");
        }
    }
    assert!(struck > 20, "only {struck} reads");
}

#[test]
fn lost_write_at_every_call_never_shows_a_false_value() {
    for forever in [false, true] {
        every_call(Fault::Lost, forever, 2);
    }
}

#[test]
fn the_workload_reaches_every_kind_of_call() {
    let storage = FaultyStorage::new(Arc::new(MemoryStorage::new()), None);
    let mut model = Model::default();
    run_workload(&storage, &mut model);
    assert_eq!(model.acknowledged, Lsn(2 * BATCHES * BATCH_RECORDS));
    for site in Site::ALL {
        // Only text segments and truncated files change their length.
        assert!(storage.calls_at(site) > 0 || site == Site::SetLen, "{site:?}");
    }
}

#[test]
fn a_record_too_large_for_the_disk_is_refused_and_smaller_ones_go_on() {
    let storage = FaultyStorage::new(Arc::new(MemoryStorage::new()), None);
    let (log, _) = Log::open(Arc::new(storage.clone()), options()).expect("opens");
    log.append(0, 1, |buffer| buffer.extend_from_slice(&[1; 100])).expect("is accepted");
    let large = 10 * Options::SEGMENT_BYTES_MIN as usize;
    let room = log.make_room(large).expect("there is space");
    log.append_into(room, 0, 1, |buffer| buffer.resize(buffer.len() + large, 1)).expect("room was made");
    log.wait_durable(log.appended()).expect("syncs");

    let full = Fault::Error(io::ErrorKind::StorageFull);
    storage.set_plan(Some(Plan { fault: full, at: 1, site: Some(Site::Allocate), forever: true, seed: 0 }));
    let appended = log.appended();
    let error = log.make_room(100 * large).expect_err("there is no space");
    assert!(error.to_string().contains("free space"), "{error}");
    assert_eq!(log.appended(), appended);
    storage.set_plan(None);
    while log.check_writable().is_err() {
        std::thread::yield_now();
    }
    log.append(0, 1, |buffer| buffer.extend_from_slice(&[1; 100])).expect("a small one finds its place");
    log.close().expect("closes");
}

#[test]
fn a_full_disk_refuses_records_until_there_is_space() {
    let memory = MemoryStorage::new();
    let storage = FaultyStorage::new(Arc::new(memory.clone()), None);
    let clock = ManualClock::new();
    let options = Options { clock: Clock::from(&clock), ..options() };
    let (log, _) = Log::open(Arc::new(storage.clone()), options).expect("opens");
    log.append(0, 1, |buffer| buffer.extend_from_slice(&[1; 100])).expect("is accepted");
    log.wait_durable(Lsn(1)).expect("syncs");
    let full = Fault::Error(io::ErrorKind::StorageFull);
    storage.set_plan(Some(Plan { fault: full, at: 1, site: Some(Site::Allocate), forever: true, seed: 0 }));
    let mut accepted = 1;
    let error = loop {
        match log.append(0, 1, |buffer| buffer.extend_from_slice(&[1; 100])) {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("free space"), "{error}");
    assert!(matches!(log.health(), Health::Full(_)));
    assert!(log.check_writable().is_err());
    log.wait_durable(Lsn(accepted)).expect("what was accepted is stored");
    storage.set_plan(None);
    assert!(log.check_writable().is_err(), "it is not time to look for space again");
    clock.advance(RETRY_DELAY);
    while log.check_writable().is_err() {
        std::thread::yield_now();
    }
    let lsn = log.append(0, 1, |buffer| buffer.extend_from_slice(&[1; 100])).expect("there is space again");
    assert_eq!(lsn, Lsn(accepted + 1));
    log.close().expect("closes");
}

#[test]
fn a_new_listener_of_a_full_log_is_notified() {
    let storage = FaultyStorage::new(Arc::new(MemoryStorage::new()), None);
    let (log, _) = Log::open(Arc::new(storage.clone()), options()).expect("opens");
    let full = Fault::Error(io::ErrorKind::StorageFull);
    storage.set_plan(Some(Plan { fault: full, at: 1, site: Some(Site::Allocate), forever: true, seed: 0 }));
    while log.append(0, 1, |buffer| buffer.extend_from_slice(&[1; 100])).is_ok() {}
    while !matches!(log.health(), Health::Full(_)) {
        std::thread::yield_now();
    }
    let reported = Arc::new(std::sync::Mutex::new(Vec::new()));
    let listened = reported.clone();
    log.set_listener(Box::new(move |progress| listened.lock().expect("no panic").push(progress.writable)));
    assert_eq!(reported.lock().expect("no panic").first(), Some(&false));
}

#[test]
fn a_record_that_was_admitted_before_the_disk_was_found_full_is_accepted() {
    let memory = MemoryStorage::new();
    let storage = FaultyStorage::new(Arc::new(memory.clone()), None);
    let (log, _) = Log::open(Arc::new(storage.clone()), options()).expect("opens");
    let append = || log.append(0, 1, |buffer| buffer.extend_from_slice(&[1; 100]));
    append().expect("is accepted");
    // The first segment now has its name, and any spare file is the emergency reserve.
    log.wait_durable(Lsn(1)).expect("syncs");
    let spare = |name: &String| name.starts_with("spare-") && !name.contains("tmp");
    while !memory.list().expect("names").iter().any(spare) {
        std::thread::yield_now();
    }
    let full = Fault::Error(io::ErrorKind::StorageFull);
    storage.set_plan(Some(Plan { fault: full, at: 1, site: Some(Site::Allocate), forever: true, seed: 0 }));
    let mut accepted = 1;
    while log.check_writable().is_ok() {
        // The caller has changed its state after this check, so the append must not fail.
        append().expect("what was admitted is accepted");
        accepted += 1;
    }
    assert_eq!(append().expect("so is what another thread had admitted"), Lsn(accepted + 1));
    log.wait_durable(Lsn(accepted + 1)).expect("what was accepted is stored");
    log.close().expect("closes");
    let (log, recovery) = Log::open(Arc::new(memory), options()).expect("opens");
    assert_eq!(recovery.last_lsn, Lsn(accepted + 1));
    log.close().expect("closes");
}

/// A log of several segments whose housekeeper has nothing to prepare.
fn quiet_log(storage: &FaultyStorage, recycle: usize) -> Log {
    let options = Options { recycle, ..options() };
    let (log, _) = Log::open(Arc::new(storage.clone()), options.clone()).expect("opens");
    for _ in 0..40 {
        let lsn = log.append(0, 1, |buffer| buffer.extend_from_slice(&[1; 500])).expect("is accepted");
        log.wait_durable(lsn).expect("syncs");
    }
    log.close().expect("closes");
    let renamed = storage.calls_at(Site::Rename);
    let (log, _) = Log::open(Arc::new(storage.clone()), options).expect("opens");
    // While the segment is less than half used, only the reserve is prepared.
    while storage.calls_at(Site::Rename) == renamed {
        std::thread::yield_now();
    }
    log
}

#[test]
fn an_old_segment_that_cannot_be_removed_stays_until_it_can_be_and_writes_go_on() {
    let memory = MemoryStorage::new();
    let storage = FaultyStorage::new(Arc::new(memory.clone()), None);
    let log = quiet_log(&storage, 0);
    let reported = Arc::new(std::sync::Mutex::new(vec![false]));
    let listened = reported.clone();
    log.set_listener(Box::new(move |progress| {
        let mut reported = listened.lock().expect("no panic");
        if reported.last() != Some(&progress.retaining) {
            reported.push(progress.retaining);
        }
    }));
    let oldest = format!("segment-{:020}.tide", 1);
    assert!(memory.list().expect("names").contains(&oldest));

    let denied = Fault::Error(io::ErrorKind::PermissionDenied);
    storage.set_plan(Some(Plan { fault: denied, at: 1, site: Some(Site::Remove), forever: true, seed: 0 }));
    log.release(Lsn(35));
    let tries = storage.calls_at(Site::Remove);
    while storage.calls_at(Site::Remove) < tries + 2 {
        let lsn = log.append(0, 1, |buffer| buffer.extend_from_slice(&[1; 50])).expect("is accepted");
        log.wait_durable(lsn).expect("syncs");
    }
    let failure = log.retention_failure().expect("is known");
    assert!(failure.to_string().contains(&oldest), "{failure}");
    assert!(matches!(log.health(), Health::Ok));
    assert_eq!(log.floor(), Lsn(1));
    let mut replay = log.replay(Lsn(1)).expect("begins");
    assert_eq!(replay.next_batch().expect("reads").expect("has records").first_lsn(), Lsn(1));
    drop(replay);

    storage.set_plan(None);
    while log.retention_failure().is_some() {
        std::thread::yield_now();
    }
    assert!(log.floor() > Lsn(1));
    assert!(!memory.list().expect("names").contains(&oldest));
    log.close().expect("closes");
    assert_eq!(*reported.lock().expect("no panic"), [false, true, false], "each change is reported once");
}

#[test]
fn an_old_segment_that_cannot_become_a_spare_one_stays_until_it_can() {
    let memory = MemoryStorage::new();
    let storage = FaultyStorage::new(Arc::new(memory.clone()), None);
    let log = quiet_log(&storage, 9);
    let at = storage.calls_at(Site::Rename) + 1;
    let denied = Fault::Error(io::ErrorKind::PermissionDenied);
    storage.set_plan(Some(Plan { fault: denied, at, site: Some(Site::Rename), forever: false, seed: 0 }));
    log.release(Lsn(35));
    while log.floor() == Lsn(1) {
        std::thread::yield_now();
    }
    assert!(storage.fired());
    log.append(0, 1, |buffer| buffer.extend_from_slice(&[1; 50])).expect("is accepted");
    log.close().expect("closes");
    let (_, recovery) = Log::open(Arc::new(memory), options()).expect("opens");
    assert_eq!(recovery.last_lsn, Lsn(41));
}

#[test]
fn a_directory_that_cannot_be_synced_after_a_removal_is_final() {
    let storage = FaultyStorage::new(Arc::new(MemoryStorage::new()), None);
    let log = quiet_log(&storage, 0);
    storage.set_plan(Some(Plan {
        fault: Fault::SyncFailure,
        at: storage.calls_at(Site::SyncDir) + 1,
        site: Some(Site::SyncDir),
        forever: false,
        seed: 0,
    }));
    log.release(Lsn(35));
    while log.check_writable().is_ok() {
        std::thread::yield_now();
    }
    assert!(matches!(log.health(), Health::Failed(_)));
    log.close().expect_err("the log has failed");
}

#[test]
fn room_that_was_promised_is_there_however_full_the_disk_is_meanwhile() {
    let full = Fault::Error(io::ErrorKind::StorageFull);
    let plan = Plan { fault: full, at: 1, site: Some(Site::Allocate), forever: true, seed: 0 };
    // From every position in a segment, for records that fill part of one, all of one, and more.
    for (large, before) in [200, 1000, 3000, 5000, 8000, 50_000]
        .into_iter()
        .flat_map(|large| (0..100).step_by(7).map(move |before| (large, before)))
    {
        let case = format!("{large} bytes after {before} records");
        let memory = MemoryStorage::new();
        let storage = FaultyStorage::new(Arc::new(memory.clone()), None);
        let (log, _) = Log::open(Arc::new(storage.clone()), options()).expect("opens");
        let small = || log.append(0, 1, |buffer| buffer.extend_from_slice(&[1; 50]));
        for _ in 0..before {
            small().expect("is accepted");
        }
        let rooms = [(); 3].map(|()| log.make_room(large).expect("there is space"));
        storage.set_plan(Some(plan));
        let mut accepted = before;
        while log.check_writable().is_ok() {
            accepted += 1;
            small().unwrap_or_else(|error| panic!("{case}: {error} at {accepted}"));
        }
        log.make_room(50 * large).expect_err("there is no more room than was promised");
        for room in rooms {
            small().unwrap_or_else(|error| panic!("{case}: {error}"));
            log.append_into(room, 0, 1, |buffer| buffer.resize(buffer.len() + large, 2))
                .unwrap_or_else(|error| panic!("{case}: {error}"));
            accepted += 2;
        }
        log.close().expect("closes");
        storage.set_plan(None);
        let (_, recovery) = Log::open(Arc::new(memory), options()).expect("opens");
        assert_eq!(recovery.last_lsn, Lsn(accepted), "{case}");
    }
}

#[test]
fn room_that_is_not_used_is_given_back() {
    let memory = MemoryStorage::new();
    let storage = FaultyStorage::new(Arc::new(memory.clone()), None);
    let (log, _) = Log::open(Arc::new(storage.clone()), options()).expect("opens");
    log.append(0, 1, |buffer| buffer.extend_from_slice(&[1; 100])).expect("is accepted");
    let first = log.make_room(50_000).expect("there is space");
    let full = Fault::Error(io::ErrorKind::StorageFull);
    storage.set_plan(Some(Plan { fault: full, at: 1, site: Some(Site::Allocate), forever: true, seed: 0 }));
    log.make_room(50_000).expect_err("there is room for one");
    drop(first);
    let second = log.make_room(50_000).expect("it is free again");
    log.append_into(second, 0, 1, |buffer| buffer.resize(buffer.len() + 50_000, 1)).expect("room was made");
    log.wait_durable(Lsn(2)).expect("syncs");
    log.close().expect("closes");
}

#[test]
fn large_records_of_many_threads_all_find_the_room_that_they_were_promised() {
    let memory = MemoryStorage::new();
    let storage = FaultyStorage::new(Arc::new(memory.clone()), None);
    let (log, _) = Log::open(Arc::new(storage.clone()), options()).expect("opens");
    let accepted = AtomicU64::new(0);
    let work = |thread: usize| {
        for round in 0..40 {
            let payload = [40, 100, 700, 3000, 9000, 20_000][(thread + round) % 6];
            // As in the engine: the caller checks before any change, and reserves space for a large
            // record.
            if log.check_writable().is_ok()
                && let Ok(room) = log.make_room(payload)
            {
                let write = |buffer: &mut Vec<u8>| buffer.resize(buffer.len() + payload, 3);
                match log.append_into(room, 0, 1, write) {
                    Ok(_) => drop(accepted.fetch_add(1, Ordering::Relaxed)),
                    // Small records have no reservation, and a second shortage may find the reserve
                    // used.
                    Err(error) => assert!(payload < 128, "{payload} bytes: {error}"),
                }
            }
        }
    };
    for calls in 1..12 {
        storage.set_plan(Some(Plan {
            fault: Fault::Error(io::ErrorKind::StorageFull),
            at: storage.calls_at(Site::Allocate) + calls,
            site: Some(Site::Allocate),
            forever: true,
            seed: 0,
        }));
        std::thread::scope(|scope| (0..8).for_each(|thread| drop(scope.spawn(move || work(thread)))));
        storage.set_plan(None);
        while log.check_writable().is_err() {
            std::thread::yield_now();
        }
    }
    log.close().expect("closes");
    let (_, recovery) = Log::open(Arc::new(memory), options()).expect("opens");
    assert_eq!(recovery.last_lsn.0, accepted.into_inner());
}

#[test]
fn a_snapshot_is_asked_for_before_a_full_disk_refuses_records_and_what_takes_no_memory_goes_on() {
    let storage = FaultyStorage::new(Arc::new(MemoryStorage::new()), None);
    let options = Options { segment_bytes: 1 << 20, durability: Durability::Off, ..Options::default() };
    let (log, _) = Log::open(Arc::new(storage.clone()), options).expect("an empty log");
    log.offer_relief();
    let append = || log.append(0, 1, |into| into.resize(into.len() + 1000, 1));
    append().expect("accepted");
    let full = Fault::Error(io::ErrorKind::StorageFull);
    storage.set_plan(Some(Plan { fault: full, at: 0, site: Some(Site::Allocate), forever: true, seed: 0 }));
    while !log.wants_relief() {
        log.check_writable().expect("records are not refused before a snapshot was asked for");
        // As an event loop does: `append` would wait for the snapshot.
        if log.has_room_for(1000) {
            let result = log.append_into(Room::NONE, 0, 1, |into| into.resize(into.len() + 1000, 1));
            result.expect("accepted");
        }
    }
    log.check_writable().expect("nor while it is taken");
    // Records written after a snapshot make another one useful.
    log.wait_durable(log.appended()).expect("memory does not fail");
    log.end_relief();
    while log.check_writable().is_ok() {
        std::thread::yield_now();
    }
    assert!(matches!(log.health(), Health::Full(_)));
    assert!(log.has_last_room_for(100), "what takes no memory goes on");
    while log.has_last_room_for(100) {
        log.append_into(Room::NONE, 0, 1, |into| into.resize(into.len() + 100, 1)).expect("accepted");
    }
    // With the log at its last space, a snapshot releases the segments before it.
    storage.set_plan(None);
    let lsn = log.appended();
    log.finish_relief(SnapshotWriter::create(log.storage().clone(), lsn).expect("a file")).expect("taken");
    while log.check_writable().is_err() {
        std::thread::yield_now();
    }
    assert_eq!(Snapshots::new(log.storage().clone()).list().expect("a list"), [lsn]);
    append().expect("accepted");
    log.close().expect("all is stored");
}
