//! Memory that a value keeps in use.

use crate::allocations::{self, Allocations};
use anyhow::Context;
use std::time::Duration;

/// Maximum number of rests while other threads free memory.
const QUIET_TRIES: u32 = 50;

/// Returns the bytes that a value keeps in use after a rest, in which other threads free what they
/// no longer need. Counted by the allocator if it counts, otherwise by the resident size of the
/// process.
pub(crate) fn kept_bytes<T>(rest: Duration, make: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<f64> {
    wait_for_quiet(rest);
    let resident = resident_bytes()?;
    let (made, allocated) = allocations::during(|| {
        let made = make();
        std::thread::sleep(rest);
        made
    });
    let made = made?;
    let bytes = match allocated {
        Some(allocated) => allocated.kept_bytes as f64,
        None => resident_bytes()? as f64 - resident as f64,
    };
    drop(made);
    Ok(bytes)
}

/// Waits until memory of earlier drops is freed, which a pool's threads do asynchronously.
fn wait_for_quiet(rest: Duration) {
    for _ in 0..QUIET_TRIES {
        let ((), allocated) = allocations::during(|| std::thread::sleep(rest));
        // An allocator that does not count gives nothing to wait for.
        if allocated.is_none_or(|allocated| allocated == Allocations::default()) {
            return;
        }
    }
}

fn resident_bytes() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/statm").context("cannot read /proc/self/statm")?;
    let pages: u64 = status.split(' ').nth(1).context("/proc/self/statm has no second number")?.parse()?;
    Ok(pages * rustix::param::page_size() as u64)
}
