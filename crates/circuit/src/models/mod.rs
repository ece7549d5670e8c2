//! Every interleaving of small programs with whole circuits, as far as loom explores them: no runner sleeps while there is work,
//! and every waiter is woken. Loom reports a lost wake-up as a deadlock, and an effect that is not visible to its waiter as a
//! race.
//!
//! `./check models` runs them. The barrier of lanes is the symmetric one here.
#![allow(unsafe_code, reason = "cells that loom watches")]

mod bounds;
mod circles;
mod ends;
mod names;
mod pool;
mod tasks;

use std::sync::atomic::{AtomicU64, Ordering};

use loom::model::Builder;
use loom::thread;

use crate::Circuit;
use crate::Pipe;
use crate::RunBy;
use crate::sync::{Arc, UnsafeCell};

/// Explores a program. Threads are preempted at most `preemptions` times in each run, which finds nearly all there is to find.
pub(crate) fn explore(preemptions: usize, program: impl Fn() + Sync + Send + 'static) {
    let runs = std::sync::Arc::new(AtomicU64::new(0));
    let counted = std::sync::Arc::clone(&runs);
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        program();
    });
    println!("{} runs", runs.load(Ordering::Relaxed));
}

/// A sum that only a circuit adds to, and that is read without any synchronisation.
#[derive(Clone)]
struct Sum(Arc<UnsafeCell<u64>>);

// SAFETY: that is what the models are to prove.
unsafe impl Send for Sum {}
// SAFETY: as above.
unsafe impl Sync for Sum {}

impl Sum {
    fn new() -> Self {
        Self(Arc::new(UnsafeCell::new(0)))
    }

    fn pipe(&self, circuit: &Circuit) -> Pipe<u64> {
        let sum = self.clone();
        circuit.pipe(move |value: u64| sum.add(value)).expect("open")
    }

    fn add(&self, value: u64) {
        // SAFETY: loom watches.
        self.0.with_mut(|sum| unsafe { *sum += value });
    }

    fn get(&self) -> u64 {
        // SAFETY: loom watches.
        self.0.with(|sum| unsafe { *sum })
    }
}

fn circuit(run_by: RunBy) -> Circuit {
    Circuit::builder().run_by(run_by).build().expect("a thread")
}

#[test]
fn loom_an_emission_wakes_the_thread_and_the_thread_wakes_the_waiter() {
    explore(2, || {
        let circuit = circuit(RunBy::Thread);
        let sum = Sum::new();
        let pipe = sum.pipe(&circuit);
        pipe.emit(1);
        circuit.settle().expect("outside");
        assert_eq!(sum.get(), 1);
    });
}

#[test]
fn loom_a_thread_is_woken_for_what_is_in_a_lane() {
    explore(2, || {
        let circuit = circuit(RunBy::Thread);
        let caller = thread::current();
        let pipe = circuit.pipe(move |()| caller.unpark()).expect("open");
        let mut lane = circuit.lane().expect("open");
        lane.emit(&pipe, ());
        // Without a settle, only this can wake the test thread.
        thread::park();
    });
}

#[test]
fn loom_settling_covers_lanes() {
    explore(2, || {
        let circuit = circuit(RunBy::Thread);
        let sum = Sum::new();
        let pipe = sum.pipe(&circuit);
        let mut lane = circuit.lane().expect("open");
        lane.emit(&pipe, 1);
        circuit.settle().expect("outside");
        assert_eq!(sum.get(), 1);
    });
}

#[test]
fn loom_waiters_run_a_circuit_for_each_other() {
    explore(2, || {
        let circuit = circuit(RunBy::Waiters);
        let other = {
            let circuit = circuit.clone();
            thread::spawn(move || {
                let sum = Sum::new();
                sum.pipe(&circuit).emit(1);
                circuit.settle().expect("outside");
                assert_eq!(sum.get(), 1);
            })
        };
        let sum = Sum::new();
        let pipe = sum.pipe(&circuit);
        pipe.emit(1);
        circuit.settle().expect("outside");
        assert_eq!(sum.get(), 1);
        other.join().unwrap();
    });
}

#[test]
fn loom_two_threads_wait_for_a_circuit_that_a_third_runs() {
    explore(2, || {
        let circuit = circuit(RunBy::Owner);
        let sum = Sum::new();
        let pipe = sum.pipe(&circuit);
        pipe.emit(1);
        let waiters = [(); 2].map(|()| {
            let (circuit, sum) = (circuit.clone(), sum.clone());
            thread::spawn(move || {
                circuit.settle().expect("outside");
                assert_eq!(sum.get(), 1);
            })
        });
        circuit.run(10);
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
}

/// Notes what a sum was when this was dropped.
struct Last(std::sync::Arc<AtomicU64>, std::sync::Arc<AtomicU64>);

impl Drop for Last {
    fn drop(&mut self) {
        self.1.store(self.0.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

#[test]
fn loom_a_lane_that_is_opened_while_the_circuit_looks_is_read_before_its_pipe_goes() {
    explore(2, || {
        let circuit = circuit(RunBy::Owner);
        let (sum, at_end) = <(std::sync::Arc<AtomicU64>, std::sync::Arc<AtomicU64>)>::default();
        let last = Last(std::sync::Arc::clone(&sum), std::sync::Arc::clone(&at_end));
        let pipe = circuit
            .pipe(move |value: u64| {
                last.0.fetch_add(value, Ordering::Relaxed);
            })
            .expect("open");
        let caller = {
            let circuit = circuit.clone();
            thread::spawn(move || {
                let mut lane = circuit.lane().expect("open");
                lane.emit(&pipe, 1);
                drop(pipe);
            })
        };
        circuit.run(10);
        caller.join().unwrap();
        circuit.run(10);
        assert_eq!((sum.load(Ordering::Relaxed), at_end.load(Ordering::Relaxed)), (1, 1));
    });
}

#[test]
fn loom_a_circuit_ends_when_its_last_handle_goes() {
    explore(2, || {
        let circuit = circuit(RunBy::Thread);
        let pipe = circuit.pipe(|_: u64| ()).expect("open");
        let other = thread::spawn(move || {
            pipe.emit(1);
            drop(pipe);
        });
        drop(circuit);
        other.join().unwrap();
        // That the circuit's thread ends is what is to be proved.
    });
}

#[test]
fn loom_a_close_meets_an_emission() {
    explore(2, || {
        let circuit = circuit(RunBy::Thread);
        let pipe = circuit.pipe(|_: u64| ()).expect("open");
        let other = thread::spawn(move || pipe.emit(1));
        circuit.close_and_settle().expect("outside");
        other.join().unwrap();
    });
}

#[test]
fn loom_dropping_the_last_handle_leaks_nothing() {
    explore(2, || {
        let circuit = circuit(RunBy::Waiters);
        // Loom reports it if this is left over.
        let sum = Sum::new();
        let end = sum.pipe(&circuit);
        let pipe = circuit.pipe(move |value: u64| end.emit(value)).expect("open");
        let other = thread::spawn(move || {
            pipe.emit(1);
            drop(pipe);
        });
        drop(circuit);
        other.join().unwrap();
        assert_eq!(sum.get(), 1, "handled without a waiter");
    });
}

#[test]
fn loom_a_weak_pipe_is_asked_for_while_the_last_handle_goes() {
    explore(3, || {
        let circuit = circuit(RunBy::Owner);
        let sum = Sum::new();
        let pipe = sum.pipe(&circuit);
        let weak = pipe.downgrade();
        let other = thread::spawn(move || drop(pipe));
        let emitted = weak.upgrade().map(|pipe| pipe.emit(1));
        other.join().unwrap();
        assert!(weak.upgrade().is_none());
        circuit.run(10);
        assert_eq!(sum.get(), u64::from(emitted.is_some()));
        drop(circuit);
        drop(weak);
    });
}
