//! Waiting for circuits in tasks.

mod limit;
mod tasks;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;

use limit::Limit;
use tasks::block_on;
use tidemark_circuit::{Circuit, RunBy};

#[test]
fn a_task_sees_what_it_waited_for() {
    let _limit = Limit::new();
    for run_by in [RunBy::Waiters, RunBy::Thread, RunBy::SharedPool] {
        let circuit = Circuit::builder().run_by(run_by).build().expect("valid");
        let last = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&last);
        let pipe = circuit.pipe(move |value| seen.store(value, Ordering::Relaxed)).expect("open");
        let mut lane = circuit.lane().expect("open");
        for value in 1..=2000 {
            if value % 2 == 0 {
                pipe.emit(value);
            } else {
                lane.emit(&pipe, value);
            }
            block_on(circuit.settled().expect("outside"));
            assert_eq!(last.load(Ordering::Relaxed), value);
        }
    }
}

#[test]
fn tasks_and_threads_wait_beside_each_other() {
    let _limit = Limit::new();
    for run_by in [RunBy::Waiters, RunBy::Thread, RunBy::SharedPool] {
        let circuit = Circuit::builder().run_by(run_by).build().expect("valid");
        thread::scope(|scope| {
            for number in 0..4 {
                let circuit = &circuit;
                scope.spawn(move || {
                    let last = Arc::new(AtomicU64::new(0));
                    let seen = Arc::clone(&last);
                    let pipe = circuit.pipe(move |value| seen.store(value, Ordering::Relaxed)).expect("open");
                    for value in 1..=2000 {
                        pipe.emit(value);
                        match number % 2 {
                            0 => block_on(circuit.settled().expect("outside")),
                            _ => circuit.settle().expect("outside"),
                        }
                        assert_eq!(last.load(Ordering::Relaxed), value);
                    }
                });
            }
        });
    }
}

#[test]
fn waiting_can_be_given_up() {
    let circuit = Circuit::builder().run_by(RunBy::Owner).build().expect("valid");
    let pipe = circuit.pipe(|_: u32| ()).expect("open");
    pipe.emit(1);
    let mut settled = Box::pin(circuit.settled().expect("outside"));
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(settled.as_mut().poll(&mut context), Poll::Pending);
    drop(settled);
    while circuit.run(10) {}
    let mut settled = pin!(circuit.settled().expect("outside"));
    assert_eq!(settled.as_mut().poll(&mut context), Poll::Ready(()));
}
