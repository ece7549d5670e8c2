//! Waiting for what the group commits: a snapshot counts only then.

use std::sync::Arc;
use std::time::Duration;

use tidemark_log::{AppendError, EntryRecords, Lsn, SnapshotError, SnapshotWriter, Snapshots, Storage};

use super::{MemoryStorage, STRIDE, begin_term, id, leader, open, replayed, write};

fn snapshots(storage: &MemoryStorage) -> Vec<Lsn> {
    Snapshots::new(shared(storage)).list().expect("lists")
}

fn shared(storage: &MemoryStorage) -> Arc<dyn Storage> {
    Arc::new(storage.clone())
}

fn begun(storage: &MemoryStorage, lsn: Lsn) -> SnapshotWriter {
    let mut writer = SnapshotWriter::create(shared(storage), lsn).expect("begins");
    writer.write_frame(1, b"state").expect("is written");
    writer
}

#[test]
fn a_snapshot_counts_once_the_group_has_committed_what_it_covers() {
    let storage = MemoryStorage::new();
    let (log, member) = leader(&storage);
    let last = write(&log, &member, 1, &[b"a", b"b"]).last_lsn();
    let writer = begun(&storage, last);
    std::thread::scope(|scope| {
        let finished = scope.spawn(|| log.finish_snapshot(writer));
        for lsn in [STRIDE, STRIDE + 1] {
            member.commit(Lsn(lsn));
            for _ in 0..200 {
                assert_eq!(snapshots(&storage), [], "record {last} is not committed");
                std::thread::yield_now();
            }
        }
        member.commit(last);
        finished.join().expect("ends").expect("counts");
    });
    assert_eq!(snapshots(&storage), [last]);
    assert_eq!(log.durable(), last, "no snapshot is ahead of its log");
    log.wait_committed(last).expect("is committed");
}

#[test]
fn a_snapshot_of_records_that_the_group_takes_back_is_dropped() {
    for is_written in [false, true] {
        let storage = MemoryStorage::new();
        let (log, member) = leader(&storage);
        let kept = write(&log, &member, 1, &[b"kept"]).last_lsn();
        member.commit(kept);
        if is_written {
            write(&log, &member, 1, &[b"lost", b"lost, too"]);
        } else {
            log.append(5, 1, |buffer| buffer.push(1)).expect("is accepted");
        }
        let last = log.appended();
        let writer = begun(&storage, last);
        std::thread::scope(|scope| {
            let finished = scope.spawn(|| log.finish_snapshot(writer));
            member.discard();
            member.cut_behind(2).expect("is cut");
            let failed = finished.join().expect("ends").expect_err("does not count");
            // Whatever it sees first: that the lead is lost, or the record.
            let is_known = |error: &AppendError| {
                matches!(error, AppendError::Follows)
                    || matches!(error, AppendError::TakenBack { lsn } if *lsn == last)
            };
            assert!(matches!(&failed, SnapshotError::Log(error) if is_known(error)), "{failed}");
        });
        assert_eq!(snapshots(&storage), []);
        // Nor does one that ends when the next term has committed more.
        let lsn = begin_term(&member, 2);
        member.commit(lsn);
        let failed = log.finish_snapshot(begun(&storage, last)).expect_err("does not count");
        assert!(
            matches!(failed, SnapshotError::Log(AppendError::TakenBack { lsn }) if lsn == last),
            "{failed}"
        );
        assert_eq!((snapshots(&storage), log.committed()), (Vec::new(), lsn));
    }
}

#[test]
fn a_snapshot_waits_no_longer_than_its_node_leads() {
    let storage = MemoryStorage::new();
    let (log, member) = leader(&storage);
    let last = write(&log, &member, 1, &[b"a"]).last_lsn();
    let writer = begun(&storage, last);
    std::thread::scope(|scope| {
        let finished = scope.spawn(|| log.finish_snapshot(writer));
        member.pause();
        let failed = finished.join().expect("ends").expect_err("does not count");
        assert!(matches!(failed, SnapshotError::Log(AppendError::Follows)), "{failed}");
    });
    assert_eq!(snapshots(&storage), []);
    // A follower's snapshots are of what is committed.
    member.commit(last);
    log.finish_snapshot(begun(&storage, last)).expect("counts");
}

#[test]
fn no_caller_waits_for_the_durability_of_what_is_taken_back() {
    let (log, member) = leader(&MemoryStorage::new());
    write(&log, &member, 1, &[b"kept"]);
    member.sync().expect("syncs");
    let last = write(&log, &member, 1, &[b"lost"]).last_lsn();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| log.wait_durable(last));
        member.discard();
        member.cut_behind(2).expect("is cut");
        waits.join().expect("ends").expect("everything that is left is durable");
    });
}

#[test]
fn a_snapshot_releases_no_record_that_is_not_committed() {
    let storage = MemoryStorage::new();
    let (log, member) = leader(&storage);
    for _ in 0..6 {
        write(&log, &member, 1, &[&[1; 5000]]);
    }
    member.sync().expect("syncs");
    log.release(Lsn(u64::MAX));
    begin_term_of(&member);
    assert_eq!(log.floor(), Lsn(1));
}

/// Begins a segment, which is when old ones are dropped.
fn begin_term_of(member: &super::Member) {
    member.pause();
    begin_term(member, 2);
}

#[test]
fn a_member_that_starts_again_replays_what_it_knows_to_be_committed() {
    let storage = MemoryStorage::new();
    let (log, member) = leader(&storage);
    write(&log, &member, 1, &[b"a"]);
    member.commit(Lsn(STRIDE + 1));
    // The next entry says what was committed before it.
    write(&log, &member, 1, &[b"b"]);
    member.commit(Lsn(STRIDE + 2));
    let lsns = |storage: &MemoryStorage| {
        let (log, _member, _) = open(storage);
        let lsns: Vec<u64> = replayed(&log).into_iter().map(|(lsn, _)| lsn).collect();
        (log.committed(), log.written(), lsns)
    };
    let expected = (Lsn(STRIDE + 1), Lsn(STRIDE + 2), vec![STRIDE, STRIDE + 1]);
    assert_eq!(lsns(&storage.fork()), expected);
    // A snapshot counts only behind what is committed.
    log.finish_snapshot(begun(&storage, Lsn(STRIDE + 2))).expect("counts");
    let expected = (Lsn(STRIDE + 2), Lsn(STRIDE + 2), vec![STRIDE, STRIDE + 1, STRIDE + 2]);
    assert_eq!(lsns(&storage.fork()), expected);
}

#[test]
fn an_entry_of_another_member_is_waited_for_as_well() {
    let (log, member, _) = open(&MemoryStorage::new());
    let lsn = begin_term(&member, 1);
    member.append(id(2, 1), &EntryRecords::of_record(lsn.next(), 0, 1, b"x")).expect("is appended");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| log.wait_committed(lsn.next()));
        member.commit(lsn.next());
        waits.join().expect("ends").expect("is committed");
    });
    log.close().expect("closes");
    assert!(matches!(log.wait_committed(lsn.next().next()), Err(AppendError::TakenBack { .. })));
}

#[test]
fn large_records_wait_until_the_entry_that_they_would_overfill_is_taken() {
    const LARGE: usize = 70 << 20;
    let storage = MemoryStorage::new();
    let (log, member) = leader(&storage);
    let payload = vec![7; LARGE];
    let append = |bytes: usize| {
        let room = log.make_room(bytes).expect("is accepted in the end");
        log.append_into(room, 5, 1, |buffer| buffer.extend_from_slice(&payload[..bytes]))
            .expect("is accepted");
    };
    // A record alone has room, whatever its size, and the second has none beside it.
    assert!(log.make_room(200 << 20).is_ok());
    append(60 << 20);
    assert!(!log.has_room_for(LARGE) && log.has_room_for(100));
    let mut sizes = Vec::new();
    std::thread::scope(|scope| {
        let others = [scope.spawn(|| append(LARGE)), scope.spawn(|| append(LARGE))];
        while sizes.len() < 3 {
            let Some(records) = member.take(Duration::from_secs(10)) else { break };
            sizes.push(records.bytes().len() >> 20);
            member.write_taken(id(member.last_entry().id.index + 1, 1), &records).expect("is written");
        }
        others.into_iter().for_each(|other| other.join().expect("ends"));
    });
    assert_eq!(sizes, [60, 70, 70]);
}
