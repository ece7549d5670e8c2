//! A reopened pool has the state that it had before, in every format and on every storage.

use super::support::{Ledger, clock, new_pool, open, options, serve, state};
use std::sync::Arc;
use tidemark_log::{
    Durability, FileStorage, Format, Log, Lsn, MemoryStorage, MmapStorage, OpenError, Retention, Storage,
};
use tidemark_pool::journal::Journal;
use tidemark_pool::selector::{AnySelector, SelectorKind};
use tidemark_pool::service::{Change, Request, Service, Settings};
use tidemark_pool::{Item, Pool, Secret, Stock};
use tidemark_stores::{PoolJournal, PoolLogError, PoolLogOptions};

/// Makes every kind of call that is logged, in several frames.
fn use_all(service: &Service, ledger: &mut Ledger) {
    for turn in 0..40 {
        assert!(ledger.call(service, turn));
    }
    let changes = vec![
        Change::Weight { id: "car".into(), weight: 4 },
        Change::Stock { id: "-".into(), stock: Stock::Limited(500) },
        Change::Restock { id: "a mug".into(), units: -7 },
        Change::Add(Item::unlimited("ein Fahrrad, 20 %", 5)),
    ];
    service.call(Request::Change(changes)).expect("changes");
    service
        .call(Request::Change(vec![Change::Remove { id: "ein Fahrrad, 20 %".into() }]))
        .expect("it is there");
    service.call(Request::GiveBack { id: "a mug".into(), count: 1 }).expect("it was drawn");
    service.call(Request::Confirm { number: 5 }).expect("a reservation");
    service.call(Request::Cancel { number: 15 }).expect("a reservation");
    let epoch = Request::BeginEpoch { client_seed: (*b"dice").into(), after: Secret::new([9; 32]) };
    service.call(epoch).expect("an epoch");
}

fn comes_back(storage: &dyn Fn() -> Arc<dyn Storage>, options: &PoolLogOptions, case: &str) {
    let opened = open(storage(), options).expect(case);
    assert!(opened.2.is_new, "{case}");
    let service = serve(opened);
    let mut ledger = Ledger::default();
    use_all(&service, &mut ledger);
    let before = state(&service);
    service.stop().expect(case);
    for _ in 0..2 {
        let opened = open(storage(), options).expect(case);
        assert!(!opened.2.is_new && opened.2.log.torn.is_none(), "{case}: {:?}", opened.2);
        let service = serve(opened);
        assert_eq!(state(&service), before, "{case}");
        service.stop().expect(case);
    }
    let service = serve(open(storage(), options).expect(case));
    assert_eq!(service.draw().expect(case).number, before.next_draw, "{case}: the numbers go on");
}

#[test]
fn a_pool_comes_back_in_every_format_and_storage() {
    for format in Format::ALL {
        let memory = Arc::new(MemoryStorage::new());
        comes_back(&|| memory.clone(), &options(format), &format!("{format} in memory"));
        let folder = tempfile::tempdir().expect("a folder");
        let file = || Arc::new(FileStorage::new(folder.path()).expect("a folder")) as Arc<dyn Storage>;
        comes_back(&file, &options(format), &format!("{format} in files"));
        let folder = tempfile::tempdir().expect("a folder");
        let mmap = || Arc::new(MmapStorage::new(folder.path()).expect("a folder")) as Arc<dyn Storage>;
        comes_back(&mmap, &options(format), &format!("{format} in mapped files"));
    }
}

#[test]
fn a_pool_comes_back_with_every_durability_if_its_service_was_stopped() {
    for durability in [Durability::Always, Durability::default(), Durability::Off] {
        let memory = Arc::new(MemoryStorage::new());
        let mut options = options(Format::Binary);
        options.log.durability = durability;
        comes_back(&|| memory.clone(), &options, &durability.to_string());
    }
}

/// A client that knows an epoch's secret must never see that secret determine another draw, not
/// even after a power failure.
#[test]
fn an_epochs_end_is_durable_before_its_secret_is_revealed_whatever_the_mode() {
    let mut options = options(Format::Binary);
    options.log.durability = Durability::Off;
    let (pool, journal, _) = open(Arc::new(MemoryStorage::new()), &options).expect("a pool");
    let log = Arc::clone(journal.log());
    let service = Service::start(pool, journal, clock(), Settings::default()).expect("a thread");
    service.draw().expect("a draw");
    assert!(log.durable() < log.appended(), "no caller waits for a draw's sync");
    let begin = Request::BeginEpoch { client_seed: Box::default(), after: Secret::new([3; 32]) };
    service.call(begin).expect("an epoch");
    assert_eq!(log.durable(), log.appended());
    service.draw().expect("a draw");
    assert!(log.durable() < log.appended(), "nor for one behind it");
    service.stop().expect("the log is well");
}

#[test]
fn each_frame_that_reveals_a_secret_waits_for_its_own_sync() {
    let mut options = options(Format::Binary);
    options.log.durability = Durability::Off;
    let (_, mut journal, _) = open(Arc::new(MemoryStorage::new()), &options).expect("a pool");
    let mut append = || {
        let position = journal.append(1, b"a frame that reveals a secret").expect("it is taken");
        journal.settle_when_durable(position);
        position
    };
    let (first, second) = (append(), append());
    assert_eq!(journal.settled(), Ok(first - 1), "neither is durable");
    journal.log().wait_durable(Lsn(first)).expect("it is synced");
    assert_eq!(journal.settled(), Ok(journal.log().durable().0.max(second - 1)));
    journal.log().wait_durable(Lsn(second)).expect("it is synced");
    assert_eq!(journal.settled(), Ok(second), "both are durable");
    let behind = journal.append(1, b"a frame that reveals none").expect("it is taken");
    assert_eq!(journal.settled(), Ok(behind));
}

#[test]
fn a_format_may_be_changed_between_two_starts() {
    let memory = Arc::new(MemoryStorage::new());
    let mut ledger = Ledger::default();
    for format in [Format::Jsonl, Format::Binary, Format::Text] {
        let opened = open(memory.clone(), &options(format)).expect("a pool");
        ledger.check(&opened, "between two formats");
        let service = serve(opened);
        assert!((0..8).all(|turn| ledger.call(&service, turn)));
    }
}

#[test]
fn readable_formats_write_frames_in_words() {
    for (format, drawn) in
        [(Format::Jsonl, r#""text":"draws from 0 at "#), (Format::Text, " 4 draws from 0 at ")]
    {
        let memory = Arc::new(MemoryStorage::new());
        let service = serve(open(memory.clone(), &options(format)).expect("a pool"));
        service.draw().expect("a draw");
        service.stop().expect("the log is well");
        let names = memory.list().expect("files");
        let logged = names.iter().filter_map(|name| memory.read(name)).collect::<Vec<_>>().concat();
        let logged = String::from_utf8_lossy(&logged);
        assert!(logged.contains(drawn), "{logged}");
    }
}

#[test]
fn draws_that_were_in_the_log_when_it_was_closed_are_missed() {
    for format in Format::ALL {
        let memory = Arc::new(MemoryStorage::new());
        let service = serve(open(memory.clone(), &options(format)).expect("a pool"));
        (0..5).for_each(|_| _ = service.draw().expect("a draw"));
        service.stop().expect("the log is well");
        let names = memory.list().expect("files");
        let segment = names.into_iter().find(|name| name.starts_with("segment-")).expect("one segment");
        let mut bytes = memory.read(&segment).expect("it is there");
        let end = bytes.iter().rposition(|byte| *byte != 0).expect("it has records");
        bytes[end - 150..].fill(0);
        memory.put(&segment, bytes);
        let refused = open(memory, &options(format)).map(|_| ());
        assert!(matches!(refused, Err(PoolLogError::Open(OpenError::Missing(_)))), "{format}: {refused:?}");
    }
}

#[test]
fn what_is_no_pools_log_is_refused() {
    let memory = Arc::new(MemoryStorage::new());
    let (log, _) = Log::open(memory.clone(), options(Format::Binary).log).expect("a log");
    log.append(1, 9, |buffer| buffer.extend_from_slice(b"something else")).expect("a record");
    log.close().expect("closed");
    let refused = open(memory, &options(Format::Binary)).map(|_| ());
    assert!(matches!(refused, Err(PoolLogError::Foreign { lsn: Lsn(1) })), "{refused:?}");
}

#[test]
fn a_selector_of_any_kind_reads_the_pool_back() {
    let memory = Arc::new(MemoryStorage::new());
    let catalogue = tidemark_pool::Catalogue::new(vec![Item::limited("mug", 1, 9)]).expect("a catalogue");
    for kind in [SelectorKind::Alias, SelectorKind::Fenwick] {
        let make = move |weights: &[u64]| AnySelector::with(kind, weights);
        let create = || Pool::with_selector(&catalogue, Secret::new([1; 32]), Secret::new([2; 32]), make);
        let opened = PoolJournal::open_with(memory.clone(), &options(Format::Binary), create, make);
        let (pool, journal, _) = opened.expect("a pool");
        assert_eq!(pool.pool.urn().selector().kind(), kind);
        let service = Service::start(pool, journal, clock(), Settings::default()).expect("a thread");
        service.draw().expect("a draw");
    }
}

#[test]
fn what_snapshots_cover_is_dropped() {
    let memory = Arc::new(MemoryStorage::new());
    let mut options = options(Format::Binary);
    options.snapshot_after_bytes = 4_000;
    options.log.retention = Retention::default();
    let opened = open(memory.clone(), &options).expect("a pool");
    let (log, snapshots) = (opened.1.log().clone(), opened.1.snapshots());
    let service = serve(opened);
    let mut ledger = Ledger::default();
    let mut turn = 0;
    while log.floor() == Lsn::FIRST {
        assert!(ledger.call(&service, turn));
        turn += 1;
        if turn % 100 == 0 {
            let units = Change::Restock { id: "a mug".into(), units: 1_000 };
            service.call(Request::Change(vec![units])).expect("mugs");
        }
    }
    assert_eq!(snapshots.failure(), None);
    service.stop().expect("the log is well");
    drop(log);
    let opened = open(memory, &options).expect("a pool");
    assert!(opened.2.snapshot.is_some());
    ledger.check(&opened, "behind a snapshot");
}

#[test]
fn a_new_pool_whose_making_was_interrupted_is_made_anew() {
    let memory = MemoryStorage::new();
    let (log, _) = Log::open(Arc::new(memory.clone()), options(Format::Binary).log).expect("a log");
    let (mut head, pool) = (vec![0; 32], new_pool());
    pool.write_head(&mut head);
    log.append(1, 1, |buffer| buffer.extend_from_slice(&head)).expect("a record");
    log.close().expect("closed");
    for is_new in [true, false] {
        let opened = open(Arc::new(memory.clone()), &options(Format::Binary)).expect("a pool");
        assert_eq!(opened.2.is_new, is_new);
        let service = serve(opened);
        service.draw().expect("a draw");
    }
}
