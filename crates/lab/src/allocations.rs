//! How often a program asks for memory, and for how much.
#![allow(
    unsafe_code,
    reason = "an allocator's functions are unsafe; these add to counters and pass everything on"
)]

use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// An allocator that passes every request on to another one, and counts them inside [`during`] only.
///
/// A process has one allocator, and the program that measures is also the program that serves. So counting is off
/// unless a measurement turns it on: outside [`during`] an allocation and a release each cost one relaxed load and one
/// branch that is never taken, and no counter is written. The counters belong to the process, not to a block: a block
/// that was allocated before a measurement and is released in it counts as released, and one that is released after it
/// counts as kept. Neither needs a mark in the block, because a release states the block's size.
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

/// Whether a measurement runs. Every allocation of every thread reads it, so no variable that is written may share its
/// cache line.
#[repr(align(128))]
struct Switch(AtomicBool);

impl Switch {
    #[inline]
    fn is_on(&self) -> bool {
        self.0.load(Relaxed)
    }
}

static COUNTING: Switch = Switch(AtomicBool::new(false));
static COUNT: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static KEPT: AtomicI64 = AtomicI64::new(0);
/// Two measurements at the same time would count each other's allocations.
static ONE_MEASURES: Mutex<()> = Mutex::new(());

/// Counting, until this is dropped.
struct On;

impl On {
    fn turn() -> Self {
        COUNT.store(0, Relaxed);
        BYTES.store(0, Relaxed);
        KEPT.store(0, Relaxed);
        SIZES.iter().for_each(Class::forget);
        COUNTING.0.store(true, Relaxed);
        On
    }
}

impl Drop for On {
    fn drop(&mut self) {
        COUNTING.0.store(false, Relaxed);
    }
}

impl<A> Counting<A> {
    /// An allocator that passes everything on to this one.
    pub const fn new(inner: A) -> Self {
        Counting(inner)
    }
}

// SAFETY: each function hands the inner allocator, which is one, what its caller has handed in, and hands back what the
// inner allocator has answered; besides it only adds to counters, which neither allocates nor unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if COUNTING.is_on() {
            // SAFETY: the caller promises what `GlobalAlloc::alloc` asks for, of this layout.
            return unsafe { counted_alloc(&self.0, layout) };
        }
        // SAFETY: as above.
        unsafe { self.0.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if COUNTING.is_on() {
            // SAFETY: the caller promises what `GlobalAlloc::alloc_zeroed` asks for, of this layout.
            return unsafe { counted_alloc_zeroed(&self.0, layout) };
        }
        // SAFETY: as above.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if COUNTING.is_on() {
            // SAFETY: the block came from this allocator, so from the inner one, with this layout, and the caller
            // promises the rest of what `GlobalAlloc::realloc` asks for.
            return unsafe { counted_realloc(&self.0, block, layout, new_size) };
        }
        // SAFETY: as above.
        unsafe { self.0.realloc(block, layout, new_size) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if COUNTING.is_on() {
            // SAFETY: the block came from this allocator, so from the inner one, with this layout, and is not used
            // again.
            return unsafe { counted_dealloc(&self.0, block, layout) };
        }
        // SAFETY: as above.
        unsafe { self.0.dealloc(block, layout) }
    }
}

// What counts is out of line, and ends with the inner allocator's call: so the code that runs while nothing is measured
// is a load, a branch and a jump, and saves no registers for a call behind which it goes on.

/// # Safety
/// As [`GlobalAlloc::alloc`].
#[cold]
#[inline(never)]
unsafe fn counted_alloc(inner: &impl GlobalAlloc, layout: Layout) -> *mut u8 {
    count_allocation(layout.size());
    // SAFETY: the caller promises it.
    unsafe { inner.alloc(layout) }
}

/// # Safety
/// As [`GlobalAlloc::alloc_zeroed`].
#[cold]
#[inline(never)]
unsafe fn counted_alloc_zeroed(inner: &impl GlobalAlloc, layout: Layout) -> *mut u8 {
    count_allocation(layout.size());
    // SAFETY: the caller promises it.
    unsafe { inner.alloc_zeroed(layout) }
}

/// # Safety
/// As [`GlobalAlloc::realloc`].
#[cold]
#[inline(never)]
unsafe fn counted_realloc(
    inner: &impl GlobalAlloc,
    block: *mut u8,
    layout: Layout,
    new_size: usize,
) -> *mut u8 {
    count_release(layout.size());
    count_allocation(new_size);
    // SAFETY: the caller promises it.
    unsafe { inner.realloc(block, layout, new_size) }
}

/// # Safety
/// As [`GlobalAlloc::dealloc`].
#[cold]
#[inline(never)]
unsafe fn counted_dealloc(inner: &impl GlobalAlloc, block: *mut u8, layout: Layout) {
    count_release(layout.size());
    // SAFETY: the caller promises it.
    unsafe { inner.dealloc(block, layout) }
}

fn count_allocation(bytes: usize) {
    COUNT.fetch_add(1, Relaxed);
    BYTES.fetch_add(bytes as u64, Relaxed);
    KEPT.fetch_add(bytes as i64, Relaxed);
    let class = Class::of(bytes);
    class.count.fetch_add(1, Relaxed);
    class.bytes.fetch_add(bytes as u64, Relaxed);
    class.kept.fetch_add(1, Relaxed);
}

fn count_release(bytes: usize) {
    KEPT.fetch_sub(bytes as i64, Relaxed);
    Class::of(bytes).kept.fetch_sub(1, Relaxed);
}

/// Runs `work` and returns what all threads of the program asked for meanwhile; `None` if the program's allocator does
/// not count. A panic of `work` turns counting off, too.
pub fn during<R>(work: impl FnOnce() -> R) -> (R, Option<Allocations>) {
    // A measurement that panicked has left nothing behind: the next one begins with counters of its own.
    let guard = ONE_MEASURES.lock().unwrap_or_else(PoisonError::into_inner);
    let on = On::turn();
    let result = work();
    let counted = Allocations {
        count: COUNT.load(Relaxed),
        bytes: BYTES.load(Relaxed),
        kept_bytes: KEPT.load(Relaxed),
        sizes: std::array::from_fn(|class| SIZES[class].counted()),
    };
    // An allocation that is certain shows whether this program's allocator is one that counts.
    drop(black_box(Box::new(0_u8)));
    let counts = COUNT.load(Relaxed) > counted.count;
    drop(on);
    drop(guard);
    (result, counts.then_some(counted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::System;
    use std::panic::catch_unwind;

    /// Not the program's allocator: only what a test asks of it is counted.
    const ALLOCATOR: Counting<System> = Counting::new(System);
    const LAYOUT: Layout = Layout::new::<[u64; 6]>();

    fn counted() -> (u64, u64, i64) {
        (COUNT.load(Relaxed), BYTES.load(Relaxed), KEPT.load(Relaxed))
    }

    fn allocate() -> *mut u8 {
        // SAFETY: the layout has a size.
        let block = unsafe { ALLOCATOR.alloc(LAYOUT) };
        assert!(!block.is_null(), "there is memory for 48 bytes");
        block
    }

    /// Releases a block of [`allocate`], which is given away with it.
    fn release(block: *mut u8) {
        // SAFETY: the block is one of `allocate`, has its layout, and each test releases each of its blocks once.
        unsafe { ALLOCATOR.dealloc(block, LAYOUT) };
    }

    #[test]
    fn blocks_count_in_the_measurement_in_which_they_come_and_go() {
        let before = allocate();
        let (inside, seen) = during(|| {
            assert_eq!(counted(), (0, 0, 0));
            let inside = allocate();
            assert_eq!(counted(), (1, 48, 48));
            release(before);
            assert_eq!(counted(), (1, 48, 0), "a block from before counts as released");
            // SAFETY: the block is one of `allocate` with its layout, and the size fits into an `isize`.
            let inside = unsafe { ALLOCATOR.realloc(inside, LAYOUT, 96) };
            assert_eq!(counted(), (2, 144, 48));
            let classes = [Class::of(48).counted().kept, Class::of(96).counted().kept];
            assert_eq!(classes, [-1, 1], "of 48 bytes two are gone and one came, of 96 one came");
            inside
        });
        assert_eq!(seen, None, "the allocator of this program is another one");
        // SAFETY: the block was made 96 bytes long with this alignment, and is released once.
        unsafe { ALLOCATOR.dealloc(inside, Layout::new::<[u64; 12]>()) };
    }

    #[test]
    fn nothing_is_counted_outside_a_measurement() {
        // With this no measurement of another test runs.
        let _alone = ONE_MEASURES.lock().unwrap_or_else(PoisonError::into_inner);
        let before = counted();
        release(allocate());
        assert_eq!(counted(), before);
    }

    #[test]
    fn a_panic_ends_the_measurement() {
        assert!(catch_unwind(|| during(|| panic!("as a scenario may"))).is_err());
        let _alone = ONE_MEASURES.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(!COUNTING.is_on());
    }
}
