//! The end of a circuit: its open parts end first, and unreachable parts are freed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, TryRecvError};
use std::sync::{Arc, Barrier, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use crate::emitting::settle;
use crate::limit::wait_until;
use tidemark_circuit::{
    Circuit, Conduit, Current, Failure, Fiber, Name, Pipe, Receptor, Recording, Registrar, Replay, RunBy,
    Subject, Subscription, ThreadPool, WeakPipe, name,
};

fn circuit(run_by: RunBy) -> Circuit {
    Circuit::builder().run_by(run_by).build().expect("a thread")
}

/// Circuits that have a driver thread, or run when a caller waits for them.
fn circuits() -> impl Iterator<Item = Circuit> {
    let pool = ThreadPool::new(1).expect("a thread");
    [RunBy::Pool(pool), RunBy::Thread, RunBy::Waiters].into_iter().map(circuit)
}

/// Makes two threads close the same thing concurrently, each in its own way, and checks what has
/// ended when the second call returns.
fn close_beside<T: Sync>(
    thing: &T,
    one: impl Fn(&T) + Sync,
    other: impl Fn(&T),
    has_ended: impl Fn() -> bool,
) {
    let both = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            both.wait();
            one(thing);
        });
        both.wait();
        other(thing);
        assert!(has_ended(), "the waiter has seen the end");
    });
}

#[test]
fn a_closer_that_waits_sees_the_end_though_another_thread_closes_too() {
    let pool = ThreadPool::new(1).expect("a thread");
    for run_by in [RunBy::Pool(pool), RunBy::Waiters] {
        for _ in 0..3000 {
            let circuit = circuit(run_by.clone());
            let conduit = circuit.conduit().expect("open");
            let (held, ends) = (Arc::new(()), Arc::new(AtomicU64::new(0)));
            let (kept, counts) = (Arc::clone(&held), Arc::clone(&ends));
            let subscription = subscribe(
                &circuit,
                &conduit,
                |_| (),
                move |_| {
                    counts.fetch_add(1, Ordering::Relaxed);
                },
            );
            let pipe: Pipe<u64> = circuit.pipe(move |_| _ = &kept).expect("open");
            pipe.emit(1);
            close_beside(
                &subscription,
                Subscription::close,
                |subscription| subscription.close_and_settle().expect("outside"),
                || ends.load(Ordering::Relaxed) == 1,
            );
            let second = subscribe(&circuit, &conduit, |_| (), {
                let counts = Arc::clone(&ends);
                move |_| {
                    counts.fetch_add(1, Ordering::Relaxed);
                }
            });
            let other = circuit.clone();
            close_beside(
                &second,
                |_| other.close(),
                |second| second.close_and_settle().expect("outside"),
                || ends.load(Ordering::Relaxed) == 2,
            );
            close_beside(
                &circuit,
                Circuit::close,
                |circuit| circuit.close_and_settle().expect("outside"),
                || Arc::strong_count(&held) == 1,
            );
        }
    }
}

/// Subscribes with a function for the emissions, and one for the end.
fn subscribe(
    circuit: &Circuit,
    conduit: &Conduit<u64>,
    hear: impl FnMut(u64) + Send + Clone + 'static,
    on_close: impl FnOnce(&Subscription<u64>) + Send + 'static,
) -> Subscription<u64> {
    let subscriber = circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u64>| {
        registrar.receptor(hear.clone());
    });
    conduit.subscribe_with(&subscriber.expect("open"), on_close).expect("open")
}

#[test]
fn what_is_open_ends_once_in_its_order_in_the_circuit_before_the_circuit() {
    for circuit in circuits() {
        let (sender, ends) = mpsc::channel();
        let conduits = [circuit.conduit().expect("open"), circuit.conduit().expect("open")];
        let subscriptions: Vec<_> = (0..6)
            .map(|number| {
                let sender = sender.clone();
                subscribe(
                    &circuit,
                    &conduits[number % 2],
                    |_| (),
                    move |_| {
                        sender.send((number, Current::here())).expect("received");
                    },
                )
            })
            .collect();
        subscriptions[3].close();
        circuit.close_and_settle().expect("outside");
        subscriptions[4].close();
        conduits.iter().for_each(Conduit::close);
        let ended = ends.try_iter().map(|(number, here)| {
            assert_eq!(here, *circuit.current());
            number
        });
        assert_eq!(ended.collect::<Vec<_>>(), [3, 0, 1, 2, 4, 5]);
    }
}

#[test]
fn a_subscription_without_any_pipe_ends_too() {
    for circuit in circuits() {
        let (sender, ends) = mpsc::channel();
        let conduit = circuit.conduit().expect("open");
        subscribe(&circuit, &conduit, |_| (), move |_| sender.send(()).expect("received"));
        circuit.settle().expect("outside");
        circuit.close_and_settle().expect("outside");
        assert_eq!(ends.try_iter().count(), 1);
    }
}

#[test]
fn a_subscription_goes_with_its_conduit_whether_that_is_dropped_before_it_begins_or_later() {
    for begins_first in [false, true] {
        let circuit = circuit(RunBy::Waiters);
        let (sender, ends) = mpsc::channel();
        let conduit = circuit.conduit().expect("open");
        let subscription = subscribe(&circuit, &conduit, |_| (), move |_| sender.send(()).expect("received"));
        drop(subscription);
        if begins_first {
            circuit.settle().expect("outside");
        }
        drop(conduit);
        circuit.close_and_settle().expect("outside");
        let ended = ends.try_recv();
        assert_eq!(ended, Err(TryRecvError::Disconnected), "it is dropped without a call");
    }
}

#[test]
fn a_held_subscription_ends_with_the_circuit_though_its_conduit_is_gone() {
    for begins_first in [false, true] {
        for closes_itself in [false, true] {
            let circuit = circuit(RunBy::Waiters);
            let (sender, ends) = mpsc::channel();
            let conduit = circuit.conduit().expect("open");
            let subscription =
                subscribe(&circuit, &conduit, |_| (), move |_| sender.send(()).expect("received"));
            if begins_first {
                circuit.settle().expect("outside");
            }
            drop(conduit);
            circuit.settle().expect("outside");
            assert_eq!(ends.try_iter().count(), 0, "no call has ended it");
            if closes_itself {
                subscription.close();
            }
            circuit.close_and_settle().expect("outside");
            assert_eq!(ends.try_iter().count(), 1);
        }
    }
}

#[test]
fn what_is_emitted_at_the_end_is_handled_with_all_that_it_causes_before_the_next_ends() {
    for circuit in circuits() {
        let (sender, log) = mpsc::channel();
        let conduit = circuit.conduit::<u64>().expect("open");
        for number in 0..3 {
            let (heard, ended, last_words) =
                (sender.clone(), sender.clone(), conduit.get(name!("a")).clone());
            subscribe(
                &circuit,
                &conduit,
                move |value| heard.send(format!("{number} hears {value}")).expect("received"),
                move |_| {
                    ended.send(format!("{number} ends")).expect("received");
                    last_words.emit(number);
                },
            );
        }
        drop(sender);
        circuit.close_and_settle().expect("outside");
        let expected =
            ["0 ends", "1 hears 0", "2 hears 0", "1 ends", "2 hears 1", "2 ends"].map(str::to_owned);
        assert_eq!(log.try_iter().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_cascade_at_the_end_comes_to_its_own_end_first() {
    for circuit in circuits() {
        let (sender, log) = mpsc::channel();
        let own = Arc::new(OnceLock::<WeakPipe<u64>>::new());
        let again = Arc::clone(&own);
        let countdown = circuit
            .pipe(move |number: u64| {
                sender.send(number).expect("received");
                if number > 0 {
                    again.get().expect("set").emit(number - 1);
                }
            })
            .expect("open");
        own.set(countdown.downgrade()).expect("once");
        let conduit = circuit.conduit().expect("open");
        for _ in 0..2 {
            let countdown = countdown.clone();
            subscribe(&circuit, &conduit, |_| (), move |_| countdown.emit(3));
        }
        circuit.close_and_settle().expect("outside");
        countdown.emit(9);
        assert_eq!(log.iter().collect::<Vec<_>>(), [3, 2, 1, 0, 3, 2, 1, 0], "and the receptor is gone");
    }
}

#[test]
fn a_failing_close_callback_stops_no_other_callback_and_is_reported() {
    for circuit in circuits() {
        let (sender, log) = mpsc::channel();
        let conduit = circuit.conduit().expect("open");
        for number in 0..3 {
            let sender = sender.clone();
            subscribe(
                &circuit,
                &conduit,
                |_| (),
                move |_| {
                    sender.send(number.to_string()).expect("received");
                    assert!(number != 1, "not now");
                },
            );
        }
        let faults = circuit.faults().expect("open");
        let subscriber = circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, Failure>| {
            let sender = sender.clone();
            registrar.receptor(move |failure: Failure| {
                sender.send(format!("{}: {}", failure.operation(), failure.message())).expect("received");
            });
        });
        faults.subscribe(&subscriber.expect("open")).expect("open");
        circuit.close_and_settle().expect("outside");
        assert_eq!(log.try_iter().collect::<Vec<_>>(), ["0", "1", "close: not now", "2"]);
    }
}

#[test]
fn a_subscriber_that_subscribes_again_at_the_end_is_refused_and_the_circuit_ends() {
    for circuit in circuits() {
        let (sender, refused) = mpsc::channel();
        let conduit = circuit.conduit::<u64>().expect("open");
        let again = conduit.clone();
        let subscriber = circuit.subscriber(|_: &Subject, _: &mut Registrar<'_, u64>| ()).expect("open");
        let same = subscriber.clone();
        conduit
            .subscribe_with(&subscriber, move |_| {
                sender.send(again.subscribe(&same).is_err()).expect("received");
            })
            .expect("open");
        circuit.close_and_settle().expect("outside");
        assert_eq!(refused.try_iter().collect::<Vec<_>>(), [true]);
    }
}

#[test]
fn an_owner_ends_its_circuit_step_by_step() {
    let circuit = circuit(RunBy::Owner);
    let (sender, log) = mpsc::channel();
    let conduit = circuit.conduit().expect("open");
    for number in 0..3 {
        let sender = sender.clone();
        subscribe(&circuit, &conduit, |_| (), move |_| sender.send(number).expect("received"));
    }
    circuit.run(usize::MAX);
    circuit.close();
    let mut steps = Vec::new();
    for _ in 0..5 {
        circuit.run(1);
        steps.push(log.try_iter().collect::<Vec<_>>());
    }
    assert_eq!(steps, [vec![0], vec![1], vec![2], vec![], vec![]]);
    circuit.settle().expect("it has ended");
}

#[test]
fn a_replay_ends_what_the_original_ended() {
    let run = |circuit: &Circuit| {
        let (sender, log) = mpsc::channel();
        let conduit = circuit.conduit::<u64>().expect("open");
        for number in 1..=2 {
            let (sender, words) = (sender.clone(), conduit.get(name!("a")).downgrade());
            let heard = move |value| sender.send((number, value)).expect("received");
            subscribe(circuit, &conduit, heard, move |_| words.emit(10 * number));
        }
        (conduit, log)
    };
    let original = circuit(RunBy::Waiters);
    let (conduit, before) = run(&original);
    original.settle().expect("outside");
    let recording = Recording::new(&original, Vec::new());
    recording.conduit("words", &conduit).expect("its own");
    recording.begin().expect("open");
    conduit.get(name!("a")).emit(1);
    original.close_and_settle().expect("outside");
    let journal = recording.finish().expect("in memory");

    let mut replay = Replay::new(&journal[..]).expect("a journal");
    let twin = Circuit::builder().run_by(RunBy::Owner).seed(replay.seed()).build().expect("valid");
    let (conduit, after) = run(&twin);
    replay.conduit("words", &conduit);
    let replayed = replay.run(&twin).expect("undamaged");
    assert_eq!((replayed.inputs, replayed.complete), (2, true), "an emission and the close");
    let after: Vec<_> = after.try_iter().collect();
    assert_eq!(after, [(1, 1), (2, 1), (2, 10)]);
    assert_eq!(before.try_iter().collect::<Vec<_>>(), after);
}

/// The test would not end in reasonable time if each subscription, or each later emission, cost
/// time for all pairs of subscriptions.
#[test]
fn one_of_many_subscriptions_begins_and_ends_without_asking_all_others() {
    const COUNT: u64 = 300_000;
    let circuit = circuit(RunBy::Waiters);
    let sum = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&sum);
    let subscriber = circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u64>| {
        let seen = Arc::clone(&seen);
        registrar.receptor(move |value| _ = seen.fetch_add(value, Ordering::Relaxed));
    });
    let subscriber = subscriber.expect("open");
    let conduit = circuit.conduit().expect("open");
    let subscriptions: Vec<_> = (0..COUNT).map(|_| conduit.subscribe(&subscriber).expect("open")).collect();
    for (closed, first) in (0..4).zip(&subscriptions) {
        conduit.get(name!("a")).emit(1);
        circuit.settle().expect("outside");
        assert_eq!(sum.swap(0, Ordering::Relaxed), COUNT - closed);
        first.close();
    }
    subscriptions.last().expect("many").close();
    conduit.subscribe(&subscriber).expect("open");
    conduit.get(name!("a")).emit(1);
    circuit.close_and_settle().expect("outside");
    assert_eq!(sum.load(Ordering::Relaxed), COUNT - 4);
}

/// A value that receptors hold, and a probe that shows whether it still exists.
fn held() -> (Arc<()>, Weak<()>) {
    let held = Arc::new(());
    let seen = Arc::downgrade(&held);
    (held, seen)
}

/// Waits until a circuit with threads is freed.
#[track_caller]
fn assert_gone(seen: &Weak<()>) {
    wait_until(|| seen.strong_count() == 0, "nothing keeps it");
}

/// Circuits with every driver.
fn every_circuit() -> impl Iterator<Item = Circuit> {
    circuits().chain([circuit(RunBy::Owner)])
}

#[test]
fn pipes_that_lead_to_pipes_of_their_circuit_do_not_keep_it() {
    for circuit in every_circuit() {
        let (held, seen) = held();
        let end = circuit.pipe(move |_: u64| _ = &held).expect("open");
        let captured = end.clone();
        let middle = circuit.pipe(move |value: u64| captured.emit(value)).expect("open");
        let front = middle.prepend(&Fiber::new().diff()).expect("open");
        let all = circuit.fan_out(&[front, end]).expect("open");
        drop((middle, all));
        drop(circuit);
        assert_gone(&seen);
    }
}

#[test]
fn emissions_before_the_last_handle_is_dropped_are_handled_through_all_pipes() {
    for keeps_pipe_longer in [false, true] {
        let circuit = circuit(RunBy::Waiters);
        let (sender, out) = mpsc::channel();
        let end = circuit.pipe(move |value: u64| sender.send(value).expect("received")).expect("open");
        let pipe = circuit.pipe(move |value: u64| end.emit(value + 1)).expect("open");
        pipe.emit(1);
        if keeps_pipe_longer {
            drop(circuit);
            assert_eq!(out.try_iter().collect::<Vec<_>>(), [2]);
            pipe.emit(5);
            drop(pipe);
            assert_eq!(out.iter().collect::<Vec<_>>(), [6]);
        } else {
            drop(pipe);
            drop(circuit);
            assert_eq!(out.iter().collect::<Vec<_>>(), [2]);
        }
    }
}

#[test]
fn a_circuit_whose_owner_is_gone_refuses_emissions() {
    let circuit = circuit(RunBy::Owner);
    let (held, seen) = held();
    let own = Arc::new(OnceLock::<Pipe<u64>>::new());
    let again = Arc::clone(&own);
    let pipe =
        circuit.pipe(move |value: u64| _ = (&held, again.get().map(|pipe| pipe.emit(value)))).expect("open");
    own.set(pipe.clone()).expect("once");
    drop(own);
    pipe.emit(1);
    drop(circuit);
    assert_eq!(seen.strong_count(), 0, "although it holds itself");
    assert!(pipe.try_emit(2).is_err());
}

#[test]
fn whatever_else_is_left_of_a_circuit_that_its_owner_has_dropped_is_closed() {
    let circuit = circuit(RunBy::Owner);
    let (held, seen) = held();
    let conduit = circuit.conduit::<u64>().expect("open");
    let mut lane = circuit.lane().expect("open");
    let pipe = circuit.pipe(move |_: u64| _ = &held).expect("open");
    let subscription = subscribe(&circuit, &conduit, |_| (), |_| ());
    let subscriber = circuit.subscriber(|_: &Subject, _: &mut Registrar<'_, u64>| ()).expect("open");
    drop(circuit.clone());
    assert!(!conduit.is_closed(), "a handle that can run it is left");
    conduit.get(name!("a")).emit(1);
    drop(circuit);
    assert_eq!(seen.strong_count(), 0, "although there is a handle of its pipe");
    assert!(conduit.is_closed() && conduit.subscribe(&subscriber).is_err());
    assert!(conduit.get(name!("a")).try_emit(2).is_err());
    lane.emit(&pipe, 3);
    subscription.close();
    conduit.close_and_settle().expect("nothing is waited for");
}

#[test]
fn a_loop_through_a_weak_pipe_does_not_keep_its_circuit_and_comes_to_its_end() {
    for pipe_goes_first in [false, true] {
        for circuit in circuits() {
            let (held, seen) = held();
            let (sender, out) = mpsc::channel();
            let own = Arc::new(OnceLock::<WeakPipe<u64>>::new());
            let again = Arc::clone(&own);
            let pipe = circuit.pipe(move |value: u64| {
                sender.send((value, Arc::strong_count(&held) > 0)).expect("received");
                if value > 0 {
                    again.get().expect("set").emit(value - 1);
                }
            });
            let pipe = pipe.expect("open");
            own.set(pipe.downgrade()).expect("once");
            pipe.emit(100);
            // The last handle may be dropped while the circuit runs: its release is queued after
            // the emissions.
            if pipe_goes_first {
                drop((pipe, circuit));
            } else {
                drop((circuit, pipe));
            }
            assert!(out.iter().map(|(value, _)| value).eq((0..=100).rev()));
            assert_gone(&seen);
            let weak = own.get().expect("set");
            weak.emit(1);
            assert!(weak.upgrade().is_none());
            assert_eq!(weak.clone().subject().name(), name!("circuit"));
        }
    }
}

/// Emits to itself when it is dropped.
struct Phoenix(Arc<OnceLock<WeakPipe<u64>>>, mpsc::Sender<u64>);

impl Drop for Phoenix {
    fn drop(&mut self) {
        self.0.get().expect("set").emit(1);
    }
}

#[test]
fn a_receptor_that_emits_to_itself_when_it_is_dropped_is_gone() {
    for circuit in circuits() {
        let (sender, out) = mpsc::channel();
        let own = Arc::new(OnceLock::new());
        let phoenix = Phoenix(Arc::clone(&own), sender);
        let pipe = circuit.pipe(move |value: u64| phoenix.1.send(value).expect("received")).expect("open");
        own.set(pipe.downgrade()).expect("once");
        // The receptor's own weak pipe remains: the node's memory is freed with it.
        drop(own);
        drop(pipe);
        assert_eq!(circuit.settle(), Ok(()));
        assert_eq!(out.iter().count(), 0);
    }
}

#[test]
fn a_loop_through_a_conduit_lets_go_when_its_circuit_is_closed() {
    for circuit in circuits() {
        let (held, seen) = held();
        let conduit = circuit.conduit::<u64>().expect("open");
        let again = conduit.clone();
        let subscriber = circuit.subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, u64>| {
            let (pipe, held) = (again.get(subject).clone(), Arc::clone(&held));
            registrar.receptor(move |value: u64| {
                if value > 0 && Arc::strong_count(&held) > 0 {
                    pipe.emit(value - 1);
                }
            });
        });
        conduit.subscribe(&subscriber.expect("open")).expect("open");
        conduit.get(name!("a")).emit(3);
        circuit.settle().expect("outside");
        circuit.close_and_settle().expect("outside");
        drop((conduit, circuit));
        assert_gone(&seen);
    }
}

/// Drops a ticker a thousand times while the timer holds it.
#[test]
fn what_waits_for_a_dropped_circuit_with_a_ticker_is_not_handled_on_the_timers_thread() {
    const EVER: Duration = Duration::from_nanos(1);
    let other = circuit(RunBy::Thread);
    // The timer's thread stays, because it has another ticker.
    let _stays = other.ticker(EVER, &other.discard().expect("open")).expect("a thread");
    let strangers = Arc::new(AtomicU64::new(0));
    let main = thread::current().id();
    for _ in 0..1000 {
        let circuit = circuit(RunBy::Waiters);
        let counted = Arc::clone(&strangers);
        let target = circuit.pipe(move |_: u64| {
            counted.fetch_add(u64::from(thread::current().id() != main), Ordering::Relaxed);
        });
        let ticker = circuit.ticker(EVER, &target.expect("open")).expect("a thread");
        while circuit.stats().backlog == 0 {
            thread::yield_now();
        }
        drop((circuit, ticker));
    }
    assert_eq!(strangers.load(Ordering::Relaxed), 0);
}

#[test]
fn dropping_the_last_handle_leaks_nothing() {
    for round in 0..200 {
        for run_by in [RunBy::Waiters, RunBy::Owner] {
            let circuit = circuit(run_by);
            let (held, seen) = held();
            let end = circuit.pipe(move |_: u64| _ = &held).expect("open");
            let captured = end.clone();
            let pipe = circuit.pipe(move |value: u64| captured.emit(value)).expect("open");
            let weak = pipe.downgrade();
            let others = [
                thread::spawn(move || drop(circuit)),
                thread::spawn(move || {
                    pipe.emit(round);
                    drop(pipe);
                }),
                thread::spawn(move || drop(weak.upgrade())),
            ];
            drop(end);
            others.into_iter().for_each(|other| other.join().expect("no panic"));
            assert_eq!(seen.strong_count(), 0);
        }
    }
}

/// A receptor that must not receive any value.
struct Keeper {
    _held: Arc<()>,
    _circuit: Circuit,
}

impl Receptor<u32> for Keeper {
    fn receive(&mut self, value: u32) {
        panic!("{value} came after the end");
    }
}

#[test]
fn a_pipe_that_is_made_while_its_circuit_ends_has_no_receptor() {
    for circuit in every_circuit() {
        let (held, seen) = held();
        let closing = circuit.clone();
        // The circuit is open when the pipe is requested, and has ended when it is made.
        let pipe = circuit.pipe_from(move || {
            closing.close();
            while closing.run(100) {}
            closing.settle().expect("outside");
            Keeper { _held: Arc::clone(&held), _circuit: closing.clone() }
        });
        assert!(seen.upgrade().is_none(), "the close has returned, so receptors are gone");
        let pipe = pipe.expect("asked for in time");
        pipe.emit(1);
        drop((pipe, circuit));
    }
}

#[test]
fn a_bank_is_closed_to_its_circuit_from_the_place_of_the_close_on() {
    let circuit = Circuit::builder().run_by(RunBy::Owner).build().expect("a circuit");
    let bank = circuit.bank::<u64>().expect("an open circuit");
    let (sender, received) = mpsc::channel();
    let asked = bank.clone();
    let ask =
        circuit.pipe(move |name: Name| sender.send(asked.get(name).is_ok()).expect("a receiver listens"));
    let ask = ask.expect("an open circuit");
    ask.emit(name!("before"));
    bank.close();
    ask.emit(name!("behind"));
    assert!(bank.get(name!("outside")).is_err(), "the closing thread sees it immediately");
    while circuit.run(10) {}
    assert_eq!(received.try_iter().collect::<Vec<_>>(), [true, false]);
}

#[test]
fn what_a_circuit_has_of_a_bank_when_it_comes_to_its_close_is_closed_too() {
    let circuit = Circuit::builder().run_by(RunBy::Owner).build().expect("a circuit");
    let bank = circuit.bank::<u64>().expect("an open circuit");
    let (sender, received) = mpsc::channel();
    let (asked, quiet) = (bank.clone(), circuit.subscriber(|_, _| {}).expect("an open circuit"));
    let ask = circuit.pipe(move |name: Name| {
        let ended = sender.clone();
        let on_end = move |_: &Subscription<u64>| ended.send(name).expect("a receiver listens");
        asked.get(name).expect("open to the circuit").subscribe_with(&quiet, on_end).expect("open");
    });
    let ask = ask.expect("an open circuit");
    // The circuit itself asks for all of them after the close from outside, not in the order of
    // their creation.
    ["b", "c", "a"].into_iter().for_each(|name| ask.emit(Name::new(name).expect("valid")));
    bank.close();
    while circuit.run(10) {}
    assert_eq!(received.try_iter().map(|name| name.path().to_owned()).collect::<Vec<_>>(), ["a", "b", "c"]);
}

#[test]
fn a_caller_that_closes_a_bank_finds_its_conduits_closed_before_the_circuit_comes_to_it() {
    let circuit = circuit(RunBy::Owner);
    let bank = circuit.bank::<u64>().expect("an open circuit");
    let conduits = [name!("a"), name!("b")].map(|name| bank.get(name).expect("open").clone());
    let quiet = circuit.subscriber(|_, _| {}).expect("an open circuit");
    let (sender, received) = mpsc::channel();
    let asked = conduits.clone();
    let ask = circuit.pipe(move |()| {
        sender.send(asked.each_ref().map(Conduit::is_closed)).expect("a receiver listens");
    });
    let ask = ask.expect("an open circuit");
    ask.emit(());
    bank.close();
    ask.emit(());
    for conduit in &conduits {
        assert!(conduit.is_closed() && conduit.subscribe(&quiet).is_err(), "nothing has run yet");
    }
    while circuit.run(10) {}
    let seen: Vec<_> = received.try_iter().collect();
    assert_eq!(seen, [[false; 2], [true; 2]], "the circuit itself knows it from its place in the order on");
}

#[test]
fn a_circuit_that_closes_a_bank_finds_its_conduits_closed() {
    let circuit = circuit(RunBy::Owner);
    let bank = circuit.bank::<u64>().expect("an open circuit");
    let conduits = [name!("a"), name!("b")].map(|name| bank.get(name).expect("open").clone());
    let quiet = circuit.subscriber(|_, _| {}).expect("an open circuit");
    let (sender, received) = mpsc::channel();
    let close = circuit.pipe(move |()| {
        bank.close();
        for conduit in &conduits {
            let is_closed = conduit.is_closed() && conduit.subscribe(&quiet).is_err();
            sender.send(is_closed).expect("a receiver listens");
        }
    });
    close.expect("an open circuit").emit(());
    while circuit.run(10) {}
    assert_eq!(received.try_iter().collect::<Vec<_>>(), [true, true]);
}

#[test]
fn the_close_of_a_bank_ends_what_hears_of_it_ahead_of_all_that_is_emitted_later() {
    for circuit in every_circuit() {
        let bank = circuit.bank::<u64>().expect("an open circuit");
        let (sender, received) = mpsc::channel::<String>();
        let said = sender.clone();
        let subscriber = circuit.subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, u64>| {
            let (name, sender) = (subject.name(), said.clone());
            registrar.receptor(move |value| sender.send(format!("{name} {value}")).expect("received"));
        });
        let subscriber = subscriber.expect("an open circuit");
        let said = sender.clone();
        let other = circuit.pipe(move |what: &str| said.send(what.to_owned()).expect("received"));
        let other = other.expect("an open circuit");
        let conduits = [name!("b"), name!("a")].map(|name| {
            let conduit = bank.get(name).expect("open");
            let ended = sender.clone();
            let on_end = move |_: &Subscription<u64>| ended.send(format!("end of {name}")).expect("received");
            conduit.subscribe_with(&subscriber, on_end).expect("open");
            conduit.get(name)
        });
        conduits.iter().for_each(|pipe| pipe.emit(1));
        bank.close();
        other.emit("behind");
        conduits.iter().for_each(|pipe| pipe.emit(2));
        settle(&circuit);
        let seen: Vec<_> = received.try_iter().collect();
        assert_eq!(seen, ["b 1", "a 1", "end of a", "end of b", "behind"]);
    }
}

/// A circuit that its owner runs, and a value that shows whether it was dropped.
fn owned() -> (Circuit, Arc<()>) {
    (circuit(RunBy::Owner), Arc::default())
}

#[test]
fn what_an_owner_has_not_handled_goes_with_the_circuit() {
    let (circuit, kept) = owned();
    let pipe = circuit.pipe(drop::<Arc<()>>).expect("open");
    pipe.emit(Arc::clone(&kept));
    drop(circuit);
    assert_eq!(Arc::strong_count(&kept), 1, "while a handle of its pipe is left");
    drop(pipe);
}

#[test]
fn what_an_owner_has_not_handled_does_not_keep_the_circuit() {
    let (circuit, kept) = owned();
    let basin = circuit.basin::<u64>(3).expect("valid");
    let (drained, pipe) = (circuit.discard::<u64>().expect("open"), circuit.discard().expect("open"));
    pipe.emit(Arc::clone(&kept));
    basin.drain(&drained);
    drop((circuit, basin, drained, pipe));
    assert_eq!(Arc::strong_count(&kept), 1);
}

#[test]
fn a_loop_through_a_conduit_ends_with_its_owners_circuit_without_a_close_callback() {
    let (circuit, kept) = owned();
    let (sender, ends) = mpsc::channel::<()>();
    let conduit = circuit.conduit::<u64>().expect("open");
    let (again, held) = (conduit.clone(), Arc::clone(&kept));
    let subscriber = circuit.subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, u64>| {
        assert_eq!(Arc::strong_count(&held), 2);
        registrar.pipe(again.get(subject.name()));
    });
    let on_close = move |_: &Subscription<u64>| sender.send(()).expect("received");
    conduit.subscribe_with(&subscriber.expect("open"), on_close).expect("open");
    while circuit.run(10) {}
    drop((conduit, circuit));
    assert_eq!(Arc::strong_count(&kept), 1);
    assert_eq!(ends.try_recv(), Err(TryRecvError::Disconnected));
}
