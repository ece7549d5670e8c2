//! Pools of threads: a circuit is run by one of them at a time, none sleeps while there is work, and all end.
//!
//! A sum is read and written without synchronisation, so that loom reports two threads in one circuit as a race. It reports a
//! thread that never ends as a deadlock.

use loom::thread;

use super::{Sum, explore};
use crate::Circuit;
use crate::Overflow;
use crate::RunBy;
use crate::ThreadPool;
use crate::sync::{Arc, Condvar, Mutex, lock, wait};

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::new(threads).expect("threads")
}

fn circuit(pool: &ThreadPool) -> Circuit {
    Circuit::builder().run_by(RunBy::Pool(pool.clone())).build().expect("there are threads")
}

#[test]
fn loom_a_pool_runs_what_is_emitted_and_ends_with_its_last_circuit() {
    explore(2, || {
        let circuit = circuit(&pool(1));
        let sum = Sum::new();
        let pipe = sum.pipe(&circuit);
        pipe.emit(1);
        circuit.settle().expect("outside");
        assert_eq!(sum.get(), 1);
        pipe.emit(1);
        circuit.settle().expect("outside");
        assert_eq!(sum.get(), 2);
    });
}

#[test]
fn loom_two_threads_of_a_pool_never_run_one_circuit_at_once() {
    explore(2, || {
        let circuit = circuit(&pool(2));
        let sum = Sum::new();
        let pipe = sum.pipe(&circuit);
        pipe.emit(1);
        pipe.emit(1);
        circuit.settle().expect("outside");
        assert_eq!(sum.get(), 2);
    });
}

#[test]
fn loom_a_thread_of_a_pool_has_two_circuits() {
    explore(2, || {
        let pool = pool(1);
        let sums = [(); 2].map(|()| {
            let (circuit, sum) = (circuit(&pool), Sum::new());
            sum.pipe(&circuit).emit(1);
            (circuit, sum)
        });
        drop(pool);
        for (circuit, sum) in sums {
            circuit.settle().expect("outside");
            assert_eq!(sum.get(), 1);
        }
    });
}

#[test]
fn loom_a_dropped_pool_finishes_its_work_and_ends() {
    explore(2, || {
        let pool = pool(1);
        let done = Arc::new((Mutex::new(false), Condvar::new()));
        let signal = Arc::clone(&done);
        let notify = move |()| {
            *lock(&signal.0) = true;
            signal.1.notify_one();
        };
        let pipe = circuit(&pool).pipe(notify).expect("open");
        drop(pool);
        pipe.emit(());
        drop(pipe);
        // Without a settle, only this can wake the test thread.
        let mut is_done = lock(&done.0);
        while !*is_done {
            is_done = wait(&done.1, is_done);
        }
    });
}

#[test]
fn loom_a_close_meets_a_thread_of_a_pool() {
    explore(2, || {
        let circuit = circuit(&pool(1));
        let sum = Sum::new();
        let pipe = sum.pipe(&circuit);
        pipe.emit(1);
        circuit.close_and_settle().expect("outside");
        assert_eq!(sum.get(), 1);
        pipe.emit(1);
        assert_eq!(sum.get(), 1);
    });
}

#[test]
fn loom_an_untouched_circuit_is_closed_while_a_thread_of_a_pool_comes() {
    explore(2, || {
        let circuit = circuit(&pool(1));
        let pipe = circuit.pipe(|()| ()).expect("open");
        let other = thread::spawn(move || drop(pipe));
        circuit.close_and_settle().expect("outside");
        other.join().unwrap();
    });
}

#[test]
fn loom_a_receptor_and_a_thread_of_a_pool_run_what_the_receptor_waits_for() {
    explore(2, || {
        let awaited = circuit(&pool(1));
        let sum = Sum::new();
        let pipe = sum.pipe(&awaited);
        let outer = Circuit::builder().run_by(RunBy::Waiters).build().expect("no thread");
        let (seen, emits, settles) = (sum.clone(), pipe.clone(), awaited.clone());
        let waits = outer.pipe(move |()| {
            emits.emit(1);
            settles.settle().expect("another circuit");
            assert_eq!(seen.get(), 1);
        });
        waits.expect("open").emit(());
        outer.settle().expect("outside");
        assert_eq!(outer.failures(), 0);
        assert_eq!(sum.get(), 1);
        // A thread that was too late for it then has it again.
        pipe.emit(1);
        awaited.settle().expect("outside");
        assert_eq!(sum.get(), 2);
    });
}

#[test]
fn loom_a_receptor_on_the_only_thread_of_a_pool_waits_for_room_in_another_circuit_of_it() {
    explore(2, || {
        let pool = pool(1);
        let bounded = Circuit::builder().run_by(RunBy::Pool(pool.clone())).bounded(1, Overflow::Block);
        let bounded = bounded.build().expect("valid");
        let sum = Sum::new();
        let end = sum.pipe(&bounded);
        let outer = circuit(&pool);
        let floods = outer.pipe(move |count: u64| (0..count).for_each(|_| end.emit(1))).expect("open");
        floods.emit(2);
        outer.settle().expect("outside");
        bounded.settle().expect("outside");
        assert_eq!(sum.get(), 2);
    });
}
