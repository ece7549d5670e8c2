//! Panics in callbacks.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tidemark_circuit::{
    ArgumentError, Circuit, Failure, Fiber, Flow, Name, Pipe, Receptor, Recipe, Recording, Registrar, Remedy,
    Replay, RunBy, Simulation, Subject, Supervision,
};

fn circuit() -> Circuit {
    Circuit::builder().run_by(RunBy::Waiters).build().expect("no thread is needed")
}

/// Subscribes to the failures of a circuit. The returned function gives the failures reported so
/// far.
fn watch(
    circuit: &Circuit,
    conduit: &tidemark_circuit::Conduit<Failure>,
) -> impl Fn() -> Vec<String> + use<> {
    let (sender, receiver) = mpsc::channel();
    let subscriber = circuit
        .subscriber(move |_: &Subject, registrar: &mut Registrar<'_, Failure>| {
            let sender = sender.clone();
            registrar.receptor(move |failure: Failure| {
                let text =
                    format!("{} {} {}", failure.subject().name(), failure.operation(), failure.message());
                sender.send(text).expect("received");
            });
        })
        .expect("open");
    conduit.subscribe(&subscriber).expect("open");
    let circuit = circuit.clone();
    move || {
        circuit.settle().expect("outside");
        receiver.try_iter().collect()
    }
}

fn named(path: &str) -> Name {
    Name::new(path).expect("valid")
}

#[test]
fn each_failure_is_reported_once_with_whose_it_was() {
    let circuit = circuit();
    let faults = circuit.faults().expect("open");
    let said = watch(&circuit, &faults);
    let pipe = circuit
        .named(named("strict"))
        .pipe(|value: u32| assert!(value < 3, "{value} is too much"))
        .expect("open");
    (1..=4).for_each(|value| pipe.emit(value));
    assert_eq!(said(), ["strict receive 3 is too much", "strict receive 4 is too much"]);
    assert_eq!(circuit.failures(), 2);

    let conduit = circuit.named(named("topic")).conduit::<u32>().expect("open");
    let subscriber = circuit
        .named(named("refuses"))
        .subscriber(|_: &Subject, _: &mut Registrar<'_, u32>| panic!("not this one"))
        .expect("open");
    let subscription = conduit.subscribe_with(&subscriber, |_| panic!("still open")).expect("open");
    conduit.get(named("a")).emit(1);
    conduit.get(named("a")).emit(2);
    assert_eq!(said(), ["refuses subscribe not this one"]);
    subscription.close();
    assert_eq!(said(), ["refuses close still open"]);
    drop(faults);
    pipe.emit(9);
    assert_eq!(said(), Vec::<String>::new(), "a dropped conduit gets nothing");
    assert_eq!(circuit.failures(), 5);
}

#[test]
fn a_subscriber_of_failures_that_fails_is_not_notified_of_its_own_failure() {
    let circuit = circuit();
    let faults = circuit.faults().expect("open");
    let subscriber = circuit
        .subscriber(|_: &Subject, registrar: &mut Registrar<'_, Failure>| {
            registrar.receptor(|_: Failure| panic!("this too"));
        })
        .expect("open");
    faults.subscribe(&subscriber).expect("open");
    circuit.pipe(|_: u32| panic!("first")).expect("open").emit(1);
    circuit.settle().expect("it comes to an end");
    assert_eq!(circuit.failures(), 2);
}

#[test]
fn pipes_that_fail_on_failure_reports_get_one_report_for_each_input() {
    let circuit = circuit();
    let (log, reports) = mpsc::channel();
    let log = circuit.pipe(move |failure: Failure| {
        log.send(failure.message().to_owned()).expect("received");
        panic!("the disk is full");
    });
    let log = log.expect("open");
    // Two subscriptions to failures are no worse than one, and a pipe that forwards to the pipe
    // makes no difference.
    let both = [circuit.faults().expect("open"), circuit.faults().expect("open")];
    for faults in &both {
        let log = circuit.named(named("to.log")).forward(&log).expect("open");
        let subscriber = circuit
            .subscriber(move |_: &Subject, registrar: &mut Registrar<'_, Failure>| registrar.pipe(&log));
        faults.subscribe(&subscriber.expect("open")).expect("open");
    }
    let pipe = circuit.pipe(|value: u32| panic!("{value} is too much")).expect("open");
    (7..9).for_each(|value| pipe.emit(value));
    circuit.close_and_settle().expect("it comes to an end");
    let expected = ["7 is too much", "7 is too much", "8 is too much", "8 is too much"];
    assert_eq!(reports.iter().collect::<Vec<_>>(), expected);
    assert_eq!(circuit.failures(), 6);
}

#[test]
fn all_failures_of_an_input_are_reported_before_any_subscriber_handles_one() {
    let circuit = circuit();
    let faults = circuit.faults().expect("open");
    let said = watch(&circuit, &faults);
    let strict = circuit.named(named("strict")).pipe(|value: u32| panic!("{value}")).expect("open");
    let twice = circuit.named(named("twice")).pipe({
        let strict = strict.clone();
        move |value: u32| {
            strict.emit(value);
            strict.emit(value + 1);
        }
    });
    let twice = twice.expect("open");
    (1..=2).for_each(|value| twice.emit(10 * value));
    let expected = ["strict receive 10", "strict receive 11", "strict receive 20", "strict receive 21"];
    assert_eq!(said(), expected);
}

#[test]
fn a_receptor_that_fails_often_is_put_in_quarantine() {
    let supervision = Supervision::Quarantine { after: 2 };
    let circuit = Circuit::builder().run_by(RunBy::Waiters).supervision(supervision).build().expect("valid");
    let (sender, receiver) = mpsc::channel();
    let pipe: Pipe<i32> = circuit
        .pipe(move |value: i32| {
            sender.send(value).expect("received");
            assert!(value > 0, "{value} is not positive");
        })
        .expect("open");
    [1, -1, 2, -2, 3, -3].into_iter().for_each(|value| pipe.emit(value));
    circuit.settle().expect("outside");
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [1, -1, 2, -2]);
    assert_eq!(circuit.failures(), 2);
    assert!(receiver.recv().is_err(), "the receptor, and with it the sender, was dropped");
}

/// A circuit that restarts what fails, up to this many times within an hour.
fn restarting(at_most: u16) -> Circuit {
    let supervision = Supervision::Restart { at_most, within: Duration::from_hours(1) };
    Circuit::builder().run_by(RunBy::Waiters).supervision(supervision).build().expect("valid")
}

/// A pipe that sends to a channel.
fn pipe_to<E: Send + 'static>(circuit: &Circuit) -> (Pipe<E>, mpsc::Receiver<E>) {
    let (sender, receiver) = mpsc::channel();
    (circuit.pipe(move |value| sender.send(value).expect("received")).expect("open"), receiver)
}

/// Emits the values and returns the output once they are handled.
fn given<E: Send + 'static, O>(
    circuit: &Circuit,
    pipe: &Pipe<E>,
    values: impl IntoIterator<Item = E>,
    out: &mpsc::Receiver<O>,
) -> Vec<O> {
    values.into_iter().for_each(|value| pipe.emit(value));
    circuit.settle().expect("outside");
    out.try_iter().collect()
}

/// Sums its inputs, and panics if the sum modulo 100 is 99; the sum includes the input by then.
fn sums() -> impl Recipe<In = u64, Out = u64> {
    Flow::new().scan(|| 0, |sum, value| *sum += value).map(|sum| {
        assert!(sum % 100 != 99, "{sum} cannot be right");
        sum
    })
}

#[test]
fn operators_that_fail_begin_anew_with_the_state_that_their_recipe_says() {
    let values = [1, 2, 96, 4, 5];
    let (circuit, once) = (restarting(10), circuit());
    let (end, out) = pipe_to(&circuit);
    let pipe = end.prepend(&sums()).expect("open");
    assert_eq!(given(&circuit, &pipe, values, &out), [1, 3, 4, 9]);

    let (end, out) = pipe_to(&once);
    let pipe = end.prepend(&sums()).expect("open");
    assert_eq!(given(&once, &pipe, values, &out), [1, 3, 103, 108], "without a restart the sum goes on");
}

#[test]
fn a_restart_of_operators_is_none_of_what_they_lead_to() {
    let circuit = restarting(10);
    let (sender, out) = mpsc::channel();
    let end = circuit.pipe_from(move || {
        let (sender, mut count) = (sender.clone(), 0);
        move |value: u64| {
            count += 1;
            sender.send((count, value)).expect("received");
        }
    });
    let pipe = end.expect("open").prepend(&sums()).expect("open");
    assert_eq!(given(&circuit, &pipe, [1, 98, 5], &out), [(1, 1), (2, 5)], "the second that it was given");
}

#[test]
fn a_chain_that_draws_numbers_draws_others_after_a_restart() {
    let drawn = |fails_at: usize| {
        let circuit = restarting(10);
        let (end, out) = pipe_to(&circuit);
        let fiber =
            Fiber::new().peek(move |value| assert!(*value != fails_at)).chance(0.5).expect("a chance");
        let pipe = end.prepend(&fiber).expect("open");
        given(&circuit, &pipe, 0..200, &out)
    };
    let (undisturbed, disturbed) = (drawn(usize::MAX), drawn(100));
    let since = |drawn: &[usize]| drawn.iter().filter(|value| **value > 100).copied().collect::<Vec<_>>();
    assert_ne!(since(&undisturbed), since(&disturbed));
    assert_eq!(disturbed, drawn(100), "always the same ones");
}

/// Notes its creation and its drop.
struct Noted(mpsc::Sender<String>, u32);

impl Noted {
    fn new(sender: &mpsc::Sender<String>, number: u32) -> Self {
        sender.send(format!("made {number}")).expect("received");
        Self(sender.clone(), number)
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        let _ = self.0.send(format!("dropped {}", self.1));
    }
}

impl Receptor<u64> for Noted {
    fn receive(&mut self, value: u64) {
        self.0.send(format!("{} has {value}", self.1)).expect("received");
        assert!(value != 0, "zero");
    }
}

#[test]
fn a_receptor_that_a_function_makes_is_made_anew_after_the_old_one_is_dropped() {
    let circuit = restarting(10);
    let ((sender, out), mut number) = (mpsc::channel(), 0);
    let pipe = circuit.pipe_from(move || {
        number += 1;
        Noted::new(&sender, number)
    });
    let said = given(&circuit, &pipe.expect("open"), [7, 0, 8], &out);
    assert_eq!(said, ["made 1", "1 has 7", "1 has 0", "dropped 1", "made 2", "2 has 8"]);
    circuit.close_and_settle().expect("outside");
    assert_eq!(out.iter().collect::<Vec<_>>(), ["dropped 2"], "and the function, and its sender, are gone");
}

#[test]
fn a_receptor_without_a_factory_resumes_where_other_receptors_restart() {
    let circuit = restarting(0);
    let mut count = 0;
    let (sender, out) = mpsc::channel();
    let pipe = circuit.pipe(move |value: u64| {
        count += 1;
        assert!(value != 0, "zero");
        sender.send(count).expect("received");
    });
    assert_eq!(given(&circuit, &pipe.expect("open"), [5, 0, 0, 6], &out), [1, 4]);
}

#[test]
fn more_restarts_than_are_allowed_within_the_time_end_in_quarantine() {
    let mut simulation = Simulation::new(1);
    let supervision = Supervision::Restart { at_most: 2, within: Duration::from_secs(10) };
    let circuit = simulation.circuit_from(Circuit::builder().supervision(supervision)).expect("valid");
    let (sender, out) = mpsc::channel();
    let pipe = circuit.pipe_from(move || {
        let sender = sender.clone();
        move |value: u64| {
            sender.send(value).expect("received");
            panic!("always");
        }
    });
    let pipe = pipe.expect("open");
    // At 0, 6, 12, 18 … seconds: never more than two within ten. The third of the last ones exceeds
    // the limit.
    for (value, pause) in (0..).zip([6, 6, 6, 6, 6, 1, 1, 1]) {
        pipe.emit(value);
        simulation.run();
        simulation.advance(Duration::from_secs(pause));
    }
    assert_eq!(out.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6], "then it was dropped");
    assert_eq!(circuit.failures(), 7);
}

#[test]
fn a_receptor_or_chain_whose_factory_fails_is_quarantined_and_both_failures_are_reported() {
    let circuit = restarting(10);
    let faults = circuit.faults().expect("open");
    let said = watch(&circuit, &faults);
    let mut is_first = true;
    let pipe = circuit.named(named("once")).pipe_from(move || {
        assert!(std::mem::take(&mut is_first), "there was one only");
        |_: u64| panic!("broken")
    });
    let pipe = pipe.expect("open");
    (0..3).for_each(|value| pipe.emit(value));
    assert_eq!(said(), ["once receive broken", "once restart there was one only"]);

    let refusals = Arc::new(AtomicU32::new(0));
    let asked = Arc::clone(&refusals);
    let flow = Flow::<u64>::new().map(|value| 10 / value).fiber_for(move |_| {
        match asked.fetch_add(1, Ordering::Relaxed) {
            0 => Ok(Fiber::new()),
            _ => Err(ArgumentError::into(Fiber::<u64>::new().every(0).map(drop).expect_err("zero"))),
        }
    });
    let pipe = circuit.named(named("end")).discard().expect("open").prepend(&flow).expect("the first time");
    (0..3).for_each(|_| pipe.emit(0));
    let said = said();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[1].starts_with("end restart "), "{said:?}");
    assert_eq!(circuit.failures(), 4);
}

#[test]
fn a_failure_says_whose_it_was_what_it_was_how_often_and_what_was_done() {
    let circuit = Circuit::builder()
        .run_by(RunBy::Waiters)
        .name(named("plant"))
        .supervision(Supervision::Restart { at_most: 1, within: Duration::from_hours(1) })
        .build()
        .expect("valid");
    let faults = circuit.faults().expect("open");
    let (sender, reports) = mpsc::channel();
    let subscriber = circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, Failure>| {
        let sender = sender.clone();
        registrar.receptor(move |failure| sender.send(failure).expect("received"));
    });
    faults.subscribe(&subscriber.expect("open")).expect("open");
    let made = circuit.named(named("made")).pipe_from(|| |_: u64| panic!("bad")).expect("open");
    let plain = circuit.named(named("plain")).pipe(|_: u64| panic!("bad")).expect("open");
    for pipe in [&made, &made, &made, &plain, &plain] {
        pipe.emit(1);
    }
    circuit.settle().expect("outside");
    let reports: Vec<_> = reports.try_iter().map(|failure: Failure| failure.to_string()).collect();
    let (made, plain) = (made.subject(), plain.subject());
    assert!(format!("{made:?}").starts_with("cortex:cortex/circuit:plant/pipe:made#"));
    assert_eq!(
        reports,
        [
            format!("{made:?} failed to receive: bad (1 time, restarted)"),
            format!("{made:?} failed to receive: bad (2 times, quarantined)"),
            format!("{plain:?} failed to receive: bad (1 time, resumed)"),
            format!("{plain:?} failed to receive: bad (2 times, resumed)"),
        ]
    );
}

#[test]
fn a_pipe_may_be_supervised_otherwise_than_its_circuit() {
    let circuit = restarting(10);
    let faults = circuit.faults().expect("open");
    let (sender, reports) = mpsc::channel();
    let subscriber = circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, Failure>| {
        let sender = sender.clone();
        registrar.receptor(move |failure: Failure| {
            sender.send((failure.subject().name().to_string(), failure.remedy())).expect("received");
        });
    });
    faults.subscribe(&subscriber.expect("open")).expect("open");
    let fails = || |value: u64| assert!(value == 0, "always");
    let careful = circuit.named(named("careful")).supervised(Supervision::Quarantine { after: 1 });
    let careful = careful.pipe_from(fails).expect("open");
    let in_front =
        careful.prepend(&Fiber::new().peek(|value| assert!(*value == 0, "in front"))).expect("open");
    let patient = circuit.supervised(Supervision::Resume).pipe_from(fails).expect("open");
    let usual = circuit.pipe_from(fails).expect("open");
    for pipe in [&in_front, &careful, &in_front, &careful, &patient, &usual] {
        pipe.emit(1);
    }
    circuit.settle().expect("outside");
    let expected = [
        ("careful", Remedy::Quarantined),
        ("careful", Remedy::Quarantined),
        ("circuit", Remedy::Resumed),
        ("circuit", Remedy::Restarted),
    ];
    assert_eq!(
        reports.try_iter().collect::<Vec<_>>(),
        expected.map(|(name, remedy)| (name.to_owned(), remedy))
    );
}

#[test]
fn receptors_of_a_conduit_are_supervised_each_by_itself() {
    for (supervision, counts) in [
        (Supervision::Resume, [1, 2, 3, 4]),
        (Supervision::Quarantine { after: 2 }, [1, 2, 0, 0]),
        (Supervision::Restart { at_most: 10, within: Duration::from_hours(1) }, [1, 1, 1, 1]),
    ] {
        let circuit =
            Circuit::builder().run_by(RunBy::Waiters).supervision(supervision).build().expect("valid");
        let conduit = circuit.conduit::<u64>().expect("open");
        let ((sender, out), (healthy, all)) = (mpsc::channel(), mpsc::channel());
        let subscriber = circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u64>| {
            let (sender, healthy) = (sender.clone(), healthy.clone());
            registrar.receptor_from(move || {
                let (sender, mut count) = (sender.clone(), 0);
                move |_| {
                    count += 1;
                    sender.send(count).expect("received");
                    panic!("always");
                }
            });
            registrar.receptor(move |value| healthy.send(value).expect("received"));
        });
        conduit.subscribe(&subscriber.expect("open")).expect("open");
        let heard = given(&circuit, conduit.get(named("a")), 0..4, &out);
        assert_eq!(heard, counts.into_iter().filter(|count| *count > 0).collect::<Vec<_>>());
        assert_eq!(all.try_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    }
}

#[test]
fn what_comes_in_quarantine_goes_to_the_dead_letters_in_its_place() {
    let supervision = Supervision::Quarantine { after: 1 };
    let circuit = Circuit::builder().run_by(RunBy::Waiters).supervision(supervision).build().expect("valid");
    let (sender, log) = mpsc::channel();
    let (lost, done) = (sender.clone(), sender);
    let dead = circuit.pipe(move |value: u64| lost.send(("lost", value)).expect("received")).expect("open");
    let healthy =
        circuit.pipe(move |value: u64| done.send(("done", value)).expect("received")).expect("open");
    let pipe = circuit.dead_letters(&dead).pipe(|_: u64| panic!("at once")).expect("open");
    let both = circuit.fan_out(&[pipe, healthy]).expect("open");
    let expected = [("done", 1), ("done", 2), ("lost", 2), ("done", 3), ("lost", 3)];
    assert_eq!(given(&circuit, &both, 1..4, &log), expected, "the first failed, which is not asked for");
}

#[test]
fn what_failed_goes_to_the_dead_letters_too_if_that_is_asked_for() {
    for (at_most, expected) in [(10, vec![0, 0]), (1, vec![0, 0, 3]), (0, vec![0, 2, 0, 3])] {
        let circuit = restarting(at_most);
        let (dead, lost) = pipe_to(&circuit);
        let letters = circuit.dead_letters(&dead).including_failed();
        let values = [1, 0, 2, 0, 3];
        let pipe = letters.pipe_from(|| |value: u64| _ = 10 / value).expect("open");
        assert_eq!(given(&circuit, &pipe, values, &lost), expected);

        let end = circuit.discard().expect("open");
        let chain = letters.prepend(&end, &Flow::new().map(|value: u64| 10 / value)).expect("open");
        assert_eq!(given(&circuit, &chain, values, &lost), expected, "operators are no different");
    }
}

/// A value type of which some values cannot be cloned.
#[derive(Debug, PartialEq)]
struct Single(u32);

impl Clone for Single {
    fn clone(&self) -> Self {
        assert!(self.0 != 2, "there is only one {}", self.0);
        Self(self.0)
    }
}

#[test]
fn what_cannot_be_cloned_for_the_dead_letters_goes_there_itself() {
    let circuit = circuit();
    let ((dead, lost), (sender, out)) = (pipe_to::<Single>(&circuit), mpsc::channel());
    let letters = circuit.dead_letters(&dead).including_failed();
    let pipe = letters.pipe(move |value: Single| {
        assert!(value.0 != 3, "three is not liked");
        sender.send(value).expect("received");
    });
    let pipe = pipe.expect("open");
    assert_eq!(given(&circuit, &pipe, (1..=4).map(Single), &out), [Single(1), Single(4)]);
    assert_eq!(lost.try_iter().collect::<Vec<_>>(), [Single(2), Single(3)]);
    assert_eq!(circuit.failures(), 2);
}

#[test]
fn a_value_that_cannot_be_cloned_is_lost_only_to_the_receivers_of_its_copies() {
    for supervision in [Supervision::Resume, Supervision::Quarantine { after: 1 }] {
        let circuit =
            Circuit::builder().run_by(RunBy::Waiters).supervision(supervision).build().expect("valid");
        let faults = circuit.faults().expect("open");
        let said = watch(&circuit, &faults);
        let conduit = circuit.conduit::<Single>().expect("open");
        let outs = [true, false, true].map(|is_pipe| {
            let (sender, out) = mpsc::channel();
            let target = sender.clone();
            let target = circuit.pipe(move |value| target.send(value).expect("received")).expect("open");
            let subscriber = circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, Single>| {
                let sender = sender.clone();
                if is_pipe {
                    registrar.pipe(&target);
                } else {
                    registrar.receptor(move |value| sender.send(value).expect("received"));
                }
            });
            conduit.subscribe(&subscriber.expect("open")).expect("open");
            out
        });
        let pipe = conduit.get(named("a"));
        (1..=3).for_each(|value| pipe.emit(Single(value)));
        let copy = "a clone there is only one 2";
        assert_eq!(said(), [copy, copy]);
        let heard = outs.map(|out| out.try_iter().map(|value| value.0).collect::<Vec<_>>());
        assert_eq!(heard, [vec![1, 3], vec![1, 3], vec![1, 2, 3]], "the last is given the value itself");
    }
}

/// A value type of which some values panic when they are dropped.
#[derive(Clone)]
struct Stubborn(u32);

impl Drop for Stubborn {
    fn drop(&mut self) {
        assert!(self.0 != 2 || std::thread::panicking(), "two does not go");
    }
}

#[test]
fn what_a_circuit_has_made_itself_goes_on_whatever_a_value_does() {
    let supervision = Supervision::Quarantine { after: 1 };
    let circuit = Circuit::builder().run_by(RunBy::Waiters).supervision(supervision).build().expect("valid");
    let ((kept, out), values) = (pipe_to(&circuit), || [1, 2, 3, 4].map(Stubborn));
    let heard = |circuit: &Circuit| {
        circuit.settle().expect("outside");
        out.try_iter().map(|value: Stubborn| value.0).collect::<Vec<_>>()
    };

    let cell = circuit.cell(Stubborn(0)).expect("open");
    values().into_iter().for_each(|value| cell.pipe().emit(value));
    circuit.settle().expect("outside");
    assert_eq!(cell.get().0, 4);

    let port = circuit.port(Stubborn(0)).expect("open");
    values().into_iter().for_each(|value| port.replace(value));
    port.emit(&kept);
    assert_eq!(heard(&circuit), [4]);

    let basin = circuit.basin(1).expect("a capacity");
    values().into_iter().for_each(|value| basin.pipe().emit(value));
    basin.drain(&kept);
    assert_eq!(heard(&circuit), [4]);

    let conduit = circuit.conduit().expect("open");
    let nobody = conduit.get(named("nobody"));
    values().into_iter().for_each(|value| nobody.emit(value));
    circuit.settle().expect("outside");
    let reservoir = conduit.reservoir(1).expect("a capacity");
    values().into_iter().for_each(|value| nobody.emit(value));
    circuit.settle().expect("outside");
    assert_eq!(reservoir.drain().iter().map(|capture| capture.emission().0).collect::<Vec<_>>(), [4]);
    assert_eq!(circuit.failures(), 5);
}

#[test]
fn receptors_of_a_subscriber_may_be_supervised_otherwise_than_its_circuit() {
    let (rude, patient) = (Supervision::Quarantine { after: 1 }, Supervision::Resume);
    let restart = Supervision::Restart { at_most: 1, within: Duration::from_hours(1) };
    for (own, all, counts) in
        [(rude, patient, vec![1]), (patient, rude, vec![1, 2, 3]), (restart, rude, vec![1, 1])]
    {
        let circuit = Circuit::builder().run_by(RunBy::Waiters).supervision(all).build().expect("valid");
        let conduit = circuit.conduit::<u64>().expect("open");
        let (sender, out) = mpsc::channel();
        let subscriber =
            circuit.supervised(own).subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u64>| {
                let sender = sender.clone();
                registrar.receptor_from(move || {
                    let (sender, mut count) = (sender.clone(), 0);
                    move |_| {
                        count += 1;
                        sender.send(count).expect("received");
                        panic!("always");
                    }
                });
            });
        conduit.subscribe(&subscriber.expect("open")).expect("open");
        assert_eq!(given(&circuit, conduit.get(named("a")), 0..3, &out), counts);
    }
}

#[test]
fn dead_letters_may_be_handled_by_another_circuit() {
    let (circuit, other) = (restarting(0), circuit());
    let (dead, lost) = pipe_to::<String>(&other);
    let letters =
        circuit.named(named("risky")).supervised(Supervision::Quarantine { after: 1 }).dead_letters(&dead);
    let pipe = letters.pipe(|_: String| panic!("at once")).expect("open");
    (0..3).for_each(|value| pipe.emit(value.to_string()));
    circuit.close_and_settle().expect("outside");
    pipe.emit("too late".to_owned());
    drop(dead);
    other.settle().expect("outside");
    assert_eq!(
        lost.iter().collect::<Vec<_>>(),
        ["1", "2"],
        "and no reference keeps the other circuit's pipe"
    );
}

#[test]
fn a_target_of_another_circuit_is_refused_by_name() {
    let (circuit, other) = (circuit(), circuit());
    let fault = circuit.named(named("a")).prepend(&other.discard().expect("open"), &Fiber::<u64>::new());
    let fault = fault.expect_err("foreign");
    assert_eq!((fault.subject(), fault.operation()), (circuit.subject(), "pipe"));
}

#[test]
fn a_replay_restarts_and_gives_up_where_the_original_did() {
    fn build(circuit: &Circuit) -> (Vec<Pipe<u64>>, mpsc::Receiver<(u64, u64)>) {
        let (sender, out) = mpsc::channel();
        let pipes = (0..20).map(|number| {
            let sender = sender.clone();
            let pipe = circuit.pipe_from(move || {
                let (sender, mut count) = (sender.clone(), 0);
                move |_: u64| {
                    count += 1;
                    sender.send((number, count)).expect("received");
                    assert!(count < 2, "every other time");
                }
            });
            pipe.expect("open")
        });
        (pipes.collect(), out)
    }
    let supervision = Supervision::Restart { at_most: 2, within: Duration::from_millis(1) };
    let mut simulation = Simulation::new(1);
    let circuit = simulation.circuit_from(Circuit::builder().supervision(supervision)).expect("valid");
    let (pipes, before) = build(&circuit);
    let recording = Recording::new(&circuit, Vec::new());
    for (pipe, number) in pipes.iter().zip(0..) {
        recording.pipe(&format!("{number}"), pipe).expect("its own");
    }
    recording.begin().expect("open");
    // Every other round fails. The pause grows with each pipe: at first too many failures come
    // within a millisecond.
    for (number, pipe) in pipes.iter().enumerate() {
        for round in 0..10 {
            pipe.emit(round);
            simulation.run();
            simulation.advance(Duration::from_micros(100) * number as u32);
        }
    }
    let journal = recording.finish().expect("in memory");

    let mut replay = Replay::new(&journal[..]).expect("a journal");
    let builder = Circuit::builder().run_by(RunBy::Owner).seed(replay.seed()).supervision(supervision);
    let twin = builder.build().expect("valid");
    let (pipes, after) = build(&twin);
    pipes.iter().zip(0..).for_each(|(pipe, number)| replay.pipe(&format!("{number}"), pipe));
    assert!(replay.run(&twin).expect("undamaged").complete);
    assert_eq!(circuit.failures(), twin.failures());
    let seen: Vec<_> = before.try_iter().collect();
    let of = |pipe: u64| seen.iter().filter(|(number, _)| *number == pipe).count();
    assert!(of(0) < 10 && of(19) == 10, "the first pipe is given up, the last is not: {seen:?}");
    assert!(seen.into_iter().eq(after.try_iter()));
}

/// Panics when it is dropped.
struct Mine;

impl Drop for Mine {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "stepped on");
    }
}

impl Receptor<Mine> for Mine {
    fn receive(&mut self, value: Mine) {
        drop(value);
    }
}

#[test]
fn values_and_receptors_that_fail_to_drop_do_no_harm() {
    for run_by in [RunBy::Waiters, RunBy::Thread, RunBy::SharedPool] {
        let circuit = Circuit::builder().run_by(run_by).build().expect("valid");
        let (sender, receiver) = mpsc::channel();
        let pipe = circuit.pipe(Mine).expect("open");
        let healthy = circuit.pipe(move |value: u32| sender.send(value).expect("received")).expect("open");
        pipe.emit(Mine);
        drop(pipe);
        healthy.emit(1);
        circuit.settle().expect("outside");
        assert_eq!(receiver.recv(), Ok(1));
        let kept = circuit.pipe(Mine).expect("open");
        circuit.close_and_settle().expect("outside");
        drop(kept);
    }
}
