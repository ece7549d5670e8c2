//! What circuits take of memory, counted by the allocator of this binary: nothing else is tested in it, and its tests come one
//! after the other.

mod counting;
mod footprint;
#[path = "../scenarios/limit.rs"]
mod limit;
mod soak;

use std::sync::{Mutex, MutexGuard, PoisonError};

use limit::Limit;

/// Held by the one test that runs: memory is counted for the whole process.
fn without_limit() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same, with a limit to the time that the test may hang.
fn alone() -> (MutexGuard<'static, ()>, Limit) {
    (without_limit(), Limit::new())
}
