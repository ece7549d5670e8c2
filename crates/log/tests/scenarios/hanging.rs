//! Storage that does not answer: appenders that check for space never wait. The log refuses records
//! after `stall_after`, and accepts them again when the storage answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidemark_log::storage::faulty::{Fault, Plan, Site};
use tidemark_log::{
    AppendError, Clock, Durability, FaultyStorage, Health, Log, ManualClock, MemoryStorage, Options, Room,
};

/// Long enough for any machine; the duration itself is not asserted.
const PATIENCE: Duration = Duration::from_mins(1);

/// Real time does not reach it in a test that moves the clock.
const STALL_AFTER: Duration = Duration::from_hours(1);

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A log with a segment, over storage that can hang.
fn open(options: Options) -> (Log, FaultyStorage) {
    let storage = FaultyStorage::new(Arc::new(MemoryStorage::new()), None);
    let (log, _) = Log::open(Arc::new(storage.clone()), options).expect("an empty log");
    log.append(0, 1, |into| into.push(0)).expect("accepted");
    log.wait_durable(log.appended()).expect("memory does not fail");
    eventually("there is a segment", || log.has_room());
    (log, storage)
}

fn hang(storage: &FaultyStorage, site: Site) {
    storage.set_plan(Some(Plan { fault: Fault::Hang, at: 0, site: Some(site), forever: true, seed: 0 }));
}

/// Appends as an event loop does, until there is no space; returns the accepted bytes.
fn append_while_there_is_room(log: &Log, payload: &[u8]) -> usize {
    let mut accepted = 0;
    while log.has_room_for(payload.len()) && log.check_writable().is_ok() {
        let result = log.append_into(Room::NONE, 0, 1, |into| into.extend_from_slice(payload));
        result.expect("what finds room is accepted");
        accepted += payload.len();
    }
    accepted
}

#[test]
fn appenders_that_ask_for_room_never_wait_and_are_refused_in_time() {
    for site in [Site::WriteAt, Site::SyncData, Site::Allocate] {
        let options = Options {
            segment_bytes: 1 << 20,
            buffer_bytes: 256 << 10,
            stall_after: Duration::from_millis(300),
            durability: Durability::Interval(Duration::from_millis(1)),
            ..Options::default()
        };
        let (log, storage) = open(options);
        hang(&storage, site);
        let mut accepted = 0;
        eventually("the log says that it waits", || {
            // There is space again once the buffer is written.
            if log.check_writable().is_ok() {
                accepted += append_while_there_is_room(&log, &[7; 1000]);
            }
            log.look_for_stall();
            matches!(log.health(), Health::Stalled(_))
        });
        assert!(accepted <= (2 << 20) + 1000, "{site:?}: {accepted} bytes of records lie in memory");
        let refusal = log.check_writable().expect_err("changes are refused");
        assert!(matches!(refusal, AppendError::Stalled(_)), "{site:?}: {refusal}");
        assert!(refusal.to_string().contains("does not answer"), "{refusal}");
        assert!(log.has_room_for(1000), "a refused append does not wait for room");
        storage.set_plan(None);
        eventually("records are accepted again", || log.check_writable().is_ok() && log.has_room_for(1000));
        assert!(matches!(log.health(), Health::Ok));
        log.append_into(Room::NONE, 0, 1, |into| into.push(1)).expect("accepted");
        log.wait_durable(log.appended()).expect("the storage works");
        let (first, last) = (log.floor(), log.appended());
        assert_eq!(last.0 - first.0 + 1, accepted as u64 / 1000 + 2, "{site:?}: nothing is lost");
    }
}

#[test]
fn a_large_record_waits_for_its_segment_without_a_thread() {
    let clock = ManualClock::new();
    let options = Options {
        segment_bytes: 1 << 20,
        stall_after: STALL_AFTER,
        durability: Durability::Off,
        clock: Clock::from(&clock),
        ..Options::default()
    };
    let (log, storage) = open(options);
    let large = 3 << 20;
    hang(&storage, Site::Allocate);
    assert!(!log.has_room_for(large), "its segment is still to be made");
    assert!(log.has_room_for(1000), "small ones go on");
    eventually("its segment is being made", || storage.fired());
    clock.advance(STALL_AFTER);
    // Like a caller that the listener has notified of a new segment.
    assert!(!log.has_room_for(large));
    log.look_for_stall();
    assert!(matches!(log.health(), Health::Stalled(_)), "{:?}", log.health());
    storage.set_plan(None);
    eventually("the large one has its room", || log.check_writable().is_ok() && log.has_room_for(large));
    let room = log.make_room(large).expect("there is room");
    log.append_into(room, 0, 1, |into| into.resize(into.len() + large, 1)).expect("accepted");
    log.close().expect("all is stored");
}

#[test]
fn the_listener_is_notified_when_there_is_room_again() {
    let options = Options { buffer_bytes: 4 << 10, durability: Durability::Off, ..Options::default() };
    let (log, storage) = open(options);
    let calls = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    log.set_listener(Box::new(move |_| {
        counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }));
    hang(&storage, Site::WriteAt);
    append_while_there_is_room(&log, &[7; 1000]);
    // One batch hangs in the storage, the next one fills the buffer.
    eventually("the buffer is full", || {
        append_while_there_is_room(&log, &[7; 1000]);
        !log.has_room()
    });
    let before = calls.load(std::sync::atomic::Ordering::SeqCst);
    storage.set_plan(None);
    eventually("the listener hears of it", || calls.load(std::sync::atomic::Ordering::SeqCst) > before);
    eventually("there is room", || log.has_room());
}

#[test]
fn records_are_handed_over_while_a_sync_hangs() {
    for durability in [Durability::default(), Durability::Off] {
        let (log, storage) = open(Options { durability, ..Options::default() });
        hang(&storage, Site::SyncData);
        let first = log.append(0, 1, |into| into.push(1)).expect("accepted");
        log.request_sync(first);
        eventually("the sync hangs", || storage.fired());
        for number in 0..100 {
            let lsn = log.append(0, 1, |into| into.push(number)).expect("accepted");
            if number % 10 == 0 {
                log.request_sync(lsn);
                eventually("it survives the end of the process", || log.written() >= lsn);
            }
        }
        assert!(log.durable() < first, "{durability}: the sync still hangs");
        storage.set_plan(None);
        log.wait_durable(log.appended()).expect("the storage works");
        log.close().expect("all is stored");
    }
}
