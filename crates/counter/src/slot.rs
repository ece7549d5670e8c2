//! Which cell of a striped counter is a thread's own.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

/// How many threads can have cells at a time. Those beyond share the words that everybody shares: slower, and as exact.
pub(crate) const SLOTS: usize = PLACES - 1;

/// Places in what has one for each slot: a power of two, so that any number becomes a place by a mask and without a branch.
#[cfg(not(loom))]
pub(crate) const PLACES: usize = 64;
#[cfg(loom)]
pub(crate) const PLACES: usize = 4;

/// The place behind those of all slots, which is nobody's: what lies there is closed to everybody.
pub(crate) const NOBODYS: usize = SLOTS;

/// No slot has been asked for yet.
const UNKNOWN: u8 = NOBODYS as u8;
/// There was none left, or the thread is ending. Its place is nobody's as well.
const NONE: u8 = UNKNOWN + PLACES as u8;

thread_local! {
    /// Without a destructor, so that reading it is one load.
    static SLOT: Cell<u8> = const { Cell::new(UNKNOWN) };
    static LEASE: Lease = const { Lease };
}

/// One bit for each slot: whether a thread has it.
static TAKEN: Mutex<u64> = Mutex::new(0);

/// Gives the thread's slot back when the thread ends.
struct Lease;

impl Drop for Lease {
    fn drop(&mut self) {
        let slot = SLOT.replace(NONE);
        if usize::from(slot) < SLOTS {
            *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) &= !(1 << slot);
        }
    }
}

/// The place of the calling thread's slot, or [`NOBODYS`] if it has none, or has not asked for [its own](current) before. One load.
#[inline]
pub(crate) fn place() -> usize {
    usize::from(SLOT.get())
}

/// The calling thread's slot, below [`SLOTS`]. A slot is one thread's at a time; the mutex is what makes the next one see
/// what the one before has left in its cells.
#[inline]
pub(crate) fn current() -> Option<usize> {
    let slot = SLOT.get();
    if usize::from(slot) < SLOTS { Some(usize::from(slot)) } else { first(slot) }
}

#[cold]
fn first(slot: u8) -> Option<usize> {
    // Where the thread's destructors have run already, nobody would give the slot back.
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
