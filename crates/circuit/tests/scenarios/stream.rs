//! Circuits and tasks: output as a stream, and input through a sink.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use crate::tasks::block_on;
use futures_core::Stream;
use futures_core::stream::FusedStream;
use futures_sink::Sink;
use tidemark_circuit::{
    Circuit, Emissions, Error, Inlet, InletError, Overflow, Pipe, Recording, Refused, Replay, RunBy, name,
};

/// A scenario that hangs for longer has failed.
const PATIENCE: Duration = Duration::from_mins(1);

/// Counts its calls.
#[derive(Default)]
struct Calls(AtomicUsize);

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Calls {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

async fn next<T>(stream: &mut Emissions<T>) -> Option<T> {
    poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}

async fn rest<T>(mut stream: Emissions<T>) -> Vec<T> {
    let mut values = Vec::new();
    while let Some(value) = next(&mut stream).await {
        values.push(value);
    }
    values
}

fn poll_once<T>(stream: &mut Emissions<T>) -> Poll<Option<T>> {
    Pin::new(stream).poll_next(&mut Context::from_waker(Waker::noop()))
}

fn owned() -> Circuit {
    Circuit::builder().run_by(RunBy::Owner).build().expect("valid")
}

fn driven() -> [Circuit; 2] {
    [RunBy::Thread, RunBy::SharedPool].map(|run_by| Circuit::builder().run_by(run_by).build().expect("valid"))
}

async fn send<E: Send + 'static>(sink: &mut Inlet<E>, value: E) -> Result<(), InletError<E>> {
    poll_fn(|context| Pin::new(&mut *sink).poll_ready(context)).await?;
    Pin::new(&mut *sink).start_send(value)
}

async fn flush<E: Send + 'static>(sink: &mut Inlet<E>) -> Result<(), InletError<E>> {
    poll_fn(|context| Pin::new(&mut *sink).poll_flush(context)).await
}

#[test]
fn a_stream_gives_every_value_of_its_pipe_in_order() {
    for circuit in driven() {
        let (pipe, stream) = circuit.stream(10_000).expect("open");
        let task = thread::spawn(move || block_on(rest(stream)));
        (0..10_000).for_each(|value| pipe.emit(value));
        circuit.close();
        assert_eq!(task.join().expect("no panic"), (0..10_000).collect::<Vec<u32>>());
    }
}

#[test]
fn no_wake_up_is_lost_when_values_come_one_by_one() {
    for circuit in driven() {
        let (pipe, mut stream) = circuit.stream(1).expect("open");
        let (sender, receiver) = mpsc::channel();
        let task = thread::spawn(move || {
            block_on(async {
                while let Some(value) = next(&mut stream).await {
                    sender.send(value).expect("is listened to");
                }
            });
        });
        for value in 0..5_000_u32 {
            pipe.emit(value);
            assert_eq!(receiver.recv(), Ok(value), "the task was not woken");
        }
        drop((circuit, pipe));
        task.join().expect("the stream ended");
    }
}

#[test]
fn the_oldest_values_give_way_and_are_counted() {
    let circuit = owned();
    let (pipe, mut stream) = circuit.stream(2).expect("open");
    (1..=5).for_each(|value| pipe.emit(value));
    while circuit.run(10) {}
    assert_eq!(stream.dropped(), 3);
    assert_eq!(stream.size_hint(), (2, None));
    assert_eq!(
        [poll_once(&mut stream), poll_once(&mut stream)],
        [Poll::Ready(Some(4)), Poll::Ready(Some(5))]
    );
    assert_eq!(poll_once(&mut stream), Poll::Pending);
}

#[test]
fn a_stream_without_room_is_refused() {
    let circuit = owned();
    assert!(matches!(circuit.stream::<u32>(0), Err(Error::Argument(_))));
    assert!(matches!(circuit.conduit::<u32>().expect("open").stream(0), Err(Error::Argument(_))));
}

#[test]
fn a_closed_circuit_makes_no_stream() {
    let circuit = owned();
    let conduit = circuit.conduit::<u32>().expect("open");
    circuit.close();
    assert!(matches!(circuit.stream::<u32>(1), Err(Error::Fault(_))));
    assert!(matches!(conduit.stream(1), Err(Error::Fault(_))));
}

#[test]
fn a_pipes_stream_ends_with_its_last_handle() {
    for circuit in driven() {
        let (pipe, stream) = circuit.stream(10).expect("open");
        pipe.emit('a');
        drop(pipe);
        assert_eq!(block_on(rest(stream)), ['a']);
    }
}

#[test]
fn a_pipes_stream_ends_when_everything_is_dropped() {
    let circuit = owned();
    let (pipe, stream) = circuit.stream(10).expect("open");
    pipe.emit('a');
    while circuit.run(10) {}
    // No thread will run the circuit any more.
    drop((pipe, circuit));
    assert_eq!(block_on(rest(stream)), ['a']);
}

#[test]
fn an_ended_stream_stays_ended() {
    let circuit = owned();
    let (pipe, mut stream) = circuit.stream(10).expect("open");
    pipe.emit('a');
    circuit.close();
    while circuit.run(10) {}
    assert!(!stream.is_terminated(), "there is a value left");
    assert_eq!(stream.size_hint(), (1, Some(1)));
    assert_eq!(poll_once(&mut stream), Poll::Ready(Some('a')));
    assert!(stream.is_terminated());
    assert_eq!(poll_once(&mut stream), Poll::Ready(None));
    assert_eq!(poll_once(&mut stream), Poll::Ready(None));
}

#[test]
fn only_the_last_waker_is_woken_and_once() {
    let circuit = owned();
    let (pipe, mut stream) = circuit.stream(10).expect("open");
    let (first, second) = (Arc::new(Calls::default()), Arc::new(Calls::default()));
    for calls in [&first, &second] {
        let waker = Waker::from(Arc::clone(calls));
        assert_eq!(Pin::new(&mut stream).poll_next(&mut Context::from_waker(&waker)), Poll::Pending);
    }
    (1..=3).for_each(|value| pipe.emit(value));
    while circuit.run(10) {}
    assert_eq!((first.count(), second.count()), (0, 1));
}

/// Emits when it is woken.
struct Emitting(Pipe<&'static str>);

impl Wake for Emitting {
    fn wake(self: Arc<Self>) {
        self.0.emit("woken");
    }
}

#[test]
fn what_a_streams_waker_emits_is_an_input_and_no_effect_of_the_value() {
    let circuit = owned();
    let (sender, heard) = mpsc::channel();
    let note = circuit.pipe(move |text| sender.send(text).expect("a receiver listens")).expect("open");
    let (pipe, mut stream) = circuit.stream(10).expect("open");
    let waker = Waker::from(Arc::new(Emitting(note.clone())));
    assert!(Pin::new(&mut stream).poll_next(&mut Context::from_waker(&waker)).is_pending());
    pipe.emit(1);
    note.emit("next");
    circuit.run(10);
    assert_eq!(heard.try_iter().collect::<Vec<_>>(), ["next", "woken"]);
}

#[test]
fn a_conduits_stream_names_the_emitter() {
    for circuit in driven() {
        let conduit = circuit.conduit::<u32>().expect("open");
        conduit.get(name!("stream.before")).emit(0);
        let stream = conduit.stream(10).expect("open");
        conduit.get(name!("stream.a")).emit(1);
        conduit.get(name!("stream.b")).emit(2);
        conduit.get(name!("stream.a")).emit(3);
        conduit.close();
        conduit.get(name!("stream.a")).emit(4);
        let expected = [(name!("stream.a"), 1), (name!("stream.b"), 2), (name!("stream.a"), 3)];
        assert_eq!(block_on(rest(stream)), expected);
    }
}

#[test]
fn a_conduits_stream_ends_with_its_circuit_though_the_conduit_is_kept() {
    for circuit in driven() {
        let conduit = circuit.conduit::<u32>().expect("open");
        let stream = conduit.stream(10).expect("open");
        conduit.get(name!("stream.a")).emit(1);
        circuit.close();
        assert_eq!(block_on(rest(stream)), [(name!("stream.a"), 1)]);
        assert!(conduit.is_closed());
    }
}

#[test]
fn a_conduits_stream_ends_when_everything_is_dropped() {
    for run_by in [RunBy::Thread, RunBy::SharedPool, RunBy::Waiters, RunBy::Owner] {
        let circuit = Circuit::builder().run_by(run_by).build().expect("valid");
        let conduit = circuit.conduit::<u32>().expect("open");
        let stream = conduit.stream(10).expect("open");
        conduit.get(name!("stream.a")).emit(1);
        // Owners run their own circuits; for other drivers this call does nothing.
        while circuit.run(10) && matches!(circuit.run_by(), RunBy::Owner) {}
        drop((conduit, circuit));
        assert_eq!(block_on(rest(stream)), [(name!("stream.a"), 1)]);
    }
}

#[test]
fn a_dropped_stream_is_forgotten_with_the_next_emission() {
    let circuit = owned();
    let conduit = circuit.conduit::<Arc<()>>().expect("open");
    let stream = conduit.stream(10).expect("open");
    let value = Arc::new(());
    let pipe = conduit.get(name!("stream.a"));
    pipe.emit(Arc::clone(&value));
    while circuit.run(10) {}
    assert_eq!(Arc::strong_count(&value), 2, "it waits in the stream");
    drop(stream);
    assert_eq!(Arc::strong_count(&value), 1, "no reader is left to take it");
    pipe.emit(Arc::clone(&value));
    pipe.emit(Arc::clone(&value));
    while circuit.run(10) {}
    assert_eq!(Arc::strong_count(&value), 1);
    assert_eq!(circuit.failures(), 0);
}

#[test]
fn a_conduits_stream_is_a_reservoir_in_a_replay() {
    let circuit = owned();
    let conduit = circuit.conduit::<u32>().expect("open");
    let recording = Recording::new(&circuit, Vec::new());
    recording.conduit("conduit", &conduit).expect("its own");
    recording.begin().expect("open");
    let stream = conduit.stream(2).expect("open");
    (1..=3).for_each(|value| conduit.get(name!("stream.recorded")).emit(value));
    conduit.close();
    while circuit.run(10) {}
    let journal = recording.finish().expect("memory does not fail");
    let given = block_on(rest(stream));
    assert_eq!(given, [2, 3].map(|value| (name!("stream.recorded"), value)));

    let mut replay = Replay::new(&journal[..]).expect("a journal");
    let twin = Circuit::builder().run_by(RunBy::Owner).seed(replay.seed()).build().expect("valid");
    replay.conduit("conduit", &twin.conduit::<u32>().expect("open"));
    let (sender, reservoirs) = mpsc::channel();
    replay.on_reservoir::<u32, _>("conduit", move |reservoir| sender.send(reservoir).expect("received"));
    assert_eq!(replay.run(&twin).expect("as recorded").inputs, 5);
    let captures = reservoirs.recv().expect("one").drain();
    let again = captures.into_iter().map(|capture| (capture.name(), capture.into_emission()));
    assert_eq!(again.collect::<Vec<_>>(), given);
}

#[test]
fn a_stream_does_not_keep_its_circuit() {
    let kept = Arc::new(());
    let circuit = owned();
    let conduit = circuit.conduit::<u32>().expect("open");
    let stream = conduit.stream(10).expect("open");
    let witness = Arc::clone(&kept);
    let pipe = circuit.pipe(move |_: u32| _ = &witness).expect("open");
    while circuit.run(10) {}
    drop((pipe, conduit, circuit));
    assert_eq!(Arc::strong_count(&kept), 1);
    assert!(block_on(rest(stream)).is_empty());
}

#[test]
fn a_sink_is_always_ready_where_there_is_no_bound() {
    for circuit in driven() {
        let (sender, receiver) = mpsc::channel();
        let pipe = circuit.pipe(move |value: u32| sender.send(value).expect("is listened to")).expect("open");
        let mut sink = pipe.inlet();
        block_on(async {
            for value in 0..1000 {
                send(&mut sink, value).await.expect("open");
            }
            flush(&mut sink).await.expect("open");
        });
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), (0..1000).collect::<Vec<_>>());
    }
}

#[test]
fn a_sink_waits_for_room_where_the_circuit_rejects_or_blocks() {
    for overflow in [Overflow::Reject, Overflow::Block] {
        let circuit = Circuit::builder().run_by(RunBy::Thread).bounded(2, overflow).build().expect("valid");
        let (sender, receiver) = mpsc::channel();
        let pipe = circuit.pipe(move |value: u32| sender.send(value).expect("is listened to")).expect("open");
        let senders: Vec<_> = (0..3)
            .map(|number| {
                let mut sink = pipe.inlet();
                thread::spawn(move || {
                    block_on(async {
                        for value in 0..1000 {
                            send(&mut sink, number * 1000 + value).await.expect("open");
                        }
                        flush(&mut sink).await.expect("open");
                    });
                })
            })
            .collect();
        senders.into_iter().for_each(|sender| sender.join().expect("no panic"));
        let mut values: Vec<_> = receiver.try_iter().collect();
        for number in 0..3 {
            let of_one: Vec<_> = values.iter().copied().filter(|value| value / 1000 == number).collect();
            assert!(of_one.is_sorted(), "the order of one sender is kept");
        }
        values.sort_unstable();
        assert_eq!(values, (0..3000).collect::<Vec<_>>(), "nothing is lost");
        assert_eq!(circuit.dropped(), 0);
    }
}

#[test]
fn a_sink_keeps_one_value_that_finds_the_queue_full() {
    let circuit =
        Circuit::builder().run_by(RunBy::Owner).bounded(1, Overflow::Reject).build().expect("valid");
    let (sender, receiver) = mpsc::channel();
    let pipe = circuit.pipe(move |value: u32| sender.send(value).expect("is listened to")).expect("open");
    let mut sink = pipe.inlet();
    let calls = Arc::new(Calls::default());
    let waker = Waker::from(Arc::clone(&calls));
    let mut context = Context::from_waker(&waker);
    assert!(Pin::new(&mut sink).start_send(1).is_ok());
    assert!(Pin::new(&mut sink).start_send(2).is_ok(), "kept in the sink");
    assert!(matches!(Pin::new(&mut sink).poll_ready(&mut context), Poll::Pending));
    assert!(matches!(Pin::new(&mut sink).start_send(3), Err(InletError::Refused(Refused::Full(3)))));
    while circuit.run(10) {}
    assert_eq!(calls.count(), 1, "there is room");
    assert!(matches!(Pin::new(&mut sink).poll_ready(&mut context), Poll::Ready(Ok(()))));
    assert!(matches!(Pin::new(&mut sink).poll_flush(&mut context), Poll::Pending));
    while circuit.run(10) {}
    assert!(matches!(Pin::new(&mut sink).poll_close(&mut context), Poll::Ready(Ok(()))));
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [1, 2]);
    assert!(!circuit.is_closed(), "closing a sink closes no circuit");
}

#[test]
fn a_sink_gives_values_back_that_a_closed_circuit_does_not_take() {
    let circuit = owned();
    let pipe = circuit.pipe(|_: u32| ()).expect("open");
    let mut sink = pipe.inlet();
    circuit.close();
    let refused = block_on(send(&mut sink, 7)).expect_err("closed");
    assert!(matches!(&refused, InletError::Refused(Refused::Closed(7))));
    assert_eq!(refused.to_string(), "the circuit is closed");
}

#[test]
fn a_sink_is_not_flushed_inside_of_its_circuit() {
    let circuit = owned();
    let (sender, receiver) = mpsc::channel();
    let sinks = circuit.pipe(move |mut sink: Inlet<u32>| {
        let flushed = Pin::new(&mut sink).poll_flush(&mut Context::from_waker(Waker::noop()));
        sender.send(matches!(flushed, Poll::Ready(Err(InletError::Context(_))))).expect("is listened to");
    });
    let sinks = sinks.expect("open");
    sinks.emit(circuit.pipe(|_: u32| ()).expect("open").inlet());
    while circuit.run(10) {}
    assert_eq!(receiver.try_recv(), Ok(true));
}

#[test]
fn a_task_that_flushes_is_woken_by_the_drop_of_the_circuits_last_handle() {
    let circuit = Circuit::builder().run_by(RunBy::Waiters).build().expect("valid");
    let (start, started) = mpsc::channel();
    let (gate, opened) = mpsc::channel();
    let pipe = circuit.pipe(move |value: u64| {
        start.send(value).expect("a receiver listens");
        assert!(value != 1 || opened.recv_timeout(PATIENCE).is_ok());
    });
    let pipe = pipe.expect("open");
    pipe.emit(1);
    // The drop handles all accepted values.
    let dropper = thread::spawn(move || drop(circuit));
    assert_eq!(started.recv_timeout(PATIENCE), Ok(1));
    let (flush, flushed) = mpsc::channel();
    let (polled, is_polled) = mpsc::channel();
    thread::spawn(move || {
        let mut inlet = pipe.inlet();
        block_on(async {
            send(&mut inlet, 2).await.expect("open");
            poll_fn(|context| {
                let poll = Pin::new(&mut inlet).poll_flush(context);
                polled.send(()).expect("a receiver listens");
                poll
            })
            .await
            .expect("open");
        });
        flush.send(()).expect("a receiver listens");
    });
    is_polled.recv_timeout(PATIENCE).expect("it waits");
    gate.send(()).expect("the receptor waits");
    dropper.join().expect("no panic");
    flushed.recv_timeout(PATIENCE).expect("it is woken");
    assert_eq!(started.recv_timeout(PATIENCE), Ok(2));
}
