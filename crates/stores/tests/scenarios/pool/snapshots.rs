//! Snapshots during draws: each is the pool at exactly one position.

use super::support::{clock, options};
use std::sync::Arc;
use tidemark_log::{Format, Lsn, MemoryStorage, Snapshots, Storage};
use tidemark_pool::selector::WideTree;
use tidemark_pool::service::{Answer, Change, Request, Service, Settings};
use tidemark_pool::{Catalogue, Item, Pool, Repeats, Secret};
use tidemark_stores::{OpenedPool, PoolJournal};

const ITEMS: usize = 5_000;

fn open(storage: Arc<dyn Storage>) -> OpenedPool<WideTree> {
    open_weighted(storage, |_| 1)
}

/// Opens a pool from which almost only the first hundred items are drawn.
fn open_skewed(storage: Arc<dyn Storage>) -> OpenedPool<WideTree> {
    open_weighted(storage, |item| if item < 100 { 1_000_000 } else { 1 })
}

fn open_weighted(storage: Arc<dyn Storage>, weight: impl Fn(usize) -> u64) -> OpenedPool<WideTree> {
    let mut options = options(Format::Binary);
    options.snapshot_after_bytes = 1;
    options.log.retention.bytes = Some(u64::MAX);
    let create = || {
        let item = |item: usize| Item::limited(item.to_string(), weight(item), 1_000_000);
        let items = (0..ITEMS).map(item).collect();
        Pool::new(&Catalogue::new(items).expect("a catalogue"), Secret::new([1; 32]), Secret::new([2; 32]))
    };
    PoolJournal::open(storage, &options, create).expect("a pool")
}

/// Uses a pool until `snapshots` snapshots are taken, then stops its service.
fn use_pool(opened: OpenedPool<WideTree>, snapshots: usize) {
    let (pool, journal, _) = opened;
    let (log, health) = (journal.log().clone(), journal.snapshots());
    let service = Service::start(pool, journal, clock(), Settings::default()).expect("a thread");
    use_until_snapshots(&service, &log, snapshots);
    service.stop().expect("the log is well");
    assert_eq!(health.failure(), None);
}

/// Returns each snapshot's position, its file and that of its base if it has one, and whether it
/// has a base.
fn files(memory: &MemoryStorage) -> Vec<(Lsn, Vec<String>, bool)> {
    let snapshots = Snapshots::new(Arc::new(memory.clone()));
    let whole = |lsn: Lsn| format!("snapshot-{:020}.tide", lsn.0);
    let file = |lsn: Lsn| {
        let base = snapshots.open(lsn).expect("a snapshot").base();
        let names = match base {
            Some(base) => vec![format!("snapshot-{:020}-on-{:020}.tide", lsn.0, base.0), whole(base)],
            None => vec![whole(lsn)],
        };
        (lsn, names, base.is_some())
    };
    snapshots.list().expect("a listing").into_iter().map(file).collect()
}

/// Draws, reserves, ends reservations and changes items until `count` snapshots are taken.
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

/// Asserts that the pool replayed from each snapshot equals the pool replayed from the beginning:
/// the log keeps all its records. Returns the number of incremental snapshots.
fn assert_each_is_the_pool_at_its_position(
    memory: &MemoryStorage,
    open: fn(Arc<dyn Storage>) -> OpenedPool<WideTree>,
) -> usize {
    let snapshots = files(memory);
    assert!(!snapshots.is_empty());
    let without = memory.fork();
    for (_, names, _) in &snapshots {
        without.remove(&names[0]).expect("a snapshot");
    }
    let (from_log, _, recovery) = open(Arc::new(without.fork()));
    assert_eq!(recovery.snapshot, None);
    for (lsn, names, is_incremental) in &snapshots {
        let with = without.fork();
        names.iter().for_each(|name| with.put(name, memory.read(name).expect("a snapshot")));
        let (from_snapshot, _, recovery) = open(Arc::new(with));
        assert_eq!((recovery.snapshot, recovery.snapshot_base.is_some()), (Some(*lsn), *is_incremental));
        assert_eq!(image(&from_snapshot.pool), image(&from_log.pool));
        assert_eq!(from_snapshot.chain, from_log.chain);
    }
    snapshots.iter().filter(|(_, _, is_incremental)| *is_incremental).count()
}

#[test]
fn every_snapshot_is_the_pool_at_its_position() {
    let memory = MemoryStorage::new();
    use_pool(open(Arc::new(memory.clone())), 4);
    assert_each_is_the_pool_at_its_position(&memory, open);
}

#[test]
fn where_little_changes_snapshots_have_what_changed_and_are_the_pool_all_the_same() {
    let memory = MemoryStorage::new();
    use_pool(open_skewed(Arc::new(memory.clone())), 5);
    assert!(assert_each_is_the_pool_at_its_position(&memory, open_skewed) > 0, "{:?}", files(&memory));
    let bytes = |names: &[String]| memory.read(&names[0]).expect("a snapshot").len();
    let (whole, incremental): (Vec<_>, Vec<_>) =
        files(&memory).into_iter().partition(|(_, _, is_incremental)| !is_incremental);
    let shortest_whole = whole.iter().map(|(_, names, _)| bytes(names)).min().expect("a whole one");
    // The incremental ones have an index entry for each block, and a few blocks.
    assert!(incremental.iter().all(|(_, names, _)| bytes(names) < shortest_whole / 5));
}

/// Flips a bit in the middle of a file.
fn damage(memory: &MemoryStorage, name: &str) {
    let mut bytes = memory.read(name).expect("a snapshot");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    memory.put(name, bytes);
}

#[test]
fn a_snapshot_that_is_damaged_is_passed_over() {
    let memory = MemoryStorage::new();
    use_pool(open(Arc::new(memory.clone())), 2);
    let before = image(&open(Arc::new(memory.fork())).0.pool);
    let (newest, names, _) = files(&memory).pop().expect("a snapshot");
    damage(&memory, &names[0]);
    let (pool, _, recovery) = open(Arc::new(memory));
    assert_eq!(recovery.damaged_snapshots.len(), 1);
    assert!(recovery.snapshot.is_none_or(|lsn| lsn < newest));
    assert_eq!(image(&pool.pool), before);
}

#[test]
fn an_incremental_snapshot_whose_base_is_damaged_is_passed_over_with_it() {
    let memory = MemoryStorage::new();
    use_pool(open_skewed(Arc::new(memory.clone())), 3);
    let before = image(&open_skewed(Arc::new(memory.fork())).0.pool);
    let found = files(&memory).into_iter().rfind(|(_, _, is_incremental)| *is_incremental);
    let (lsn, names, _) = found.expect("an incremental one");
    // The blocks of the items that are rarely drawn follow the middle of the file.
    damage(&memory, &names[1]);
    let (pool, _, recovery) = open_skewed(Arc::new(memory.clone()));
    assert!(recovery.damaged_snapshots.len() >= 2, "{:?}", recovery.damaged_snapshots);
    assert!(recovery.snapshot.is_none_or(|used| used < lsn && recovery.snapshot_base.is_none()));
    assert_eq!(image(&pool.pool), before);
    // The start sets both files aside, so the next start skips none.
    assert!(names.iter().all(|name| memory.read(&format!("{name}.unusable")).is_some()));
    drop(pool);
    assert_eq!(open_skewed(Arc::new(memory)).2.damaged_snapshots.len(), 0);
}

fn image(pool: &Pool<WideTree>) -> Vec<u8> {
    let mut image = Vec::new();
    pool.write_head(&mut image);
    pool.write_items(0..pool.urn().len() as u32, &mut image);
    image
}
