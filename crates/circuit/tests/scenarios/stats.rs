//! The statistics of a circuit.

use std::thread;

use tidemark_circuit::{Circuit, Overflow, RunBy, Stats, Supervision};

fn owned() -> Circuit {
    Circuit::builder().run_by(RunBy::Owner).build().expect("valid")
}

#[test]
fn a_new_circuit_has_done_nothing() {
    assert_eq!(owned().stats(), Stats::default());
}

#[test]
fn pipes_and_lanes_are_counted() {
    let circuit = owned();
    let pipe = circuit.pipe(|_: u64| ()).expect("open");
    let mut lane = circuit.lane().expect("open");
    (0..3).for_each(|value| pipe.emit(value));
    (0..4).for_each(|value| lane.emit(&pipe, value));
    let stats = circuit.stats();
    assert_eq!((stats.admitted, stats.handled, stats.backlog), (7, 0, 7));
    while circuit.run(100) {}
    let stats = circuit.stats();
    assert_eq!((stats.admitted, stats.handled, stats.backlog), (7, 7, 0));
}

#[test]
fn a_lane_that_is_gone_stays_counted() {
    let circuit = owned();
    let pipe = circuit.pipe(|_: u64| ()).expect("open");
    for round in 1..=5 {
        let mut lane = circuit.lane().expect("open");
        (0..10).for_each(|value| lane.emit(&pipe, value));
        drop(lane);
        while circuit.run(100) {}
        let stats = circuit.stats();
        assert!(stats.admitted >= round * 10, "ten emissions by a lane, and its close: {stats:?}");
        assert_eq!(stats.backlog, 0);
    }
}

#[test]
fn what_a_circuit_sends_itself_is_not_counted() {
    let circuit = owned();
    let end = circuit.pipe(|_: u64| ()).expect("open");
    let pipe = circuit.pipe(move |count: u64| (0..count).for_each(|value| end.emit(value))).expect("open");
    pipe.emit(10);
    while circuit.run(100) {}
    assert_eq!((circuit.stats().admitted, circuit.stats().handled), (1, 1));
}

#[test]
fn large_values_count_for_each_24_bytes() {
    let circuit = owned();
    let pipe = circuit.pipe(|_: [u64; 7]| ()).expect("open");
    pipe.emit([0; 7]);
    assert_eq!(circuit.stats().admitted, 3);
}

#[test]
fn failures_and_drops_are_counted() {
    let circuit = Circuit::builder()
        .run_by(RunBy::Owner)
        .bounded(2, Overflow::DropNewest)
        .supervision(Supervision::Resume)
        .build()
        .expect("valid");
    let pipe = circuit.pipe(|_: u64| panic!("always")).expect("open");
    (0..5).for_each(|value| pipe.emit(value));
    while circuit.run(100) {}
    let stats = circuit.stats();
    assert_eq!((stats.failures, stats.dropped, stats.admitted), (2, 3, 2));
    assert_eq!((stats.failures, stats.dropped), (circuit.failures(), circuit.dropped()));
}

#[test]
fn an_ended_circuit_has_no_backlog() {
    let circuit = owned();
    let pipe = circuit.pipe(|_: u64| ()).expect("open");
    pipe.emit(1);
    circuit.close();
    while circuit.run(100) {}
    // The release of the pipe is an entry that no thread will handle.
    drop(pipe);
    let stats = circuit.stats();
    assert_eq!((stats.backlog, stats.handled), (0, stats.admitted));
}

#[test]
fn numbers_never_contradict_each_other_while_a_circuit_works() {
    for run_by in [RunBy::Thread, RunBy::SharedPool] {
        let circuit = Circuit::builder().run_by(run_by).build().expect("valid");
        let pipe = circuit.pipe(|_: u64| ()).expect("open");
        thread::scope(|scope| {
            let emitting: Vec<_> = (0..2)
                .map(|_| {
                    let (pipe, circuit) = (pipe.clone(), circuit.clone());
                    scope.spawn(move || {
                        for _ in 0..100 {
                            let mut lane = circuit.lane().expect("open");
                            (0..50).for_each(|value| pipe.emit(value));
                            (0..50).for_each(|value| lane.emit(&pipe, value));
                        }
                    })
                })
                .collect();
            let mut before = Stats::default();
            loop {
                let has_ended = emitting.iter().all(thread::ScopedJoinHandle::is_finished);
                let now = circuit.stats();
                assert!(now.admitted >= before.admitted && now.handled >= before.handled);
                assert_eq!(now.backlog, now.admitted - now.handled);
                before = now;
                if has_ended {
                    break;
                }
            }
        });
        circuit.settle().expect("outside");
        assert!(circuit.stats().handled >= 20_000);
    }
}
