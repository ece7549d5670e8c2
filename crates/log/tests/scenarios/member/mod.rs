//! The log of a group's member: entries are whole or not there, equal on all members, and what the
//! group takes back is never read again.

mod alone;
mod model;
mod releasing;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use tidemark_log::storage::faulty::{Fault, Plan, Site};
use tidemark_log::{
    AppendError, Durability, EntryEnd, EntryError, EntryId, EntryRecords, FaultyStorage, Format, Health, Log,
    Lsn, Member, MemoryStorage, OpenError, Options, Recovery, Storage, tools,
};

const STRIDE: u64 = 1 << 32;
/// Kind of the records that begin a term.
const TERM: u8 = 99;

fn options() -> Options {
    Options {
        durability: Durability::Always,
        segment_bytes: Options::SEGMENT_BYTES_MIN,
        seed: Some(7),
        ..Options::default()
    }
}

/// How a member is opened.
type Opener = fn(Arc<dyn Storage>, Options) -> Result<(Log, Member, Recovery), OpenError>;

fn open(storage: &MemoryStorage) -> (Log, Member, Recovery) {
    Log::open_member(Arc::new(storage.clone()), options()).expect("opens")
}

fn id(index: u64, term: u64) -> EntryId {
    EntryId { index, term }
}

/// Begins a term with its own record, as the entry behind the newest one.
fn begin_term(member: &Member, term: u64) -> Lsn {
    let lsn = member.next_term_lsn().expect("LSNs are left");
    let records = EntryRecords::of_record(lsn, 1, TERM, &term.to_le_bytes());
    member.append(id(member.last_entry().id.index + 1, term), &records).expect("is appended");
    lsn
}

/// Appends records as a leader does, and writes them as one entry.
fn write(log: &Log, member: &Member, term: u64, payloads: &[&[u8]]) -> EntryRecords {
    for payload in payloads {
        log.append(5, 1, |buffer| buffer.extend_from_slice(payload)).expect("is accepted");
    }
    let records = member.take(Duration::ZERO).expect("there are records");
    member.write_taken(id(member.last_entry().id.index + 1, term), &records).expect("is written");
    records
}

/// A leader of term 1 with its first entry.
fn leader(storage: &MemoryStorage) -> (Log, Member) {
    let (log, member, _) = open(storage);
    begin_term(&member, 1);
    member.lead();
    (log, member)
}

fn all_entries(member: &Member) -> Vec<(EntryId, EntryRecords)> {
    let mut entries = Vec::new();
    let mut index = member.first_entry();
    loop {
        let read = member.entries(index, 100).expect("reads");
        if read.is_empty() {
            return entries;
        }
        index += read.len() as u64;
        entries.extend(read);
    }
}

/// LSN and payload of every record that may be replayed.
fn replayed(log: &Log) -> Vec<(u64, Vec<u8>)> {
    let mut replay = log.replay(log.floor()).expect("begins");
    let mut records = Vec::new();
    while let Some(batch) = replay.next_batch().expect("reads") {
        records.extend(batch.iter().map(|record| (record.lsn.0, record.payload.to_vec())));
    }
    records
}

/// Sends the entries that `to` lacks.
fn replicate(from: &Member, to: &Member) {
    for (id, records) in from.entries(to.last_entry().id.index + 1, usize::MAX).expect("reads") {
        let sent = EntryRecords::parse(records.bytes().clone()).expect("is whole");
        to.append(id, &sent).expect("is appended");
    }
    to.sync().expect("syncs");
}

#[test]
fn a_term_begins_behind_a_gap_at_the_same_record_on_every_member() {
    let storages = [MemoryStorage::new(), MemoryStorage::new()];
    let (log, leader) = leader(&storages[0]);
    write(&log, &leader, 1, &[b"one", b"two"]);
    let (_log, follower, _) = open(&storages[1]);
    replicate(&leader, &follower);
    assert_eq!(follower.last_entry(), EntryEnd { id: id(2, 1), last: Lsn(STRIDE + 2) });
    assert_eq!(leader.next_term_lsn(), Some(Lsn(2 * STRIDE)));
    assert_eq!(begin_term(&follower, 2), Lsn(2 * STRIDE));
    assert_eq!(all_entries(&follower)[..2], all_entries(&leader)[..]);
}

#[test]
fn a_reader_goes_on_in_the_segment_that_takes_the_place_of_an_empty_one() {
    let storage = MemoryStorage::new();
    let (log, member) = leader(&storage);
    write(&log, &member, 1, &[b"one", b"two"]);
    member.sync().expect("syncs");
    member.pause();
    let lsn = begin_term(&member, 2);
    // The machine loses power: the term's segment is there, and nothing that was written to it.
    let storage = storage.fork();
    let name = format!("segment-{:020}.tide", lsn.0);
    let mut bytes = storage.read(&name).expect("the term has a segment");
    bytes[4096..].fill(0);
    storage.put(&name, bytes);
    let (log, member, _) = open(&storage);
    assert_eq!(member.last_entry().id, id(2, 1));
    let mut tail = log.tail(member.last_entry().last.next()).expect("begins");
    assert!(tail.next_committed_batch().expect("reads").is_none());
    // The next term begins with the same record, in a segment of the same name.
    assert_eq!(begin_term(&member, 3), lsn);
    member.commit(lsn);
    let batch = tail.next_committed_batch().expect("reads").expect("is committed");
    assert_eq!((batch.first_lsn(), batch.last_lsn()), (lsn, lsn));
}

#[test]
fn entries_of_every_size_are_read_back_as_they_were_written() {
    let storage = MemoryStorage::new();
    let (log, member) = leader(&storage);
    let sizes = [1, 4000, 7000, 20_000, 3, 8000, 100];
    let mut written = vec![all_entries(&member)[0].clone()];
    for size in sizes {
        let payload = vec![size as u8; size];
        let records = write(&log, &member, 1, &[&payload, b"small", &payload]);
        written.push((member.last_entry().id, records));
    }
    assert_eq!(all_entries(&member), written);
    let (again, member, recovery) = open(&storage.fork());
    assert_eq!((recovery.gap, recovery.last_lsn), (None, member.last_entry().last));
    let read = all_entries(&member);
    for ((id, records), (id_read, records_read)) in written.iter().zip(&read) {
        assert_eq!(id, id_read);
        let bytes =
            |records: &EntryRecords| records.iter().map(|record| record.payload.to_vec()).collect::<Vec<_>>();
        assert_eq!(bytes(records), bytes(records_read));
    }
    assert_eq!((read.len(), again.appended()), (written.len(), log.appended()));
    assert_eq!(member.entry(3).expect("reads").map(|end| end.id), Some(id(3, 1)));
    assert_eq!(member.entry(100).expect("reads"), None);
}

#[test]
fn only_what_is_committed_is_replayed() {
    let storage = MemoryStorage::new();
    let (log, member) = leader(&storage);
    let mut tail = log.tail(Lsn::FIRST).expect("begins");
    write(&log, &member, 1, &[b"a", b"b"]);
    write(&log, &member, 1, &[b"c"]);
    assert!(replayed(&log).is_empty() && tail.next_committed_batch().expect("reads").is_none());
    member.commit(Lsn(STRIDE + 2));
    assert_eq!(log.committed(), Lsn(STRIDE + 2));
    assert_eq!(replayed(&log).len(), 3, "the term's record, and two");
    assert_eq!(
        tail.next_batch().expect("reads").map(tidemark_log::RecordBatch::last_lsn),
        Some(Lsn(STRIDE + 2))
    );
    member.commit(Lsn(STRIDE + 1));
    assert_eq!(log.committed(), Lsn(STRIDE + 2), "it never goes back");
}

#[test]
#[should_panic(expected = "is committed, and the log is written up to 4294967296")]
fn what_is_not_written_cannot_be_committed() {
    let (_log, member) = leader(&MemoryStorage::new());
    member.commit(Lsn(STRIDE + 1));
}

#[test]
fn the_log_of_a_single_node_is_continued_by_a_member_and_no_longer_by_a_single_node() {
    let storage = MemoryStorage::new();
    let (alone, _) = Log::open(Arc::new(storage.clone()), options()).expect("opens");
    alone.append(3, 1, |buffer| buffer.extend_from_slice(b"alone")).expect("is accepted");
    alone.close().expect("closes");
    let (log, member) = leader(&storage);
    let records = write(&log, &member, 1, &[b"in a group"]);
    assert_eq!(records.first_lsn(), Lsn(STRIDE + 1));
    member.sync().expect("syncs");
    member.commit(records.last_lsn());
    let payloads: Vec<_> = replayed(&log).into_iter().map(|(_, payload)| payload).collect();
    assert_eq!((payloads[0].as_slice(), payloads[2].as_slice()), (&b"alone"[..], &b"in a group"[..]));
    assert_eq!(member.first_entry(), 1);
    log.close().expect("closes");
    let refused = Log::open(Arc::new(storage), options()).expect_err("is refused");
    assert!(matches!(refused, OpenError::OfGroup { .. }), "{refused}");
}

#[test]
fn a_group_has_the_binary_format() {
    for format in [Format::Text, Format::Jsonl] {
        let options = Options { format, ..options() };
        let refused = Log::open_member(Arc::new(MemoryStorage::new()), options).expect_err("is refused");
        assert!(refused.to_string().contains("binary format"), "{refused}");
    }
}

#[test]
fn a_member_that_does_not_lead_accepts_no_records() {
    let (log, member, _) = open(&MemoryStorage::new());
    let append = || log.append(1, 1, |buffer| buffer.push(1));
    assert!(matches!(append(), Err(AppendError::Follows)));
    assert!(matches!(log.check_writable(), Err(AppendError::Follows)));
    begin_term(&member, 1);
    member.lead();
    assert!(log.check_writable().is_ok());
    assert_eq!(append().expect("is accepted"), Lsn(STRIDE + 1));
    member.pause();
    assert!(matches!(append(), Err(AppendError::Follows)));
    assert_eq!(member.take(Duration::ZERO).expect("what was accepted is there").last_lsn(), Lsn(STRIDE + 1));
}

#[test]
fn what_was_accepted_and_not_written_is_dropped_with_the_lead() {
    let storage = MemoryStorage::new();
    let (log, member) = leader(&storage);
    write(&log, &member, 1, &[b"kept"]);
    assert_eq!(member.discard(), None);
    member.lead();
    let big = vec![9; 6000];
    for _ in 0..5 {
        log.append(1, 1, |buffer| buffer.extend_from_slice(&big)).expect("is accepted");
    }
    let taken = member.take(Duration::ZERO).expect("there are records");
    log.append(1, 1, |buffer| buffer.extend_from_slice(b"behind it")).expect("is accepted");
    assert_eq!(member.discard(), Some((Lsn(STRIDE + 2), Lsn(STRIDE + 7))));
    assert_eq!((log.appended(), member.last_entry().last), (Lsn(STRIDE + 1), Lsn(STRIDE + 1)));
    assert_eq!(taken.last_lsn(), Lsn(STRIDE + 6));
    begin_term(&member, 3);
    member.commit(Lsn(2 * STRIDE));
    assert_eq!(
        replayed(&log).into_iter().map(|(lsn, _)| lsn).collect::<Vec<_>>(),
        [STRIDE, STRIDE + 1, 2 * STRIDE]
    );
    let (again, _, _) = open(&storage.fork());
    assert_eq!(again.appended(), Lsn(2 * STRIDE));
}

#[test]
fn an_entry_that_does_not_follow_is_refused_and_changes_nothing() {
    let (log, member) = leader(&MemoryStorage::new());
    write(&log, &member, 1, &[b"a"]);
    member.pause();
    let refuse = |id: EntryId, lsn: u64| {
        let records = EntryRecords::of_record(Lsn(lsn), 0, 1, b"x");
        let refused = member.append(id, &records).expect_err("is refused");
        assert!(matches!(refused, AppendError::OutOfOrder { .. }), "{refused}");
    };
    refuse(id(2, 1), STRIDE + 2);
    refuse(id(4, 1), STRIDE + 2);
    refuse(id(3, 0), STRIDE + 2);
    refuse(id(3, 1), STRIDE + 1);
    refuse(id(3, 1), STRIDE + 3);
    member.append(id(3, 1), &EntryRecords::of_record(Lsn(STRIDE + 2), 0, 1, b"x")).expect("is the next");
}

#[test]
fn what_the_group_takes_back_is_replaced_and_never_read_again() {
    let storage = MemoryStorage::new();
    let (log, member) = leader(&storage);
    let payload = vec![1; 3000];
    for _ in 0..10 {
        write(&log, &member, 1, &[&payload, &payload]);
    }
    member.sync().expect("syncs");
    member.commit(Lsn(STRIDE + 4));
    let mut tail = log.tail(Lsn(STRIDE + 3)).expect("begins");
    let lsns_and_sizes = |tail: &mut tidemark_log::Tail| {
        let mut read = Vec::new();
        while let Some(batch) = tail.next_committed_batch().expect("reads") {
            read.extend(batch.iter().map(|record| (record.lsn.0, record.payload.len())));
        }
        read
    };
    assert_eq!(lsns_and_sizes(&mut tail), [(STRIDE + 3, 3000), (STRIDE + 4, 3000)]);
    member.discard();
    member.cut_behind(4).expect("is cut");
    assert_eq!(member.last_entry(), EntryEnd { id: id(4, 1), last: Lsn(STRIDE + 6) });
    assert_eq!((log.appended(), log.durable()), (Lsn(STRIDE + 6), Lsn(STRIDE + 6)));
    // The leader of the same term had gone on with another entry: the same LSN, another record.
    let other = EntryRecords::of_record(Lsn(STRIDE + 7), 0, 1, b"other");
    member.append(id(5, 1), &other).expect("is appended");
    begin_term(&member, 5);
    member.sync().expect("syncs");
    member.commit(Lsn(2 * STRIDE));
    assert_eq!(
        lsns_and_sizes(&mut tail),
        [(STRIDE + 5, 3000), (STRIDE + 6, 3000), (STRIDE + 7, 5), (2 * STRIDE, 8)]
    );
    let entries = all_entries(&member);
    assert_eq!((entries[4].0, entries[5].0), (id(5, 1), id(6, 5)));
    assert_eq!(all_entries(&open(&storage.fork()).1), entries);
}

#[test]
fn what_is_committed_cannot_be_taken_back() {
    let (log, member) = leader(&MemoryStorage::new());
    let records = write(&log, &member, 1, &[b"a"]);
    member.commit(records.last_lsn());
    member.pause();
    let refused = member.cut_behind(1).expect_err("is refused");
    let expected = (Lsn(4_294_967_296), Lsn(4_294_967_297));
    assert!(
        matches!(refused, EntryError::Committed { end, committed } if (end, committed) == expected),
        "{refused}"
    );
    assert_eq!(member.last_entry().id.index, 2, "nothing has changed");
}

#[test]
fn an_entry_of_which_only_a_part_was_written_is_cut_off_at_the_next_start() {
    let storage = MemoryStorage::new();
    let (log, member) = leader(&storage);
    write(&log, &member, 1, &[b"whole"]);
    let payload = vec![3; 5000];
    write(&log, &member, 1, &[&payload, &payload, &payload, b"the last record"]);
    let last = segments(&storage).into_iter().max().expect("a segment");
    let mut bytes = storage.read(&last).expect("is there");
    let end = bytes.iter().rposition(|byte| *byte != 0).expect("records");
    bytes[end - 3..].fill(0);
    let torn = storage.fork();
    torn.put(&last, bytes);
    let (again, member, recovery) = open(&torn);
    assert_eq!(member.last_entry(), EntryEnd { id: id(2, 1), last: Lsn(STRIDE + 1) });
    assert_eq!(
        (again.appended(), recovery.last_lsn, recovery.records),
        (Lsn(STRIDE + 1), Lsn(STRIDE + 1), 2)
    );
    let replacement = EntryRecords::of_record(Lsn(STRIDE + 2), 0, 1, b"again");
    member.append(id(3, 1), &replacement).expect("is appended");
    let (_, member, _) = open(&torn.fork());
    assert_eq!(member.last_entry(), EntryEnd { id: id(3, 1), last: Lsn(STRIDE + 2) });
}

#[test]
fn a_log_begins_anew_behind_a_snapshot() {
    let storage = MemoryStorage::new();
    let (log, member) = leader(&storage);
    for _ in 0..5 {
        write(&log, &member, 1, &[&[4; 4000]]);
    }
    member.sync().expect("syncs");
    member.pause();
    let end = EntryEnd { id: id(40, 3), last: Lsn(5 * STRIDE + 17) };
    member.restart_behind(end).expect("begins anew");
    assert_eq!((member.last_entry(), log.committed(), log.durable()), (end, end.last, end.last));
    assert_eq!((member.first_entry(), log.floor()), (41, end.last.next()));
    assert!(
        matches!(member.entries(40, 1), Ok(entries) if entries.is_empty()) || member.entries(40, 1).is_err()
    );
    assert!(matches!(member.entries(7, 1), Err(EntryError::Released { wanted: 7, first: 41 })));
    let (_, reopened, _) = open(&storage.fork());
    assert_eq!(reopened.last_entry(), end);
    member.append(id(41, 3), &EntryRecords::of_record(end.last.next(), 0, 1, b"on")).expect("is appended");
    begin_term(&member, 6);
    let (_, reopened, _) = open(&storage.fork());
    assert_eq!(reopened.last_entry(), EntryEnd { id: id(42, 6), last: Lsn(6 * STRIDE) });
    assert_eq!(all_entries(&reopened), all_entries(&member));
}

#[test]
fn a_taker_is_woken_by_the_first_record() {
    let (log, member) = leader(&MemoryStorage::new());
    std::thread::scope(|scope| {
        let taken = scope.spawn(|| member.take(Duration::from_mins(1)));
        log.append(1, 1, |buffer| buffer.push(1)).expect("is accepted");
        assert_eq!(taken.join().expect("ends").map(|records| records.last_lsn()), Some(Lsn(STRIDE + 1)));
    });
    assert!(log.close().is_ok() && member.take(Duration::from_mins(1)).is_none());
}

#[test]
fn a_reader_that_has_read_ahead_sees_what_is_written_later() {
    let storage = MemoryStorage::new();
    let (log, member) = leader(&storage);
    for _ in 0..3 {
        write(&log, &member, 1, &[b"old"]);
    }
    let (log, member, _) = open(&storage.fork());
    let read = |index, bytes| member.entries(index, bytes).expect("reads").len();
    assert_eq!(read(1, 1), 1, "the rest of the segment is read ahead");
    member.lead();
    write(&log, &member, 1, &[b"new"]);
    assert_eq!(read(2, usize::MAX), 4);
}

#[test]
fn an_appender_calls_the_waker_of_a_member_that_found_no_records() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let (log, member) = leader(&MemoryStorage::new());
    let calls = Arc::new(AtomicUsize::new(0));
    let called = calls.clone();
    member.set_waker(Box::new(move || {
        called.fetch_add(1, Ordering::Relaxed);
    }));
    let append = || log.append(1, 1, |buffer| buffer.push(1)).expect("is accepted");
    let before = calls.load(Ordering::Relaxed);
    assert_eq!(member.try_take(), None);
    append();
    append();
    assert_eq!(calls.load(Ordering::Relaxed), before + 1, "once for both");
    let records = member.try_take().expect("there are records");
    assert_eq!(records.iter().count(), 2);
    append();
    assert_eq!(calls.load(Ordering::Relaxed), before + 1, "the member looks again");
    member
        .write_taken(EntryId { index: member.last_entry().id.index + 1, term: 1 }, &records)
        .expect("is written");
    assert!(member.try_take().is_some());
}

#[test]
fn no_flipped_bit_gives_another_entry() {
    let storage = MemoryStorage::new();
    let (log, member) = leader(&storage);
    for size in [10, 3000, 9000, 1] {
        write(&log, &member, 1, &[&vec![6; size], b"small"]);
    }
    member.pause();
    member.cut_behind(4).expect("is cut");
    begin_term(&member, 2);
    let written = all_entries(&member);
    let files = storage.fork();
    let (mut whole, mut cut, mut refused) = (0, 0, 0);
    for name in segments(&files) {
        let bytes = files.read(&name).expect("is there");
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        for at in (0..used).step_by(11) {
            let damaged = files.fork();
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << (at % 8);
            damaged.put(&name, bytes);
            let Ok((_log, member, _)) = Log::open_member(Arc::new(damaged), options()) else {
                refused += 1;
                continue;
            };
            let found = all_entries(&member);
            assert!(written.starts_with(&found), "{name} at {at}: {found:?}");
            if found.len() == written.len() { whole += 1 } else { cut += 1 }
        }
    }
    // Bytes of a header that nothing reads; the newest entry; all else.
    assert!(whole < refused && cut < refused, "{whole} whole, {cut} cut, {refused} refused");
}

/// A member behind a snapshot at entry 40, whose only segment begins with a term.
fn behind_a_snapshot(storage: &MemoryStorage) -> (Log, Member, EntryEnd) {
    let (log, member, _) = open(storage);
    let end = EntryEnd { id: id(40, 3), last: Lsn(STRIDE + 17) };
    member.restart_behind(end).expect("begins anew");
    begin_term(&member, 4);
    (log, member, end)
}

fn segments(storage: &MemoryStorage) -> Vec<String> {
    let mut names = storage.list().expect("lists");
    names.retain(|name| name.starts_with("segment-"));
    names
}

#[test]
fn a_log_from_which_all_is_taken_back_knows_where_it_began() {
    let storage = MemoryStorage::new();
    let (_log, member, end) = behind_a_snapshot(&storage);
    member.cut_behind(40).expect("is cut");
    assert_eq!((member.last_entry(), member.first_entry()), (end, 41));
    let (_log, again, recovery) = open(&storage.fork());
    assert_eq!((again.last_entry(), recovery.last_lsn), (end, end.last));
}

#[test]
fn of_two_segments_behind_the_same_record_the_one_with_records_counts() {
    let storage = MemoryStorage::new();
    let (_log, member, end) = behind_a_snapshot(&storage);
    let [old] = <[String; 1]>::try_from(segments(&storage)).expect("one segment");
    let bytes = storage.read(&old).expect("is there");
    member.cut_behind(40).expect("is cut");
    // The process ended before the old segment was removed: what was taken back is there again.
    let both = storage.fork();
    both.put(&old, bytes.clone());
    assert_eq!(segments(&both).len(), 2);
    let (_log, again, _) = open(&both);
    assert_eq!((again.last_entry().id, segments(&both)), (id(41, 4), vec![old.clone()]));
    // Something stands in its place, and of the old segment there is the header.
    member.append(id(41, 3), &EntryRecords::of_record(end.last.next(), 0, 1, b"new")).expect("is appended");
    let both = storage.fork();
    both.put(&old, bytes[..4096].to_vec());
    let (_log, again, _) = open(&both);
    assert_eq!((again.last_entry().id, segments(&both).contains(&old)), (id(41, 3), false));
}

#[test]
fn a_reader_that_waits_in_a_segment_that_is_removed_reads_what_replaces_it() {
    let (log, member) = leader(&MemoryStorage::new());
    for _ in 0..3 {
        write(&log, &member, 1, &[&[1; 7000]]);
    }
    let mut tail = log.tail(Lsn(STRIDE + 3)).expect("begins in the last segment");
    member.discard();
    member.cut_behind(2).expect("is cut");
    for index in 3..6 {
        let records = EntryRecords::of_record(Lsn(STRIDE + index - 1), 0, 1, b"other");
        member.append(id(index, 1), &records).expect("is appended");
    }
    member.commit(Lsn(STRIDE + 4));
    let batch = tail.next_committed_batch().expect("reads").expect("there are records");
    assert_eq!(
        batch.iter().next().map(|record| (record.lsn, record.payload)),
        Some((Lsn(STRIDE + 3), &b"other"[..]))
    );
}

#[test]
fn a_member_accepts_records_again_when_a_disk_that_hung_answers() {
    for site in [Site::WriteAt, Site::SyncData] {
        // Only the first segment hangs: no other work may notice that it answers again.
        let storage = FaultyStorage::of_file(Arc::new(MemoryStorage::new()), "spare-000000.tide.tmp");
        let options = Options { stall_after: Duration::from_millis(100), ..options() };
        let (log, member, _) = Log::open_member(Arc::new(storage.clone()), options).expect("opens");
        begin_term(&member, 1);
        member.lead();
        log.append(5, 1, |buffer| buffer.push(1)).expect("is accepted");
        let records = member.take(Duration::ZERO).expect("there are records");
        storage.set_plan(Some(Plan { fault: Fault::Hang, at: 0, site: Some(site), forever: true, seed: 0 }));
        std::thread::scope(|scope| {
            let written = scope.spawn(|| {
                member.write_taken(id(2, 1), &records).expect("is written");
                member.sync().expect("syncs")
            });
            while !matches!(log.health(), Health::Stalled(_)) {
                log.look_for_stall();
                std::thread::sleep(Duration::from_millis(1));
            }
            assert!(matches!(log.check_writable(), Err(AppendError::Stalled(_))), "{site:?}");
            storage.set_plan(None);
            assert_eq!(written.join().expect("ends"), records.last_lsn());
        });
        assert!(matches!(log.health(), Health::Ok), "{site:?}");
        log.append(5, 1, |buffer| buffer.push(2)).expect("is accepted");
    }
}

#[test]
fn tools_do_not_cut_the_log_of_a_member() {
    let storage = MemoryStorage::new();
    let (log, member) = leader(&storage);
    write(&log, &member, 1, &[b"a", b"b"]);
    member.sync().expect("syncs");
    log.close().expect("closes");
    let damaged = storage.fork();
    let [name] = <[String; 1]>::try_from(segments(&damaged)).expect("one segment");
    let mut bytes = damaged.read(&name).expect("is there");
    bytes[4096 + 40] ^= 1;
    damaged.put(&name, bytes);
    for storage in [storage, damaged] {
        let storage: Arc<dyn Storage> = Arc::new(storage);
        let before = storage.list().expect("lists");
        assert!(tools::inspect(&storage, &mut |_| ()).expect("reads").is_of_group);
        let refused = [
            tools::plan_repair(&storage, &mut |_| ()).expect_err("is refused"),
            tools::plan_truncate(&storage, Lsn(STRIDE), &mut |_| ()).expect_err("is refused"),
        ];
        for error in refused {
            assert!(error.to_string().contains("start the member with an empty directory"), "{error}");
        }
        assert_eq!(storage.list().expect("lists"), before);
    }
}
