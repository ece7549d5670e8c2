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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocations {
    /// How often.
    pub count: u64,
    /// How many bytes in all.
    pub bytes: u64,
    /// How many bytes more at the end than at the beginning; negative if more was given back.
    pub kept_bytes: i64,
    /// The same by sizes: at place *n* blocks of 2^(*n* − 1) bytes and more, but less than 2^*n*; at the last place all that are larger.
    pub sizes: [OfSize; CLASSES],
}

impl Default for Allocations {
    /// Nothing at all.
    fn default() -> Self {
        Allocations { count: 0, bytes: 0, kept_bytes: 0, sizes: [OfSize::default(); CLASSES] }
    }
}

/// Classes of sizes.
pub const CLASSES: usize = 33;

/// What was asked for of one class of sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfSize {
    /// How often.
    pub count: u64,
    /// How many bytes in all.
    pub bytes: u64,
    /// How many blocks more at the end than at the beginning.
    pub kept: i64,
}

/// [`OfSize`], while it is counted.
struct Class {
    count: AtomicU64,
    bytes: AtomicU64,
    kept: AtomicI64,
}

impl Class {
    const fn new() -> Self {
        Class { count: AtomicU64::new(0), bytes: AtomicU64::new(0), kept: AtomicI64::new(0) }
    }

    fn of(bytes: usize) -> &'static Self {
        let class = (usize::BITS - bytes.leading_zeros()) as usize;
        &SIZES[class.min(CLASSES - 1)]
    }

    fn forget(&self) {
        self.count.store(0, Relaxed);
        self.bytes.store(0, Relaxed);
        self.kept.store(0, Relaxed);
    }

    fn counted(&self) -> OfSize {
        OfSize {
            count: self.count.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            kept: self.kept.load(Relaxed),
        }
    }
}

static SIZES: [Class; CLASSES] = [const { Class::new() }; CLASSES];

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
            Class::of(layout.size()).kept.fetch_sub(1, Relaxed);
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
        let class = Class::of(bytes);
        class.count.fetch_add(1, Relaxed);
        class.bytes.fetch_add(bytes as u64, Relaxed);
        class.kept.fetch_add(1, Relaxed);
        if given_back > 0 {
            Class::of(given_back).kept.fetch_sub(1, Relaxed);
        }
    }
}

/// Runs `work` and says what the program's threads asked for meanwhile; `None` if the program's allocator does not count.
pub fn during<R>(work: impl FnOnce() -> R) -> (R, Option<Allocations>) {
    let guard = ONE_ASKS.lock().unwrap_or_else(PoisonError::into_inner);
    COUNT.store(0, Relaxed);
    BYTES.store(0, Relaxed);
    KEPT.store(0, Relaxed);
    SIZES.iter().for_each(Class::forget);
    IS_ASKED.store(true, Relaxed);
    let result = work();
    let counted = Allocations {
        count: COUNT.load(Relaxed),
        bytes: BYTES.load(Relaxed),
        kept_bytes: KEPT.load(Relaxed),
        sizes: std::array::from_fn(|class| SIZES[class].counted()),
    };
    // One that is certain tells whether any would have been seen.
    drop(black_box(Box::new(0_u8)));
    let counts = COUNT.load(Relaxed) > counted.count;
    IS_ASKED.store(false, Relaxed);
    drop(guard);
    (result, counts.then_some(counted))
}
