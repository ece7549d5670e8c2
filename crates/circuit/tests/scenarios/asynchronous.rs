//! Tasks that wait for circuits.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use crate::limit::{Limit, wait_until};
use crate::tasks::block_on;
use tidemark_circuit::{Circuit, Pipe, RunBy, ThreadPool, WeakPipe};

/// A scenario that hangs for longer has failed.
const PATIENCE: Duration = Duration::from_mins(1);

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

/// Closes a circuit when it is woken, and reports the outcome.
struct Closes(Circuit, mpsc::Sender<bool>);

impl Wake for Closes {
    fn wake(self: Arc<Self>) {
        self.1.send(self.0.close_and_settle().is_ok()).expect("a receiver listens");
    }
}

#[test]
fn a_task_woken_by_a_close_may_wait_for_it() {
    let _limit = Limit::new();
    let pool = ThreadPool::new(1).expect("a thread");
    let build = || Circuit::builder().run_by(RunBy::Pool(pool.clone())).build().expect("valid");
    // The pool's only thread is blocked here until the close has found the pending work.
    let (busy, (open, gate)) = (build(), mpsc::channel::<()>());
    let (starts, is_started) = mpsc::channel();
    let block = busy.pipe(move |()| {
        starts.send(()).expect("a receiver listens");
        gate.recv().expect("opened");
    });
    block.expect("open").emit(());
    is_started.recv().expect("a thread runs it");
    let circuit = build();
    circuit.discard().expect("open").emit(1);
    let (sender, closed) = mpsc::channel();
    let mut settled = pin!(circuit.settled().expect("outside"));
    let waker = Waker::from(Arc::new(Closes(circuit.clone(), sender)));
    assert!(settled.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let closed_there = circuit.clone();
    let closing = thread::spawn(move || closed_there.close());
    wait_until(|| circuit.is_closed(), "the other thread closes it");
    open.send(()).expect("it is waited for");
    assert_eq!(closed.recv_timeout(PATIENCE), Ok(true));
    closing.join().expect("no panic");
}

/// Waits for a receiver when it is woken.
struct Meets(mpsc::SyncSender<()>);

impl Wake for Meets {
    fn wake(self: Arc<Self>) {
        self.0.send(()).expect("a receiver comes");
    }
}

#[test]
fn a_waker_may_wait_for_a_thread_that_waits_for_the_same() {
    let _limit = Limit::new();
    for run_by in [RunBy::Thread, RunBy::SharedPool] {
        let circuit = Circuit::builder().run_by(run_by).build().expect("valid");
        let (open, gate) = mpsc::channel::<()>();
        let pipe = circuit.pipe(move |()| gate.recv().expect("opened")).expect("open");
        pipe.emit(());
        let (sender, receiver) = mpsc::sync_channel(0);
        let mut settled = pin!(circuit.settled().expect("outside"));
        let waker = Waker::from(Arc::new(Meets(sender)));
        assert!(settled.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let waits = circuit.clone();
        let thread = thread::spawn(move || {
            waits.settle().expect("outside");
            receiver.recv_timeout(PATIENCE)
        });
        // Long enough for the thread to be parked.
        thread::sleep(Duration::from_millis(20));
        open.send(()).expect("it is waited for");
        assert_eq!(thread.join().expect("no panic"), Ok(()));
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

#[test]
fn what_is_done_is_known_while_what_comes_later_takes_long() {
    for run_by in [RunBy::SharedPool, RunBy::Thread] {
        let circuit = Circuit::builder().run_by(run_by).build().expect("a thread");
        let (start, started) = mpsc::channel();
        let (answer, answers) = mpsc::channel();
        let pipe = circuit.pipe(move |value: u64| {
            start.send(value).expect("a receiver listens");
            assert!(value == 1 || answers.recv_timeout(PATIENCE).is_ok());
        });
        let pipe = pipe.expect("open");
        pipe.emit(1);
        let first = circuit.settled().expect("outside");
        pipe.emit(2);
        assert_eq!(started.recv_timeout(PATIENCE), Ok(1));
        // The first value is done, though no caller has looked yet, and the second will not be.
        assert_eq!(started.recv_timeout(PATIENCE), Ok(2));
        assert_settles(first);
        answer.send(()).expect("the receptor waits");
        circuit.settle().expect("outside");
        assert_eq!(circuit.failures(), 0);
    }
}

#[test]
fn what_is_done_is_known_while_what_comes_later_goes_around_without_an_end() {
    let pool = ThreadPool::new(1).expect("a thread");
    for run_by in [RunBy::Pool(pool), RunBy::Thread] {
        let circuit = Circuit::builder().run_by(run_by).build().expect("a thread");
        let stop = Arc::new(AtomicBool::new(false));
        let own: Arc<OnceLock<WeakPipe<u64>>> = Arc::default();
        let (start, started) = mpsc::channel();
        let (stopped, itself) = (Arc::clone(&stop), Arc::clone(&own));
        let mut has_started = false;
        let pipe = circuit.pipe(move |value: u64| {
            if value == 2 && !stopped.load(Ordering::Relaxed) {
                itself.get().expect("tied").emit(2);
                if !std::mem::replace(&mut has_started, true) {
                    start.send(()).expect("a receiver listens");
                }
            }
        });
        let pipe = pipe.expect("open");
        own.set(pipe.downgrade()).expect("once");
        pipe.emit(1);
        let first = circuit.settled().expect("outside");
        pipe.emit(2);
        started.recv_timeout(PATIENCE).expect("it goes around");
        assert_settles(first);
        stop.store(true, Ordering::Relaxed);
    }
}

fn assert_settles(future: impl Future<Output = ()> + Send + 'static) {
    let (settle, settled) = mpsc::channel();
    thread::spawn(move || {
        block_on(future);
        settle.send(()).expect("a receiver listens");
    });
    settled.recv_timeout(PATIENCE).expect("what is waited for is done");
}

/// A task that emits to the circuit it waited for.
struct Emits {
    circuit: Circuit,
    pipe: Pipe<u64>,
    refused: mpsc::Sender<bool>,
}

impl Wake for Emits {
    fn wake(self: Arc<Self>) {
        self.pipe.emit(2);
        self.refused.send(self.circuit.settle().is_err()).expect("a receiver listens");
    }
}

#[test]
fn what_a_waker_emits_is_an_input_like_any_other() {
    for run_by in [RunBy::SharedPool, RunBy::Thread] {
        let circuit = Circuit::builder().run_by(run_by).build().expect("a thread");
        let (gate, opened) = mpsc::channel();
        let (sender, received) = mpsc::channel();
        let pipe = circuit.pipe(move |value: u64| {
            assert!(value != 1 || opened.recv_timeout(PATIENCE).is_ok());
            sender.send(value).expect("a receiver listens");
        });
        let pipe = pipe.expect("open");
        pipe.emit(1);
        let mut settled = pin!(circuit.settled().expect("outside"));
        let (refused, is_refused) = mpsc::channel();
        let emits = Emits { circuit: circuit.clone(), pipe: pipe.clone(), refused };
        let waker = Waker::from(Arc::new(emits));
        assert!(settled.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        gate.send(()).expect("the receptor waits");
        assert_eq!(received.recv_timeout(PATIENCE), Ok(1));
        assert_eq!(received.recv_timeout(PATIENCE), Ok(2), "nothing else comes that would have it handled");
        assert_eq!(
            is_refused.recv_timeout(PATIENCE),
            Ok(true),
            "the circuit's own thread is not to wait for it"
        );
        circuit.settle().expect("outside");
        assert_eq!(circuit.failures(), 0);
    }
}
