//! Drivers: which thread runs a circuit, and when. What a circuit does is the same for all of them;
//! the scenarios of the specification test it.

use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::task::Context;
use std::thread::{self, ThreadId};
use std::time::Duration;

use crate::tasks::unparking;
use tidemark_circuit::{
    Circuit, CircuitBuilder, Current, Name, Overflow, Pipe, RunBy, Supervision, ThreadPool,
};

/// A scenario that hangs for longer has failed.
const PATIENCE: Duration = Duration::from_mins(1);

fn built(builder: CircuitBuilder) -> Circuit {
    builder.build().expect("valid choices, and a thread")
}

fn run_by(run_by: RunBy) -> Circuit {
    built(Circuit::builder().run_by(run_by))
}

/// Every driver with which settling is enough.
fn settling() -> [RunBy; 3] {
    [RunBy::SharedPool, RunBy::Thread, RunBy::Waiters]
}

/// A pipe that forwards what it receives to a channel.
fn sending<E: Send + 'static>(circuit: &Circuit) -> (Pipe<E>, mpsc::Receiver<E>) {
    let (sender, receiver) = mpsc::channel();
    let pipe = circuit.pipe(move |value| sender.send(value).expect("a receiver listens"));
    (pipe.expect("an open circuit"), receiver)
}

/// A pipe whose receptor gets the pipe itself.
fn knotted(circuit: &Circuit, mut receptor: impl FnMut(&Pipe<u64>, u64) + Send + 'static) -> Pipe<u64> {
    let own = Arc::new(OnceLock::<Pipe<u64>>::new());
    let knot = Arc::clone(&own);
    let pipe =
        circuit.pipe(move |value| receptor(knot.get().expect("tied"), value)).expect("an open circuit");
    own.set(pipe.clone()).expect("once");
    pipe
}

fn seen<E>(receiver: &mpsc::Receiver<E>) -> Vec<E> {
    receiver.try_iter().collect()
}

// Run by a pool.

#[test]
fn receptors_may_wait_for_circuits_of_their_pool_however_many_do() {
    for threads in 1..=2 {
        let pool = ThreadPool::new(threads).expect("threads");
        let (sender, received) = mpsc::channel();
        let last = run_by(RunBy::Pool(pool.clone()));
        let mut next =
            (last.clone(), last.pipe(move |value: u64| sender.send(value).expect("received")).expect("open"));
        // Each circuit waits for the next, and there are more of them than threads.
        for _ in 0..4 {
            let circuit = run_by(RunBy::Pool(pool.clone()));
            let (behind, pipe) = next;
            let waits = circuit.pipe(move |value: u64| {
                pipe.emit(value + 1);
                behind.settle().expect("another circuit");
            });
            next = (circuit, waits.expect("open"));
        }
        let (first, pipe) = next;
        (0..100).for_each(|value| pipe.emit(value));
        let (done, is_done) = mpsc::channel();
        thread::spawn(move || done.send(first.settle()));
        assert_eq!(is_done.recv_timeout(PATIENCE).expect("it ends"), Ok(()));
        assert_eq!(seen(&received), (4..104).collect::<Vec<_>>());
    }
}

#[test]
fn receptors_may_wait_for_room_in_a_circuit_of_their_pool_however_many_do() {
    for threads in 1..=2 {
        let pool = ThreadPool::new(threads).expect("threads");
        let (sender, received) = mpsc::channel();
        let bounded = Circuit::builder().run_by(RunBy::Pool(pool.clone())).bounded(2, Overflow::Block);
        let bounded = built(bounded);
        let end = bounded.pipe(move |value: u64| sender.send(value).expect("received")).expect("open");
        for first in [0, 1000, 2000] {
            let (circuit, end) = (run_by(RunBy::Pool(pool.clone())), end.clone());
            let floods =
                circuit.pipe(move |first: u64| (first..first + 100).for_each(|value| end.emit(value)));
            floods.expect("open").emit(first);
        }
        let all: Vec<_> = (0..300).map(|_| received.recv_timeout(PATIENCE).expect("it comes")).collect();
        for first in [0, 1000, 2000] {
            let own = all.iter().copied().filter(|value| (first..first + 1000).contains(value));
            assert!(own.eq(first..first + 100), "in order");
        }
        assert_eq!(bounded.dropped(), 0);
    }
}

// Run by its owner.

#[test]
fn a_circuit_with_an_owner_does_nothing_by_itself() {
    let circuit = run_by(RunBy::Owner);
    let (pipe, received) = sending(&circuit);
    assert!(!circuit.run(10), "nothing to do");
    pipe.emit(1);
    thread::sleep(Duration::from_millis(5));
    assert_eq!(seen(&received), []);
    while circuit.run(10) {}
    assert_eq!(seen(&received), [1]);
}

#[test]
fn the_owner_says_how_much_is_handled() {
    let circuit = run_by(RunBy::Owner);
    let (pipe, received) = sending(&circuit);
    (1..=5).for_each(|value| pipe.emit(value));
    assert!(circuit.run(0), "there is work, and none is done");
    assert_eq!(seen(&received), []);
    assert!(circuit.run(2));
    assert_eq!(seen(&received), [1, 2]);
    assert!(circuit.run(2));
    assert_eq!(seen(&received), [3, 4]);
    assert!(!circuit.run(2), "there was one left");
    assert_eq!(seen(&received), [5]);
}

#[test]
fn a_budget_that_is_just_enough_leaves_nothing() {
    let circuit = run_by(RunBy::Owner);
    let (pipe, received) = sending(&circuit);
    (1..=3).for_each(|value| pipe.emit(value));
    assert!(!circuit.run(3));
    assert_eq!(seen(&received), [1, 2, 3]);
}

#[test]
fn what_a_value_causes_costs_the_owner_too() {
    let circuit = run_by(RunBy::Owner);
    let (noted, received) = sending(&circuit);
    // Three values, each of which is noted: six entries.
    let pipe = knotted(&circuit, move |own, value| {
        noted.emit(value);
        if value < 3 {
            own.emit(value + 1);
        }
    });
    pipe.emit(1);
    let mut runs = 0;
    while circuit.run(1) {
        runs += 1;
        assert!(runs < 100, "a run handles an entry");
    }
    assert_eq!(seen(&received), [1, 2, 3]);
    assert_eq!(runs + 1, 6);
    circuit.close();
    while circuit.run(10) {}
}

#[test]
fn what_the_owner_has_handled_is_settled() {
    let circuit = run_by(RunBy::Owner);
    let (pipe, received) = sending(&circuit);
    for value in 0..100 {
        pipe.emit(value);
        circuit.run(1);
        circuit.settle().expect("outside");
        assert_eq!(seen(&received), [value]);
    }
    let mut lane = circuit.lane().expect("open");
    for value in 0..100 {
        lane.emit(&pipe, value);
        circuit.run(1);
        assert_eq!(seen(&received), [value]);
        circuit.run(1);
        circuit.settle().expect("outside");
    }
}

#[test]
fn a_cascade_that_never_ends_gives_the_owner_back_the_thread() {
    let circuit = run_by(RunBy::Owner);
    let (other, received) = sending(&circuit);
    knotted(&circuit, |own, value| own.emit(value + 1)).emit(0);
    other.emit(1);
    for _ in 0..10 {
        assert!(circuit.run(1000), "there is always more");
    }
    assert_eq!(seen(&received), [], "the next input comes after all that the first one causes");
    circuit.close();
}

#[test]
fn others_may_wait_for_what_the_owner_does() {
    let circuit = run_by(RunBy::Owner);
    let (pipe, received) = sending(&circuit);
    let settled = AtomicBool::new(false);
    thread::scope(|scope| {
        pipe.emit(1);
        scope.spawn(|| {
            circuit.settle().expect("outside");
            settled.store(true, Ordering::SeqCst);
        });
        while !settled.load(Ordering::SeqCst) {
            circuit.run(1);
            thread::yield_now();
        }
    });
    assert_eq!(seen(&received), [1]);
}

#[test]
fn running_from_within_does_nothing() {
    let circuit = run_by(RunBy::Owner);
    let (sender, received) = mpsc::channel();
    let own = circuit.clone();
    let pipe = circuit.pipe(move |value| {
        // The second value waits; this call cannot run it.
        sender.send((value, own.run(10))).expect("a receiver listens");
    });
    let pipe = pipe.expect("open");
    pipe.emit(1);
    pipe.emit(2);
    while circuit.run(10) {}
    assert_eq!(seen(&received).iter().map(|(value, _)| *value).collect::<Vec<_>>(), [1, 2]);
    circuit.close();
    while circuit.run(10) {}
}

#[test]
fn a_circuit_with_another_driver_is_not_run_by_hand() {
    let circuit = run_by(RunBy::Waiters);
    let (pipe, received) = sending(&circuit);
    pipe.emit(1);
    assert!(circuit.run(10), "there is work for others");
    assert_eq!(seen(&received), []);
    circuit.settle().expect("outside");
    assert_eq!(seen(&received), [1]);
    assert!(!circuit.run(10));
}

// Run by waiters.

#[test]
fn a_circuit_run_by_waiters_waits_for_one() {
    let circuit = run_by(RunBy::Waiters);
    let (sender, received) = mpsc::channel();
    let pipe = circuit.pipe(move |()| sender.send(thread::current().id()).expect("a receiver listens"));
    let pipe = pipe.expect("open");
    pipe.emit(());
    thread::sleep(Duration::from_millis(5));
    assert_eq!(seen(&received), []);
    circuit.settle().expect("outside");
    assert_eq!(seen(&received), [thread::current().id()]);
    let other = thread::scope(|scope| {
        pipe.emit(());
        let settle = || {
            circuit.settle().expect("outside");
            thread::current().id()
        };
        scope.spawn(settle).join().expect("no panic")
    });
    assert_eq!(seen(&received), [other]);
}

#[test]
fn a_waiter_does_no_more_than_he_waits_for() {
    let circuit = run_by(RunBy::Waiters);
    let (noted, received) = sending(&circuit);
    let outside = noted.clone();
    let (ask, asked) = mpsc::channel();
    let (answer, answered) = mpsc::channel::<()>();
    let pipe = circuit.pipe(move |value: u64| {
        ask.send(()).expect("a receiver listens");
        answered.recv().expect("an answer");
        noted.emit(value);
    });
    let pipe = pipe.expect("open");
    pipe.emit(1);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| circuit.settle().expect("outside"));
        // Another value arrives while the waiter runs the first one.
        asked.recv().expect("the receptor runs");
        outside.emit(2);
        answer.send(()).expect("the receptor waits");
        waiter.join().expect("no panic");
        assert_eq!(seen(&received), [1]);
    });
    circuit.settle().expect("outside");
    assert_eq!(seen(&received), [2]);
    drop(answer);
}

#[test]
fn many_waiters_share_the_work() {
    let circuit = run_by(RunBy::Waiters);
    let (pipe, received) = sending::<(usize, usize)>(&circuit);
    thread::scope(|scope| {
        for waiter in 0..4 {
            let (pipe, circuit) = (&pipe, &circuit);
            scope.spawn(move || {
                for value in 0..1000 {
                    pipe.emit((waiter, value));
                    circuit.settle().expect("outside");
                }
            });
        }
    });
    let all = seen(&received);
    for waiter in 0..4 {
        assert!(all.iter().filter(|(of, _)| *of == waiter).map(|(_, value)| *value).eq(0..1000));
    }
}

#[test]
fn a_waiter_inside_of_another_circuit_runs_in_the_inner_one() {
    let (outer, inner) = (run_by(RunBy::Waiters), run_by(RunBy::Waiters));
    let (noted, received) = sending::<Current>(&run_by(RunBy::SharedPool));
    let (here, there) = (noted.clone(), noted);
    let target = inner.pipe(move |()| there.emit(Current::here())).expect("open");
    let nested = inner.clone();
    let pipe = outer.pipe(move |()| {
        target.emit(());
        nested.settle().expect("outside of the inner one");
        here.emit(Current::here());
    });
    pipe.expect("open").emit(());
    outer.settle().expect("outside");
    let contexts = [(); 2].map(|()| received.recv_timeout(PATIENCE).expect("both"));
    assert_eq!(contexts, [inner.current().clone(), outer.current().clone()]);
}

#[test]
fn waiting_for_a_circuit_further_out_is_refused() {
    for outer_by in settling() {
        let (outer, inner) = (run_by(outer_by), run_by(RunBy::Waiters));
        let (sender, received) = mpsc::channel();
        let further_out = outer.clone();
        let target = inner.pipe(move |()| {
            let refused = (further_out.settle().is_err(), further_out.close_and_settle().is_err());
            sender.send(refused).expect("a receiver listens");
        });
        let (target, nested) = (target.expect("open"), inner.clone());
        let pipe = outer.pipe(move |()| {
            target.emit(());
            nested.settle().expect("outside of the inner one");
        });
        pipe.expect("open").emit(());
        // On another thread: a circuit that waits for itself never returns.
        let waited_for = outer.clone();
        thread::spawn(move || waited_for.settle());
        assert_eq!(received.recv_timeout(PATIENCE), Ok((true, true)));
        assert!(!outer.is_closed(), "what was refused did nothing");
        outer.close();
        inner.close();
    }
}

// What a waiter waits for.

#[test]
fn a_waiter_is_not_delayed_by_later_emissions() {
    for run_by in settling() {
        let circuit = built(Circuit::builder().run_by(run_by));
        let (start, started) = mpsc::channel();
        let (answer, answers) = mpsc::channel();
        // Each value waits for an answer; the second answer comes only after the wait for the first
        // value.
        let pipe = circuit.pipe(move |value: u64| {
            start.send(value).expect("a receiver listens");
            assert_eq!(answers.recv_timeout(PATIENCE), Ok(value));
        });
        let pipe = pipe.expect("open");
        pipe.emit(1);
        let mut first = pin!(circuit.settled().expect("outside"));
        pipe.emit(2);
        thread::scope(|scope| {
            scope.spawn(|| circuit.settle().expect("outside"));
            assert_eq!(started.recv_timeout(PATIENCE), Ok(1));
            let waker = unparking();
            let mut is_settled = || first.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
            assert!(!is_settled(), "the first one waits for its answer");
            answer.send(1).expect("the receptor waits");
            while !is_settled() {
                thread::park_timeout(PATIENCE);
            }
            answer.send(2).expect("the receptor waits");
        });
        assert_eq!(circuit.failures(), 0);
    }
}

// Run by a pool.

fn assert_others_are_run(pool: &ThreadPool) {
    for value in 0..100 {
        let other = run_by(RunBy::Pool(pool.clone()));
        let (pipe, received) = sending(&other);
        pipe.emit(value);
        other.settle().expect("outside");
        assert_eq!(seen(&received), [value]);
    }
}

#[test]
fn a_pool_leaves_a_circuit_to_the_receptor_that_runs_it_and_takes_it_again() {
    let pool = ThreadPool::new(1).expect("a thread");
    let (gate, opened) = mpsc::channel::<()>();
    let (began, has_begun) = mpsc::channel();
    let blocker = run_by(RunBy::Pool(pool.clone()));
    let blocks = blocker.pipe(move |()| {
        began.send(()).expect("received");
        opened.recv().expect("opened");
    });
    blocks.expect("open").emit(());
    has_begun.recv_timeout(PATIENCE).expect("it begins");

    // The pool's only thread is blocked, so the waiting thread runs this circuit.
    let awaited = run_by(RunBy::Pool(pool.clone()));
    let (inner_gate, inner_opened) = mpsc::channel::<()>();
    let (began, has_begun) = mpsc::channel();
    let (sender, received) = mpsc::channel();
    let pipe = awaited.pipe(move |value: u64| {
        if value == 0 {
            began.send(thread::current().id()).expect("received");
            inner_opened.recv().expect("opened");
        }
        sender.send(value).expect("received");
    });
    let pipe = pipe.expect("open");
    let outer = run_by(RunBy::Waiters);
    let (own, settled) = (pipe.clone(), awaited.clone());
    let waits = outer.pipe(move |()| {
        own.emit(0);
        settled.settle().expect("another circuit");
    });
    waits.expect("open").emit(());
    let waiter = thread::spawn(move || outer.settle());
    let runs = has_begun.recv_timeout(PATIENCE).expect("it begins");
    assert_eq!(runs, waiter.thread().id());

    // The pool's thread finds the circuit that another thread runs, and runs other circuits
    // meanwhile.
    gate.send(()).expect("waiting");
    assert_others_are_run(&pool);
    (1..100).for_each(|value| pipe.emit(value));
    inner_gate.send(()).expect("waiting");
    waiter.join().expect("no panic").expect("outside");
    awaited.settle().expect("outside");
    pipe.emit(100);
    let all: Vec<_> = (0..=100).map(|_| received.recv_timeout(PATIENCE).expect("it comes")).collect();
    assert_eq!(all, (0..=100).collect::<Vec<_>>());
}

#[test]
fn one_circuit_in_an_endless_cascade_does_not_starve_the_others() {
    let pool = ThreadPool::new(1).expect("a thread");
    let stop = Arc::new(AtomicBool::new(false));
    let endless = run_by(RunBy::Pool(pool.clone()));
    let stopped = Arc::clone(&stop);
    let pipe = knotted(&endless, move |own, value| {
        if !stopped.load(Ordering::Relaxed) {
            own.emit(value + 1);
        }
    });
    pipe.emit(0);
    assert_others_are_run(&pool);
    stop.store(true, Ordering::Relaxed);
    endless.settle().expect("outside");
    endless.close();
}

#[test]
fn a_circuit_with_an_endless_producer_does_not_starve_the_others() {
    let pool = ThreadPool::new(1).expect("a thread");
    let stop = AtomicBool::new(false);
    let busy = run_by(RunBy::Pool(pool.clone()));
    let pipe = busy.pipe(|value: u64| assert!(value < u64::MAX)).expect("open");
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                pipe.emit(1);
            }
        });
        assert_others_are_run(&pool);
        stop.store(true, Ordering::Relaxed);
    });
    busy.settle().expect("outside");
}

#[test]
fn a_circuit_with_an_endless_producer_in_a_lane_does_not_starve_the_others() {
    let pool = ThreadPool::new(1).expect("a thread");
    let stop = AtomicBool::new(false);
    let busy = run_by(RunBy::Pool(pool.clone()));
    let pipe = busy.pipe(|value: u64| assert!(value < u64::MAX)).expect("open");
    let mut lane = busy.lane().expect("open");
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                lane.emit(&pipe, 1);
            }
        });
        assert_others_are_run(&pool);
        stop.store(true, Ordering::Relaxed);
    });
    busy.settle().expect("outside");
}

#[test]
fn a_lane_with_a_backlog_does_not_starve_one_that_is_opened_later() {
    let circuit = run_by(RunBy::Owner);
    let (pipe, received) = sending(&circuit);
    let mut early = circuit.lane().expect("open");
    (0..100_000).for_each(|value| early.emit(&pipe, value));
    assert!(circuit.run(1_000), "there is more");
    let mut late = circuit.lane().expect("open");
    late.emit(&pipe, u64::MAX);
    assert!(circuit.run(10_000), "there is more");
    assert!(seen(&received).contains(&u64::MAX), "the backlog came first");
}

#[test]
fn a_pool_runs_different_circuits_at_once() {
    let pool = ThreadPool::new(2).expect("threads");
    let (there, back) = (mpsc::channel(), mpsc::channel());
    let circuits = [(); 2].map(|()| run_by(RunBy::Pool(pool.clone())));
    let (sender, receiver) = (there.0, back.1);
    let first = circuits[0].pipe(move |()| {
        sender.send(()).expect("the other one");
        receiver.recv_timeout(PATIENCE).expect("the other one runs meanwhile");
    });
    let (sender, receiver) = (back.0, there.1);
    let second = circuits[1].pipe(move |()| {
        receiver.recv_timeout(PATIENCE).expect("the other one runs meanwhile");
        sender.send(()).expect("the other one");
    });
    first.expect("open").emit(());
    second.expect("open").emit(());
    circuits.iter().for_each(|circuit| circuit.settle().expect("outside"));
    assert!(circuits.iter().all(|circuit| circuit.failures() == 0));
}

// When threads end.

/// Reports the end of its thread.
struct Farewell(mpsc::Sender<ThreadId>);

impl Drop for Farewell {
    fn drop(&mut self) {
        let _ = self.0.send(thread::current().id());
    }
}

thread_local! {
    static FAREWELL: RefCell<Option<Farewell>> = const { RefCell::new(None) };
}

/// Makes the thread that runs the circuit report its end.
fn watch_thread(circuit: &Circuit) -> mpsc::Receiver<ThreadId> {
    let (sender, ended) = mpsc::channel();
    let pipe = circuit.pipe(move |()| FAREWELL.set(Some(Farewell(sender.clone())))).expect("open");
    pipe.emit(());
    circuit.settle().expect("outside");
    ended
}

#[test]
fn a_circuit_may_have_a_name_that_its_thread_cannot_have() {
    let name = Name::new("or\0ders.\0").expect("no part is empty");
    let circuit = built(Circuit::builder().name(name).run_by(RunBy::Thread));
    let (pipe, received) = sending(&circuit);
    pipe.emit(1);
    circuit.settle().expect("outside");
    assert_eq!(seen(&received), [1]);
    assert_eq!(circuit.subject().name(), name);
}

#[test]
fn a_circuits_thread_ends_with_its_last_handle() {
    let circuit = run_by(RunBy::Thread);
    let ended = watch_thread(&circuit);
    let (pipe, received) = sending(&circuit);
    drop(circuit);
    // A pipe is a handle too.
    pipe.emit(1);
    assert_eq!(received.recv_timeout(PATIENCE), Ok(1));
    assert_eq!(ended.try_recv(), Err(mpsc::TryRecvError::Empty));
    pipe.emit(2);
    drop(pipe);
    assert_ne!(ended.recv_timeout(PATIENCE), Ok(thread::current().id()));
    assert_eq!(seen(&received), [2], "what was accepted is handled first");
}

#[test]
fn a_circuits_thread_ends_when_the_circuit_is_closed() {
    let circuit = run_by(RunBy::Thread);
    let ended = watch_thread(&circuit);
    circuit.close();
    assert!(ended.recv_timeout(PATIENCE).is_ok());
    circuit.settle().expect("outside");
}

#[test]
fn a_pools_threads_end_with_its_last_handle() {
    let pool = ThreadPool::new(1).expect("a thread");
    let circuit = run_by(RunBy::Pool(pool.clone()));
    let ended = watch_thread(&circuit);
    drop(pool);
    let (pipe, received) = sending(&circuit);
    pipe.emit(1);
    circuit.settle().expect("outside");
    assert_eq!(seen(&received), [1], "a circuit has its pool");
    drop((circuit, pipe));
    assert!(ended.recv_timeout(PATIENCE).is_ok());
}

// Failures.

/// A pipe that panics on zero, and notes all other values.
fn picky(circuit: &Circuit) -> (Pipe<u32>, Arc<Mutex<Vec<u32>>>) {
    let noted = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&noted);
    let pipe = circuit.pipe(move |value| {
        if value == 0 {
            std::panic::resume_unwind(Box::new("zero"));
        }
        notes.lock().expect("no panic in here").push(value);
    });
    (pipe.expect("open"), noted)
}

#[test]
fn failures_are_counted_and_cost_one_value_each() {
    for run_by in settling() {
        let circuit = built(Circuit::builder().run_by(run_by));
        let (pipe, noted) = picky(&circuit);
        [1, 0, 2, 0, 0, 3].into_iter().for_each(|value| pipe.emit(value));
        circuit.settle().expect("outside");
        assert_eq!(*noted.lock().expect("no panic"), [1, 2, 3]);
        assert_eq!(circuit.failures(), 3);
    }
}

#[test]
fn a_receptor_that_failed_often_enough_is_put_away() {
    for run_by in settling() {
        let supervision = Supervision::Quarantine { after: 2 };
        let circuit = built(Circuit::builder().run_by(run_by).supervision(supervision));
        let (pipe, noted) = picky(&circuit);
        let (other, others) = picky(&circuit);
        for value in [1, 0, 2, 0, 3, 0, 4] {
            pipe.emit(value);
            other.emit(value.max(1));
        }
        circuit.settle().expect("outside");
        assert_eq!(*noted.lock().expect("no panic"), [1, 2]);
        assert_eq!(Arc::strong_count(&noted), 1, "the receptor is dropped");
        assert_eq!(others.lock().expect("no panic").len(), 7, "others are left alone");
        assert_eq!(circuit.failures(), 2);
    }
}

/// The environment variable for the stack size of threads; the library's threads obey it too.
#[cfg(target_os = "linux")]
const STACK: &str = "RUST_MIN_STACK";

/// In a process of its own, in which no thread can start: no system has memory for such a stack.
#[test]
#[cfg(target_os = "linux")]
fn a_ticker_for_which_there_is_no_thread_is_an_error_of_the_system() {
    use tidemark_circuit::Error;

    use crate::again::is_alone;

    let test = "a_ticker_for_which_there_is_no_thread_is_an_error_of_the_system";
    if !is_alone(module_path!(), test, STACK, &(1_u64 << 60).to_string()) {
        return;
    }
    let circuit = run_by(RunBy::Owner);
    let target = circuit.discard::<u64>().expect("open");
    let refused = circuit.ticker(Duration::from_secs(1), &target);
    assert!(matches!(refused, Err(Error::Io(_))), "{refused:?}");
}
