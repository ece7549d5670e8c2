//! Bounded queues: admission respects the bound, and every thread waiting for room is woken.

use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

use super::{Sum, explore};
use crate::Circuit;
use crate::Overflow;
use crate::RunBy;
use crate::execution::bounds::{Admission, Bounds};
use crate::sync::Arc;

#[test]
fn loom_admission_respects_the_bound_and_a_waiter_enters_after_a_release() {
    explore(2, || {
        let bounds = Arc::new(Bounds::new(1, Overflow::Block));
        let inside = Arc::new(AtomicUsize::new(0));
        let come_and_go = {
            let (bounds, inside) = (Arc::clone(&bounds), Arc::clone(&inside));
            move || {
                assert!(matches!(bounds.admit(true, || false, || false), Admission::Granted));
                assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "there is room for one");
                inside.fetch_sub(1, Ordering::Relaxed);
                bounds.release();
            }
        };
        let others = [(); 2].map(|()| thread::spawn(come_and_go.clone()));
        come_and_go();
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

#[test]
fn loom_a_thread_waiting_for_room_is_released_by_the_close() {
    explore(3, || {
        let bounds = Arc::new(Bounds::new(1, Overflow::Block));
        let is_over = Arc::new(AtomicBool::new(false));
        assert!(matches!(bounds.admit(true, || false, || false), Admission::Granted));
        let waiting = {
            let (bounds, is_over) = (Arc::clone(&bounds), Arc::clone(&is_over));
            thread::spawn(move || bounds.admit(true, || is_over.load(Ordering::Acquire), || false))
        };
        is_over.store(true, Ordering::Release);
        bounds.wake();
        assert!(matches!(waiting.join().unwrap(), Admission::Refused));
    });
}

#[test]
fn loom_callers_wait_for_a_circuit_with_room_for_one() {
    explore(2, || {
        let builder = Circuit::builder().run_by(RunBy::Thread).bounded(1, Overflow::Block);
        let circuit = builder.build().expect("a thread");
        let sum = Sum::new();
        let pipe = sum.pipe(&circuit);
        pipe.emit(1);
        // Waits until the first is taken, without a settle.
        pipe.emit(2);
        circuit.settle().expect("outside");
        assert_eq!((sum.get(), circuit.dropped()), (3, 0));
    });
}

#[test]
fn loom_the_oldest_makes_room_while_it_is_taken() {
    explore(3, || {
        let builder = Circuit::builder().run_by(RunBy::Thread).bounded(1, Overflow::DropOldest);
        let circuit = builder.build().expect("a thread");
        let sum = Sum::new();
        let pipe = sum.pipe(&circuit);
        let other = {
            let pipe = pipe.clone();
            thread::spawn(move || pipe.emit(1))
        };
        pipe.emit(1);
        other.join().unwrap();
        circuit.settle().expect("outside");
        assert_eq!(sum.get() + circuit.dropped(), 2, "each is handled or counted");
        assert!(sum.get() > 0, "the newest is never dropped");
    });
}
