//! Circuits that would wait for each other in a cycle get an error, with any driver, and continue.

use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Barrier, OnceLock};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use crate::tasks::block_on;
use tidemark_circuit::{
    Circuit, CircuitBuilder, ContextError, Failure, Overflow, Pipe, Refused, Registrar, RunBy, Subject,
    ThreadPool, name,
};

/// A scenario that hangs for longer has failed.
const PATIENCE: Duration = Duration::from_secs(20);

fn built(builder: CircuitBuilder) -> Circuit {
    builder.build().expect("valid choices, and a thread")
}

fn run_by(run_by: RunBy) -> Circuit {
    built(Circuit::builder().run_by(run_by))
}

/// Every driver whose circuits a receptor can wait for, with as few threads as it can have.
fn drivers() -> Vec<RunBy> {
    let pool = |threads| RunBy::Pool(ThreadPool::new(threads).expect("threads"));
    vec![RunBy::SharedPool, pool(1), pool(2), RunBy::Thread, RunBy::Waiters]
}

/// A receptor's action on the next circuit.
type Act = fn(&Circuit) -> Result<(), ContextError>;

/// Makes a ring of circuits: the receptor of each emits to the next one and then acts on it; the
/// last is followed by the first. Returns the circuits, the first one's pipe, and the outcomes.
fn ring(drivers: &[RunBy], act: Act) -> (Vec<Circuit>, Pipe<u32>, Receiver<Result<(), ContextError>>) {
    let (sender, outcomes) = mpsc::channel();
    let circuits: Vec<Circuit> = drivers.iter().cloned().map(run_by).collect();
    let pipes: Arc<OnceLock<Vec<Pipe<u32>>>> = Arc::default();
    let made = circuits.iter().enumerate().map(|(at, circuit)| {
        let next = (at + 1) % circuits.len();
        let (behind, sender, known) = (circuits[next].clone(), sender.clone(), Arc::clone(&pipes));
        let receptor = move |steps: u32| {
            if steps > 0 {
                known.get().expect("tied")[next].emit(steps - 1);
            }
            sender.send(act(&behind)).expect("a receiver listens");
        };
        circuit.pipe(receptor).expect("open")
    });
    let made: Vec<_> = made.collect();
    let first = made[0].clone();
    pipes.set(made).expect("once");
    (circuits, first, outcomes)
}

/// Runs a ring once around, and returns the outcomes once all circuits have done their work.
fn go_round(drivers: &[RunBy], act: Act) -> Vec<Result<(), ContextError>> {
    let (circuits, first, outcomes) = ring(drivers, act);
    let steps = circuits.len() as u32 - 1;
    first.emit(steps);
    let (done, is_done) = mpsc::channel();
    let all = circuits.clone();
    thread::spawn(move || {
        // In the order in which they wait for each other, twice: work that one circuit may not wait
        // for, the next has yet to do.
        let settled = (0..2).all(|_| all.iter().all(|circuit| circuit.settle().is_ok()));
        done.send(settled).expect("a receiver listens");
    });
    assert!(is_done.recv_timeout(PATIENCE).expect("they go on"), "outside");
    let outcomes: Vec<_> = outcomes.try_iter().collect();
    assert_eq!(outcomes.len(), circuits.len());
    circuits.iter().for_each(Circuit::close);
    outcomes
}

#[test]
fn circuits_that_settle_each_other_in_a_circle_are_refused_that() {
    for one in drivers() {
        for other in drivers() {
            for third in [None, Some(RunBy::Thread), Some(RunBy::Waiters), Some(one.clone())] {
                let drivers: Vec<_> =
                    [Some(one.clone()), Some(other.clone()), third].into_iter().flatten().collect();
                let outcomes = go_round(&drivers, Circuit::settle);
                let refused = outcomes.iter().filter(|outcome| outcome.is_err()).count();
                assert_eq!(refused, 1, "the wait that closes the cycle is refused: {outcomes:?}");
            }
        }
    }
}

#[test]
fn the_error_for_a_wait_that_closes_a_cycle_states_the_remedy() {
    let outcomes = go_round(&[RunBy::Thread, RunBy::Thread, RunBy::Thread], Circuit::settle);
    let error = outcomes.into_iter().find_map(Result::err).expect("one is refused");
    assert!(error.is_circle() && error.to_string().contains("emit to it instead"), "{error}");
}

#[test]
fn all_that_waits_is_refused_where_settling_is() {
    let acts: [Act; 5] = [
        |circuit| circuit.pulse().map(drop),
        |circuit| circuit.conduit::<u8>().map_or(Ok(()), |conduit| conduit.close_and_settle()),
        |circuit| {
            let conduit = circuit.conduit::<u8>().expect("open");
            conduit.reservoir(1).expect("open").close_and_settle()
        },
        |circuit| {
            let conduit = circuit.conduit::<u8>().expect("open");
            conduit.tap(&tidemark_circuit::Fiber::new().diff()).expect("open").close_and_settle()
        },
        |circuit| circuit.bank::<u8>().map_or(Ok(()), |bank| bank.close_and_settle()),
    ];
    for act in acts {
        for driver in drivers() {
            let outcomes = go_round(&[driver.clone(), RunBy::Thread, driver], act);
            assert_eq!(outcomes.iter().filter(|outcome| outcome.is_err()).count(), 1, "{outcomes:?}");
        }
    }
}

/// How long the first of two circuits has to begin to wait, so that the second is refused, in
/// milliseconds: longer after each attempt that did not suffice.
const PAUSES_MILLIS: [u64; 4] = [20, 200, 2000, 10_000];

#[test]
fn a_circuit_that_may_not_be_waited_for_is_not_closed_either() {
    for driver in drivers() {
        let is_refused = |millis| close_is_refused(&driver, Duration::from_millis(millis));
        assert!(PAUSES_MILLIS.into_iter().any(is_refused), "the first one never began to wait: {driver:?}");
    }
}

/// Whether the close of a circuit, waited for in a cycle, is refused. It is not if the first
/// circuit takes longer than the pause to begin to wait: then that wait is refused, and the close
/// is not.
fn close_is_refused(driver: &RunBy, pause: Duration) -> bool {
    let (one, other) = (run_by(driver.clone()), run_by(RunBy::Thread));
    let (sender, outcomes) = mpsc::channel();
    let (own, of_first) = mpsc::channel();
    let first = one.clone();
    let back = other.pipe(move |()| {
        thread::sleep(pause);
        let outcome = first.close_and_settle();
        sender.send((outcome, first.is_closed())).expect("a receiver listens");
    });
    let (back, behind) = (back.expect("open"), other.clone());
    let start = one.pipe(move |()| {
        back.emit(());
        own.send(behind.settle()).expect("a receiver listens");
    });
    start.expect("open").emit(());
    let (done, is_done) = mpsc::channel();
    let waits = one.clone();
    thread::spawn(move || done.send(waits.settle()));
    assert_eq!(is_done.recv_timeout(PATIENCE), Ok(Ok(())));
    let (outcome, is_closed) = outcomes.recv_timeout(PATIENCE).expect("it was tried");
    let of_first = of_first.recv_timeout(PATIENCE).expect("it was tried");
    assert!(outcome.is_err() != of_first.is_err(), "one is refused: {outcome:?} {of_first:?}");
    assert_eq!(is_closed, outcome.is_ok());
    one.close();
    other.close();
    outcome.is_err()
}

#[test]
fn of_those_that_begin_to_wait_for_each_other_at_once_one_is_refused_at_least() {
    let pool = ThreadPool::new(3).expect("threads");
    for drivers in [[RunBy::Thread, RunBy::Thread], [RunBy::Pool(pool.clone()), RunBy::Pool(pool)]] {
        for length in [2, 3] {
            let circuits: Vec<Circuit> = (0..length).map(|at| run_by(drivers[at % 2].clone())).collect();
            let (sender, outcomes) = mpsc::channel();
            let together = Arc::new(Barrier::new(length));
            let pipes: Vec<_> = (0..length)
                .map(|at| {
                    let (behind, sender) = (circuits[(at + 1) % length].clone(), sender.clone());
                    let together = Arc::clone(&together);
                    let receptor = move |()| {
                        // Each circuit is within an input now, and stays so until its wait has
                        // ended.
                        together.wait();
                        sender.send(behind.settle()).expect("a receiver listens");
                    };
                    circuits[at].pipe(receptor).expect("open")
                })
                .collect();
            for _ in 0..500 {
                pipes.iter().for_each(|pipe| pipe.emit(()));
                let all: Vec<_> =
                    (0..length).map(|_| outcomes.recv_timeout(PATIENCE).expect("no thread hangs")).collect();
                assert!(all.iter().any(Result::is_err), "{all:?}");
            }
            circuits.iter().for_each(Circuit::close);
        }
    }
}

#[test]
fn a_chain_of_waits_is_no_circle_nor_are_two_ways_to_the_same_end() {
    for driver in drivers() {
        let (end, heard) = (run_by(driver.clone()), mpsc::channel());
        let (sender, received) = heard;
        let pipe = end.pipe(move |value: u32| sender.send(value).expect("a receiver listens")).expect("open");
        let wait_for = |behind: Vec<(Circuit, Pipe<u32>)>| {
            let circuit = run_by(driver.clone());
            let pipe = circuit.pipe(move |value: u32| {
                for (circuit, pipe) in &behind {
                    pipe.emit(value);
                    circuit.settle().expect("no circle");
                }
            });
            (circuit, pipe.expect("open"))
        };
        let (left, right) =
            (wait_for(vec![(end.clone(), pipe.clone())]), wait_for(vec![(end.clone(), pipe)]));
        let (top, start) = wait_for(vec![left, right]);
        (0..50).for_each(|value| start.emit(value));
        let (done, is_done) = mpsc::channel();
        let waits = top.clone();
        thread::spawn(move || done.send(waits.settle()));
        assert_eq!(is_done.recv_timeout(PATIENCE), Ok(Ok(())));
        assert_eq!((top.failures(), received.try_iter().count()), (0, 100));
    }
}

/// Subscribes to each circuit's failures.
fn failures_of<const N: usize>(circuits: &[Circuit; N]) -> [Receiver<Failure>; N] {
    circuits.each_ref().map(|circuit| {
        let (sender, reports) = mpsc::channel();
        let faults = circuit.faults().expect("open");
        let subscriber = circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, Failure>| {
            let sender = sender.clone();
            registrar.receptor(move |failure| sender.send(failure).expect("a receiver listens"));
        });
        faults.subscribe(&subscriber.expect("open")).expect("open");
        // The subscription lasts only while a handle of the failures' conduit exists.
        std::mem::forget(faults);
        reports
    })
}

/// Makes two circuits; each one's receptor emits more to the other than its queue can hold.
fn flooding(drivers: [RunBy; 2], emit: fn(&Pipe<u32>, u32)) -> ([Circuit; 2], Pipe<u32>) {
    let circuits = drivers.map(|driver| built(Circuit::builder().run_by(driver).bounded(1, Overflow::Block)));
    let pipes: Arc<OnceLock<[Pipe<u32>; 2]>> = Arc::default();
    let made = [0, 1].map(|at: usize| {
        let known = Arc::clone(&pipes);
        let receptor = move |left: u32| {
            let other = &known.get().expect("tied")[1 - at];
            (0..left).for_each(|_| emit(other, left - 1));
        };
        circuits[at].pipe(receptor).expect("open")
    });
    let first = made[0].clone();
    pipes.set(made).expect("once");
    (circuits, first)
}

fn bounded_drivers() -> Vec<RunBy> {
    drivers().into_iter().filter(|driver| !matches!(driver, RunBy::Waiters)).collect()
}

#[test]
fn circuits_that_wait_for_room_in_each_other_drop_what_would_close_the_circle_and_say_so() {
    for one in bounded_drivers() {
        for other in bounded_drivers() {
            let (circuits, first) = flooding([one.clone(), other.clone()], Pipe::emit);
            let reports = failures_of(&circuits);
            first.emit(4);
            let (done, is_done) = mpsc::channel();
            let all = circuits.clone();
            thread::spawn(move || {
                // Often enough: each circuit may have given the other more work.
                let settled = (0..10).all(|_| all.iter().all(|circuit| circuit.settle().is_ok()));
                done.send(settled).expect("a receiver listens");
            });
            assert!(is_done.recv_timeout(PATIENCE).expect("they go on"), "outside");
            let dropped: u64 = circuits.iter().map(Circuit::dropped).sum();
            let failures: u64 = circuits.iter().map(Circuit::failures).sum();
            assert!(dropped > 0 && dropped == failures, "each drop is reported: {dropped} {failures}");
            for (circuit, reports) in circuits.iter().zip(reports) {
                assert!(circuit.close_and_settle().is_ok());
                let reports: Vec<Failure> = reports.try_iter().collect();
                let counts: Vec<u32> = reports.iter().map(Failure::count).collect();
                assert_eq!(counts, (1..=circuit.failures() as u32).collect::<Vec<_>>());
                assert!(reports.iter().all(|failure| failure.operation() == "emit"));
                assert!(reports.iter().all(|failure| failure.subject() == circuit.subject()));
            }
            circuits.iter().for_each(Circuit::close);
        }
    }
}

#[test]
fn what_would_wait_for_room_in_a_circle_is_given_back() {
    for driver in bounded_drivers() {
        let is_refused = |millis| room_is_refused(&driver, Duration::from_millis(millis));
        assert!(PAUSES_MILLIS.into_iter().any(is_refused), "the first one never began to wait: {driver:?}");
    }
}

/// Whether a value is given back that would wait in a cycle for a full queue. It is not if the full
/// circuit takes longer than the pause to begin to wait: then that wait is refused, and there is
/// room once the circuit has continued.
fn room_is_refused(driver: &RunBy, pause: Duration) -> bool {
    let one = built(Circuit::builder().run_by(driver.clone()).bounded(1, Overflow::Block));
    let other = run_by(RunBy::Thread);
    let (sender, outcomes) = mpsc::channel();
    let (own, of_first) = mpsc::channel();
    let sink = one.discard::<u32>().expect("open");
    let back = other.pipe(move |()| {
        thread::sleep(pause);
        let outcomes = [sink.try_emit(1), sink.try_emit(2)];
        sender.send(outcomes).expect("a receiver listens");
    });
    let (back, behind) = (back.expect("open"), other.clone());
    let start = one.pipe(move |()| {
        back.emit(());
        own.send(behind.settle()).expect("a receiver listens");
    });
    start.expect("open").emit(());
    let outcomes = outcomes.recv_timeout(PATIENCE).expect("no thread hangs");
    let has_waited = of_first.recv_timeout(PATIENCE).expect("no thread hangs").is_ok();
    one.close();
    other.close();
    if has_waited {
        assert_eq!(outcomes, [Ok(()), Err(Refused::Circle(2))]);
        assert!(outcomes[1].unwrap_err().to_string().contains("break the circle"));
    } else {
        assert_eq!(outcomes, [Ok(()), Ok(())]);
    }
    has_waited
}

#[test]
fn a_circuit_run_by_a_receptor_cannot_wait_for_room_in_the_receptors_circuit() {
    let pool = ThreadPool::new(1).expect("a thread");
    let one = built(Circuit::builder().run_by(RunBy::Pool(pool.clone())).bounded(1, Overflow::Block));
    let other = run_by(RunBy::Pool(pool));
    let (sender, outcomes) = mpsc::channel();
    let sink = one.discard::<u32>().expect("open");
    let inner = other.pipe(move |()| sender.send([sink.try_emit(1), sink.try_emit(2)]).expect("received"));
    let (inner, behind) = (inner.expect("open"), other.clone());
    let start = one.pipe(move |()| {
        inner.emit(());
        // The pool's only thread is here, so this call runs the other circuit.
        behind.settle().expect("no circle");
    });
    start.expect("open").emit(());
    let outcomes = outcomes.recv_timeout(PATIENCE).expect("no thread hangs");
    assert_eq!(outcomes, [Ok(()), Err(Refused::Circle(2))]);
}

#[test]
fn a_chain_of_waits_may_be_longer_than_a_stack_is_deep() {
    const LENGTH: u64 = 500;
    let pool = ThreadPool::new(1).expect("a thread");
    let settles: [fn(&Circuit); 2] = [|circuit| circuit.settle().expect("no circle"), |_| ()];
    for (bound, wait) in [usize::MAX, 1].into_iter().zip(settles) {
        let circuit =
            || built(Circuit::builder().run_by(RunBy::Pool(pool.clone())).bounded(bound, Overflow::Block));
        let last = circuit();
        let sum = last.cell(0).expect("open");
        let (mut next, mut circuits) = (sum.pipe().clone(), vec![last]);
        for _ in 0..LENGTH {
            let (before, behind, target) = (circuit(), circuits[circuits.len() - 1].clone(), next);
            let mut is_first = true;
            let receptor = move |value: u64| {
                // All frames together are far larger than a thread's stack.
                std::hint::black_box([value; 1024]);
                if std::mem::take(&mut is_first) {
                    // There is room for one value.
                    target.emit(value + 1);
                    target.emit(value + 1);
                    wait(&behind);
                }
            };
            next = before.pipe(receptor).expect("open");
            circuits.push(before);
        }
        next.emit(0);
        circuits.iter().rev().for_each(|circuit| circuit.settle().expect("outside"));
        assert_eq!(sum.get(), LENGTH);
        assert_eq!(circuits.iter().map(|circuit| circuit.failures() + circuit.dropped()).sum::<u64>(), 0);
    }
}

#[test]
fn a_chain_of_tasks_that_wait_may_be_as_long() {
    const LENGTH: u64 = 500;
    let first = run_by(RunBy::Waiters);
    let sum = first.cell(0).expect("open");
    let (mut next, mut last) = (sum.pipe().clone(), first);
    for _ in 0..LENGTH {
        let (before, behind, target) = (run_by(RunBy::Waiters), last, next);
        let receptor = move |value: u64| {
            std::hint::black_box([value; 1024]);
            target.emit(value + 1);
            block_on(behind.settled().expect("no circle"));
        };
        next = before.pipe(receptor).expect("open");
        last = before;
    }
    next.emit(0);
    last.settle().expect("outside");
    assert_eq!(sum.get(), LENGTH);
}

/// Drops the next circuit, with much data on the stack.
struct Last(Option<Circuit>, Arc<AtomicU64>);

impl Drop for Last {
    fn drop(&mut self) {
        std::hint::black_box([0_u64; 1024]);
        self.1.fetch_add(1, Ordering::Relaxed);
        drop(self.0.take());
    }
}

#[test]
fn a_chain_of_circuits_that_each_have_the_next_in_their_queue_is_dropped_without_a_deep_stack() {
    const LENGTH: u64 = 500;
    let dropped = Arc::new(AtomicU64::new(0));
    let mut behind = None;
    for _ in 0..LENGTH {
        let circuit = run_by(RunBy::Waiters);
        circuit.discard().expect("open").emit(Last(behind.take(), Arc::clone(&dropped)));
        behind = Some(circuit);
    }
    drop(behind);
    assert_eq!(dropped.load(Ordering::Relaxed), LENGTH);
}

/// Waits for a circuit when it is dropped.
struct Waits(Circuit);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.settle().expect("of a thread that is in no circuit");
    }
}

thread_local! {
    static AT_THE_END: RefCell<Option<Waits>> = const { RefCell::new(None) };
}

#[test]
fn what_a_thread_drops_at_its_end_may_wait_for_circuits_that_others_are_in() {
    const LENGTH: usize = 40;
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || {
        let first = run_by(RunBy::Waiters);
        let (mut last, mut held) = (run_by(RunBy::Waiters), Some(first.clone()));
        let keep = move |()| AT_THE_END.set(held.take().map(Waits));
        let mut next = last.pipe(keep).expect("open");
        for before in (1..LENGTH).map(|_| run_by(RunBy::Waiters)).chain([first]) {
            let (behind, target) = (last, next);
            let receptor = move |()| {
                target.emit(());
                behind.settle().expect("no circle");
            };
            next = before.pipe(receptor).expect("open");
            last = before;
        }
        next.emit(());
        last.settle().expect("outside");
        let is_here = AT_THE_END.with_borrow(Option::is_some);
        done.send(is_here).expect("a receiver listens");
    });
    assert_eq!(is_done.recv_timeout(PATIENCE), Ok(false), "another thread has lent its stack");
}

/// Emits when it is woken.
struct Emits(Pipe<u32>);

impl Wake for Emits {
    fn wake(self: Arc<Self>) {
        self.0.emit(0);
    }
}

/// The events of a circuit whose owner runs it with this budget per call. Another circuit waits for
/// it, unless that circuit takes longer than the pause to begin.
fn reports_around_a_refused_waker(budget: usize, pause: Duration) -> Vec<&'static str> {
    let one = run_by(RunBy::Owner);
    let other = built(Circuit::builder().run_by(RunBy::Thread).bounded(1, Overflow::Block));
    let (sender, heard) = mpsc::channel();
    let faults = one.faults().expect("open");
    let reports = sender.clone();
    let subscriber = one.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, Failure>| {
        let reports = reports.clone();
        registrar.receptor(move |failure: Failure| reports.send(failure.operation()).expect("received"));
    });
    faults.subscribe(&subscriber.expect("open")).expect("open");
    let input = one.pipe(move |value| sender.send(value).expect("received")).expect("open");
    while one.run(budget) {}
    let (waits, is_waiting) = mpsc::channel();
    let awaited = one.clone();
    let full = other.pipe(move |wait: u32| {
        if wait > 0 {
            waits.send(()).expect("received");
            awaited.settle().expect("run by its owner");
        }
    });
    let full = full.expect("open");
    input.emit("first");
    let mut settled = pin!(one.settled().expect("outside"));
    let waker = Waker::from(Arc::new(Emits(full.clone())));
    assert!(settled.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    input.emit("second");
    full.emit(1);
    is_waiting.recv_timeout(PATIENCE).expect("it is run by its thread");
    // The emission is refused only once the other circuit's wait is registered.
    thread::sleep(pause);
    full.emit(0);
    while one.run(budget) {}
    other.close();
    heard.try_iter().collect()
}

#[test]
fn a_wakers_refused_emission_is_reported_before_the_next_input() {
    for budget in [1, 2, 3, 10] {
        let mut all = PAUSES_MILLIS
            .into_iter()
            .map(|millis| reports_around_a_refused_waker(budget, Duration::from_millis(millis)));
        let reports =
            all.find(|reports| reports.contains(&"emit")).expect("the other circuit begins to wait");
        assert_eq!(reports, ["first", "emit", "second"], "{budget} at a time");
    }
}

/// Emits twice when it is woken.
struct Twice(Pipe<u32>);

impl Wake for Twice {
    fn wake(self: Arc<Self>) {
        self.0.emit(1);
        self.0.emit(2);
    }
}

#[test]
fn what_a_waker_is_refused_is_a_failure_of_the_circuit_that_called_it() {
    let pool = ThreadPool::new(1).expect("a thread");
    let one = built(Circuit::builder().run_by(RunBy::Pool(pool.clone())).bounded(1, Overflow::Block));
    let other = run_by(RunBy::Pool(pool));
    let waker = Waker::from(Arc::new(Twice(one.discard().expect("open"))));
    let (inner, behind) = (other.discard::<()>().expect("open"), other.clone());
    let start = one.pipe(move |()| {
        inner.emit(());
        let mut settled = pin!(behind.settled().expect("no circle"));
        assert!(
            settled.as_mut().poll(&mut Context::from_waker(&waker)).is_pending(),
            "no thread runs it yet"
        );
        // The pool's only thread is here, so this call runs the other circuit, which wakes the
        // task.
        behind.settle().expect("no circle");
    });
    let circuits = [other];
    let [reports] = failures_of(&circuits);
    start.expect("open").emit(());
    let (done, is_done) = mpsc::channel();
    let waits = one.clone();
    thread::spawn(move || done.send(waits.settle()));
    assert_eq!(is_done.recv_timeout(PATIENCE), Ok(Ok(())));
    let [other] = circuits;
    assert_eq!((one.dropped(), one.failures(), other.failures()), (1, 0, 1));
    other.settle().expect("outside");
    assert_eq!(reports.try_iter().map(|failure| failure.operation()).collect::<Vec<_>>(), ["emit"]);
}

#[test]
fn a_circuit_that_was_refused_can_wait_again() {
    for driver in drivers() {
        let (one, other) = (run_by(driver), run_by(RunBy::Thread));
        let (sender, outcomes) = mpsc::channel();
        let (first, said) = (one.clone(), sender.clone());
        let waits = other.pipe(move |panics: bool| {
            said.send(first.settle().is_ok()).expect("a receiver listens");
            if panics {
                std::panic::resume_unwind(Box::new("the wait is over"));
            }
        });
        let (waits, behind) = (waits.expect("open"), other.clone());
        let own = waits.clone();
        let start = one.named(name!("start")).pipe(move |()| {
            own.emit(true);
            sender.send(behind.settle().is_ok()).expect("a receiver listens");
        });
        let start = start.expect("open");
        for _ in 0..20 {
            start.emit(());
            let (done, is_done) = mpsc::channel();
            let all = [one.clone(), other.clone()];
            thread::spawn(move || done.send(all.iter().all(|circuit| circuit.settle().is_ok())));
            assert_eq!(is_done.recv_timeout(PATIENCE), Ok(true));
            // Without the other's wait, each may wait.
            waits.emit(false);
            let mut said: Vec<bool> =
                (0..3).map(|_| outcomes.recv_timeout(PATIENCE).expect("no thread hangs")).collect();
            said.sort_unstable();
            assert_eq!(said, [false, true, true]);
        }
        one.close();
        other.close();
    }
}
