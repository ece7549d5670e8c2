//! Circuits that wait for each other concurrently: no thread hangs, and each refusal has a reason.

use loom::thread;

use super::{Sum, explore};
use crate::Circuit;
use crate::Overflow;
use crate::RunBy;
use crate::sync::{Arc, AtomicUsize, Ordering};

#[test]
fn loom_two_circuits_that_settle_each_other_do_not_hang() {
    explore(3, || {
        let circuits = [0, 1].map(|_| Circuit::builder().run_by(RunBy::Waiters).build().expect("no thread"));
        let refused = Arc::new(AtomicUsize::new(0));
        let [one, other] = [0, 1].map(|at: usize| {
            let (behind, refused) = (circuits[1 - at].clone(), Arc::clone(&refused));
            let pipe = circuits[at].pipe(move |()| {
                if behind.settle().is_err() {
                    refused.fetch_add(1, Ordering::Relaxed);
                }
            });
            (circuits[at].clone(), pipe.expect("open"))
        });
        let elsewhere = thread::spawn(move || {
            other.1.emit(());
            other.0.settle().expect("outside");
        });
        one.1.emit(());
        one.0.settle().expect("outside");
        elsewhere.join().unwrap();
        assert!(refused.load(Ordering::Relaxed) <= 2);
        // They hold each other.
        circuits.iter().for_each(|circuit| circuit.close_and_settle().expect("outside"));
    });
}

#[test]
fn loom_a_thread_waiting_for_room_in_a_cycle_does_not_hang() {
    explore(2, || {
        let pool = crate::ThreadPool::new(1).expect("a thread");
        let bounded = Circuit::builder().run_by(RunBy::Pool(pool)).bounded(1, Overflow::Block);
        let bounded = bounded.build().expect("valid");
        let outer = Circuit::builder().run_by(RunBy::Waiters).build().expect("no thread");
        let sum = Sum::new();
        let (behind, end) = (outer.clone(), sum.clone());
        // May be refused, if the other one waits for room meanwhile.
        let full = bounded.pipe(move |value: u64| {
            let _ = behind.settle();
            end.add(value);
        });
        let full = full.expect("open");
        let waits = outer.pipe(move |()| (0..2).for_each(|_| full.emit(1))).expect("open");
        waits.emit(());
        outer.settle().expect("outside");
        bounded.settle().expect("outside");
        assert_eq!(sum.get() + bounded.dropped(), 2);
        // They hold each other.
        outer.close_and_settle().expect("outside");
    });
}
