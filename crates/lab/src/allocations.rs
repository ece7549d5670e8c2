//! How often a program asks for memory, and for how much.
#![allow(
    unsafe_code,
    reason = "an allocator's functions are unsafe; these add to counters and pass everything on"
)]

use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// An allocator that counts, while somebody asks, what another one is asked for: see [`during`]. Otherwise it costs the look
/// at a flag that nobody changes.
pub struct Counting<A>(A);

/// What all threads of the program asked for in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    /// How often.
    pub count: u64,
    /// How many bytes in all.
    pub bytes: u64,
    /// How many bytes more at the end than at the beginning; negative if more was given back.
    pub kept_bytes: i64,
}

static IS_ASKED: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static KEPT: AtomicI64 = AtomicI64::new(0);
/// Two at once would count each other's.
static ONE_ASKS: Mutex<()> = Mutex::new(());

impl<A> Counting<A> {
    /// An allocator that passes everything on to this one.
    pub const fn new(inner: A) -> Self {
        Counting(inner)
    }
}

// SAFETY: the inner allocator is given what this one is given, and its answers are passed on unchanged.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as the caller says.
        unsafe { self.0.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as the caller says.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size, layout.size());
        // SAFETY: as the caller says.
        unsafe { self.0.realloc(block, layout, new_size) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if IS_ASKED.load(Relaxed) {
            KEPT.fetch_sub(layout.size() as i64, Relaxed);
        }
        // SAFETY: as the caller says.
        unsafe { self.0.dealloc(block, layout) }
    }
}

#[inline]
fn count(bytes: usize, given_back: usize) {
    if IS_ASKED.load(Relaxed) {
        COUNT.fetch_add(1, Relaxed);
        BYTES.fetch_add(bytes as u64, Relaxed);
        KEPT.fetch_add(bytes as i64 - given_back as i64, Relaxed);
    }
}

/// Runs `work` and says what the program's threads asked for meanwhile; `None` if the program's allocator does not count.
pub fn during<R>(work: impl FnOnce() -> R) -> (R, Option<Allocations>) {
    let guard = ONE_ASKS.lock().unwrap_or_else(PoisonError::into_inner);
    COUNT.store(0, Relaxed);
    BYTES.store(0, Relaxed);
    KEPT.store(0, Relaxed);
    IS_ASKED.store(true, Relaxed);
    let result = work();
    let counted = Allocations {
        count: COUNT.load(Relaxed),
        bytes: BYTES.load(Relaxed),
        kept_bytes: KEPT.load(Relaxed),
    };
    // One that is certain tells whether any would have been seen.
    drop(black_box(Box::new(0_u8)));
    let counts = COUNT.load(Relaxed) > counted.count;
    IS_ASKED.store(false, Relaxed);
    drop(guard);
    (result, counts.then_some(counted))
}
