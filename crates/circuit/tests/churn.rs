//! Circuits are created and destroyed with everything made in them, and no memory remains: the
//! allocator counts it. The only test of its binary, so that nothing else is counted, to the byte.

#[path = "memory/counting.rs"]
mod counting;
#[path = "scenarios/limit.rs"]
mod limit;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use counting::bytes_in_use;
use limit::{Limit, wait_until};
use tidemark_circuit::{Circuit, Fiber, Registrar, RunBy, Subject, ThreadPool, name};

/// Circuits of each driver in a round.
const CIRCUITS: u64 = 50;

/// Rounds whose memory is counted.
const ROUNDS: u64 = 10;

/// How long the test waits for memory that a leak would keep.
const PATIENCE: Duration = Duration::from_secs(30);

/// How the parts of a circuit end.
#[derive(Clone, Copy, Debug)]
enum End {
    Closed,
    /// While the circuit still has work, and its handles are dropped first.
    Dropped,
}

/// Makes a circuit and one of everything that keeps a part of it, uses all of it, and drops it.
fn come_and_go(run_by: RunBy, end: End, handled: &Arc<AtomicU64>) {
    let is_run_by_owner = matches!(run_by, RunBy::Owner);
    let circuit = Circuit::builder().run_by(run_by).build().expect("a thread");
    let count = Arc::clone(handled);
    let pipe = circuit.pipe(move |value: u64| _ = count.fetch_add(value, Ordering::Relaxed)).expect("open");
    let weak = pipe.downgrade();

    let conduit = circuit.conduit::<u64>().expect("open");
    let target = pipe.clone();
    let subscriber = circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u64>| {
        registrar.pipe(&target);
    });
    let subscriber = subscriber.expect("open");
    let subscription = conduit.subscribe(&subscriber).expect("open");
    let derived = conduit.pool(&Fiber::new().diff());

    let mut lane = circuit.lane().expect("open");
    pipe.emit(1);
    lane.emit(&pipe, 1);
    conduit.get(name!("churn.a")).emit(1);
    derived.get(name!("churn.b")).expect("no factory").emit(1);
    weak.upgrade().expect("there are handles").emit(1);
    match end {
        End::Closed => {
            while is_run_by_owner && circuit.run(100) {}
            circuit.settle().expect("outside");
            subscription.close();
            circuit.close();
            while is_run_by_owner && circuit.run(100) {}
            circuit.settle().expect("outside");
            assert!(weak.upgrade().is_some(), "its handle is still there");
        }
        End::Dropped => {
            lane.emit(&pipe, 1);
            drop((circuit, pipe));
            drop((conduit, subscription, derived, subscriber));
        }
    }
}

/// Creates and destroys `CIRCUITS` circuits, with everything that they share, including their
/// threads.
fn round(way: usize, end: End, handled: &Arc<AtomicU64>) {
    for _ in 0..CIRCUITS / 10 {
        let pool = ThreadPool::new(2).expect("threads");
        let run_by = [RunBy::Pool(pool), RunBy::Thread, RunBy::Waiters, RunBy::Owner][way].clone();
        for _ in 0..10 {
            come_and_go(run_by.clone(), end, handled);
        }
    }
}

/// The sum of the values that each circuit's pipe handles.
fn handled_of_each(way: usize, end: End) -> u64 {
    const OWNER: usize = 3;
    match end {
        End::Closed => 5,
        // The dropped handle is the owner's only way to run the circuit.
        End::Dropped if way == OWNER => 0,
        End::Dropped => 6,
    }
}

/// Waits until threads that are about to end have freed their memory: until it has not changed for
/// 50 samples, 2 ms apart.
fn rest() -> usize {
    let (mut last, mut same) = (bytes_in_use(), 0);
    while same < 50 {
        thread::sleep(Duration::from_millis(2));
        let now = bytes_in_use();
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
    last
}

/// The bytes that circuits with this driver and this end leave behind.
fn left_behind(way: usize, end: End) -> usize {
    let handled = Arc::new(AtomicU64::new(0));
    // Allocates what all circuits share, such as names, before anything is counted.
    round(way, end, &handled);
    let before = rest();
    (0..ROUNDS).for_each(|_| round(way, end, &handled));
    let expected = (1 + ROUNDS) * CIRCUITS * handled_of_each(way, end);
    // Threads may take a while to end.
    wait_until(|| handled.load(Ordering::Relaxed) >= expected, "what was emitted is handled");
    let deadline = Instant::now() + PATIENCE;
    while bytes_in_use() > before && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(handled.load(Ordering::Relaxed), expected, "circuits {end:?}");
    bytes_in_use().saturating_sub(before)
}

#[test]
fn circuits_come_and_go_and_leave_nothing_behind() {
    let _limit = Limit::new();
    let ways = ["a pool", "a thread", "waiters", "its owner"];
    let mut left = Vec::new();
    for (way, driver) in ways.into_iter().enumerate() {
        for end in [End::Closed, End::Dropped] {
            let bytes = left_behind(way, end);
            if bytes > 0 {
                left.push(format!("{bytes} bytes of those {end:?} that were run by {driver}"));
            }
        }
    }
    assert_eq!(left, [""; 0]);
}
