//! Missing records that `END` proves to have been durable: opening fails until an operator decides
//! to continue without them. A log opens in every state that a mere stop can leave.

use std::io;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tidemark_log::storage::faulty::{Fault, Plan};
use tidemark_log::tools::{self, Inspection, Records, SegmentState, ToolError};
use tidemark_log::{
    Clock, Durability, FaultyStorage, FileStorage, Format, Gap, Health, Log, Lsn, ManualClock, MemoryStorage,
    MissingTail, OpenError, Options, Recovery, SnapshotWriter, Snapshots, Storage, Verify,
};

const STRIDE: u64 = 1 << 32;
const LAST: Lsn = Lsn(40);

/// Longest time between records becoming durable and the update of `END`.
const NOTE_DELAY: Duration = Duration::from_secs(1);

fn options() -> Options {
    Options {
        durability: Durability::Always,
        segment_bytes: Options::SEGMENT_BYTES_MIN,
        seed: Some(5),
        ..Options::default()
    }
}

fn shared(storage: &MemoryStorage) -> Arc<dyn Storage> {
    Arc::new(storage.clone())
}

fn try_open(storage: &MemoryStorage) -> Result<(Log, Recovery), OpenError> {
    Log::open(shared(storage), options())
}

fn open(storage: &MemoryStorage) -> (Log, Recovery) {
    try_open(storage).expect("opens")
}

fn append(log: &Log) -> Lsn {
    let lsn = log.append(0, 1, |buffer| buffer.extend_from_slice(&[b'7'; 500])).expect("is accepted");
    log.wait_durable(lsn).expect("syncs");
    lsn
}

fn take_snapshot(log: &Log) {
    let mut writer = SnapshotWriter::create(log.storage().clone(), log.durable()).expect("begins");
    writer.write_frame(0, b"state").expect("writes");
    log.finish_snapshot(writer).expect("finishes");
}

/// A closed log of 40 records in several segments, with a snapshot at `snapshot_at`.
fn closed_log(snapshot_at: Option<u64>) -> MemoryStorage {
    closed_log_with(options(), snapshot_at)
}

fn closed_log_with(options: Options, snapshot_at: Option<u64>) -> MemoryStorage {
    let storage = MemoryStorage::new();
    let (log, _) = Log::open(shared(&storage), options).expect("opens");
    while log.appended() < LAST {
        let lsn = append(&log);
        if snapshot_at == Some(lsn.0) {
            take_snapshot(&log);
        }
    }
    log.close().expect("closes");
    storage
}

fn inspect(storage: &MemoryStorage) -> Inspection {
    tools::inspect(&shared(storage), &mut |_| ()).expect("reads")
}

fn segments(storage: &MemoryStorage) -> Vec<String> {
    let mut names = storage.list().expect("lists");
    names.retain(|name| name.starts_with("segment-"));
    names.sort();
    names
}

fn remove_all(storage: &MemoryStorage, is_lost: impl Fn(&str) -> bool) {
    for name in storage.list().expect("lists").iter().filter(|name| is_lost(name)) {
        storage.remove(name).expect("is removed");
    }
}

/// Returns every file with its bytes, except those that a kill has left half made: an open removes
/// them.
fn files(storage: &MemoryStorage) -> Vec<(String, Vec<u8>)> {
    let mut names = storage.list().expect("lists");
    names.retain(|name| !name.contains(".tmp"));
    names.sort();
    names.into_iter().map(|name| (name.clone(), storage.read(&name).expect("exists"))).collect()
}

/// Asserts that every way of opening or reading reports the records after `last` as missing, and
/// that none of them changes anything.
fn assert_misses(storage: &MemoryStorage, last: Lsn, durable: Lsn, case: &str) -> MissingTail {
    let before = files(storage);
    let found = inspect(storage);
    assert_eq!(found.damage(), None, "{case}");
    let missing = found.missing.unwrap_or_else(|| panic!("{case}: nothing is missing"));
    assert_eq!((missing.durable, missing.last), (durable, last), "{case}");
    for verify in [Verify::All, Verify::Tail] {
        match Log::open(shared(storage), Options { verify, ..options() }) {
            Err(OpenError::Missing(refused)) => assert_eq!(refused, missing, "{case}"),
            other => panic!("{case}: {other:?}"),
        }
    }
    let mut records =
        Records::open(&shared(storage), Lsn::FIRST, Lsn(u64::MAX)).expect("reads what is there");
    while records.next_batch(&mut |_| ()).expect("reads").is_some() {}
    let error = records.check_end().expect_err("this is not the end");
    assert!(matches!(error, ToolError::Open(OpenError::Missing(_))), "{case}: {error}");
    assert_eq!(files(storage), before, "{case}");
    missing
}

/// Checks both ways to continue: a repair, and the removal of `END`.
fn assert_goes_on(storage: &MemoryStorage, last: Lsn, case: &str) {
    let removed = storage.fork();
    removed.remove("END").expect("is removed");
    let repaired = storage.fork();
    let cut = tools::plan_repair(&shared(&repaired), &mut |_| ()).expect(case).expect(case);
    assert_eq!((cut.last_lsn, cut.lost, cut.missing.is_some()), (last, None, true), "{case}");
    cut.apply(&repaired).expect(case);
    assert_eq!(inspect(&repaired).missing, None, "{case}");
    assert_eq!(tools::plan_repair(&shared(&repaired), &mut |_| ()).expect(case), None, "{case}");
    for storage in [removed, repaired] {
        let (log, recovery) = try_open(&storage).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(recovery.last_lsn, last, "{case}");
        assert!(append(&log) > LAST, "{case}: what is lost does not come again");
        log.close().expect(case);
        let (log, recovery) = open(&storage);
        assert_eq!((recovery.last_lsn, recovery.gap), (log.appended(), None), "{case}");
    }
}

#[test]
fn a_last_segment_that_is_gone_is_missed() {
    for format in Format::ALL {
        let storage = closed_log_with(Options { format, ..options() }, None);
        for gone in 1..segments(&storage).len() {
            let names = segments(&storage);
            let first =
                names[names.len() - gone][8..28].parse::<u64>().expect("the first record is in the name");
            let short = storage.fork();
            names.iter().rev().take(gone).for_each(|name| short.remove(name).expect("is removed"));
            let case = format!("{format}, without the last {gone}");
            assert_misses(&short, Lsn(first - 1), LAST, &case);
            assert_goes_on(&short, Lsn(first - 1), &case);
        }
    }
}

#[test]
fn a_last_segment_that_is_cut_or_zeroed_from_its_middle_on_is_missed() {
    for format in Format::ALL {
        // Large enough to hold all records in one segment.
        let storage = closed_log_with(Options { format, segment_bytes: 1 << 20, ..options() }, None);
        let found = inspect(&storage).segments.pop().expect("there is one");
        assert_eq!(found.records(), LAST.0);
        let whole = storage.read(&found.name).expect("exists");
        let used = found.used_bytes as usize;
        for at in [used - 250, used - 700, used - 5000] {
            let (mut zeroed, mut cut) = (whole.clone(), whole.clone());
            zeroed[at..].fill(0);
            cut.truncate(at);
            for bytes in [zeroed, cut] {
                let short = storage.fork();
                short.put(&found.name, bytes);
                let left = inspect(&short).segments.pop().expect("there is one");
                let case = format!("{format}, byte {at}");
                assert!(left.last_lsn < LAST, "{case}");
                assert_misses(&short, left.last_lsn, LAST, &case);
                assert_goes_on(&short, left.last_lsn, &case);
            }
        }
    }
}

#[test]
fn a_repair_keeps_what_is_left_of_the_missing_records() {
    let storage = closed_log(None);
    let last = inspect(&storage).segments.pop().expect("there is one");
    let mut bytes = storage.read(&last.name).expect("exists");
    bytes.truncate(last.used_bytes as usize - 200);
    storage.put(&last.name, bytes);
    let SegmentState::Torn(torn) = inspect(&storage).segments.pop().expect("there is one").state else {
        panic!("a part of a record is left");
    };
    let cut = tools::plan_repair(&shared(&storage), &mut |_| ()).expect("reads").expect("a plan");
    let aside = cut.apply(&storage).expect("repairs");
    assert_eq!(aside.iter().map(|name| storage.read(name).expect("is kept").len() as u64).sum::<u64>(), torn);
    assert_eq!(open(&storage).1.torn, None);
}

#[test]
fn an_incremental_snapshot_proves_the_records_before_it_without_end() {
    let storage = MemoryStorage::new();
    let (log, _) = open(&storage);
    (0..10).for_each(|_| _ = append(&log));
    take_snapshot(&log);
    (0..30).for_each(|_| _ = append(&log));
    let mut writer = SnapshotWriter::create_on(shared(&storage), LAST, Lsn(10)).expect("begins");
    writer.write_frame(0, b"state").expect("writes");
    log.finish_snapshot(writer).expect("finishes");
    log.close().expect("closes");
    storage.remove("END").expect("is removed");
    storage.remove(segments(&storage).last().expect("there is one")).expect("is removed");
    assert!(matches!(try_open(&storage), Err(OpenError::Damaged(_))));
    assert!(inspect(&storage).damage().is_some());
}

#[test]
fn a_log_of_which_only_snapshots_or_nothing_is_left_is_missed() {
    let storage = closed_log(Some(30));
    let snapshots = storage.fork();
    remove_all(&snapshots, |name| !name.starts_with("snapshot-") && name != "END");
    assert_misses(&snapshots, Lsn(30), LAST, "snapshots");
    assert_goes_on(&snapshots, Lsn(30), "snapshots");
    let spares = storage.fork();
    remove_all(&spares, |name| name.starts_with("segment-") || name.starts_with("snapshot-"));
    let nothing = storage.fork();
    remove_all(&nothing, |name| name != "END");
    for storage in [spares, nothing] {
        let missing = assert_misses(&storage, Lsn(0), LAST, "nothing");
        assert!(missing.to_string().contains("there are no records: 40 records are missing"), "{missing}");
    }
}

#[test]
fn the_message_says_how_many_are_missing_and_what_to_do() {
    let storage = closed_log(Some(30));
    remove_all(&storage, |name| name.starts_with("segment-"));
    let expected = "memory:END says that the records up to 40 were durable, but the log ends at record 30: 10 records are missing; \
                    restore the directory from a backup, or go on without them with `tidemark log repair --dir .`";
    assert_eq!(try_open(&storage).expect_err("is refused").to_string(), expected);
}

#[test]
fn positions_of_a_gap_are_not_counted_as_missing_and_what_is_missing_does_not_come_again() {
    let storage = MemoryStorage::new();
    let (log, _) = open(&storage);
    (0..3).for_each(|_| _ = append(&log));
    let storage = storage.fork();
    let (log, recovery) = open(&storage);
    assert_eq!(recovery.gap, Some(Gap { first: Lsn(4), last: Lsn(STRIDE - 1) }));
    (0..5).for_each(|_| _ = append(&log));
    log.close().expect("closes");
    storage.remove(segments(&storage).last().expect("there is one")).expect("is removed");
    let missing = assert_misses(&storage, Lsn(3), Lsn(STRIDE + 4), "behind a gap");
    assert!(missing.to_string().contains(": at least 5 records are missing;"), "{missing}");
    let cut = tools::plan_repair(&shared(&storage), &mut |_| ()).expect("reads").expect("a plan");
    cut.apply(&storage).expect("repairs");
    assert_eq!(append(&open(&storage).0), Lsn(2 * STRIDE));
}

#[test]
fn proven_damage_is_reported_as_damage() {
    let storage = closed_log(None);
    let last = inspect(&storage).segments.pop().expect("there is one");
    let mut bytes = storage.read(&last.name).expect("exists");
    bytes[4096 + 100] ^= 1;
    storage.put(&last.name, bytes);
    assert!(matches!(try_open(&storage), Err(OpenError::Damaged(_))));
    let found = inspect(&storage);
    assert!(found.damage().is_some() && found.missing.is_none(), "{found:?}");
}

/// Opens twice a log that a stop may have left.
fn assert_opens(storage: &MemoryStorage, last: Lsn, case: &str) {
    assert_eq!(inspect(storage).missing, None, "{case}");
    for _ in 0..2 {
        let (log, recovery) = try_open(storage).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(recovery.last_lsn, last, "{case}");
        log.close().expect(case);
    }
}

#[test]
fn a_closed_log_opens_again_wherever_opening_it_was_interrupted() {
    let mut interrupted = 0;
    for at in 1.. {
        let (memory, fault) = (MemoryStorage::with_crashes(), Fault::Error(io::ErrorKind::NotConnected));
        let (log, _) = open(&memory);
        (0..20).for_each(|_| _ = append(&log));
        log.close().expect("closes");
        // Bytes after the end, which opening cuts.
        let last = inspect(&memory).segments.pop().expect("there is one");
        let file = memory.open(&last.name).expect("opens");
        file.write_at(&[9; 50], last.used_bytes).expect("writes");
        file.sync_data().expect("syncs");
        let plan = Plan { fault, at, site: None, forever: true, seed: 0 };
        let storage = FaultyStorage::new(Arc::new(memory.clone()), Some(plan));
        let opened = Log::open(Arc::new(storage.clone()), options());
        let fired = storage.fired();
        for seed in 0..5 {
            assert_opens(&memory.crash(seed), Lsn(20), &format!("call {at}, seed {seed}"));
        }
        if opened.is_ok() && !fired {
            break;
        }
        interrupted += 1;
    }
    assert!(interrupted > 10, "{interrupted}");
}

#[test]
fn bytes_or_records_behind_the_closed_end_are_no_reason_to_refuse() {
    let storage = closed_log(None);
    let torn = storage.fork();
    let last = inspect(&torn).segments.pop().expect("there is one");
    torn.open(&last.name).expect("opens").write_at(&[9; 50], last.used_bytes).expect("writes");
    let (log, recovery) = open(&torn.fork());
    assert!(recovery.torn.is_some() && recovery.gap.is_some(), "{recovery:?}");
    drop(log);
    assert_opens(&torn, LAST, "torn behind the end");

    let end = storage.read("END").expect("is there");
    let (log, _) = open(&storage);
    append(&log);
    let longer = storage.fork();
    longer.put("END", end);
    assert_opens(&longer, LAST.next(), "longer than END says");
}

#[test]
fn a_closed_log_of_which_retention_has_left_little_opens() {
    let storage = MemoryStorage::new();
    let (log, _) = open(&storage);
    while log.floor() < Lsn(20) {
        append(&log);
        take_snapshot(&log);
    }
    let last = log.appended();
    log.close().expect("closes");
    assert_opens(&storage, last, "closed");
    // A kill, and a snapshot taken after the gap with no record after it.
    let (killed, _) = open(&storage);
    let storage = storage.fork();
    drop(killed);
    let (log, recovery) = open(&storage);
    assert!(recovery.gap.is_some(), "{recovery:?}");
    take_snapshot(&log);
    log.close().expect("closes");
    assert_opens(&storage, last, "closed in a gap");
}

#[test]
fn a_closed_log_that_is_only_a_snapshot_opens() {
    let storage = closed_log(Some(LAST.0));
    remove_all(&storage, |name| name.starts_with("segment-"));
    assert_opens(&storage, LAST, "what a snapshot covers is not missing");
    // As left by a repair whose snapshot is newer than all segments.
    let storage = closed_log(Some(LAST.0));
    let first = segments(&storage).remove(0);
    let mut bytes = storage.read(&first).expect("exists");
    bytes[4096 + 1000] ^= 4;
    storage.put(&first, bytes);
    remove_all(&storage, |name| name.starts_with("segment-") && name != first);
    let cut = tools::plan_repair(&shared(&storage), &mut |_| ()).expect("reads").expect("a plan");
    assert_eq!((cut.last_lsn, cut.missing.clone()), (LAST, None));
    cut.apply(&storage).expect("repairs");
    assert!(segments(&storage).is_empty());
    assert_opens(&storage, LAST, "repaired");
    let (found, damaged) = Snapshots::new(shared(&storage)).latest(LAST.next()).expect("is usable");
    assert_eq!((found.map(|found| found.lsn()), damaged.len()), (Some(LAST), 0));
}

#[test]
fn a_log_that_was_truncated_behind_a_clean_stop_opens() {
    let storage = closed_log(None);
    let cut = tools::plan_truncate(&shared(&storage), Lsn(17), &mut |_| ()).expect("reads");
    cut.apply(&storage).expect("truncates");
    assert_opens(&storage, Lsn(17), "truncated");
}

#[test]
fn truncating_what_is_left_is_a_decision_as_well() {
    let storage = closed_log(None);
    storage.remove(segments(&storage).last().expect("there is one")).expect("is removed");
    let cut = tools::plan_truncate(&shared(&storage), Lsn(17), &mut |_| ()).expect("reads");
    assert!(cut.missing.is_some());
    cut.apply(&storage).expect("truncates");
    assert_opens(&storage, Lsn(17), "truncated");
}

/// Moves the clock of an open log until `END` proves its records up to `durable`; returns the state
/// after a kill.
fn kill_once_proven(storage: &MemoryStorage, clock: &ManualClock, durable: Lsn) -> MemoryStorage {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let killed = storage.fork();
        let without_records = killed.fork();
        remove_all(&without_records, |name| name != "END");
        let missing = inspect(&without_records).missing;
        if missing.as_ref().is_some_and(|missing| missing.durable >= durable) {
            return killed;
        }
        assert!(Instant::now() < deadline, "END proves {missing:?}, not the records up to {durable}");
        clock.advance(NOTE_DELAY);
        sleep(Duration::from_millis(1));
    }
}

/// The state after a kill of a log of 40 records, once `END` proves them all.
fn killed_log(options: Options) -> MemoryStorage {
    let storage = MemoryStorage::new();
    let clock = ManualClock::new();
    let options = Options { clock: Clock::from(&clock), ..options };
    let (log, _) = Log::open(shared(&storage), options).expect("opens");
    while append(&log) < LAST {}
    kill_once_proven(&storage, &clock, LAST)
}

#[test]
fn a_segment_that_is_gone_after_a_kill_is_missed() {
    for format in Format::ALL {
        let storage = killed_log(Options { format, ..options() });
        let names = segments(&storage);
        for gone in 1..names.len() {
            let first = inspect(&storage).segments[names.len() - gone].first_lsn;
            let short = storage.fork();
            names.iter().rev().take(gone).for_each(|name| short.remove(name).expect("is removed"));
            let case = format!("{format}, without the last {gone}");
            assert_misses(&short, first.previous(), LAST, &case);
            assert_goes_on(&short, first.previous(), &case);
        }
        remove_all(&storage, |name| name.starts_with("segment-"));
        assert_misses(&storage, Lsn(0), LAST, &format!("{format}, without any"));
    }
}

#[test]
fn a_segment_that_is_cut_after_a_kill_is_missed() {
    for format in Format::ALL {
        let storage = killed_log(Options { format, segment_bytes: 1 << 20, ..options() });
        let found = inspect(&storage).segments.pop().expect("there is one");
        assert_eq!(found.records(), LAST.0);
        let mut bytes = storage.read(&found.name).expect("exists");
        bytes.truncate(found.used_bytes as usize / 2);
        storage.put(&found.name, bytes);
        let last = inspect(&storage).segments.pop().expect("there is one").last_lsn;
        assert!(last < LAST && last > Lsn::ZERO, "{format}: {last}");
        assert_misses(&storage, last, LAST, &format!("{format}"));
        assert_goes_on(&storage, last, &format!("{format}"));
    }
}

#[test]
fn segments_that_were_begun_prove_those_before_them_without_any_sync_that_was_asked_for() {
    let storage = MemoryStorage::new();
    let clock = ManualClock::new();
    let options = Options { durability: Durability::Off, clock: Clock::from(&clock), ..options() };
    let (log, _) = Log::open(shared(&storage), options).expect("opens");
    while segments(&storage).len() < 4 {
        let lsn = log.append(0, 1, |buffer| buffer.extend_from_slice(&[b'7'; 500])).expect("is accepted");
        log.write_or_request(lsn);
    }
    wait_until("all is written", || log.written() == log.appended());
    assert_eq!(log.durable(), Lsn::ZERO);
    let ends: Vec<Lsn> = inspect(&storage).segments.iter().map(|segment| segment.last_lsn).collect();
    let [.., left, sealed, _] = *ends else { panic!("{ends:?}") };
    let killed = kill_once_proven(&storage, &clock, sealed);
    let names = segments(&killed);
    let [.., before, last] = &*names else { panic!("{names:?}") };
    killed.remove(last).expect("is removed");
    assert_opens(&killed.fork(), sealed, "a last segment that was never synced");
    killed.remove(before).expect("is removed");
    assert_misses(&killed, left, sealed, "one that was");
}

#[test]
fn what_a_power_failure_takes_back_is_not_called_missing() {
    let storage = MemoryStorage::with_crashes();
    let clock = ManualClock::new();
    let options = Options { durability: Durability::Off, clock: Clock::from(&clock), ..options() };
    let (log, _) = Log::open(shared(&storage), options).expect("opens");
    (0..20).for_each(|_| _ = append(&log));
    let durable = log.durable();
    let unsynced = log.append(0, 1, |buffer| buffer.extend_from_slice(&[b'7'; 500])).expect("is accepted");
    while log.written() < unsynced {
        log.write_or_request(unsynced);
    }
    let proven = kill_once_proven(&storage, &clock, durable);
    drop(proven);
    for seed in 0..50 {
        let survivor = storage.crash(seed);
        let (_, recovery) = try_open(&survivor).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(recovery.last_lsn >= durable, "seed {seed}: {recovery:?}");
    }
}

#[test]
fn what_was_recovered_is_proven_from_the_start_on() {
    let storage = killed_log(options());
    storage.remove("END").expect("is removed");
    let (log, _) = open(&storage);
    let killed = storage.fork();
    drop(log);
    remove_all(&killed, |name| name.starts_with("segment-"));
    assert_misses(&killed, Lsn(0), LAST, "recovered");
}

/// A log in which only `END` can fail, and its clock.
fn log_with_faulty_end(memory: &MemoryStorage) -> (FaultyStorage, Log, ManualClock) {
    let storage = FaultyStorage::of_file(shared(memory), "END.tmp");
    let clock = ManualClock::new();
    let options = Options { clock: Clock::from(&clock), ..options() };
    let (log, _) = Log::open(Arc::new(storage.clone()), options).expect("opens");
    (storage, log, clock)
}

fn fail_from_now_on(storage: &FaultyStorage, kind: io::ErrorKind) {
    storage.set_plan(Some(Plan { fault: Fault::Error(kind), at: 1, site: None, forever: true, seed: 0 }));
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_log_whose_end_cannot_be_noted_fails() {
    let (storage, log, clock) = log_with_faulty_end(&MemoryStorage::new());
    fail_from_now_on(&storage, io::ErrorKind::Other);
    append(&log);
    wait_until("the log has not failed", || {
        clock.advance(NOTE_DELAY);
        matches!(log.health(), Health::Failed(_))
    });
    assert!(log.close().expect_err("has failed").to_string().starts_with("writing memory:END failed"));
}

#[test]
fn a_full_disk_makes_the_note_of_the_end_wait() {
    let memory = MemoryStorage::new();
    let (storage, log, clock) = log_with_faulty_end(&memory);
    fail_from_now_on(&storage, io::ErrorKind::StorageFull);
    append(&log);
    wait_until("nothing was noted", || {
        clock.advance(NOTE_DELAY);
        storage.fired()
    });
    let last = append(&log);
    assert!(matches!(log.health(), Health::Ok));
    storage.set_plan(None);
    kill_once_proven(&memory, &clock, last);
}

#[test]
fn a_symbolic_link_in_place_of_a_file_is_refused() {
    let closed = closed_log(Some(30));
    let snapshot = "snapshot-00000000000000000030.tide";
    for linked in [segments(&closed).pop().expect("there is one"), "END".to_owned(), snapshot.to_owned()] {
        let (directory, elsewhere) =
            (tempfile::tempdir().expect("is made"), tempfile::tempdir().expect("is made"));
        for (name, bytes) in files(&closed) {
            let place = if name == linked { elsewhere.path() } else { directory.path() };
            std::fs::write(place.join(name), bytes).expect("is written");
        }
        symlink(elsewhere.path().join(&linked), directory.path().join(&linked)).expect("is linked");
        let storage: Arc<dyn Storage> = Arc::new(FileStorage::existing(directory.path()).expect("is there"));
        let is_explained = |text: String| text.contains("it is a symbolic link; put the file itself there");
        if linked == snapshot {
            let found =
                tools::inspect(&storage, &mut |_| ()).expect("reads").snapshots.pop().expect("is there");
            assert!(is_explained(found.content.expect_err("is not read")));
        } else {
            let error = Log::open(storage.clone(), options()).expect_err("is refused");
            assert!(is_explained(error.to_string()), "{error}");
            let error = tools::inspect(&storage, &mut |_| ()).expect_err("is refused");
            assert!(is_explained(error.to_string()), "{error}");
        }
    }
}
