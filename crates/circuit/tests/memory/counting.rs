//! The system's allocator, with counters.
#![allow(dead_code, reason = "not every test needs all of it")]
#![allow(unsafe_code, reason = "an allocator is unsafe to write; this one counts and passes on")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

struct Counting;

/// Allocations of the counted threads.
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// Bytes that are allocated and not freed, by any thread.
static IN_USE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static OF_THREAD: Cell<u64> = const { Cell::new(0) };
    static IS_COUNTED: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: it forwards each call to the system's allocator; counting touches no memory but the
// counters.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        OF_THREAD.set(OF_THREAD.get() + 1);
        if IS_COUNTED.get() {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(memory, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that are allocated and not freed.
pub(crate) fn bytes_in_use() -> usize {
    IN_USE.load(Ordering::Relaxed)
}

/// Allocations of this thread.
pub(crate) fn allocations_here() -> u64 {
    OF_THREAD.get()
}

/// Adds this thread to the counted threads.
pub(crate) fn count_this_thread() {
    IS_COUNTED.set(true);
}

/// Allocations of the counted threads.
pub(crate) fn allocations_counted() -> u64 {
    ALLOCATIONS.load(Ordering::Relaxed)
}
