//! Users' code in callbacks and in `drop` cannot bring down a circuit or its threads.

use std::panic::panic_any;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;

use crate::limit::{Limit, wait_until};
use tidemark_circuit::{
    Circuit, ContextError, Flow, Name, Pipe, Registrar, Resource, Routing, RunBy, Scope, Settled, Subject,
    Subscription, ThreadPool,
};

/// Panics when it is dropped, with a payload that does the same once more.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic_any(Fuse);
    }
}

struct Fuse;

impl Drop for Fuse {
    fn drop(&mut self) {
        assert!(thread::panicking(), "the payload of a panic");
    }
}

fn circuit(run_by: RunBy) -> Circuit {
    Circuit::builder().run_by(run_by).build().expect("a thread")
}

/// A circuit with each driver, with one time limit for all of them.
#[track_caller]
fn all() -> impl Iterator<Item = Circuit> {
    let pool = ThreadPool::new(1).expect("a thread");
    let limit = Limit::new();
    [RunBy::Pool(pool), RunBy::Thread, RunBy::Waiters, RunBy::Owner].into_iter().map(move |run_by| {
        let _ = &limit;
        circuit(run_by)
    })
}

/// Waits until all emissions are handled, with any driver.
fn settle(circuit: &Circuit) {
    while matches!(circuit.run_by(), RunBy::Owner) && circuit.run(1000) {}
    circuit.settle().expect("outside");
}

/// Asserts that a circuit still handles values.
fn assert_well(circuit: &Circuit) {
    let (sender, receiver) = mpsc::channel();
    let pipe = circuit.pipe(move |value: u64| sender.send(value).expect("a receiver")).expect("open");
    pipe.emit(7);
    settle(circuit);
    assert_eq!(receiver.try_recv(), Ok(7));
}

#[test]
fn a_budget_of_one_handles_one_entry() {
    let circuit = circuit(RunBy::Owner);
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let pipe = circuit
        .pipe(move |more: u64| {
            counted.fetch_add(1 + more, Ordering::Relaxed);
        })
        .expect("open");
    (0..3).for_each(|_| pipe.emit(0));
    assert!(circuit.run(1));
    assert_eq!(count.load(Ordering::Relaxed), 1);
    assert!(circuit.run(1));
    assert_eq!(count.load(Ordering::Relaxed), 2);
    assert!(!circuit.run(1), "that was the last");
    assert_eq!(count.load(Ordering::Relaxed), 3);
    circuit.settle().expect("outside");
}

#[test]
fn a_budget_counts_what_a_circuit_emits_to_itself() {
    let circuit = circuit(RunBy::Owner);
    let trace = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&trace);
    let last = circuit.pipe(move |value: u64| seen.lock().expect("no panic").push(value)).expect("open");
    let (first, seen) = (last.clone(), Arc::clone(&trace));
    let pipe = circuit
        .pipe(move |value: u64| {
            seen.lock().expect("no panic").push(value);
            first.emit(value + 1);
        })
        .expect("open");
    pipe.emit(10);
    pipe.emit(20);
    let mut after = Vec::new();
    for _ in 0..4 {
        after.push((circuit.run(1), trace.lock().expect("no panic").clone()));
    }
    let expected =
        [(true, vec![10]), (true, vec![10, 11]), (true, vec![10, 11, 20]), (false, vec![10, 11, 20, 21])];
    assert_eq!(after, expected);
}

#[test]
fn a_value_whose_drop_fails_costs_nothing_but_itself() {
    for circuit in all() {
        let pipe = circuit.pipe(|value: Bomb| drop(value)).expect("open");
        (0..100).for_each(|_| pipe.emit(Bomb));
        settle(&circuit);
        assert_eq!(circuit.failures(), 100);
        assert_well(&circuit);
    }
}

#[test]
fn values_without_a_receiver_may_fail_in_drop() {
    let _limit = Limit::new();
    // All on the one thread of a pool, which has to survive.
    let pool = ThreadPool::new(1).expect("a thread");
    for run_by in [RunBy::Pool(pool.clone()), RunBy::Thread, RunBy::Waiters, RunBy::Owner] {
        let circuit = circuit(run_by);
        let (pipe, keeper) = self_keeping(&circuit);
        pipe.emit(Some(Bomb));
        // Still handled; the receptor it is emitted on to no longer exists.
        pipe.emit(None);
        circuit.close();
        settle(&circuit);
        assert!(circuit.is_closed());
        drop((pipe, keeper));
        circuit.settle().expect("outside");
    }
    assert_well(&circuit(RunBy::Pool(pool)));
}

/// A pipe that emits a bomb from the `drop` of its receptor.
fn self_keeping(circuit: &Circuit) -> (Pipe<Option<Bomb>>, Pipe<Bomb>) {
    struct AtEnd(Pipe<Bomb>);

    impl Drop for AtEnd {
        fn drop(&mut self) {
            self.0.emit(Bomb);
            panic_any(Fuse);
        }
    }

    let sink = circuit.pipe(|value: Bomb| std::mem::forget(value)).expect("open");
    let at_end = AtEnd(sink.clone());
    let pipe = circuit
        .pipe(move |value: Option<Bomb>| {
            let _ = &at_end;
            std::mem::forget(value);
        })
        .expect("open");
    (pipe, sink)
}

#[test]
fn a_receptor_whose_drop_fails_goes_with_its_pipe() {
    for circuit in all() {
        let bomb = Bomb;
        let pipe = circuit
            .pipe(move |value: u32| {
                let _ = (&bomb, value);
            })
            .expect("open");
        pipe.emit(1);
        drop(pipe);
        settle(&circuit);
        assert_well(&circuit);
    }
}

#[test]
fn what_is_to_be_called_at_a_close_that_never_comes_may_fail_in_drop() {
    struct Closing(Option<Subscription<u64>>);

    impl Drop for Closing {
        fn drop(&mut self) {
            // Too late to have an effect: the circuit has just ended.
            self.0.take().expect("once").close();
        }
    }

    let _limit = Limit::new();
    // Each on the one thread of a pool, which has to survive.
    let pool = ThreadPool::new(1).expect("a thread");
    for run_by in [RunBy::Pool(pool.clone()), RunBy::Thread, RunBy::Waiters, RunBy::Owner] {
        let circuit = circuit(run_by);
        let conduit = circuit.conduit::<u64>().expect("open");
        let subscriber = circuit.subscriber(|_: &Subject, _: &mut Registrar<'_, u64>| {}).expect("open");
        let bomb = Bomb;
        let subscription = conduit
            .subscribe_with(&subscriber, move |_| {
                let _ = &bomb;
            })
            .expect("open");
        settle(&circuit);
        drop((conduit, subscriber));
        let closing = Closing(Some(subscription));
        let pipe = circuit
            .pipe(move |_: u64| {
                let _ = &closing;
            })
            .expect("open");
        circuit.close();
        settle(&circuit);
        drop(pipe);
        circuit.settle().expect("outside");
    }
    assert_well(&circuit(RunBy::Pool(pool)));
}

#[test]
fn a_circuit_that_is_run_inside_of_another_refuses_to_wait_for_that() {
    for run_by in [RunBy::Waiters, RunBy::Owner] {
        for outer in all() {
            let inner = circuit(run_by.clone());
            let (sender, receiver) = mpsc::channel();
            let waits_for = outer.clone();
            let asks = inner
                .pipe(move |()| {
                    let answers = (waits_for.settle(), waits_for.close_and_settle(), waits_for.is_closed());
                    sender.send(answers).expect("a receiver");
                })
                .expect("open");
            let run = inner.clone();
            let pipe = outer
                .pipe(move |()| {
                    asks.emit(());
                    settle(&run);
                })
                .expect("open");
            pipe.emit(());
            settle(&outer);
            let (settled, closed, is_closed): (Result<(), ContextError>, Result<(), ContextError>, bool) =
                receiver.try_recv().expect("an answer");
            assert!(settled.is_err() && closed.is_err() && !is_closed);
            assert_well(&outer);
            outer.close();
            inner.close();
            settle(&outer);
            settle(&inner);
        }
    }
}

#[test]
fn a_waker_may_take_another_waiting_task_with_it() {
    struct Task(Mutex<Option<Settled>>);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            drop(self.0.lock().expect("no panic").take());
        }
    }

    fn poll(settled: &mut Settled, waker: &Waker) -> bool {
        Pin::new(settled).poll(&mut Context::from_waker(waker)).is_ready()
    }

    let circuit = circuit(RunBy::Owner);
    let pipe = circuit.pipe(|_: u64| ()).expect("open");
    pipe.emit(1);
    let [mut first, mut second] = [(); 2].map(|()| circuit.settled().expect("outside"));
    assert!(!poll(&mut second, Waker::noop()));
    let waker = Waker::from(Arc::new(Task(Mutex::new(Some(second)))));
    assert!(!poll(&mut first, &waker));
    drop(waker);
    // The circuit holds the last one, and drops it.
    assert!(!poll(&mut first, Waker::noop()));
    while circuit.run(10) {}
    assert!(poll(&mut first, Waker::noop()));
}

#[test]
fn a_receptor_may_drop_the_last_handles_of_everything_it_is_part_of() {
    for circuit in all() {
        let alive = Arc::new(());
        let all = Arc::new(Mutex::new(None::<(Circuit, Pipe<u64>)>));
        let (held, handles) = (Arc::clone(&alive), Arc::clone(&all));
        let pipe = circuit
            .pipe(move |_: u64| {
                let _ = &held;
                drop(handles.lock().expect("no panic").take());
            })
            .expect("open");
        let other = pipe.clone();
        *all.lock().expect("no panic") = Some((circuit.clone(), pipe));
        other.emit(1);
        drop(other);
        // The thread that runs the circuit needs a handle for that.
        settle(&circuit);
        drop(circuit);
        wait_until(|| Arc::strong_count(&alive) == 1, "the receptor is gone");
    }
}

/// What a callback observed when it waited, closed and made something: a failure inside of a
/// callback is not seen outside.
#[derive(Debug, PartialEq)]
enum Report {
    /// It waited for its circuit in a subscriber's callback.
    Settle { is_refused: bool },
    /// It received this value, waited for a conduit's end, and made a pipe in a circuit that it had
    /// just closed.
    Close { value: u64, is_refused: bool, makes_pipe: bool },
    /// The subscription has ended.
    Ended,
}

#[test]
fn a_circuit_may_be_closed_and_left_from_any_callback() {
    for circuit in all() {
        let conduit = circuit.conduit::<u64>().expect("open");
        let (inner, again) = (circuit.clone(), conduit.clone());
        let (sender, receiver) = mpsc::channel();
        let report = sender.clone();
        let subscriber = circuit
            .subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, u64>| {
                let (circuit, conduit, subject) = (inner.clone(), again.clone(), subject.clone());
                let report = report.clone();
                report.send(Report::Settle { is_refused: circuit.settle().is_err() }).expect("a receiver");
                registrar.receptor(move |value: u64| {
                    let is_refused = conduit.close_and_settle().is_err();
                    circuit.close();
                    let makes_pipe = circuit.pipe(|()| ()).is_ok();
                    report.send(Report::Close { value, is_refused, makes_pipe }).expect("a receiver");
                    if value > 0 {
                        conduit.get(subject.name()).emit(value - 1);
                    }
                    panic_any(Fuse);
                });
            })
            .expect("open");
        let outside = circuit.clone();
        conduit
            .subscribe_with(&subscriber, move |subscription| {
                subscription.close();
                outside.close();
                sender.send(Report::Ended).expect("a receiver");
                panic_any(Fuse);
            })
            .expect("open");
        conduit.get(circuit.subject().name()).emit(2);
        conduit.close();
        settle(&circuit);
        let reports: Vec<Report> = receiver.try_iter().collect();
        let close = |value| Report::Close { value, is_refused: true, makes_pipe: false };
        let expected = [Report::Settle { is_refused: true }, close(2), close(1), close(0), Report::Ended];
        assert_eq!(reports, expected);
        assert!(circuit.is_closed());
    }
}

#[test]
fn a_resource_that_takes_a_scope_for_itself_is_refused() {
    /// Returns the subject of another resource.
    #[derive(Clone)]
    struct Impostor(Subject);

    impl Resource for Impostor {
        fn subject(&self) -> &Subject {
            &self.0
        }

        fn close(&self) {}

        fn close_and_settle(&self) -> Result<(), ContextError> {
            Ok(())
        }
    }

    let outer = Scope::new();
    let inner = outer.scope().expect("open");
    let impostor = Impostor(inner.subject().clone());
    for refused in [outer.register(impostor.clone()).err(), outer.closure(&impostor).err()] {
        assert_eq!(refused.expect("refused").subject(), outer.subject());
    }
    let circuit = inner.register(circuit(RunBy::Waiters)).expect("open");
    outer.close();
    assert!(circuit.is_closed(), "the scope kept its place");
}

#[test]
fn names_of_many_parts_and_large_values_need_no_deep_stack() {
    type Large = [u64; 2048];
    const DEPTH: usize = 1000;
    for circuit in all() {
        let conduit = circuit.conduit_with::<Large>(Routing::Stem).expect("open");
        let (sender, receiver) = mpsc::channel();
        let subscriber = circuit.subscriber(move |pipe: &Subject, registrar: &mut Registrar<'_, Large>| {
            let (depth, sender) = (pipe.name().depth(), sender.clone());
            registrar.receptor(move |value: Large| sender.send((depth, value[2047])).expect("a receiver"));
        });
        conduit.subscribe(&subscriber.expect("open")).expect("open");
        let name = Name::new(&vec!["part"; DEPTH].join(".")).expect("a name");
        conduit.get(name).emit([7; 2048]);
        settle(&circuit);
        let heard: Vec<(usize, u64)> = receiver.try_iter().collect();
        let nearest_first: Vec<(usize, u64)> = (1..=DEPTH).rev().map(|depth| (depth, 7)).collect();
        assert_eq!(heard, nearest_first);
    }
}

#[test]
fn large_values_with_small_ones_between_them_need_no_deep_stack() {
    type Large = [u64; 1000];
    let scenario = || {
        let circuit = circuit(RunBy::Owner);
        let grown = Flow::new().map(|value: u64| -> Large { [value; 1000] });
        let shrunk = Flow::new().map(|value: Large| value[999]);
        let sum = circuit.cell(0_u64).expect("open");
        let mut pipe = sum.pipe().prepend(&Flow::new().map(|value: u64| value + 1)).expect("open");
        for _ in 0..200 {
            pipe = pipe.prepend(&shrunk).and_then(|large| large.prepend(&grown)).expect("open");
        }
        // The same holds if large values exist only inside of a pipe.
        let both = Flow::new().map(|value: u64| -> Large { [value; 1000] }).map(|value: Large| value[999]);
        for _ in 0..100 {
            pipe = pipe.prepend(&both).and_then(|pipe| pipe.prepend(&both.clone().boxed())).expect("open");
        }
        pipe.emit(7);
        settle(&circuit);
        assert_eq!(sum.get(), 8);
    };
    let small = thread::Builder::new().stack_size(256 << 10).spawn(scenario).expect("a thread");
    small.join().expect("no panic");
}
