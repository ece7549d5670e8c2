//! How soon a driver polls queues again that it has just emptied.

use crate::execution::machine::Machine;
use crate::sync::hint;

/// After a batch of at least this size, entries may gather before the next poll: polling for each
/// entry costs its producer a cache miss per entry.
const STREAM: u64 = 4;

/// How long entries gather: about two microseconds. Four times as long makes the round trip of a
/// single value slower.
const GATHER_LOOKS: u32 = if cfg!(loom) { 0 } else { 80 };

/// Pauses after a run that handled `batch` entries, unless they were few or a thread waits for the
/// circuit.
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
