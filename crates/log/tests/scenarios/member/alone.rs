//! A member without threads does the same in the same order each time; and a term never waits for a
//! segment.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use tidemark_log::storage::faulty::{Fault, Plan, Site};
use tidemark_log::{FaultyStorage, Health, Log, Lsn, ManualClock, Member, MemoryStorage, Options, Storage};

use super::{begin_term, options, replicate, write};

/// Fails every creation of a file from now on.
fn fill_up(storage: &FaultyStorage) {
    let fault = Fault::Error(ErrorKind::StorageFull);
    storage.set_plan(Some(Plan { fault, at: 0, site: Some(Site::Create), forever: true, seed: 0 }));
}

fn member_on(storage: &FaultyStorage, clock: &ManualClock) -> (Log, Member) {
    let options = Options { clock: clock.into(), ..options() };
    let (log, member, _) =
        Log::open_member_without_threads(Arc::new(storage.clone()), options).expect("opens");
    (log, member)
}

fn faulty() -> FaultyStorage {
    FaultyStorage::new(Arc::new(MemoryStorage::with_crashes()), None)
}

/// Number of prepared segments, besides the emergency reserve.
fn spares(storage: &FaultyStorage) -> usize {
    storage.list().expect("lists").iter().filter(|name| name.starts_with("spare-")).count() - 1
}

/// Three members in one thread: terms, entries, commits, cuts and time. Returns what they did to their
/// storages.
fn simulate() -> Vec<(u64, Vec<String>)> {
    let (clock, storages) = (ManualClock::new(), [faulty(), faulty(), faulty()]);
    let members = [0, 1, 2].map(|at| member_on(&storages[at], &clock));
    for term in 1..8_usize {
        let leader = &members[term % 3];
        let follower = &members[(term + 1) % 3];
        begin_term(&leader.1, term as u64);
        leader.1.lead();
        for number in 0..6 {
            let payload = vec![number as u8; 1000 * term];
            let last = write(&leader.0, &leader.1, term as u64, &[&payload, b"small"]).last_lsn();
            clock.advance(Duration::from_millis(300));
            replicate(&leader.1, &follower.1);
            if number < 4 {
                leader.1.sync().expect("syncs");
                leader.1.commit(last);
                follower.1.commit(last);
            }
            members.iter().for_each(|(_, member)| member.keep_house());
        }
        assert_eq!(leader.1.discard(), None);
        // Two of the three go on without the last two entries, and the third is behind all of it.
        let committed = leader.1.last_entry().id.index - 2;
        for (_, member) in [leader, follower] {
            member.cut_behind(committed).expect("is cut");
        }
        replicate(&leader.1, &members[(term + 2) % 3].1);
        members[(term + 2) % 3].1.commit(leader.0.committed());
    }
    let ends: Vec<_> = members.iter().map(|(log, member)| (member.last_entry(), log.committed())).collect();
    assert!(ends.windows(2).all(|two| two[0] == two[1]), "{ends:?}");
    drop(members);
    storages.map(|storage| (storage.calls(), storage.list().expect("lists"))).into()
}

#[test]
fn members_without_threads_do_the_same_each_time() {
    let first = simulate();
    assert!(first.iter().all(|(calls, _)| *calls > 100), "{first:?}");
    assert_eq!(first, simulate());
}

#[test]
fn terms_and_cuts_never_wait_for_a_segment() {
    let (storage, clock) = (faulty(), ManualClock::new());
    let (_log, member) = member_on(&storage, &clock);
    assert_eq!(spares(&storage), 2);
    begin_term(&member, 1);
    clock.advance(Duration::from_secs(1));
    member.keep_house();
    fill_up(&storage);
    begin_term(&member, 2);
    member.cut_behind(1).expect("is cut");
    begin_term(&member, 3);
    assert_eq!((member.last_entry().id.index, spares(&storage)), (2, 0));
}

#[test]
fn what_can_wait_is_not_done_while_a_term_begins() {
    let (storage, clock) = (faulty(), ManualClock::new());
    let options = Options { clock: (&clock).into(), segment_bytes: 4 << 20, ..options() };
    let opened = Log::open_member_without_threads(Arc::new(storage.clone()), options);
    let (_log, member, _) = opened.expect("opens");
    // The first segment is a small one.
    for term in 1..3 {
        begin_term(&member, term);
        clock.advance(Duration::from_secs(1));
        member.keep_house();
    }
    let names = storage.list().expect("lists");
    let last = names.iter().filter(|name| name.starts_with("segment-")).max().expect("a segment");
    let bytes = || storage.open(last).and_then(|file| file.len()).expect("has a length");
    assert_eq!((spares(&storage), bytes()), (2, 4 << 20));
    begin_term(&member, 3);
    let calls = storage.calls();
    member.keep_house();
    assert_eq!((storage.calls(), spares(&storage), bytes()), (calls, 1, 4 << 20), "clients wait");
    clock.advance(Duration::from_millis(200));
    member.keep_house();
    assert_eq!(spares(&storage), 2);
    assert!(bytes() < 1 << 20, "{} bytes of a segment with one record", bytes());
}

#[test]
fn a_member_that_lacks_only_a_spare_segment_accepts_records() {
    let storage = faulty();
    let clock = ManualClock::new();
    let (log, member) = member_on(&storage, &clock);
    fill_up(&storage);
    begin_term(&member, 1);
    member.keep_house();
    assert_eq!(spares(&storage), 1);
    member.lead();
    assert!(matches!(log.health(), Health::Ok) && log.check_writable().is_ok());
    write(&log, &member, 1, &[&[7; 3000]]);
    member.pause();
    begin_term(&member, 2);
    clock.advance(Duration::from_secs(1));
    member.keep_house();
    assert!(matches!(log.health(), Health::Full(_)), "the last one is in use");
}

#[test]
fn a_member_without_threads_notes_how_far_it_is_durable_when_it_is_time() {
    let (clock, storage) = (ManualClock::new(), faulty());
    let (log, member) = member_on(&storage, &clock);
    begin_term(&member, 1);
    member.sync().expect("syncs");
    let end = |storage: &FaultyStorage| {
        let mut bytes = [0; 64];
        let file = storage.open("END").expect("is there");
        file.read_at(&mut bytes, 0).expect("reads");
        bytes
    };
    let before = end(&storage);
    member.keep_house();
    assert_eq!(end(&storage), before);
    clock.advance(Duration::from_secs(1));
    member.keep_house();
    assert_ne!(end(&storage), before);
    assert_eq!(log.durable(), Lsn(1 << 32));
}
