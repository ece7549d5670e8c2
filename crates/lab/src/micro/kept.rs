//! How much memory what was made keeps.

use crate::allocations::{self, Allocations};
use anyhow::Context;
use std::time::Duration;

/// How many times a rest is taken for others to give back memory, at most.
const QUIET_TRIES: u32 = 50;

/// How many bytes more are in use while what is made exists, and has had a rest in which others tidy up behind it: of the allocator's, or
/// of the process where the allocator does not count.
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

/// Waits until what was dropped before is given back, which a pool's threads do in their own time.
fn wait_for_quiet(rest: Duration) {
    for _ in 0..QUIET_TRIES {
        let ((), allocated) = allocations::during(|| std::thread::sleep(rest));
        // Where the allocator does not count there is nothing to wait for.
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
