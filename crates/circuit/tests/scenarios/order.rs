//! Random circuits and random callers against a plain queue: an interpreter of a few lines predicts
//! the order in which a circuit handles values.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::thread;

use crate::limit::Limit;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tidemark_circuit::{
    Circuit, Conduit, Name, Overflow, Pipe, Registrar, RunBy, Subject, Subscriber, ThreadPool,
};

/// An emitted value: its caller, its number among the caller's values, and for how many steps it
/// may still be forwarded.
type Value = (usize, u32, u32);

/// A pipe that forwards each value to these targets, in this order, while the value has steps left.
#[derive(Clone, Debug)]
struct Node {
    targets: Vec<usize>,
    /// If not zero, the node is a pipe of a conduit with this many subscribers, each of which
    /// forwards.
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

/// The values that each node received, in the circuit's order.
type Trace = Arc<Mutex<Vec<(usize, Value)>>>;

/// A topology in a circuit.
struct Built {
    circuit: Circuit,
    pipes: Arc<OnceLock<Vec<Pipe<Value>>>>,
    trace: Trace,
    conduit: Conduit<Value>,
    /// Subscriber of all nodes that are pipes of the conduit.
    listener: Subscriber<Value>,
}

/// Offset of a node's index in what a listener received.
const LISTENER: usize = 100;

/// One input from outside.
enum Input {
    Emit(usize, Value),
    /// Adds a listener to the conduit after the existing ones, starting with the next input.
    Listen,
    /// Removes one of the listeners.
    Stop,
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
        let heard = Arc::clone(&trace);
        let listener = circuit.subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, Value>| {
            let name = subject.name().to_string();
            let index: usize = name.trim_start_matches("node").parse().expect("the name of a node");
            let heard = Arc::clone(&heard);
            registrar.receptor(move |value| heard.lock().expect("no panic").push((LISTENER + index, value)));
        });
        let listener = listener.expect("open");
        Built { circuit, pipes, trace, conduit, listener }
    }

    /// Predicts the trace of these inputs: each is handled with all that it causes before the next,
    /// and effects are handled in the order in which they were caused.
    fn predict(&self, inputs: impl IntoIterator<Item = (usize, Value)>) -> Vec<(usize, Value)> {
        self.predict_with_listeners(inputs.into_iter().map(|(node, value)| Input::Emit(node, value)))
    }

    /// As [`Topology::predict`]; a listener receives values after the topology's own subscribers,
    /// starting from its place in the order.
    fn predict_with_listeners(&self, inputs: impl IntoIterator<Item = Input>) -> Vec<(usize, Value)> {
        let mut trace = Vec::new();
        let mut transit = VecDeque::new();
        let mut listeners = 0;
        for input in inputs {
            match input {
                Input::Emit(node, value) => transit.push_back((node, value)),
                Input::Listen => listeners += 1,
                Input::Stop => listeners -= 1,
            }
            while let Some((index, value)) = transit.pop_front() {
                let (caller, number, steps) = value;
                let node = &self.0[index];
                for _ in 0..node.subscribers.max(1) {
                    trace.push((index, value));
                    if steps > 0 {
                        let caused = node.targets.iter().map(|target| (*target, (caller, number, steps - 1)));
                        transit.extend(caused);
                    }
                }
                let hearing = if node.subscribers > 0 { listeners } else { 0 };
                trace.extend((0..hearing).map(|_| (LISTENER + index, value)));
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
    Listen,
    Stop,
    Run(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_usize..6, 0_u32..4).prop_map(|(node, steps)| Step::Emit { node, steps }),
        1 => Just(Step::Listen),
        1 => Just(Step::Stop),
        3 => (1_usize..12).prop_map(Step::Run),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_circuit_that_its_owner_runs_does_what_is_predicted(
        topology in topology(),
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let built = topology.build(circuit(RunBy::Owner));
        while built.circuit.run(100) {}
        let (mut inputs, mut listening, mut changes) = (Vec::new(), VecDeque::new(), 0);
        for (number, step) in (0_u32..).zip(steps) {
            match step {
                Step::Emit { node, steps } => {
                    let value = (0, number, steps);
                    built.emit(node, value);
                    inputs.push(Input::Emit(node % topology.0.len(), value));
                }
                Step::Listen => {
                    listening.push_back(built.conduit.subscribe(&built.listener).expect("open"));
                    inputs.push(Input::Listen);
                    changes += 1;
                }
                Step::Stop => {
                    if let Some(subscription) = listening.pop_front() {
                        subscription.close();
                        inputs.push(Input::Stop);
                        changes += 1;
                    }
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
        let expected = topology.predict_with_listeners(inputs);
        prop_assert!(runs <= expected.len() + changes, "a run of one entry handles one");
        prop_assert_eq!(built.take(), expected);
    }
}

/// One emission of a thread: the node, the steps, and whether it uses the lane.
type Emission = (usize, u32, bool);

fn scripts(threads: usize) -> impl Strategy<Value = Vec<Vec<Emission>>> {
    let emission = (0_usize..6, 0_u32..3, any::<bool>());
    prop::collection::vec(prop::collection::vec(emission, 100..300), 2..=threads)
}

/// A caller is a source whose order is kept: a thread through the shared pipes, and the same thread
/// through its lane.
fn caller(thread: usize, by_lane: bool) -> usize {
    thread * 2 + usize::from(by_lane)
}

/// The emissions of each caller, in its order.
fn by_caller(scripts: &[Vec<Emission>]) -> Vec<Vec<(usize, u32)>> {
    let mut all = vec![Vec::new(); scripts.len() * 2];
    for (thread, script) in scripts.iter().enumerate() {
        for (node, steps, by_lane) in script {
            all[caller(thread, *by_lane)].push((*node, *steps));
        }
    }
    all
}

/// Emissions of a thread between two barriers.
const STRETCH: usize = 25;

/// Emits from several threads concurrently and returns the circuit's trace.
///
/// However busy the machine is, the threads' emissions mix: all threads meet at a barrier before
/// each stretch of [`STRETCH`] emissions, while all have one left.
fn trace_of_callers(built: &Built, scripts: &[Vec<Emission>]) -> Vec<(usize, Value)> {
    let nodes = built.pipes.get().expect("built");
    let meeting = &Barrier::new(scripts.len());
    let together = scripts.iter().map(Vec::len).min().expect("there are callers");
    thread::scope(|scope| {
        for (thread, script) in scripts.iter().enumerate() {
            scope.spawn(move || {
                let mut lane = built.circuit.lane().expect("open");
                let mut numbers = [0; 2];
                for (at, (node, steps, by_lane)) in script.iter().enumerate() {
                    if at % STRETCH == 0 && at < together {
                        meeting.wait();
                    }
                    let number = &mut numbers[usize::from(*by_lane)];
                    let value = (caller(thread, *by_lane), *number, *steps);
                    *number += 1;
                    if *by_lane {
                        lane.emit(&nodes[node % nodes.len()], value);
                    } else {
                        built.emit(*node, value);
                    }
                    if at % 31 == 3 {
                        built.circuit.settle().expect("outside");
                    }
                }
            });
        }
    });
    built.circuit.settle().expect("outside");
    built.take()
}

/// The inputs in the order of their admission, and how many are missing: each is first seen as it
/// was emitted, after those of the same caller.
fn inputs_of(
    trace: &[(usize, Value)],
    callers: &[Vec<(usize, u32)>],
    nodes: usize,
) -> Result<(Vec<(usize, Value)>, u64), TestCaseError> {
    let mut next = vec![0; callers.len()];
    let (mut inputs, mut missing) = (Vec::new(), 0);
    for (node, value @ (caller, number, steps)) in trace {
        let (script, at) = (&callers[*caller], *number as usize);
        if at >= next[*caller] {
            let emitted = script.get(at).map(|(node, steps)| (node % nodes, *steps));
            prop_assert_eq!(emitted, Some((*node, *steps)), "an input is what was emitted");
            missing += (at - next[*caller]) as u64;
            next[*caller] = at + 1;
            inputs.push((*node, *value));
        }
    }
    missing += callers.iter().zip(&next).map(|(script, next)| (script.len() - next) as u64).sum::<u64>();
    Ok((inputs, missing))
}

/// How often the next input is from another thread.
fn switches(inputs: &[(usize, Value)]) -> usize {
    let thread = |input: &(usize, Value)| input.1.0 / 2;
    inputs.windows(2).filter(|pair| thread(&pair[0]) != thread(&pair[1])).count()
}

#[test]
fn a_circuit_with_any_driver_does_what_is_predicted_for_the_order_of_its_inputs() {
    const CASES: u32 = 40;
    /// Each case has three circuits and at least four stretches, with another thread's emissions
    /// once in each.
    const SWITCHES_MIN: usize = CASES as usize * 3 * 4;
    let seen = Cell::new(0);
    let config = ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new(config);
    let case = |(topology, scripts): (Topology, Vec<Vec<Emission>>)| {
        let _limit = Limit::new();
        let pool = ThreadPool::new(2).expect("threads");
        let callers = by_caller(&scripts);
        for run_by in [RunBy::Thread, RunBy::Waiters, RunBy::Pool(pool)] {
            let built = topology.build(circuit(run_by));
            built.circuit.settle().expect("outside");
            let trace = trace_of_callers(&built, &scripts);
            let (inputs, missing) = inputs_of(&trace, &callers, topology.0.len())?;
            seen.set(seen.get() + switches(&inputs));
            prop_assert_eq!(missing, 0, "every input of every caller, in his order, once");
            prop_assert_eq!(trace, topology.predict(inputs));
        }
        Ok(())
    };
    runner.run(&(topology(), scripts(3)), case).expect("every order is the predicted one");
    assert!(seen.get() >= SWITCHES_MIN, "{} changes from one caller to another", seen.get());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn a_bounded_circuit_does_what_is_predicted_for_what_it_takes_and_counts_the_rest(
        topology in topology(),
        scripts in scripts(3),
        capacity in 1_usize..6,
    ) {
        let _limit = Limit::new();
        let pool = ThreadPool::new(2).expect("threads");
        let callers = by_caller(&scripts);
        for overflow in [Overflow::Block, Overflow::DropNewest, Overflow::DropOldest, Overflow::Reject] {
            for run_by in [RunBy::Thread, RunBy::Pool(pool.clone())] {
                let builder = Circuit::builder().run_by(run_by).bounded(capacity, overflow);
                let built = topology.build(builder.build().expect("a thread"));
                built.circuit.settle().expect("outside");
                let trace = trace_of_callers(&built, &scripts);
                let (inputs, missing) = inputs_of(&trace, &callers, topology.0.len())?;
                prop_assert_eq!(missing, built.circuit.dropped());
                prop_assert!(missing == 0 || overflow != Overflow::Block);
                prop_assert_eq!(trace, topology.predict(inputs));
            }
        }
    }

    #[test]
    fn circuits_that_share_two_threads_keep_their_orders(topology in topology(), scripts in scripts(2)) {
        let _limit = Limit::new();
        let pool = ThreadPool::new(2).expect("threads");
        let callers = by_caller(&scripts);
        let all: Vec<Built> = (0..5).map(|_| topology.build(circuit(RunBy::Pool(pool.clone())))).collect();
        all.iter().for_each(|built| built.circuit.settle().expect("outside"));
        let traces: Vec<_> = thread::scope(|scope| {
            let tracing = all.iter().map(|built| scope.spawn(|| trace_of_callers(built, &scripts)));
            let tracing: Vec<_> = tracing.collect();
            tracing.into_iter().map(|trace| trace.join().expect("no panic")).collect()
        });
        for trace in traces {
            let (inputs, missing) = inputs_of(&trace, &callers, topology.0.len())?;
            prop_assert_eq!(missing, 0);
            prop_assert_eq!(trace, topology.predict(inputs));
        }
    }

    #[test]
    fn what_one_circuit_sends_another_arrives_in_its_order_once(
        topology in topology(),
        scripts in scripts(2),
        by_lane: bool,
    ) {
        let _limit = Limit::new();
        let pool = ThreadPool::new(2).expect("threads");
        for (first, second) in [
            (RunBy::Thread, RunBy::Pool(pool.clone())),
            (RunBy::Pool(pool.clone()), RunBy::Waiters),
            (RunBy::Waiters, RunBy::Thread),
        ] {
            // The first circuit forwards every value to the second.
            let second = topology.build(circuit(second));
            let first = circuit(first);
            let sent = Arc::new(Mutex::new(Vec::new()));
            let (log, pipes) = (Arc::clone(&sent), Arc::clone(&second.pipes));
            let mut lane = by_lane.then(|| second.circuit.lane().expect("open"));
            let forward = first
                .pipe(move |(node, value): (usize, Value)| {
                    let pipes = pipes.get().expect("built");
                    let pipe = &pipes[node % pipes.len()];
                    log.lock().expect("no panic").push((node % pipes.len(), value));
                    match &mut lane {
                        Some(lane) => lane.emit(pipe, value),
                        None => pipe.emit(value),
                    }
                })
                .expect("open");
            thread::scope(|scope| {
                for (caller, script) in scripts.iter().enumerate() {
                    let forward = &forward;
                    scope.spawn(move || {
                        for (number, (node, steps, _)) in (0_u32..).zip(script) {
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

/// A circuit is put back into the queue of its pool within an input, when other circuits wait for
/// its thread.
#[test]
fn circuits_that_take_turns_on_one_thread_within_an_input_keep_their_orders() {
    let _limit = Limit::new();
    // Each step is forwarded to the next node, and to one that only counts.
    let nodes = [vec![1, 2], vec![0], vec![]].map(|targets| Node { targets, subscribers: 0 });
    let topology = Topology(nodes.to_vec());
    let pool = ThreadPool::new(1).expect("a thread");
    let all: Vec<Built> = (0..3).map(|_| topology.build(circuit(RunBy::Pool(pool.clone())))).collect();
    let inputs = [(0, (0, 0, 5000)), (1, (0, 1, 3000)), (0, (0, 2, 1))];
    for (node, value) in inputs {
        all.iter().for_each(|built| built.emit(node, value));
    }
    for built in &all {
        built.circuit.settle().expect("outside");
        assert_eq!(built.take(), topology.predict(inputs));
    }
}

/// Earlier emissions are handled first, whichever caller made them: through shared pipes always,
/// and through lanes if the emitting thread has settled.
#[test]
fn what_one_caller_emits_after_another_is_handled_after_it() {
    let _limit = Limit::new();
    let pool = ThreadPool::new(2).expect("threads");
    for run_by in [RunBy::Thread, RunBy::Waiters, RunBy::Pool(pool)] {
        for by_lanes in [false, true] {
            let topology = Topology(vec![Node { targets: vec![], subscribers: 2 }]);
            let built = topology.build(circuit(run_by.clone()));
            let nodes = built.pipes.get().expect("built");
            let turn = Mutex::new(0_u32);
            let last = if by_lanes { 400 } else { 4000 };
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        let mut lane = built.circuit.lane().expect("open");
                        loop {
                            let mut turn = turn.lock().expect("no panic");
                            if *turn == last {
                                return;
                            }
                            if by_lanes {
                                lane.emit(&nodes[0], (0, *turn, 0));
                                built.circuit.settle().expect("outside");
                            } else {
                                built.emit(0, (0, *turn, 0));
                            }
                            *turn += 1;
                        }
                    });
                }
            });
            built.circuit.settle().expect("outside");
            assert_eq!(built.take(), topology.predict((0..last).map(|turn| (0, (0, turn, 0)))));
        }
    }
}
