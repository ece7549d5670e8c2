//! Assignment of a striped counter's cells to threads.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

/// Number of threads that can have cells at a time. Further threads use the shared piece: slower,
/// equally exact.
pub(crate) const SLOTS: usize = PLACES - 1;

/// Number of places, one for each slot and one spare. A power of two, so that a mask maps any
/// number to a place without a branch.
#[cfg(not(loom))]
pub(crate) const PLACES: usize = 64;
#[cfg(loom)]
pub(crate) const PLACES: usize = 4;

/// The place after those of all slots, which belongs to no thread: its cell is never opened.
pub(crate) const UNASSIGNED: usize = SLOTS;

/// The thread has not requested a slot yet.
const UNKNOWN: u8 = UNASSIGNED as u8;
/// No slot was left, or the thread is ending. The mask maps it to `UNASSIGNED` too.
const NONE: u8 = UNKNOWN + PLACES as u8;

thread_local! {
    /// Without a destructor, so that reading it is one load.
    static SLOT: Cell<u8> = const { Cell::new(UNKNOWN) };
    static LEASE: Lease = const { Lease };
}

/// One bit for each slot that a thread has.
static TAKEN: Mutex<u64> = Mutex::new(0);

/// Returns the thread's slot when the thread ends.
struct Lease;

impl Drop for Lease {
    fn drop(&mut self) {
        let slot = SLOT.replace(NONE);
        if usize::from(slot) < SLOTS {
            *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) &= !(1 << slot);
        }
    }
}

/// Returns the place of the calling thread's slot, or [`UNASSIGNED`] if it has none or has not called
/// [`current`] yet. One load.
#[inline]
pub(crate) fn place() -> usize {
    usize::from(SLOT.get())
}

/// Returns the calling thread's slot, below [`SLOTS`]. A slot has one thread at a time; the mutex
/// makes the next one see what the previous one left in its cells.
#[inline]
pub(crate) fn current() -> Option<usize> {
    let slot = SLOT.get();
    if usize::from(slot) < SLOTS { Some(usize::from(slot)) } else { first(slot) }
}

#[cold]
fn first(slot: u8) -> Option<usize> {
    // If the thread's destructors have run already, the slot would never be returned.
    if slot == NONE || LEASE.try_with(|_| ()).is_err() {
        return None;
    }
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let free = taken.trailing_ones();
    if free as usize >= SLOTS {
        SLOT.set(NONE);
        return None;
    }
    *taken |= 1 << free;
    SLOT.set(free as u8);
    Some(free as usize)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    #[test]
    fn no_two_threads_have_the_same_slot_and_slots_are_used_again() {
        for _ in 0..3 {
            let together = Barrier::new(20);
            let mut slots: Vec<_> = thread::scope(|threads| {
                let threads: Vec<_> = (0..20)
                    .map(|_| {
                        threads.spawn(|| {
                            let slot = current();
                            together.wait();
                            assert_eq!(slot, current());
                            slot
                        })
                    })
                    .collect();
                threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
            });
            slots.sort_unstable();
            slots.dedup();
            assert_eq!(slots.len(), 20);
        }
    }
}
