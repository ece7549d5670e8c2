//! What becomes of panics in callbacks.

use std::sync::mpsc;

use tidemark_circuit::{Circuit, Failure, Name, Pipe, Receptor, Registrar, RunBy, Subject, Supervision};

fn circuit() -> Circuit {
    Circuit::builder().run_by(RunBy::Waiters).build().expect("no thread is needed")
}

/// Subscribes to the failures of a circuit and returns what was said so far whenever it is asked.
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
    assert_eq!(said(), Vec::<String>::new(), "a conduit that is gone is told nothing");
    assert_eq!(circuit.failures(), 5);
}

#[test]
fn who_fails_on_hearing_of_failures_is_not_told_of_that() {
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
