//! Each storage call fails once, in every way; then the process or the machine dies, and the pool
//! is reopened.

use super::support::{Ledger, new_pool, open, options, serve, state};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use tidemark_log::storage::faulty::{Fault, Plan};
use tidemark_log::{Durability, FaultyStorage, Format, MemoryStorage, Storage};
use tidemark_pool::selector::WideTree;
use tidemark_pool::service::{CallError, Request, Service};
use tidemark_pool::{Catalogue, Item, Pool, Repeats, Secret};
use tidemark_stores::{OpenedPool, PoolJournal, PoolLogError, PoolLogOptions};

const CALLS: u64 = 14;

/// What the client does in each of a pool's two sessions.
struct Workload {
    options: PoolLogOptions,
    create: fn() -> Pool<WideTree>,
    calls: u64,
    call: fn(&mut Ledger, &Service, u64) -> bool,
}

impl Workload {
    /// Every kind of call, with full snapshots.
    fn small(format: Format) -> Self {
        let options = PoolLogOptions { snapshot_after_bytes: 300, ..options(format) };
        Self { options, create: new_pool, calls: CALLS, call: Ledger::call }
    }

    /// Calls that each log a third of the pool's size, with items of one block: the snapshots after
    /// the first two, which are full, are incremental.
    fn quiet() -> Self {
        let create = || {
            let item = |item: u32| Item::unlimited(item.to_string(), if item < 20 { 1_000_000 } else { 1 });
            let catalogue = Catalogue::new((0..2_000).map(item).collect()).expect("a catalogue");
            Pool::new(&catalogue, Secret::new([1; 32]), Secret::new([2; 32]))
        };
        let call = |ledger: &mut Ledger, service: &Service, _| {
            ledger.make(service, Request::DrawMany { count: 10_000, repeats: Repeats::Allowed })
        };
        let options = PoolLogOptions { snapshot_after_bytes: 1, ..options(Format::Text) };
        Self { options, create, calls: 9, call }
    }

    fn open(&self, storage: Arc<dyn Storage>) -> Result<OpenedPool<WideTree>, PoolLogError> {
        PoolJournal::open(storage, &self.options, self.create)
    }

    /// Runs two sessions of a pool, with snapshots. Stops at the first error.
    fn run(&self, storage: &FaultyStorage, ledger: &mut Ledger) {
        for _ in 0..2 {
            let Ok(opened) = self.open(Arc::new(storage.clone())) else { return };
            ledger.check(&opened, "between two lives");
            let service = serve(opened);
            ledger.settle(&service);
            for turn in 0..self.calls {
                if !(self.call)(ledger, &service, turn) {
                    assert!(matches!(service.draw(), Err(CallError::Failed(_))), "a failure is final");
                    assert_eq!(state(&service).next_draw, ledger.draws.len() as u64, "nothing was awarded");
                    return;
                }
            }
            if service.stop().is_err() {
                return;
            }
        }
    }
}

/// Runs the workload once for each of its storage calls, with the fault at that call. Returns how
/// often the fault occurred.
fn every_call(workload: &Workload, fault: Fault, forever: bool, crashes: u64) -> u64 {
    let mut struck = 0;
    for at in 1.. {
        let memory = MemoryStorage::with_crashes();
        let plan = Plan { fault, at, site: None, forever, seed: at };
        let storage = FaultyStorage::new(Arc::new(memory.clone()), Some(plan));
        let mut ledger = Ledger::default();
        workload.run(&storage, &mut ledger);
        struck += u64::from(storage.fired());
        if storage.calls() < at {
            break;
        }
        let case = format!("{}: {fault:?} at call {at}, forever: {forever}", workload.options.log.format);
        for seed in 0..crashes {
            let survivor = Arc::new(memory.crash(seed));
            let case = format!("{case}, crash {seed}");
            let opened = workload.open(survivor).unwrap_or_else(|error| panic!("{case}: {error}"));
            ledger.check(&opened, &case);
            assert!(serve(opened).draw().is_ok(), "{case}: life goes on");
        }
        let opened = workload.open(Arc::new(memory)).unwrap_or_else(|error| panic!("{case}: {error}"));
        ledger.check(&opened, &case);
    }
    struck
}

#[test]
fn an_error_at_every_call() {
    assert!(every_call(&Workload::small(Format::Binary), Fault::Error(io::ErrorKind::Other), false, 2) > 25);
    assert!(every_call(&Workload::small(Format::Jsonl), Fault::Error(io::ErrorKind::Other), true, 1) > 25);
}

#[test]
fn a_full_disk_at_every_call() {
    assert!(
        every_call(&Workload::small(Format::Binary), Fault::Error(io::ErrorKind::StorageFull), true, 1) > 25
    );
}

#[test]
fn a_power_failure_at_every_call() {
    assert!(
        every_call(&Workload::small(Format::Binary), Fault::Error(io::ErrorKind::NotConnected), true, 4) > 25
    );
    assert!(
        every_call(&Workload::small(Format::Text), Fault::Error(io::ErrorKind::NotConnected), true, 2) > 25
    );
}

#[test]
fn a_torn_write_at_every_call() {
    for forever in [false, true] {
        assert!(every_call(&Workload::small(Format::Binary), Fault::Torn, forever, 2) > 25);
    }
}

#[test]
fn a_failed_sync_at_every_call() {
    for forever in [false, true] {
        assert!(every_call(&Workload::small(Format::Binary), Fault::SyncFailure, forever, 2) > 25);
    }
}

#[test]
fn a_short_transfer_at_every_call_is_harmless() {
    assert!(every_call(&Workload::small(Format::Binary), Fault::Short, false, 1) > 25);
}

#[test]
fn with_incremental_snapshots_an_error_or_a_power_failure_at_every_call() {
    let workload = Workload::quiet();
    let memory = MemoryStorage::new();
    workload.run(&FaultyStorage::new(Arc::new(memory.clone()), None), &mut Ledger::default());
    let names = memory.list().expect("a listing");
    assert!(names.iter().any(|name| name.contains("-on-")), "{names:?}");
    assert!(every_call(&workload, Fault::Error(io::ErrorKind::Other), false, 1) > 25);
    assert!(every_call(&workload, Fault::Error(io::ErrorKind::NotConnected), true, 2) > 25);
}

#[test]
fn without_a_sync_a_power_failure_takes_back_the_last_frames_and_makes_no_others() {
    for durability in [Durability::default(), Durability::Off] {
        let memory = MemoryStorage::with_crashes();
        let mut options = options(Format::Binary);
        options.log.durability = durability;
        let opened = open(Arc::new(memory.clone()), &options).expect("a pool");
        let mut chains = BTreeMap::from([(0, opened.0.chain)]);
        let (service, mut ledger) = (serve(opened), Ledger::default());
        let mut lost = 0;
        for turn in 0..CALLS {
            assert!(ledger.call(&service, turn));
            let state = state(&service);
            chains.insert(state.next_draw, state.chain);
            for seed in 0..3 {
                let survivor = Arc::new(memory.crash(seed));
                let (pool, _, recovery) = open(survivor, &options).expect("a torn end is no damage");
                assert!(!recovery.is_new, "a new pool is durable before any caller has it");
                let next = pool.pool.next_draw();
                assert_eq!(chains.get(&next), Some(&pool.chain), "{durability}: a pool that never was");
                lost += u64::from(next < state.next_draw);
            }
        }
        assert!(lost > 0, "{durability}: nothing was on its way when the power failed");
    }
}
