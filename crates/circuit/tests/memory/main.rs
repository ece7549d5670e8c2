//! Memory of circuits, counted by the allocator of this binary: it has no other tests, and its
//! tests run one after the other.

mod counting;
mod footprint;
#[path = "../scenarios/limit.rs"]
mod limit;
mod soak;

use std::sync::{Mutex, MutexGuard, PoisonError};

use limit::Limit;

/// Locks out the other tests: memory is counted for the whole process.
fn without_limit() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As [`without_limit`], with a limit for a test that hangs.
fn alone() -> (MutexGuard<'static, ()>, Limit) {
    (without_limit(), Limit::new())
}
