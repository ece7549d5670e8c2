//! Workloads that run once for every storage call that they make, with a fault at that call.

use std::sync::Arc;
use tidemark_log::storage::faulty::{Fault, Plan};
use tidemark_log::{FaultyStorage, Lsn, MemoryStorage, Storage};

/// Runs a workload once for every storage call that it makes, with the fault at that call. Then the
/// power is lost, or the process is killed.
///
/// `live` runs the workload until the storage accepts no more, and returns the last record that was
/// acknowledged as durable. `check` gets what survived, that record, and the case for its messages.
/// Returns how many runs met the fault.
pub(crate) fn every_call(
    fault: Fault,
    forever: bool,
    live: impl Fn(Arc<dyn Storage>, &str) -> Lsn,
    check: impl Fn(&MemoryStorage, Lsn, &str),
) -> u64 {
    let mut struck = 0;
    for at in 1.. {
        let memory = MemoryStorage::with_crashes();
        let plan = Plan { fault, at, site: None, forever, seed: at };
        let storage = FaultyStorage::new(Arc::new(memory.clone()), Some(plan));
        let case = format!("{fault:?} at call {at}, forever: {forever}");
        let acknowledged = live(Arc::new(storage.clone()), &case);
        struck += u64::from(storage.fired());
        if storage.calls() < at {
            break;
        }
        check(&memory.crash(at), acknowledged, &format!("{case}, power lost"));
        check(&memory, acknowledged, &format!("{case}, killed"));
    }
    struck
}

/// Makes a test of each fault: `$run` gets it, and whether all calls behind the first fail as well.
macro_rules! test_every_call {
    ($run:path) => {
        #[test]
        fn power_failure_at_every_call() {
            $run(Fault::Error(ErrorKind::NotConnected), true);
        }

        #[test]
        fn one_error_at_every_call() {
            $run(Fault::Error(ErrorKind::Other), false);
        }

        #[test]
        fn failed_sync_at_every_call() {
            $run(Fault::SyncFailure, false);
        }

        #[test]
        fn torn_write_at_every_call() {
            $run(Fault::Torn, true);
        }

        #[test]
        fn full_disk_at_every_call() {
            $run(Fault::Error(ErrorKind::StorageFull), true);
        }
    };
}
pub(crate) use test_every_call;
