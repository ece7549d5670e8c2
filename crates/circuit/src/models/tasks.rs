//! Tasks that wait for a circuit: a registered waker is woken, however close registration and completion are, and a cancelled
//! wait leaves the other wakers registered.

use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};

use loom::thread::{self, Thread};

use super::{Sum, circuit, explore};
use crate::RunBy;
use crate::execution::waiters::Waiters;
use crate::sync::{Arc, AtomicBool, Ordering};

/// Wakes a thread that runs a task and parks while that has nothing to do.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.unpark();
    }
}

/// A waker for what this thread runs.
fn waker() -> Waker {
    Waker::from(std::sync::Arc::new(Unpark(thread::current())))
}

/// Polls until it is ready, and looks again only when it is woken.
pub(super) fn block_on(future: impl Future) {
    let (mut future, waker) = (pin!(future), waker());
    while future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        thread::park();
    }
}

#[test]
fn loom_a_task_is_woken_when_the_circuit_gets_there() {
    explore(2, || {
        let circuit = circuit(RunBy::Thread);
        let sum = Sum::new();
        let pipe = sum.pipe(&circuit);
        pipe.emit(1);
        block_on(circuit.settled().expect("outside"));
        assert_eq!(sum.get(), 1);
    });
}

#[test]
fn loom_a_runner_that_stops_early_wakes_the_task() {
    explore(2, || {
        let circuit = circuit(RunBy::Waiters);
        let sum = Sum::new();
        let pipe = sum.pipe(&circuit);
        pipe.emit(1);
        let task = {
            let (circuit, sum) = (circuit.clone(), sum.clone());
            thread::spawn(move || {
                pipe.emit(1);
                block_on(circuit.settled().expect("outside"));
                assert_eq!(sum.get(), 2);
            })
        };
        circuit.settle().expect("outside");
        task.join().unwrap();
    });
}

#[test]
fn loom_a_task_is_woken_where_it_was_polled_last() {
    explore(2, || {
        let circuit = circuit(RunBy::Thread);
        let sum = Sum::new();
        let pipe = sum.pipe(&circuit);
        pipe.emit(1);
        let mut settled = Box::pin(circuit.settled().expect("outside"));
        // Its first waker wakes no thread.
        if settled.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Pending {
            block_on(settled);
        }
        assert_eq!(sum.get(), 1);
    });
}

#[test]
fn loom_a_cancelled_wait_leaves_the_other_waiters_registered() {
    explore(3, || {
        let (waiters, is_done) = (Arc::new(Waiters::new()), Arc::new(AtomicBool::new(false)));
        let waiting = {
            let (waiters, is_done) = (Arc::clone(&waiters), Arc::clone(&is_done));
            thread::spawn(move || {
                let look = || is_done.load(Ordering::SeqCst);
                waiters.wait(2, look, look);
            })
        };
        let gets_there = {
            let (waiters, is_done) = (Arc::clone(&waiters), Arc::clone(&is_done));
            thread::spawn(move || {
                waiters.wake(1);
                is_done.store(true, Ordering::SeqCst);
                waiters.wake(2);
            })
        };
        let id = waiters.wake_later(1, Waker::noop(), None);
        waiters.remove(id);
        waiting.join().unwrap();
        gets_there.join().unwrap();
    });
}
