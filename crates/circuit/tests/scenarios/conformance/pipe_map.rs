//! Pipes whose values are mapped before they arrive.

use tidemark_circuit::{Capture, Circuit, Current, Fiber, Flow, Recipe};

use super::support::{Captured, Trace, circuits, emissions, name};

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, reason = "read as text, to see that no scenario is missing")]
pub(crate) const NOT_APPLICABLE: &[(&str, &str)] = &[("MAP-17", "Java: absent targets")];

/// The values that arrive in a circuit of each driver after these inputs pass the recipe.
fn arrives<R: Recipe>(recipe: &R, inputs: impl IntoIterator<Item = R::In, IntoIter: Clone>) -> Vec<R::Out>
where
    R::Out: PartialEq + std::fmt::Debug,
{
    let inputs = inputs.into_iter();
    let all = circuits().map(|circuit| {
        let trace = Trace::new();
        let head = trace.pipe(&circuit).prepend(recipe).expect("open");
        inputs.clone().for_each(|value| head.emit(value));
        circuit.settle().expect("outside");
        trace.take()
    });
    all.reduce(|first, other| {
        assert_eq!(first, other, "all drivers do the same");
        first
    })
    .expect("a driver")
}

#[test]
fn map_01_a_map_to_nothing_gives_nothing() {
    assert!(arrives(&Flow::<u32>::new().filter_map(|_| None::<u32>), [1, 2, 3]).is_empty());
}

#[test]
fn map_02_maps_follow_each_other() {
    let flow = Flow::<u32>::new().map(|value| f64::from(value) * 1.5).map(|value| format!("d:{value:.1}"));
    assert_eq!(arrives(&flow, [10, 20]), ["d:15.0", "d:30.0"]);
}

#[test]
fn map_03_operators_follow_a_map() {
    let flow =
        Flow::<&str>::new().map(|text| text.parse::<u32>().expect("a number")).fiber(Fiber::new().diff());
    assert_eq!(arrives(&flow, ["1", "1", "2", "2", "1"]), [1, 2, 1]);
}

#[test]
fn map_04_a_map_to_nothing_drops_the_value() {
    let flow = Flow::<i32>::new().filter_map(|value| (value > 0).then(|| value.to_string()));
    assert_eq!(arrives(&flow, [1, -2, 3]), ["1", "3"]);
}

#[test]
fn map_05_a_map_may_change_the_type() {
    assert_eq!(arrives(&Flow::<u32>::new().map(|value| format!("v:{value}")), [42, 7]), ["v:42", "v:7"]);
}

#[test]
fn map_06_a_map_may_keep_state() {
    let mut sum = 0;
    let flow = Flow::<u32>::new().map(move |value| {
        sum += value;
        sum
    });
    assert_eq!(arrives(&flow, [1, 2, 3]), [1, 3, 6]);
}

#[test]
fn map_07_texts_become_numbers() {
    let flow = Flow::<&str>::new().map(|text| text.parse::<u32>().expect("a number"));
    assert_eq!(arrives(&flow, ["100", "200"]), [100, 200]);
}

// Subjects.

#[test]
fn map_14_each_map_lies_one_deeper() {
    let circuit = Circuit::new();
    let target = Trace::<u32>::new().pipe(&circuit);
    let mut innermost = target.clone();
    for depth in 1..=5 {
        let next = innermost.prepend(&Flow::<u32>::new().map(|value| value + 1)).expect("open");
        assert!(next.subject().depth() == target.subject().depth() + depth);
        assert_eq!(next.subject().enclosure(), Some(innermost.subject()));
        innermost = next;
    }
}

#[test]
fn map_15_a_mapped_pipe_lies_in_its_target() {
    let circuit = Circuit::new();
    let target = Trace::<String>::new().pipe(&circuit);
    let mapped = target.prepend(&Flow::<u32>::new().map(|value| value.to_string())).expect("open");
    assert_eq!(mapped.subject().enclosure(), Some(target.subject()));
    assert_eq!(mapped.subject().name(), target.subject().name());
}

#[test]
fn map_18_a_map_runs_in_the_circuit() {
    for circuit in circuits() {
        let (contexts, trace) = (Trace::new(), Trace::new());
        let seen = contexts.clone();
        let flow = Flow::<u32>::new().map(move |value| {
            seen.push(Current::here());
            value + 1
        });
        let head = trace.pipe(&circuit).prepend(&flow).expect("open");
        [1, 2].into_iter().for_each(|value| head.emit(value));
        circuit.settle().expect("outside");
        assert_eq!(contexts.take(), [circuit.current().clone(), circuit.current().clone()]);
        assert_eq!(trace.take(), [2, 3]);
    }
}

// Mapped pipes of conduits.

fn labelled() -> impl Recipe<In = u32, Out = String> {
    Flow::<u32>::new().map(|value| value.to_string())
}

/// The captures of a conduit after these values enter a pipe ahead of its pipe of one name.
fn captured<R: Recipe<Out: Clone>>(
    circuit: &Circuit,
    recipe: &R,
    values: impl IntoIterator<Item = R::In>,
) -> Vec<Capture<R::Out>> {
    let conduit = circuit.conduit().expect("open");
    let captured = Captured::of(circuit, &conduit);
    let head = conduit.get(name("channel")).prepend(recipe).expect("open");
    values.into_iter().for_each(|value| head.emit(value));
    captured.drain()
}

#[test]
fn map_08_mapped_values_are_captured() {
    for circuit in circuits() {
        assert_eq!(emissions(&captured(&circuit, &labelled(), [42, 99])), ["42", "99"]);
    }
}

#[test]
fn map_09_subscribers_do_not_hear_of_a_map_to_nothing() {
    for circuit in circuits() {
        let even = Flow::<u32>::new().filter_map(|value| (value % 2 == 0).then_some(value));
        assert_eq!(emissions(&captured(&circuit, &even, 1..=4)), [2, 4]);
    }
}

#[test]
fn map_10_each_name_has_its_own_state() {
    for circuit in circuits() {
        let conduit = circuit.conduit().expect("open");
        let trace = Trace::of(&circuit, &conduit);
        let sums = conduit.pool(&Flow::<u32>::new().scan(|| 0, |sum, value| *sum += value));
        for (path, value) in [("a", 10), ("b", 100), ("a", 20), ("b", 200)] {
            sums.get(name(path)).expect("open").emit(value);
        }
        circuit.settle().expect("outside");
        let expected = [("a", 10), ("b", 100), ("a", 30), ("b", 300)];
        assert_eq!(trace.take(), expected.map(|(path, value)| (name(path), value)));
    }
}

#[test]
fn map_11_all_subscribers_get_mapped_values() {
    for circuit in circuits() {
        let conduit = circuit.conduit().expect("open");
        let both = [(); 2].map(|()| Captured::of(&circuit, &conduit));
        let label = Flow::<u32>::new().map(|value| format!("s:{value}"));
        conduit.get(name("channel")).prepend(&label).expect("open").emit(1);
        for captured in both {
            assert_eq!(emissions(&captured.drain()), ["s:1"]);
        }
    }
}

#[test]
fn map_12_a_map_and_operators_feed_a_named_conduit() {
    for circuit in circuits() {
        let conduit = circuit.named(name("texts")).conduit().expect("open");
        let captured = Captured::of(&circuit, &conduit);
        let flow = Flow::<u32>::new().map(|value| value.to_string()).fiber(Fiber::new().diff());
        let head = conduit.get(name("channel")).prepend(&flow).expect("open");
        [1, 1, 2, 2, 1].into_iter().for_each(|value| head.emit(value));
        assert_eq!(emissions(&captured.drain()), ["1", "2", "1"]);
    }
}

#[test]
fn map_13_operators_come_before_a_map() {
    for circuit in circuits() {
        let flow = Flow::<u32>::new().fiber(Fiber::new().diff()).map(|value| value.to_string());
        assert_eq!(emissions(&captured(&circuit, &flow, [5, 5, 10])), ["5", "10"]);
    }
}

#[test]
fn map_16_a_capture_has_the_name_that_was_asked_for() {
    for circuit in circuits() {
        assert_eq!(captured(&circuit, &labelled(), [1])[0].subject().name(), name("channel"));
    }
}

#[test]
fn map_19_the_map_of_a_pool_runs_in_the_circuit() {
    for circuit in circuits() {
        let contexts = Trace::new();
        let seen = contexts.clone();
        let conduit = circuit.conduit().expect("open");
        let captured = Captured::of(&circuit, &conduit);
        let flow = Flow::<u32>::new().map(move |value| {
            seen.push(Current::here());
            value + 1
        });
        conduit.pool(&flow).get(name("channel")).expect("open").emit(1);
        assert_eq!(emissions(&captured.drain()), [2]);
        assert_eq!(contexts.take(), [circuit.current().clone()]);
    }
}
