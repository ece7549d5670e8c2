//! Guarantees of a log to appenders and readers.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tidemark_log::{AppendError, Durability, FileStorage, Log, Lsn, MemoryStorage, OpenError, Options};

fn options() -> Options {
    Options { segment_bytes: 16 << 10, durability: Durability::Always, seed: Some(7), ..Options::default() }
}

fn open(storage: &MemoryStorage) -> Log {
    Log::open(Arc::new(storage.clone()), options()).expect("opens").0
}

fn append(log: &Log, payload: &[u8]) -> Lsn {
    log.append(5, 1, |buffer| buffer.extend_from_slice(payload)).expect("is accepted")
}

fn read_all(log: &Log, from: Lsn) -> Vec<(u64, u64, u8, Vec<u8>)> {
    let mut replay = log.replay(from).expect("begins");
    let mut records = Vec::new();
    while let Some(batch) = replay.next_batch().expect("reads") {
        records.extend(
            batch.iter().map(|record| (record.lsn.0, record.time_us, record.kind, record.payload.to_vec())),
        );
    }
    records
}

#[test]
fn records_come_back_in_order_with_dense_lsns() {
    let storage = MemoryStorage::new();
    let log = open(&storage);
    for number in 0..1000_u64 {
        let lsn = log.append(number, 3, |buffer| buffer.extend_from_slice(&number.to_le_bytes()));
        assert_eq!(lsn.expect("is accepted"), Lsn(number + 1));
    }
    log.close().expect("closes");
    let (log, recovery) = Log::open(Arc::new(storage), options()).expect("opens again");
    assert_eq!((recovery.first_lsn, recovery.last_lsn, recovery.records), (Lsn(1), Lsn(1000), 1000));
    assert_eq!(recovery.torn, None);
    let expected: Vec<_> =
        (0..1000_u64).map(|number| (number + 1, number, 3, number.to_le_bytes().to_vec())).collect();
    assert_eq!(read_all(&log, Lsn(1)), expected);
    assert_eq!(read_all(&log, Lsn(501)), expected[500..]);
    assert_eq!(append(&log, b"next"), Lsn(1001));
}

#[test]
fn an_empty_log_is_empty() {
    let storage = MemoryStorage::new();
    let log = open(&storage);
    assert_eq!((log.appended(), log.durable(), log.floor()), (Lsn(0), Lsn(0), Lsn(1)));
    assert_eq!(read_all(&log, Lsn(1)), []);
    log.wait_durable(Lsn(0)).expect("nothing to wait for");
    log.close().expect("closes");
    assert_eq!(open(&storage).appended(), Lsn(0));
}

#[test]
fn what_was_awaited_survives_the_loss_of_everything_unsynced() {
    let storage = MemoryStorage::with_crashes();
    let log = open(&storage);
    for number in 0..200_u32 {
        append(&log, &number.to_le_bytes());
    }
    log.wait_durable(Lsn(150)).expect("syncs");
    for seed in 0..50 {
        let survivor = storage.crash(seed);
        let (log, recovery) = Log::open(Arc::new(survivor), options()).expect("opens");
        assert!(recovery.last_lsn >= Lsn(150));
        assert_eq!(read_all(&log, Lsn(1)).len() as u64, recovery.last_lsn.0);
    }
}

#[test]
fn interval_durability_arrives_by_itself() {
    let storage = MemoryStorage::new();
    let durability = Durability::Interval(Duration::from_millis(5));
    let (log, _) = Log::open(Arc::new(storage), Options { durability, ..options() }).expect("opens");
    let (sender, receiver) = std::sync::mpsc::channel();
    log.set_listener(Box::new(move |progress| {
        let _ = sender.send(progress);
    }));
    let lsn = append(&log, b"x");
    while receiver.recv().expect("the log is alive").durable < lsn {}
    assert_eq!(log.durable(), lsn);
}

#[test]
fn without_durability_records_are_still_written() {
    let storage = MemoryStorage::new();
    let (log, _) =
        Log::open(Arc::new(storage), Options { durability: Durability::Off, ..options() }).expect("opens");
    let lsn = append(&log, b"x");
    let mut tail = log.tail(lsn).expect("begins");
    while tail.next_batch().expect("reads").is_none() {
        std::thread::yield_now();
    }
    assert_eq!(log.written(), lsn);
    log.wait_durable(lsn).expect("a single command may still ask for durability");
    assert_eq!(log.durable(), lsn);
}

#[test]
fn concurrent_appenders_share_one_order_and_their_syncs() {
    let storage = MemoryStorage::new();
    let log = open(&storage);
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let log = &log;
            scope.spawn(move || {
                for number in 0..500_u32 {
                    let lsn = log
                        .append(0, thread + 1, |buffer| buffer.extend_from_slice(&number.to_le_bytes()))
                        .expect("is accepted");
                    if number % 50 == 0 {
                        log.wait_durable(lsn).expect("syncs");
                        assert!(log.durable() >= lsn);
                    }
                }
            });
        }
    });
    log.close().expect("closes");
    let log = open(&storage);
    let records = read_all(&log, Lsn(1));
    assert_eq!(records.len(), 2000);
    for thread in 1..=4 {
        let numbers: Vec<_> =
            records.iter().filter(|record| record.2 == thread).map(|record| &record.3).collect();
        assert!(numbers.iter().zip(0_u32..).all(|(payload, number)| **payload == number.to_le_bytes()));
    }
}

#[test]
fn a_caller_that_needs_a_quick_sync_syncs_itself() {
    let log = open(&MemoryStorage::new());
    // Occasionally the commit thread is busy, or idle and has to be woken anyway.
    let done_at_once = (0..1000).filter(|_| {
        let lsn = append(&log, b"x");
        log.sync_or_request(lsn);
        let is_done = log.durable() >= lsn;
        log.wait_durable(lsn).expect("syncs");
        is_done
    });
    assert!(done_at_once.count() > 0);
    log.close().expect("closes");
}

#[test]
fn a_sync_that_is_only_requested_comes_while_others_do_theirs_themselves() {
    let storage = MemoryStorage::new();
    let log = open(&storage);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..2_000 {
                    log.sync_or_request(append(&log, b"at once"));
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..1_000 {
                let lsn = append(&log, b"requested");
                log.request_sync(lsn);
                let asked = Instant::now();
                while log.durable() < lsn {
                    assert!(asked.elapsed() < Duration::from_secs(20), "the sync never came");
                    std::thread::yield_now();
                }
            }
        });
    });
    log.close().expect("closes");
    assert_eq!(read_all(&open(&storage), Lsn(1)).len(), 5_000);
}

#[test]
fn a_panic_on_the_commit_thread_ends_the_log_and_releases_all_waiters() {
    let log = open(&MemoryStorage::new());
    // Only the thread that syncs the record reports it as durable; others may report earlier changes.
    let is_first = AtomicBool::new(true);
    log.set_listener(Box::new(move |progress| {
        let panics = progress.durable > Lsn::ZERO && is_first.swap(false, Ordering::Relaxed);
        assert!(!panics, "the panic that this test is about");
    }));
    let lsn = append(&log, b"x");
    // Which thread syncs depends on timing.
    let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| log.wait_durable(lsn)));
    drop(waited);
    let asked = Instant::now();
    while log.append(5, 1, |buffer| buffer.push(1)).is_ok() {
        assert!(asked.elapsed() < Duration::from_secs(20), "the log goes on");
        log.request_sync(log.appended());
        std::thread::sleep(Duration::from_millis(1));
    }
    // Records synced before the panic remain durable.
    let last = log.appended();
    let waited = log.wait_durable(last);
    assert!(matches!(waited, Err(AppendError::Failed(_))) || log.durable() >= last, "{waited:?}");
    assert!(log.close().is_err());
}

#[test]
fn a_panic_on_the_thread_that_makes_segments_ends_the_log_and_nobody_waits_for_ever() {
    let log = open(&MemoryStorage::new());
    log.set_listener(Box::new(|_| {
        let name = thread::current().name().map(str::to_owned);
        assert_ne!(name.as_deref(), Some("tidemark-log-keep"), "the panic that this test is about");
    }));
    // The listener is called when there is a segment for the record.
    let _ = log.has_room_for(12_000);
    let asked = Instant::now();
    while log.check_writable().is_ok() {
        assert!(asked.elapsed() < Duration::from_secs(20), "the log goes on");
        thread::sleep(Duration::from_millis(1));
    }
    let refused = log.make_room(12_000).err();
    assert!(matches!(refused, Some(AppendError::Failed(_))), "{refused:?}");
    let refused = log.append(5, 1, |buffer| buffer.push(1)).err();
    assert!(matches!(refused, Some(AppendError::Failed(_))), "{refused:?}");
    assert!(log.close().is_err());
}

#[test]
fn a_second_log_on_the_same_directory_is_refused() {
    let storage = MemoryStorage::new();
    let log = open(&storage);
    assert!(matches!(Log::open(Arc::new(storage.clone()), options()), Err(OpenError::Locked { .. })));
    drop(log);
    drop(open(&storage));

    let directory = tempfile::tempdir().expect("has a directory");
    let files = || Arc::new(FileStorage::new(directory.path()).expect("is made"));
    let (log, _) = Log::open(files(), options()).expect("opens");
    let error = Log::open(files(), options()).expect_err("is locked");
    assert!(error.to_string().contains("in use by another process"), "{error}");
    std::fs::remove_file(directory.path().join("LOCK")).expect("is removed");
    let error = Log::open(files(), options()).expect_err("is locked without the file as well");
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    log.close().expect("closes");
    Log::open(files(), options()).expect("the lock is free again");
}

#[test]
fn a_lock_is_free_once_its_log_is_gone_whatever_children_have_inherited() {
    let directory = tempfile::tempdir().expect("has a directory");
    let files = || Arc::new(FileStorage::new(directory.path()).expect("is made"));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // With `pre_exec` the child is forked, and holds its parent's files until the exec.
                let mut child = Command::new("/bin/true");
                #[expect(unsafe_code, reason = "a child is to live before its exec")]
                // SAFETY: sleeping is safe in a child of a process with several threads.
                unsafe {
                    child.pre_exec(|| {
                        thread::sleep(Duration::from_millis(2));
                        Ok(())
                    });
                }
                child.status().expect("starts");
            }
        });
        for round in 0..200 {
            if let Err(error) = Log::open(files(), options()) {
                over.store(true, Ordering::Relaxed);
                panic!("round {round}: {error}");
            }
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn limits_are_errors_without_effect() {
    let storage = MemoryStorage::new();
    let (log, _) =
        Log::open(Arc::new(storage), Options { max_record_bytes: 100, ..options() }).expect("opens");
    let error = log.append(0, 1, |buffer| buffer.extend_from_slice(&[0; 101])).expect_err("is too large");
    assert!(matches!(error, AppendError::TooLarge { bytes: 101, limit: 100 }));
    assert!(matches!(log.append(0, 0, |_| ()), Err(AppendError::ReservedKind)));
    assert_eq!(append(&log, &[0; 100]), Lsn(1));
    assert_eq!(append(&log, &[]), Lsn(2));
    log.close().expect("closes");
    assert!(matches!(log.append(0, 1, |_| ()), Err(AppendError::Closed)));
    assert!(matches!(log.check_writable(), Err(AppendError::Closed)));
}

#[test]
fn a_record_larger_than_a_segment_gets_its_own() {
    let storage = MemoryStorage::new();
    let log = open(&storage);
    append(&log, b"before");
    let large: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
    append(&log, &large);
    append(&log, b"after");
    log.close().expect("closes");
    let log = open(&storage);
    let payloads: Vec<_> = read_all(&log, Lsn(1)).into_iter().map(|record| record.3).collect();
    assert_eq!(payloads, [b"before".to_vec(), large, b"after".to_vec()]);
}

#[test]
fn a_tail_follows_the_log_across_segments() {
    let storage = MemoryStorage::new();
    let log = open(&storage);
    let mut tail = log.tail(Lsn(1)).expect("begins");
    let mut seen = Vec::new();
    for number in 0..300_u64 {
        let lsn = append(&log, &[number as u8; 200]);
        if number % 7 == 0 {
            log.wait_durable(lsn).expect("syncs");
            while let Some(batch) = tail.next_committed_batch().expect("reads") {
                seen.extend(batch.iter().map(|record| record.lsn.0));
            }
            assert_eq!(seen.last(), Some(&lsn.0));
        }
    }
    assert!(seen.iter().zip(1..).all(|(lsn, expected)| *lsn == expected));
}

#[test]
fn durability_can_be_changed_while_the_log_runs() {
    let storage = MemoryStorage::new();
    let (log, _) =
        Log::open(Arc::new(storage), Options { durability: Durability::Off, ..options() }).expect("opens");
    let lsn = append(&log, b"x");
    log.set_durability(Durability::Always);
    assert_eq!(log.durability(), Durability::Always);
    log.wait_durable(lsn).expect("syncs");
}

#[test]
fn a_payload_writer_that_panics_leaves_no_trace() {
    let storage = MemoryStorage::new();
    let log = open(&storage);
    append(&log, b"before");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        log.append(0, 1, |buffer| {
            buffer.extend_from_slice(b"half a record");
            std::panic::resume_unwind(Box::new("gives up"));
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(append(&log, b"after"), Lsn(2));
    log.close().expect("closes");
    let payloads: Vec<_> = read_all(&open(&storage), Lsn(1)).into_iter().map(|record| record.3).collect();
    assert_eq!(payloads, [b"before".to_vec(), b"after".to_vec()]);
}

#[test]
fn a_payload_writer_that_removes_other_records_ends_the_log() {
    let storage = MemoryStorage::new();
    let log = open(&storage);
    let lsn = append(&log, b"acknowledged");
    log.wait_durable(lsn).expect("syncs");
    let error = log.append(0, 1, Vec::clear).expect_err("is noticed");
    assert!(matches!(error, AppendError::Failed(_)), "{error}");
    assert!(log.append(0, 1, |_| ()).is_err());
    assert!(log.close().is_err());
    assert_eq!(open(&storage).appended(), lsn);
}

#[test]
fn waiting_appenders_are_let_through_when_the_buffer_is_written() {
    let storage = MemoryStorage::new();
    let (log, _) = Log::open(Arc::new(storage), Options { buffer_bytes: 1000, ..options() }).expect("opens");
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                (0..200).for_each(|_| {
                    append(&log, &[1; 300]);
                });
            });
        }
    });
    log.wait_durable(Lsn(600)).expect("syncs");
    assert_eq!(log.durable(), Lsn(600));
}

#[test]
fn a_record_is_written_before_the_listener_is_notified() {
    let durability = Durability::Interval(Duration::from_mins(10));
    let (log, _) =
        Log::open(Arc::new(MemoryStorage::new()), Options { durability, ..options() }).expect("opens");
    let (sender, receiver) = std::sync::mpsc::channel();
    log.set_listener(Box::new(move |progress| {
        let _ = sender.send(progress);
    }));
    for _ in 0..1000 {
        let lsn = append(&log, b"x");
        log.write_or_request(lsn);
        // This thread writes the record, or the commit thread does and notifies the listener.
        while log.written() < lsn {
            receiver
                .recv_timeout(Duration::from_mins(1))
                .expect("the listener is notified of what is written");
        }
    }
    assert_eq!(log.durable(), Lsn::ZERO, "nothing asked for a sync");
    let last = log.written();
    log.write_or_request(Lsn(u64::MAX));
    assert_eq!(log.written(), last, "there is nothing more to write");
    log.close().expect("closes");
}

#[test]
fn a_record_is_written_soon_however_far_the_next_sync_is() {
    let storage = MemoryStorage::new();
    let options = Options { durability: Durability::Interval(Duration::from_mins(10)), ..Options::default() };
    let (log, _) = Log::open(Arc::new(storage), options).expect("opens");
    for _ in 0..3 {
        let lsn = log.append(0, 1, |buffer| buffer.push(1)).expect("is accepted");
        let began = Instant::now();
        while log.written() < lsn {
            assert!(began.elapsed() < Duration::from_mins(1), "record {lsn} waits for the sync");
            std::thread::sleep(Duration::from_millis(1));
        }
        // Long enough for the commit thread to sleep until the sync.
        std::thread::sleep(Duration::from_millis(50));
    }
    log.close().expect("closes");
}
