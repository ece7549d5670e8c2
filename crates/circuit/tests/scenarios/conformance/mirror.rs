//! Mirrors: conduits that another conduit feeds, through a subscriber to a pool of their pipes. The
//! subscription is the bridge.

use tidemark_circuit::{Circuit, Conduit, Fiber, Flow, Recipe, Subscription};

use super::support::{Captured, Trace, circuits, emissions, name};

/// Bridges the source into a new conduit through these operators.
fn mirror<R>(circuit: &Circuit, source: &Conduit<R::In>, recipe: &R) -> (Conduit<R::Out>, Subscription<R::In>)
where
    R: Recipe<In: Clone, Out: Clone>,
{
    let mirror = circuit.conduit().expect("open");
    let subscriber = circuit.subscriber_to(mirror.pool(recipe)).expect("open");
    (mirror, source.subscribe(&subscriber).expect("open"))
}

/// The outputs of a mirror with these operators after these values enter one pipe of the source.
fn mirrored<R>(circuit: &Circuit, recipe: &R, values: impl IntoIterator<Item = R::In>) -> Vec<R::Out>
where
    R: Recipe<In: Clone, Out: Clone>,
{
    let source = circuit.conduit().expect("open");
    let (mirror, _) = mirror(circuit, &source, recipe);
    let trace = Trace::of(circuit, &mirror);
    values.into_iter().for_each(|value| source.get(name("channel")).emit(value));
    circuit.settle().expect("outside");
    trace.values()
}

fn texts() -> impl Recipe<In = u32, Out = String> {
    Flow::<u32>::new().map(|value| value.to_string())
}

#[test]
fn mir_01_everything_may_be_closed_in_any_order() {
    for circuit in circuits() {
        let source = circuit.conduit().expect("open");
        let (mirror, bridge) = mirror(&circuit, &source, &texts());
        let trace = Trace::new();
        let collector = mirror.subscribe(&trace.subscriber(&circuit)).expect("open");
        let pipe = source.get(name("channel"));
        [1, 2].into_iter().for_each(|value| pipe.emit(value));
        bridge.close();
        mirror.close();
        collector.close();
        mirror.close();
        [3, 4].into_iter().for_each(|value| pipe.emit(value));
        circuit.settle().expect("outside");
        assert_eq!((trace.values(), circuit.failures()), (vec!["1".to_owned(), "2".to_owned()], 0));
    }
}

#[test]
fn mir_02_the_end_of_a_bridge_is_its_own() {
    for circuit in circuits() {
        let [source, other] = [(); 2].map(|()| circuit.conduit().expect("open"));
        let (mirror, bridge) = mirror(&circuit, &source, &texts());
        let (mirrored, direct) = (Trace::new(), Trace::new());
        let subscribers = (mirrored.subscriber(&circuit), direct.subscriber(&circuit));
        mirror.subscribe(&subscribers.0).expect("open");
        other.subscribe(&subscribers.1).expect("open");
        let emit = |value| {
            source.get(name("channel")).emit(value);
            other.get(name("channel")).emit(value);
            circuit.settle().expect("outside");
        };
        emit(1);
        bridge.close();
        emit(2);
        assert_eq!((mirrored.values(), direct.values()), (vec!["1".to_owned()], vec![1, 2]));
        subscribers.0.close();
        subscribers.1.close();
        emit(3);
        assert_eq!((mirrored.len(), direct.len()), (0, 0));
    }
}

#[test]
fn mir_03_without_its_bridge_a_mirror_is_a_conduit() {
    for circuit in circuits() {
        let source = circuit.conduit().expect("open");
        let (mirror, bridge) = mirror(&circuit, &source, &texts());
        let trace = Trace::of(&circuit, &mirror);
        let pipe = source.get(name("channel"));
        [1, 2].into_iter().for_each(|value| pipe.emit(value));
        bridge.close();
        [3, 4].into_iter().for_each(|value| pipe.emit(value));
        mirror.get(name("channel")).emit("direct".to_owned());
        circuit.settle().expect("outside");
        assert_eq!(trace.values(), ["1", "2", "direct"]);
    }
}

#[test]
fn mir_04_mirrors_are_mirrored() {
    for circuit in circuits() {
        let source = circuit.conduit::<u32>().expect("open");
        let (doubled, _) = mirror(&circuit, &source, &Flow::new().map(|value| value * 2));
        let (limited, _) = mirror(&circuit, &doubled, &Fiber::new().limit(2));
        let trace = Trace::of(&circuit, &limited);
        (1..=4).for_each(|value| source.get(name("channel")).emit(value));
        circuit.settle().expect("outside");
        assert_eq!(trace.values(), [2, 4]);
    }
}

#[test]
fn mir_05_flows_are_composed() {
    for circuit in circuits() {
        let more = Flow::<u32>::new().map(|value| value + 1);
        let flow = more.flow(Flow::new().map(|value| format!("n={value}")));
        assert_eq!(mirrored(&circuit, &flow, [1, 41]), ["n=2", "n=42"]);
    }
}

#[test]
fn mir_06_a_mirror_of_differences() {
    for circuit in circuits() {
        assert_eq!(mirrored(&circuit, &Fiber::new().diff(), [1, 1, 2, 2, 3]), [1, 2, 3]);
    }
}

/// The caller's own function puts the operators before each pipe.
#[test]
fn mir_07_a_pool_may_be_derived_by_a_function() {
    for circuit in circuits() {
        let (source, mirror) = (circuit.conduit().expect("open"), circuit.conduit().expect("open"));
        let pool = mirror.try_derive(|pipe| {
            let labelled = pipe.prepend(&Flow::new().map(|value: u32| format!("fn:{value}")))?;
            labelled.prepend(&Fiber::new().diff())
        });
        source.subscribe(&circuit.subscriber_to(pool).expect("open")).expect("open");
        let trace = Trace::of(&circuit, &mirror);
        [1, 1, 2].into_iter().for_each(|value| source.get(name("channel")).emit(value));
        circuit.settle().expect("outside");
        assert_eq!(trace.values(), ["fn:1", "fn:2"]);
    }
}

#[test]
fn mir_08_what_is_mirrored_can_be_captured() {
    for circuit in circuits() {
        let source = circuit.conduit::<u32>().expect("open");
        let (mirror, _) = mirror(&circuit, &source, &Flow::new().map(|value| format!("val:{value}")));
        let captured = Captured::of(&circuit, &mirror);
        [10, 20].into_iter().for_each(|value| source.get(name("channel")).emit(value));
        assert_eq!(emissions(&captured.drain()), ["val:10", "val:20"]);
    }
}

#[test]
fn mir_09_a_map_to_nothing_filters() {
    for circuit in circuits() {
        let odd = Flow::<u32>::new().filter_map(|value| (value % 2 == 1).then_some(value));
        assert_eq!(mirrored(&circuit, &odd, 1..=5), [1, 3, 5]);
    }
}

#[test]
fn mir_10_names_are_kept() {
    for circuit in circuits() {
        let source = circuit.conduit().expect("open");
        let (mirror, _) = mirror(&circuit, &source, &texts());
        let trace = Trace::of(&circuit, &mirror);
        for (path, value) in [("channel.a", 1), ("channel.b", 2), ("channel.a", 3)] {
            source.get(name(path)).emit(value);
        }
        circuit.settle().expect("outside");
        let expected = [("channel.a", "1"), ("channel.b", "2"), ("channel.a", "3")];
        assert_eq!(trace.take(), expected.map(|(path, text)| (name(path), text.to_owned())));
    }
}

#[test]
fn mir_11_operators_remember_each_name_by_itself() {
    for circuit in circuits() {
        let source = circuit.conduit::<u32>().expect("open");
        let (mirror, _) = mirror(&circuit, &source, &Fiber::new().diff());
        let trace = Trace::of(&circuit, &mirror);
        for (path, value) in [("a", 1), ("b", 1), ("a", 1), ("b", 2), ("a", 2)] {
            source.get(name(path)).emit(value);
        }
        circuit.settle().expect("outside");
        assert_eq!(
            trace.take(),
            [("a", 1), ("b", 1), ("b", 2), ("a", 2)].map(|(path, value)| (name(path), value))
        );
    }
}

#[test]
fn mir_12_values_are_mapped() {
    for circuit in circuits() {
        let labelled = Flow::<u32>::new().map(|value| format!("value:{value}"));
        assert_eq!(mirrored(&circuit, &labelled, 1..=3), ["value:1", "value:2", "value:3"]);
    }
}
