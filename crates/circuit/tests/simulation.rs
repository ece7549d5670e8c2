//! Simulated runs depend on their seed and on nothing else.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidemark_circuit::{Circuit, Fiber, Name, Overflow, Registrar, Simulation, Subject};

/// Two circuits that send each other values, a conduit with a late subscriber, and operators that draw and look at the clock.
fn run(seed: u64) -> Vec<String> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = |who: &'static str| {
        let seen = Arc::clone(&seen);
        move |value: u64| seen.lock().expect("no panic").push(format!("{who} {value}"))
    };
    let mut simulation = Simulation::new(seed);
    let (first, second) = (simulation.circuit(), simulation.circuit());
    let end = second.pipe(note("end")).expect("open");
    let fiber = Fiber::<u64>::new().chance(0.7).and_then(|f| f.every_duration(Duration::from_micros(1)));
    let sampled = second.pipe(note("sampled")).expect("open").prepend(&fiber.expect("valid")).expect("open");
    let conduit = first.conduit::<u64>().expect("open");
    let log = note("conduit");
    let forward = first
        .pipe(move |value: u64| {
            log(value);
            end.emit(value);
            sampled.emit(value);
        })
        .expect("open");
    let subscriber = first
        .subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u64>| registrar.pipe(&forward))
        .expect("open");
    let name = Name::new("a").expect("valid");
    for caller in 0..3_u64 {
        let conduit = conduit.clone();
        simulation.caller((0..8).map(|step| {
            let conduit = conduit.clone();
            Box::new(move || conduit.get(name).emit(caller * 100 + step)) as Box<dyn FnOnce()>
        }));
    }
    let late = conduit.clone();
    simulation.caller([Box::new(move || drop(late.subscribe(&subscriber))) as Box<dyn FnOnce()>]);
    simulation.run();
    let seen = seen.lock().expect("no panic");
    seen.clone()
}

#[test]
fn a_seed_gives_one_run() {
    for seed in 0..20 {
        assert_eq!(run(seed), run(seed));
    }
}

#[test]
fn seeds_give_many_runs_and_each_keeps_the_order_of_callers() {
    let mut different = BTreeSet::new();
    for seed in 0..200 {
        let run = run(seed);
        for caller in ["end ", "end 1", "end 2"] {
            let of_caller =
                |text: &&String| text.starts_with(caller) && (text.len() > 5) == (caller.len() > 4);
            let own: Vec<_> = run.iter().filter(of_caller).collect();
            assert!(own.is_sorted(), "{own:?}");
        }
        different.insert(run);
    }
    assert!(different.len() > 190, "{} different runs of 200", different.len());
}

#[test]
fn time_passes_when_it_is_told_to() {
    let mut simulation = Simulation::new(1);
    let circuit = simulation.circuit();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let fiber = Fiber::<u32>::new().every_duration(Duration::from_hours(1)).expect("valid");
    let end = circuit.pipe(move |value| log.lock().expect("no panic").push(value)).expect("open");
    let pipe = end.prepend(&fiber).expect("open");
    for value in 0..4 {
        pipe.emit(value);
        simulation.run();
        simulation.advance(Duration::from_secs(1801));
    }
    assert_eq!(*seen.lock().expect("no panic"), [2]);
}

#[test]
fn circuits_may_be_bounded() {
    let mut simulation = Simulation::new(1);
    let builder = Circuit::builder().bounded(2, Overflow::Reject);
    let circuit = simulation.circuit_from(builder).expect("valid");
    let pipe = circuit.pipe(|_: u32| ()).expect("open");
    assert_eq!((0..5).filter(|value| pipe.try_emit(*value).is_ok()).count(), 2);
    simulation.run();
    assert_eq!((0..5).filter(|value| pipe.try_emit(*value).is_ok()).count(), 2);
}
