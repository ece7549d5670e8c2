//! Scenarios from earlier revisions of the specification.

use tidemark_circuit::{Circuit, Fiber, Flow, Pipe};

use super::support::{Trace, circuits, emissions, name};

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, unreachable_pub, reason = "read from the source, to prove that every scenario is covered")]
pub const NOT_APPLICABLE: &[(&str, &str)] =
    &[("OLD-03", "given up by the specification: a circuit's end is the return of close_and_settle")];

#[test]
fn old_01_a_reservoir_keeps_what_was_emitted_until_it_is_drained() {
    for circuit in circuits() {
        let conduit = circuit.conduit::<&str>().expect("open");
        let reservoir = conduit.reservoir(16).expect("open");
        assert!(conduit.reservoir(0).is_err());
        let pipes = [conduit.get(name("first")), conduit.get(name("second"))];
        pipes[0].emit("a");
        pipes[1].emit("b");
        circuit.settle().expect("outside");
        let captures = reservoir.drain();
        assert_eq!(emissions(&captures), ["a", "b"]);
        for (capture, pipe) in captures.iter().zip(pipes) {
            assert_eq!((capture.subject(), capture.current()), (pipe.subject(), circuit.current()));
        }
        assert!(reservoir.drain().is_empty());
        pipes[0].emit("c");
        circuit.settle().expect("outside");
        assert_eq!(captures.len(), 2);
        assert_eq!(emissions(&reservoir.drain()), ["c"]);
        (0..20).for_each(|_| pipes[0].emit("many"));
        reservoir.close_and_settle().expect("outside");
        pipes[0].emit("late");
        circuit.settle().expect("outside");
        assert_eq!(emissions(&reservoir.drain()), ["many"; 16]);
    }
}

#[test]
fn old_02_a_tap_mirrors_a_conduit_through_a_function() {
    for circuit in circuits() {
        let source = circuit.conduit::<u64>().expect("open");
        let odd = Flow::new().filter_map(|value: u64| (value % 2 == 1).then(|| format!("odd {value}")));
        let tap = source.tap(&odd).expect("open");
        let again = tap.conduit().tap(&Flow::new().map(|text: String| text.len())).expect("open");
        let [texts, lengths] = [tap.conduit().reservoir(16).expect("open"), {
            let texts = again.conduit().tap(&Flow::new().map(|length: usize| length.to_string()));
            texts.expect("open").conduit().reservoir(16).expect("open")
        }];
        let pipe = source.get(name("numbers"));
        let mirror = tap.conduit().get(pipe);
        assert_eq!(mirror.subject().name(), pipe.subject().name());
        assert_ne!(mirror.subject().id(), pipe.subject().id());
        for value in [1, 2, 13] {
            pipe.emit(value);
        }
        circuit.settle().expect("outside");
        let captures = texts.drain();
        assert_eq!(emissions(&captures), ["odd 1", "odd 13"]);
        assert_eq!(captures[0].subject(), mirror.subject());
        assert_eq!(emissions(&lengths.drain()), ["5", "6"]);
        tap.close_and_settle().expect("outside");
        pipe.emit(3);
        circuit.settle().expect("outside");
        assert!(texts.drain().is_empty() && lengths.drain().is_empty());
    }
}

/// A former callback configuration is a value now, and applies to a single pipe or to a whole
/// conduit.
#[test]
fn old_04_operators_stand_before_a_pipe_or_before_every_pipe_of_a_conduit() {
    for circuit in circuits() {
        let trace = Trace::new();
        let target = trace.pipe(&circuit);
        let peeked = Trace::new();
        let peek = peeked.clone();
        let table = [
            ("diff", Fiber::new().diff().boxed(), vec![1, 2, 3, 0]),
            ("guard", Fiber::new().guard(|value| *value > 1).boxed(), vec![2, 3]),
            ("limit", Fiber::new().limit(2).boxed(), vec![1, 1]),
            ("sample", Fiber::new().every(2).expect("above zero").boxed(), vec![1, 3]),
            ("sift above", Fiber::new().above(1).boxed(), vec![2, 3]),
            ("sift below", Fiber::new().below(2).boxed(), vec![1, 1, 0]),
            ("sift min", Fiber::new().min(2).boxed(), vec![2, 3]),
            ("sift max", Fiber::new().max(1).boxed(), vec![1, 1, 0]),
            ("sift range", Fiber::new().range(1, 2).expect("in order").boxed(), vec![1, 1, 2]),
            ("sift high", Fiber::new().high().boxed(), vec![1, 2, 3]),
            ("sift low", Fiber::new().low().boxed(), vec![1, 0]),
            ("reduce", Fiber::new().reduce(0, |sum, value| sum + value).boxed(), vec![1, 2, 4, 7, 7]),
            ("replace", Fiber::new().replace(|value: i32| value * 2).boxed(), vec![2, 2, 4, 6, 0]),
            ("skip", Fiber::new().skip(3).boxed(), vec![3, 0]),
            ("peek", Fiber::new().peek(move |value: &i32| peek.push(*value)).boxed(), vec![1, 1, 2, 3, 0]),
        ];
        for (operator, fiber, expected) in table {
            let pipe = target.prepend(&fiber).expect("open");
            [1, 1, 2, 3, 0].into_iter().for_each(|value| pipe.emit(value));
            circuit.settle().expect("outside");
            assert_eq!(trace.take(), expected, "{operator}");
        }
        assert_eq!(peeked.take(), [1, 1, 2, 3, 0]);
        let other = Circuit::new();
        other.forward(&target).expect("open").emit(7);
        other.settle().expect("outside");
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [7], "forward");

        let conduit = circuit.conduit().expect("open");
        let reservoir = conduit.reservoir(16).expect("open");
        let pool = conduit.pool(&Fiber::new().diff().reduce(0, |sum, value| sum + value));
        for (path, value) in [("left", 1), ("right", 1), ("left", 1), ("left", 2)] {
            pool.get(name(path)).unwrap().emit(value);
        }
        circuit.settle().expect("outside");
        assert_eq!(emissions(&reservoir.drain()), [1, 1, 3]);
    }
}

/// A caller's own object per name, which emits through a pipe.
struct Counter(Pipe<i64>);

impl Counter {
    fn increment(&self) {
        self.0.emit(1);
    }
}

#[test]
fn old_05_a_conduit_makes_an_object_per_name() {
    for circuit in circuits() {
        let conduit = circuit.conduit().expect("open");
        let reservoir = conduit.reservoir(16).expect("open");
        let counters = conduit.derive(|pipe| Counter(pipe.clone()));
        let requests = counters.get(name("requests")).unwrap();
        assert!(std::ptr::eq(requests, counters.get(name("requests")).unwrap()));
        requests.increment();
        circuit.settle().expect("outside");
        assert_eq!(reservoir.drain()[0].name(), name("requests"));
    }
}

#[test]
fn a_reservoir_that_is_dropped_lets_go_of_its_conduit() {
    let circuit = Circuit::new();
    let conduit = circuit.conduit().expect("open");
    drop(conduit.reservoir(16).expect("open"));
    conduit.get(name("orders")).emit(1);
    circuit.settle().expect("outside");
    assert_eq!(conduit.reservoir(16).expect("open").drain().len(), 0);
}
