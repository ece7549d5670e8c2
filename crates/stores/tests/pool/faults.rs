//! Every storage call goes wrong once, in every way; then the process dies, or the machine does, and the pool is opened again.

use crate::support::{Ledger, open, options, serve, state};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use tidemark_log::storage::faulty::{Fault, Plan};
use tidemark_log::{Durability, FaultyStorage, Format, MemoryStorage};
use tidemark_pool::service::CallError;
use tidemark_stores::PoolLogOptions;

const CALLS: u64 = 14;

fn options_with_snapshots(format: Format) -> PoolLogOptions {
    PoolLogOptions { snapshot_after_bytes: 300, ..options(format) }
}

/// Two lives of a pool, with snapshots. Stops where something goes wrong.
fn run(storage: &FaultyStorage, options: &PoolLogOptions, ledger: &mut Ledger, is_strict: bool) {
    for _ in 0..2 {
        let Ok(opened) = open(Arc::new(storage.clone()), options) else { return };
        if is_strict {
            ledger.check(&opened, "between two lives");
        }
        let service = serve(opened);
        ledger.settle(&service);
        for turn in 0..CALLS {
            if !ledger.call(&service, turn) {
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

/// How often the fault struck.
fn every_call(format: Format, fault: Fault, forever: bool, crashes: u64) -> u64 {
    let options = options_with_snapshots(format);
    let mut struck = 0;
    for at in 1.. {
        let memory = MemoryStorage::with_crashes();
        let plan = Plan { fault, at, site: None, forever, seed: at };
        let storage = FaultyStorage::new(Arc::new(memory.clone()), Some(plan));
        let mut ledger = Ledger::default();
        run(&storage, &options, &mut ledger, true);
        struck += u64::from(storage.fired());
        if storage.calls() < at {
            break;
        }
        let case = format!("{format}: {fault:?} at call {at}, forever: {forever}");
        for seed in 0..crashes {
            let survivor = Arc::new(memory.crash(seed));
            let case = format!("{case}, crash {seed}");
            let opened = open(survivor, &options).unwrap_or_else(|error| panic!("{case}: {error}"));
            ledger.check(&opened, &case);
            assert!(serve(opened).draw().is_ok(), "{case}: life goes on");
        }
        let opened = open(Arc::new(memory), &options).unwrap_or_else(|error| panic!("{case}: {error}"));
        ledger.check(&opened, &case);
    }
    struck
}

#[test]
fn an_error_at_every_call() {
    assert!(every_call(Format::Binary, Fault::Error(io::ErrorKind::Other), false, 2) > 25);
    assert!(every_call(Format::Jsonl, Fault::Error(io::ErrorKind::Other), true, 1) > 25);
}

#[test]
fn a_full_disk_at_every_call() {
    assert!(every_call(Format::Binary, Fault::Error(io::ErrorKind::StorageFull), true, 1) > 25);
}

#[test]
fn a_power_failure_at_every_call() {
    assert!(every_call(Format::Binary, Fault::Error(io::ErrorKind::NotConnected), true, 4) > 25);
    assert!(every_call(Format::Text, Fault::Error(io::ErrorKind::NotConnected), true, 2) > 25);
}

#[test]
fn a_torn_write_at_every_call() {
    for forever in [false, true] {
        assert!(every_call(Format::Binary, Fault::Torn, forever, 2) > 25);
    }
}

#[test]
fn a_failed_sync_at_every_call() {
    for forever in [false, true] {
        assert!(every_call(Format::Binary, Fault::SyncFailure, forever, 2) > 25);
    }
}

#[test]
fn a_short_transfer_at_every_call_is_harmless() {
    assert!(every_call(Format::Binary, Fault::Short, false, 1) > 25);
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
                assert!(!recovery.is_new, "a new pool is durable before anybody has it");
                let next = pool.pool.next_draw();
                assert_eq!(chains.get(&next), Some(&pool.chain), "{durability}: a pool that never was");
                lost += u64::from(next < state.next_draw);
            }
        }
        assert!(lost > 0, "{durability}: nothing was on its way when the power failed");
    }
}
