//! How soon a driver looks again at queues that it has just emptied.

use crate::execution::machine::Machine;
use crate::sync::hint;

/// After a batch at least this long, entries are let to gather before the next look: a look at a queue for each single entry
/// costs its producer a cache miss per entry.
const STREAM: u64 = 4;

/// How long entries gather: some two microseconds. Four times as long makes the round trip of a single value slower.
const GATHER_LOOKS: u32 = if cfg!(loom) { 0 } else { 80 };

/// Lets entries gather after a run that has handled so many, unless they were few or somebody waits for what comes.
pub(super) fn gather(machine: &Machine, batch: u64) {
    if batch < STREAM {
        return;
    }
    for _ in 0..GATHER_LOOKS {
        if machine.waiters.is_watched() {
            return;
        }
        hint::spin_loop();
    }
}
