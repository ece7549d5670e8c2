//! A replay repeats the recorded observations. `replay.rs` beside this folder has more tests.

use tidemark_circuit::{Circuit, Recording, Registrar, Replay, RunBy, Subject, name};

use super::support::{Trace, circuits};

#[test]
fn xtr_09_a_replay_of_emissions_subscriptions_and_closes_is_observed_the_same() {
    let build = |circuit: &Circuit| {
        let trace = Trace::new();
        let seen = trace.clone();
        let subscriber = circuit
            .subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, u64>| {
                let (name, seen) = (subject.name(), seen.clone());
                registrar.receptor(move |value: u64| seen.push(format!("{name}={value}")));
            })
            .expect("open");
        (circuit.conduit::<u64>().expect("open"), subscriber, trace)
    };
    for circuit in circuits() {
        let (conduit, subscriber, first) = build(&circuit);
        let recording = Recording::new(&circuit, Vec::new());
        recording.conduit("conduit", &conduit).expect("its own");
        recording.subscriber("subscriber", &subscriber).expect("its own");
        recording.begin().expect("open");
        conduit.get(name!("a")).emit(1);
        let subscription = conduit.subscribe(&subscriber).expect("open");
        conduit.get(name!("a")).emit(2);
        conduit.get(name!("b")).emit(3);
        subscription.close();
        conduit.get(name!("b")).emit(4);
        circuit.close();
        conduit.get(name!("b")).emit(5);
        let journal = recording.finish().expect("memory does not fail");

        let mut replay = Replay::new(&journal[..]).expect("a journal");
        let twin = Circuit::builder().run_by(RunBy::Owner).seed(replay.seed()).build().expect("valid");
        let (conduit, subscriber, second) = build(&twin);
        replay.conduit("conduit", &conduit);
        replay.subscriber("subscriber", &subscriber);
        assert!(replay.run(&twin).expect("as recorded").complete);
        let observed = first.take();
        assert_eq!(observed, ["a=2", "b=3"]);
        assert_eq!(second.take(), observed);
        assert!(twin.is_closed());
    }
}
