//! Values that are emitted from outside of a circuit, with each driver and each bound: the circuit
//! handles each value, gives it back, or counts it as dropped.

use std::hint;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

use tidemark_circuit::{Circuit, Overflow, Pipe, Refused, RunBy, ThreadPool};

use crate::limit::Limit;

/// Every driver.
pub(crate) fn drivers() -> [RunBy; 5] {
    let pool = ThreadPool::new(1).expect("a thread");
    [RunBy::SharedPool, RunBy::Pool(pool), RunBy::Thread, RunBy::Waiters, RunBy::Owner]
}

/// Handles all earlier emissions, on the caller's thread if no other thread does.
pub(crate) fn settle(circuit: &Circuit) {
    if circuit.run_by() == RunBy::Owner {
        while circuit.run(100) {}
    } else {
        circuit.settle().expect("outside");
    }
}

/// How often the tests close a circuit during emissions, for each driver and bound.
const ROUNDS: u32 = 50;

/// Circuits of each driver with each bound that the driver supports, by rounds.
fn circuits_by_rounds() -> impl Iterator<Item = (u32, Circuit)> {
    let bounds = [
        None,
        Some(Overflow::Reject),
        Some(Overflow::DropNewest),
        Some(Overflow::DropOldest),
        Some(Overflow::Block),
    ];
    let choices = drivers().into_iter().flat_map(move |run_by| bounds.map(|bound| (run_by.clone(), bound)));
    choices.flat_map(|(run_by, bound)| {
        (0..ROUNDS).filter_map(move |round| {
            let builder = Circuit::builder().run_by(run_by.clone());
            let builder = match bound {
                Some(overflow) => builder.bounded(4, overflow),
                None => builder,
            };
            // Callers do not block on a circuit that only they would run.
            let is_possible =
                bound != Some(Overflow::Block) || !matches!(run_by, RunBy::Waiters | RunBy::Owner);
            is_possible.then(|| (round, builder.build().expect("valid")))
        })
    })
}

/// Closes the circuit while two threads emit until it refuses. Returns how many values the circuit
/// accepted.
fn close_while_two_emit(
    round: u32,
    circuit: &Circuit,
    emit: &(dyn Fn() -> Result<(), Refused<()>> + Sync),
) -> u64 {
    let start = Barrier::new(3);
    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        if circuit.run_by() == RunBy::Owner {
            scope.spawn(|| {
                while !has_ended.load(Ordering::Acquire) {
                    circuit.run(16);
                }
            });
        }
        let until_refused = || {
            start.wait();
            let mut taken = 0;
            loop {
                match emit() {
                    Ok(()) => taken += 1,
                    Err(Refused::Full(())) => thread::yield_now(),
                    Err(_) => return taken,
                }
            }
        };
        let emitters = [(); 2].map(|()| scope.spawn(until_refused));
        start.wait();
        // The pause differs in each round: the close meets the emissions at another point.
        (0..round % 32 * 8).for_each(|_| hint::spin_loop());
        circuit.close_and_settle().expect("outside");
        has_ended.store(true, Ordering::Release);
        emitters.map(|emitter| emitter.join().expect("no panic")).iter().sum()
    })
}

/// A pipe that counts what it receives.
fn counting<E: Send + 'static>(circuit: &Circuit) -> (Pipe<E>, Arc<AtomicU64>) {
    let count = Arc::new(AtomicU64::new(0));
    let handled = Arc::clone(&count);
    let pipe = circuit.pipe(move |_: E| _ = handled.fetch_add(1, Ordering::Relaxed));
    (pipe.expect("open"), count)
}

/// The reason without the value.
fn reason<E>(refused: Refused<E>) -> Refused<()> {
    match refused {
        Refused::Full(_) => Refused::Full(()),
        Refused::Closed(_) => Refused::Closed(()),
        Refused::Circle(_) => Refused::Circle(()),
    }
}

/// Closes circuits while two threads emit copies of the value to them. Reports the circuits that
/// have lost values they accepted.
fn losses<E: Clone + Send + Sync + 'static>(value: &E) -> Vec<String> {
    let _limit = Limit::new();
    let lost = |(round, circuit): (u32, Circuit)| {
        let (pipe, count) = counting::<E>(&circuit);
        let emit = || pipe.try_emit(value.clone()).map_err(reason);
        let taken = close_while_two_emit(round, &circuit, &emit);
        let (handled, dropped) = (count.load(Ordering::Relaxed), circuit.dropped());
        (handled + dropped != taken).then(|| {
            let run_by = circuit.run_by();
            format!("{run_by:?}, round {round}: {taken} taken, {handled} handled, {dropped} dropped")
        })
    };
    circuits_by_rounds().filter_map(lost).collect()
}

#[test]
fn a_circuit_that_is_closed_meanwhile_handles_or_counts_every_value_that_try_emit_has_taken() {
    let lost = losses(&1_u64);
    assert!(lost.is_empty(), "{} rounds: {lost:#?}", lost.len());
}

#[test]
fn a_circuit_that_is_closed_meanwhile_handles_or_counts_every_large_value_that_try_emit_has_taken() {
    let lost = losses(&[1_u64; 9]);
    assert!(lost.is_empty(), "{} rounds: {lost:#?}", lost.len());
}

#[cfg(feature = "stream")]
#[test]
fn a_circuit_that_is_closed_meanwhile_handles_or_counts_every_value_that_a_sink_has_flushed() {
    use std::future::poll_fn;
    use std::pin::pin;

    use futures_sink::Sink;
    use tidemark_circuit::InletError;

    use crate::tasks::block_on;

    let _limit = Limit::new();
    for (round, circuit) in circuits_by_rounds() {
        let (pipe, count) = counting::<u64>(&circuit);
        let send_and_flush = || {
            let mut sink = pin!(pipe.inlet());
            block_on(async {
                poll_fn(|context| sink.as_mut().poll_ready(context)).await?;
                sink.as_mut().start_send(1)?;
                poll_fn(|context| sink.as_mut().poll_flush(context)).await
            })
            .map_err(|error| match error {
                InletError::Refused(refused) => reason(refused),
                InletError::Context(error) => panic!("{error}"),
            })
        };
        let taken = close_while_two_emit(round, &circuit, &send_and_flush);
        assert_eq!(count.load(Ordering::Relaxed) + circuit.dropped(), taken, "{:?}", circuit.run_by());
    }
}

/// Tries to emit a value when it is dropped, and reports the outcome.
struct EmitsAtItsEnd {
    target: Pipe<[u64; 9]>,
    outcome: mpsc::Sender<Result<(), Refused<[u64; 9]>>>,
}

impl Drop for EmitsAtItsEnd {
    fn drop(&mut self) {
        // The test may have ended.
        _ = self.outcome.send(self.target.try_emit([7; 9]));
    }
}

#[test]
fn a_receptor_that_goes_with_its_circuit_is_given_back_what_it_tries_to_emit() {
    for run_by in drivers() {
        let circuit = Circuit::builder().run_by(run_by).build().expect("valid");
        let (outcome, outcomes) = mpsc::channel();
        let (target, count) = counting(&circuit);
        let at_end = EmitsAtItsEnd { target: target.clone(), outcome };
        let pipe = circuit.pipe(move |()| _ = &at_end).expect("open");
        circuit.close();
        settle(&circuit);
        assert_eq!(outcomes.recv(), Ok(Err(Refused::Closed([7; 9]))));
        assert_eq!(count.load(Ordering::Relaxed), 0);
        drop((pipe, target));
    }
}

#[test]
fn a_value_that_goes_with_its_circuit_is_given_back_what_it_tries_to_emit() {
    let circuit = Circuit::builder().run_by(RunBy::Owner).build().expect("valid");
    let (outcome, outcomes) = mpsc::channel();
    let (target, _) = counting(&circuit);
    let pipe = circuit.discard::<EmitsAtItsEnd>().expect("open");
    assert!(pipe.try_emit(EmitsAtItsEnd { target, outcome }).is_ok());
    // No thread can run the circuit any more, so it drops its queue.
    drop(circuit);
    assert_eq!(outcomes.recv(), Ok(Err(Refused::Closed([7; 9]))));
}

#[test]
fn what_a_closed_circuit_still_handles_may_emit_to_it() {
    for run_by in drivers() {
        let circuit = Circuit::builder().run_by(run_by).build().expect("valid");
        let (target, count) = counting::<u64>(&circuit);
        let (outcome, outcomes) = mpsc::channel();
        let behind = circuit.pipe(move |()| outcome.send(target.try_emit(1)).expect("is listened to"));
        let (behind, closing) = (behind.expect("open"), circuit.clone());
        let pipe = circuit.pipe(move |()| {
            closing.close();
            behind.emit(());
        });
        pipe.expect("open").emit(());
        settle(&circuit);
        assert_eq!((outcomes.recv(), count.load(Ordering::Relaxed)), (Ok(Ok(())), 1));
        circuit.close();
    }
}

/// A value of `BYTES` bytes; no two numbers give the same bytes.
fn numbered<const BYTES: usize>(number: usize) -> [u8; BYTES] {
    std::array::from_fn(|index| (number * 31 + index * 7) as u8)
}

/// Emits values of `BYTES` bytes from outside in every way, and compares what arrives.
fn values_arrive_whole<const BYTES: usize>(run_by: &RunBy) {
    const COUNT: usize = 100;
    let circuit = Circuit::builder().run_by(run_by.clone()).build().expect("valid");
    let (sender, receiver) = mpsc::channel();
    let pipe = circuit.pipe(move |value: [u8; BYTES]| sender.send(value).expect("is listened to"));
    let pipe = pipe.expect("open");
    let arrived = || {
        settle(&circuit);
        receiver.try_iter().collect::<Vec<_>>()
    };
    let expected: Vec<_> = (0..COUNT).map(numbered).collect();

    (0..COUNT).for_each(|number| pipe.emit(numbered(number)));
    assert!(arrived() == expected, "{BYTES} bytes by emit, {run_by:?}");
    (0..COUNT).for_each(|number| assert!(pipe.try_emit(numbered(number)).is_ok()));
    assert!(arrived() == expected, "{BYTES} bytes by try_emit, {run_by:?}");
    let mut lane = circuit.lane().expect("open");
    (0..COUNT).for_each(|number| lane.emit(&pipe, numbered(number)));
    assert!(arrived() == expected, "{BYTES} bytes by a lane, {run_by:?}");

    circuit.close();
    let refused = pipe.try_emit(numbered(COUNT)).expect_err("closed");
    assert!(refused == Refused::Closed(numbered(COUNT)), "{BYTES} bytes are given back whole, {run_by:?}");
}

/// Up to 24 bytes fit into one slot of the queue.
#[test]
fn values_of_any_size_arrive_whole_and_in_order() {
    for run_by in drivers() {
        values_arrive_whole::<0>(&run_by);
        values_arrive_whole::<8>(&run_by);
        values_arrive_whole::<24>(&run_by);
        values_arrive_whole::<25>(&run_by);
        values_arrive_whole::<48>(&run_by);
        values_arrive_whole::<49>(&run_by);
        values_arrive_whole::<1000>(&run_by);
        // Larger than the largest segment of the queue.
        values_arrive_whole::<30_000>(&run_by);
    }
}

#[test]
fn values_of_different_sizes_keep_the_order_in_which_they_were_emitted() {
    for run_by in drivers() {
        let circuit = Circuit::builder().run_by(run_by).build().expect("valid");
        let (sender, receiver) = mpsc::channel();
        let (also, small) = (sender.clone(), move |value: u8| sender.send(value).expect("is listened to"));
        let small = circuit.pipe(small).expect("open");
        let large = circuit.pipe(move |value: [u8; 100]| also.send(value[99]).expect("is listened to"));
        let large = large.expect("open");
        for number in (0..200).step_by(2) {
            assert_eq!(small.try_emit(number), Ok(()));
            assert_eq!(large.try_emit([number + 1; 100]), Ok(()));
        }
        settle(&circuit);
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), (0..200).collect::<Vec<_>>());
    }
}
