//! A draw through a service allocates nothing once the service has warmed up.
//!
//! This test is its own target: its allocator counts the allocations of the whole process.

#![allow(unsafe_code, reason = "a global allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::task::{Context, Waker};
use tidemark_pool::journal::NoJournal;
use tidemark_pool::selector::WideTree;
use tidemark_pool::service::{Service, Settings};
use tidemark_pool::{Catalogue, ChainedPool, Item, Pool, Secret};

struct Counting;

/// The number of allocations by all threads.
static CALLS: AtomicU64 = AtomicU64::new(0);

// SAFETY: it forwards to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, SeqCst);
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const DRAWS: u64 = 20_000;
const AT_ONCE: u64 = 256;

/// The only test of the target, so no other test allocates meanwhile.
#[test]
fn a_draw_allocates_nothing_in_any_of_the_three_ways() {
    let catalogue = Catalogue::new(vec![Item::limited("mug", 1, 1 << 40), Item::unlimited("nothing", 9)]);
    let pool =
        Pool::<WideTree>::new(&catalogue.expect("a catalogue"), Secret::new([1; 32]), Secret::new([2; 32]));
    let settings = Settings { queue: AT_ONCE as usize };
    let service = Service::start(ChainedPool::new(pool), NoJournal::default(), || 0, settings);
    let service = service.expect("a thread");
    for (name, way) in [
        ("callback", by_callback as fn(&Service)),
        ("blocking", blocking),
        ("async", by_future),
        ("wait", waiting),
    ] {
        // Buffers grow to the size of the largest batch, and the size of that batch depends on
        // timing.
        let fewest = (0..5).map(|_| allocations(|| way(&service))).min().expect("five rounds");
        assert_eq!(fewest, 0, "{name}: {fewest} allocations for {DRAWS} draws");
    }
}

fn allocations(act: impl FnOnce()) -> u64 {
    let before = CALLS.load(SeqCst);
    act();
    CALLS.load(SeqCst) - before
}

fn by_callback(service: &Service) {
    static ANSWERED: AtomicU64 = AtomicU64::new(0);
    let before = ANSWERED.load(SeqCst);
    for number in 0..DRAWS {
        // The service stores the captured values in place.
        let captured = (number, number + 1);
        service.draw_with(move |outcome| {
            assert!(outcome.is_ok() && captured.0 < captured.1);
            ANSWERED.fetch_add(1, SeqCst);
        });
    }
    service.draw().expect("a draw, behind all others");
    assert_eq!(ANSWERED.load(SeqCst) - before, DRAWS);
}

fn blocking(service: &Service) {
    for _ in 0..DRAWS / 10 {
        service.draw().expect("a draw");
    }
}

/// Polls until the answer is there, without a waker.
fn by_future(service: &Service) {
    for _ in 0..DRAWS / 10 {
        let mut drawing = pin!(service.draw_async());
        let mut context = Context::from_waker(Waker::noop());
        while drawing.as_mut().poll(&mut context).is_pending() {
            std::thread::yield_now();
        }
    }
}

fn waiting(service: &Service) {
    for _ in 0..DRAWS / AT_ONCE {
        let drawings: [_; AT_ONCE as usize] = std::array::from_fn(|_| service.draw_async());
        for drawing in drawings {
            drawing.wait().expect("a draw");
        }
    }
}
