//! A member's log is dropped when the group releases it, and begins behind a snapshot of another member.

use super::*;
use tidemark_log::{SnapshotWriter, Snapshots};

/// Completes a snapshot at `lsn`.
fn snapshot(log: &Log, lsn: Lsn) {
    let mut writer = SnapshotWriter::create(log.storage().clone(), lsn).expect("begins");
    writer.write_frame(1, b"state").expect("is written");
    log.finish_snapshot(writer).expect("counts");
}

/// A leader with entries of one large record each, in many segments, all of them committed.
fn long_log(storage: &MemoryStorage) -> (Log, Member) {
    let (log, member) = leader(storage);
    for _ in 0..30 {
        write(&log, &member, 1, &[&[1; 5000]]);
    }
    member.sync().expect("syncs");
    member.commit(log.written());
    (log, member)
}

#[test]
fn a_member_drops_what_its_snapshots_cover_and_the_group_releases() {
    let storage = MemoryStorage::new();
    let (log, member) = long_log(&storage);
    assert_eq!((member.covered(), member.snapshots_taken()), (Lsn::ZERO, 0));
    member.release(Lsn(u64::MAX));
    snapshot(&log, Lsn(STRIDE + 10));
    snapshot(&log, Lsn(STRIDE + 20));
    assert_eq!((member.covered(), member.snapshots_taken()), (Lsn(STRIDE + 10), 2), "two are kept");
    assert_eq!((log.floor(), member.first_entry()), (Lsn(1), 1), "the group has not released it");
    let bytes = member.bytes_behind(Lsn::ZERO).expect("measures");

    member.release(Lsn(u64::MAX));
    let until = std::time::Instant::now() + Duration::from_mins(1);
    while log.floor() == Lsn(1) {
        assert!(std::time::Instant::now() < until, "nothing is dropped");
        std::thread::yield_now();
    }
    let first = member.first_entry();
    assert!(log.floor() <= Lsn(STRIDE + 11) && (2..=12).contains(&first), "{} and {first}", log.floor());
    assert!(member.bytes_behind(Lsn::ZERO).expect("measures") < bytes);
    assert!(member.bytes_behind(log.written()).expect("measures") > 0, "the newest segment goes on");
    let (again, reopened, _) = open(&storage.fork());
    assert_eq!((reopened.last_entry(), reopened.first_entry()), (member.last_entry(), first));
    // Without a word of the group a start drops nothing more.
    begin_term(&reopened, 2);
    assert_eq!((again.floor(), reopened.covered()), (log.floor(), Lsn::ZERO), "they may be damaged");
    again.retain(Lsn(STRIDE + 21));
    assert_eq!(reopened.covered(), Lsn(STRIDE + 10), "the newer one was loaded");
    let (again, reopened, _) = open(&storage.fork());
    again.retain(Lsn(STRIDE + 8));
    assert_eq!(reopened.covered(), Lsn(STRIDE + 7), "none of them was usable");
}

#[test]
fn the_entry_before_a_record_is_found_wherever_segments_begin() {
    let storage = MemoryStorage::new();
    let (log, member) = leader(&storage);
    for _ in 0..10 {
        write(&log, &member, 1, &[&[1; 2000], &[2; 2000], &[3; 2000]]);
    }
    let newest = member.last_entry();
    for entry in all_entries(&member) {
        let (first, last) = (entry.1.first_lsn(), entry.1.last_lsn());
        let end = EntryEnd { id: entry.0, last };
        assert_eq!(member.entry_before(last).expect("reads"), Some(end));
        let before = member.entry_before(first.previous()).expect("reads").expect("the log begins there");
        assert_eq!(before.id.index + 1, entry.0.index);
        if first < last {
            assert_eq!(member.entry_before(last.previous()).expect("reads"), Some(before), "a part of it");
        }
    }
    assert_eq!(member.entry_before(Lsn(u64::MAX)).expect("reads"), Some(newest));
}

#[test]
fn a_snapshot_may_have_a_part_of_the_entry_that_comes_next() {
    let storage = MemoryStorage::new();
    let (log, member) = long_log(&storage);
    member.pause();
    let end = EntryEnd { id: id(90, 3), last: Lsn(3 * STRIDE + 10) };
    let mut writer = SnapshotWriter::create(log.storage().clone(), Lsn(3 * STRIDE + 12)).expect("begins");
    writer.write_frame(1, b"state").expect("is written");
    writer.finish().expect("has its name");
    member.restart_behind(end).expect("begins behind it");
    let (again, reopened, _) = open(&storage.fork());
    assert_eq!((reopened.last_entry(), again.committed(), again.floor()), (end, end.last, end.last.next()));
    let (snapshot, damaged) = Snapshots::new(again.storage().clone()).latest(again.floor()).expect("finds");
    assert_eq!((snapshot.map(|snapshot| snapshot.lsn()), damaged.len()), (Some(Lsn(3 * STRIDE + 12)), 0));
    // The entry arrives whole, and is not lost any more.
    let records: Vec<_> =
        (11..=14).map(|number| EntryRecords::of_record(Lsn(3 * STRIDE + number), 0, 1, b"x")).collect();
    for (number, records) in records.iter().enumerate() {
        reopened.append(id(91 + number as u64, 3), records).expect("is appended");
    }
    reopened.sync().expect("syncs");
    let (_, last, _) = open(&storage_of(&again).fork());
    assert_eq!(last.last_entry().id, id(94, 3));
}

/// The storage that a log uses.
fn storage_of(log: &Log) -> MemoryStorage {
    let files = MemoryStorage::new();
    for name in log.storage().list().expect("lists") {
        let file = log.storage().open(&name).expect("opens");
        let mut bytes = vec![0; file.len().expect("measures") as usize];
        tidemark_log::storage::read_full(&*file, &mut bytes, 0).expect("reads");
        files.put(&name, bytes);
    }
    files
}

#[test]
fn an_interrupted_restart_is_repeated_behind_a_log_that_was_removed() {
    let storage = MemoryStorage::new();
    let (log, member) = long_log(&storage);
    // More records than those behind the snapshot have LSNs: of a leader that was deposed.
    let ahead = log.written();
    let end = EntryEnd { id: id(90, 3), last: Lsn(ahead.0 - 5) };
    let interrupted = storage.fork();
    let as_storage: Arc<dyn Storage> = Arc::new(interrupted.clone());
    let mut writer = SnapshotWriter::create(as_storage, Lsn(end.last.0 + 2)).expect("begins");
    writer.write_frame(1, b"state").expect("is written");
    writer.finish().expect("has its name");
    Log::remove(&interrupted).expect("removes");
    Log::remove(&interrupted).expect("nothing is there");
    let (again, reopened, _) = open(&interrupted);
    assert_eq!(reopened.last_entry().id.index, 0);
    reopened.restart_behind(end).expect("begins behind it");
    assert_eq!((reopened.last_entry(), again.committed()), (end, end.last));
    let (last_log, last, _) = open(&interrupted.fork());
    assert_eq!((last.last_entry(), last_log.committed()), (end, end.last));
    drop(member);
}
