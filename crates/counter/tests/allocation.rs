//! Memory of named counters: a move allocates nothing, and each name takes little.
//!
//! A target of its own: its allocator counts the allocations of the whole process.

#![allow(unsafe_code, reason = "a global allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::time::Duration;
use tidemark_counter::counters::{Counters, Error, Options, Settings};
use tidemark_counter::{Kind, Promise, store::Memory, store::Store};

struct Counting;

static BYTES: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: it forwards each call to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        BYTES.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Counts the allocations of the calling thread during `act`.
fn allocations(act: impl FnOnce()) -> usize {
    let before = CALLS.get();
    act();
    CALLS.get() - before
}

/// The only test of this target, so that no other test allocates meanwhile.
#[test]
fn memory_is_taken_for_names_and_not_for_moves() {
    moves_allocate_nothing();
    names_take_64_bytes_at_most();
}

fn moves_allocate_nothing() {
    let settings = Settings {
        kind: Kind::Quota { limit: 1_000_000 },
        promise: Promise::Relaxed { cap: 1_000_000 },
        high: u64::MAX,
        low: u64::MAX,
        max_age: Duration::from_hours(1),
    };
    let options = Options { settings: Arc::new(move |_| settings), ..Options::default() };
    let counters = Counters::open(Memory::default(), options).unwrap();
    let tenant = counters.get(b"tenant:1").unwrap();
    counters.take(b"tenant:1", 1).unwrap();
    let count = allocations(|| {
        for _ in 0..1_000 {
            counters.take(b"tenant:1", 3).unwrap();
            counters.add(b"tenant:1", -1).unwrap();
            counters.refund(b"tenant:1", 1).unwrap();
            tenant.take(1).unwrap();
            tenant.refund(1).unwrap();
            counters.available(b"tenant:1").unwrap();
            tenant.state();
            assert_eq!(tenant.take(1_000_000), Err(Error::Exhausted));
        }
    });
    assert_eq!(count, 0);
}

fn names_take_64_bytes_at_most() {
    const NAMES: usize = 100_000;
    let mut store = Memory::default();
    store.claim("counters").unwrap();
    let counters = Counters::open(store, Options { idle: None, ..Options::default() }).unwrap();
    let name = |number: usize| format!("tenant:{number:08}");
    let before = BYTES.load(Ordering::Relaxed);
    (0..NAMES).for_each(|number| assert_eq!(counters.available(name(number).as_bytes()), Ok(None)));
    let bytes = (BYTES.load(Ordering::Relaxed) - before) as f64 / NAMES as f64 - name(0).len() as f64;
    println!("{bytes:.1} bytes for each counter, beside its name");
    assert!(bytes <= 64.0, "{bytes:.1}");
}
