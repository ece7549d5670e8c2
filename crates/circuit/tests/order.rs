//! Random circuits and random callers against a plain queue: the order in which a circuit handles things is one that an
//! interpreter of a few lines predicts.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use proptest::prelude::*;
use tidemark_circuit::{Circuit, Conduit, Name, Pipe, Registrar, RunBy, Subject, ThreadPool};

/// What is emitted: who began it, which of his it is, and for how many steps it may still be handed on.
type Value = (usize, u32, u32);

/// A pipe that hands each value on to these others, in this order, as long as it has steps left.
#[derive(Clone, Debug)]
struct Node {
    targets: Vec<usize>,
    /// Whether it is a pipe of a conduit with as many subscribers, each of which hands on.
    subscribers: usize,
}

#[derive(Clone, Debug)]
struct Topology(Vec<Node>);

fn topology() -> impl Strategy<Value = Topology> {
    (1_usize..6).prop_flat_map(|count| {
        let node = (prop::collection::vec(0..count, 0..4), 0_usize..3)
            .prop_map(|(targets, subscribers)| Node { targets, subscribers });
        prop::collection::vec(node, count).prop_map(Topology)
    })
}

/// What one node was given, in the order of the circuit.
type Trace = Arc<Mutex<Vec<(usize, Value)>>>;

/// A topology in a circuit.
struct Built {
    circuit: Circuit,
    pipes: Arc<OnceLock<Vec<Pipe<Value>>>>,
    trace: Trace,
    _conduit: Conduit<Value>,
}

impl Topology {
    fn build(&self, circuit: Circuit) -> Built {
        let trace = Trace::default();
        let pipes: Arc<OnceLock<Vec<Pipe<Value>>>> = Arc::default();
        let conduit = circuit.conduit::<Value>().expect("open");
        let hand_on = |index: usize| {
            let (trace, pipes) = (Arc::clone(&trace), Arc::clone(&pipes));
            let targets = self.0[index].targets.clone();
            move |(caller, number, steps): Value| {
                trace.lock().expect("no panic").push((index, (caller, number, steps)));
                if steps > 0 {
                    let pipes = pipes.get().expect("made before anything is emitted");
                    targets.iter().for_each(|target| pipes[*target].emit((caller, number, steps - 1)));
                }
            }
        };
        let made = self.0.iter().enumerate().map(|(index, node)| {
            if node.subscribers == 0 {
                return circuit.pipe(hand_on(index)).expect("open");
            }
            let name = Name::new(&format!("node{index}")).expect("valid");
            for _ in 0..node.subscribers {
                let hand_on = hand_on(index);
                let subscriber = circuit
                    .subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, Value>| {
                        if subject.name() == name {
                            registrar.receptor(hand_on.clone());
                        }
                    })
                    .expect("open");
                conduit.subscribe(&subscriber).expect("open");
            }
            conduit.get(name).clone()
        });
        pipes.set(made.collect()).expect("once");
        Built { circuit, pipes, trace, _conduit: conduit }
    }

    /// What happens if these values come to these nodes: each is handled with all that it causes before the next, and what is
    /// caused is handled in the order in which it was caused.
    fn predict(&self, inputs: impl IntoIterator<Item = (usize, Value)>) -> Vec<(usize, Value)> {
        let mut trace = Vec::new();
        let mut transit = VecDeque::new();
        for input in inputs {
            transit.push_back(input);
            while let Some((index, (caller, number, steps))) = transit.pop_front() {
                let node = &self.0[index];
                for _ in 0..node.subscribers.max(1) {
                    trace.push((index, (caller, number, steps)));
                    if steps > 0 {
                        transit
                            .extend(node.targets.iter().map(|target| (*target, (caller, number, steps - 1))));
                    }
                }
            }
        }
        trace
    }
}

impl Built {
    fn emit(&self, node: usize, value: Value) {
        let pipes = self.pipes.get().expect("built");
        pipes[node % pipes.len()].emit(value);
    }

    fn take(&self) -> Vec<(usize, Value)> {
        std::mem::take(&mut *self.trace.lock().expect("no panic"))
    }
}

impl Drop for Built {
    fn drop(&mut self) {
        self.circuit.close();
    }
}

fn circuit(run_by: RunBy) -> Circuit {
    Circuit::builder().run_by(run_by).build().expect("a thread")
}

#[derive(Clone, Debug)]
enum Step {
    Emit { node: usize, steps: u32 },
    Run(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0_usize..6, 0_u32..4).prop_map(|(node, steps)| Step::Emit { node, steps }),
        1 => (1_usize..12).prop_map(Step::Run),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_circuit_that_its_owner_runs_does_what_is_predicted(
        topology in topology(),
        steps in prop::collection::vec(step(), 0..40),
    ) {
        let built = topology.build(circuit(RunBy::Owner));
        while built.circuit.run(100) {}
        let mut inputs = Vec::new();
        for (number, step) in (0_u32..).zip(steps) {
            match step {
                Step::Emit { node, steps } => {
                    let value = (0, number, steps);
                    built.emit(node, value);
                    inputs.push((node % topology.0.len(), value));
                }
                Step::Run(budget) => {
                    built.circuit.run(budget);
                }
            }
        }
        let mut runs = 0;
        while built.circuit.run(1) {
            runs += 1;
        }
        let expected = topology.predict(inputs);
        prop_assert!(runs <= expected.len(), "a run of one entry handles one");
        prop_assert_eq!(built.take(), expected);
    }
}

/// Emits from several callers at once and returns what the circuit made of it.
fn trace_of_callers(built: &Built, scripts: &[Vec<(usize, u32)>], by_lanes: bool) -> Vec<(usize, Value)> {
    let nodes = built.pipes.get().expect("built");
    thread::scope(|scope| {
        for (caller, script) in scripts.iter().enumerate() {
            scope.spawn(move || {
                let mut lane = by_lanes.then(|| built.circuit.lane().expect("open"));
                for (number, (node, steps)) in (0_u32..).zip(script) {
                    let value = (caller, number, *steps);
                    match &mut lane {
                        Some(lane) => lane.emit(&nodes[node % nodes.len()], value),
                        None => built.emit(*node, value),
                    }
                    if number % 7 == 3 {
                        built.circuit.settle().expect("outside");
                    }
                }
            });
        }
    });
    built.circuit.settle().expect("outside");
    built.take()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn a_circuit_with_any_driver_does_what_is_predicted_for_the_order_of_its_inputs(
        topology in topology(),
        scripts in prop::collection::vec(prop::collection::vec((0_usize..6, 0_u32..3), 0..20), 1..4),
        by_lanes in any::<bool>(),
    ) {
        let pool = ThreadPool::new(2).expect("threads");
        for run_by in [RunBy::Thread, RunBy::Waiters, RunBy::Pool(pool)] {
            let built = topology.build(circuit(run_by));
            built.circuit.settle().expect("outside");
            let trace = trace_of_callers(&built, &scripts, by_lanes);
            // The inputs in the order in which they were admitted: each is seen first with all of its steps.
            let mut next = vec![0; scripts.len()];
            let mut inputs = Vec::new();
            for (node, value @ (caller, number, steps)) in &trace {
                let script = &scripts[*caller];
                let at = next[*caller];
                let awaited = script.get(at).map(|(node, steps)| (node % topology.0.len(), *steps));
                if *number as usize == at && awaited == Some((*node, *steps)) {
                    next[*caller] += 1;
                    inputs.push((*node, *value));
                }
            }
            let lengths: Vec<usize> = scripts.iter().map(Vec::len).collect();
            prop_assert_eq!(next, lengths, "every input of every caller, in his order, once");
            prop_assert_eq!(trace, topology.predict(inputs));
        }
    }

    #[test]
    fn what_one_circuit_sends_another_arrives_in_its_order_once(
        topology in topology(),
        scripts in prop::collection::vec(prop::collection::vec((0_usize..6, 0_u32..3), 0..20), 1..3),
    ) {
        let pool = ThreadPool::new(2).expect("threads");
        for (first, second) in [
            (RunBy::Thread, RunBy::Pool(pool.clone())),
            (RunBy::Pool(pool.clone()), RunBy::Waiters),
            (RunBy::Waiters, RunBy::Thread),
        ] {
            // Everything that the first circuit sees goes on to the second.
            let second = topology.build(circuit(second));
            let first = circuit(first);
            let sent = Arc::new(Mutex::new(Vec::new()));
            let (log, pipes) = (Arc::clone(&sent), Arc::clone(&second.pipes));
            let forward = first
                .pipe(move |(node, value): (usize, Value)| {
                    let pipes = pipes.get().expect("built");
                    log.lock().expect("no panic").push((node % pipes.len(), value));
                    pipes[node % pipes.len()].emit(value);
                })
                .expect("open");
            thread::scope(|scope| {
                for (caller, script) in scripts.iter().enumerate() {
                    let forward = &forward;
                    scope.spawn(move || {
                        for (number, (node, steps)) in (0_u32..).zip(script) {
                            forward.emit((*node, (caller, number, *steps)));
                        }
                    });
                }
            });
            first.settle().expect("outside");
            second.circuit.settle().expect("outside");
            let sent = std::mem::take(&mut *sent.lock().expect("no panic"));
            for (caller, script) in scripts.iter().enumerate() {
                let own = sent.iter().filter(|(_, value)| value.0 == caller).map(|(_, value)| value.1);
                prop_assert!(own.eq(0..script.len() as u32));
            }
            prop_assert_eq!(second.take(), topology.predict(sent));
            first.close();
        }
    }
}
