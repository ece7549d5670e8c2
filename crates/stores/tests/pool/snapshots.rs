//! Snapshots while draws go on: each is the pool at exactly one position.

use crate::support::{clock, options};
use std::sync::Arc;
use tidemark_log::{Format, Lsn, MemoryStorage, Snapshots, Storage};
use tidemark_pool::selector::WideTree;
use tidemark_pool::service::{Answer, Change, Request, Service, Settings};
use tidemark_pool::{Catalogue, Item, Pool, Repeats, Secret};
use tidemark_stores::{OpenedPool, PoolJournal};

const ITEMS: usize = 5_000;

fn open(storage: Arc<dyn Storage>) -> OpenedPool<WideTree> {
    let mut options = options(Format::Binary);
    options.snapshot_after_bytes = 1;
    options.log.retention.bytes = Some(u64::MAX);
    let create = || {
        let items = (0..ITEMS).map(|item| Item::limited(item.to_string(), 1, 1_000)).collect();
        Pool::new(&Catalogue::new(items).expect("a catalogue"), Secret::new([1; 32]), Secret::new([2; 32]))
    };
    PoolJournal::open(storage, &options, create).expect("a pool")
}

/// Draws, reservations that end, changes: until so many snapshots were taken.
fn use_until_snapshots(service: &Service, log: &tidemark_log::Log, count: usize) {
    let taken = || Snapshots::new(log.storage().clone()).list().expect("a listing").last().copied();
    let (mut before, mut seen) = (taken(), 0);
    let mut open = Vec::new();
    while seen < count {
        service.call(Request::DrawMany { count: 50, repeats: Repeats::Excluded }).expect("draws");
        let reserve = Request::Reserve { count: 9, repeats: Repeats::Allowed, until_us: u64::MAX };
        if let Ok(Answer::Reserved(reservation)) = service.call(reserve) {
            open.push(reservation.number());
        }
        if open.len() > 30 {
            service.call(Request::Cancel { number: open.remove(7) }).expect("it is open");
            service.call(Request::Confirm { number: open.remove(3) }).expect("it is open");
        }
        service.call(Request::Change(vec![Change::Restock { id: "77".into(), units: 3 }])).expect("an item");
        for _ in 0..200 {
            service.draw_with(|outcome| assert!(outcome.is_ok()));
        }
        let now = taken();
        seen += usize::from(now != before);
        before = now;
    }
}

#[test]
fn every_snapshot_is_the_pool_at_its_position() {
    let memory = MemoryStorage::new();
    let opened = open(Arc::new(memory.clone()));
    let (log, health) = (opened.1.log().clone(), opened.1.snapshots());
    let (pool, journal, _) = opened;
    let service = Service::start(pool, journal, clock(), Settings::default()).expect("a thread");
    use_until_snapshots(&service, &log, 4);
    service.stop().expect("the log is well");
    drop(log);
    assert_eq!(health.failure(), None);

    // The whole log is kept: the pool from its beginning on is what it is from each snapshot on.
    let snapshots: Vec<Lsn> = Snapshots::new(Arc::new(memory.clone())).list().expect("a listing");
    assert!(!snapshots.is_empty());
    let without = memory.fork();
    let name = |lsn: &Lsn| format!("snapshot-{:020}.tide", lsn.0);
    snapshots.iter().for_each(|lsn| without.remove(&name(lsn)).expect("a snapshot"));
    let (from_log, _, recovery) = open(Arc::new(without.fork()));
    assert_eq!(recovery.snapshot, None);
    for lsn in &snapshots {
        let with = without.fork();
        with.put(&name(lsn), memory.read(&name(lsn)).expect("a snapshot"));
        let (from_snapshot, _, recovery) = open(Arc::new(with));
        assert_eq!(recovery.snapshot, Some(*lsn));
        assert_eq!(image(&from_snapshot.pool), image(&from_log.pool));
        assert_eq!(from_snapshot.chain, from_log.chain);
    }
}

#[test]
fn a_snapshot_that_is_damaged_is_passed_over() {
    let memory = MemoryStorage::new();
    let opened = open(Arc::new(memory.clone()));
    let log = opened.1.log().clone();
    let (pool, journal, _) = opened;
    let service = Service::start(pool, journal, clock(), Settings::default()).expect("a thread");
    use_until_snapshots(&service, &log, 2);
    service.stop().expect("the log is well");
    drop(log);
    let before = image(&open(Arc::new(memory.fork())).0.pool);
    let newest =
        Snapshots::new(Arc::new(memory.clone())).list().expect("a listing").pop().expect("a snapshot");
    let name = format!("snapshot-{:020}.tide", newest.0);
    let mut bytes = memory.read(&name).expect("a snapshot");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    memory.put(&name, bytes);
    let (pool, _, recovery) = open(Arc::new(memory));
    assert_eq!(recovery.damaged_snapshots.len(), 1);
    assert!(recovery.snapshot.is_none_or(|lsn| lsn < newest));
    assert_eq!(image(&pool.pool), before);
}

fn image(pool: &Pool<WideTree>) -> Vec<u8> {
    let mut image = Vec::new();
    pool.write_head(&mut image);
    pool.write_items(0..pool.urn().len() as u32, &mut image);
    image
}
