//! Conduit: a pipe per name, and its subscribers.

use tidemark_circuit::{Circuit, Conduit, Fiber, Flow, Name, Pipe, Recipe, Routing};

use super::support::{Captured, Trace, circuits, emissions, name};

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, reason = "read as text, to see that no scenario is missing")]
pub(crate) const NOT_APPLICABLE: &[(&str, &str)] = &[("CND-13", "Java: absent argument")];

fn stem(circuit: &Circuit) -> Conduit<u32> {
    circuit.conduit_with(Routing::Stem).expect("open")
}

/// The values of the trace with this name.
fn under(trace: &[(Name, u32)], path: &str) -> Vec<u32> {
    trace.iter().filter(|(of, _)| *of == name(path)).map(|(_, value)| *value).collect()
}

#[test]
fn cnd_01_a_closed_conduit_delivers_no_more() {
    for circuit in circuits() {
        let conduit = circuit.conduit().expect("open");
        let trace = Trace::new();
        let subscription = conduit.subscribe(&trace.subscriber(&circuit)).expect("open");
        let pipe = conduit.get(name("a"));
        [1, 2].into_iter().for_each(|value| pipe.emit(value));
        circuit.settle().expect("outside");
        conduit.close();
        [3, 4].into_iter().for_each(|value| pipe.emit(value));
        circuit.settle().expect("outside");
        assert_eq!(trace.values(), [1, 2]);
        subscription.close();
        conduit.close();
        circuit.settle().expect("outside");
    }
}

#[test]
fn cnd_02_by_default_an_emission_stays_in_its_pipe() {
    for circuit in circuits() {
        let conduit = circuit.conduit().expect("open");
        let trace = Trace::of(&circuit, &conduit);
        conduit.get(name("x"));
        conduit.get(name("x.leaf")).emit(1);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [(name("x.leaf"), 1)]);
    }
}

#[test]
fn cnd_03_emitting_to_a_pipe_of_a_closed_conduit_is_no_error() {
    for circuit in circuits() {
        let conduit = circuit.conduit().expect("open");
        let pipe = conduit.get(name("a")).clone();
        conduit.close();
        pipe.emit(1);
        circuit.settle().expect("outside");
        assert_eq!(circuit.failures(), 0);
    }
}

#[test]
fn cnd_06_two_names_have_two_pipes() {
    let conduit = Circuit::new().conduit::<u32>().expect("open");
    assert_ne!(conduit.get(name("a")), conduit.get(name("b")));
}

#[test]
fn cnd_08_one_name_has_a_pipe_in_each_conduit() {
    let circuit = Circuit::new();
    let (first, second) = (circuit.conduit::<u32>().expect("open"), circuit.conduit::<u32>().expect("open"));
    assert_ne!(first.get(name("a")), second.get(name("a")));
}

#[test]
fn cnd_09_one_name_has_one_pipe() {
    let conduit = Circuit::new().conduit::<u32>().expect("open");
    let pipes = [(); 3].map(|()| conduit.get(name("a")));
    assert!(pipes.iter().all(|pipe| *pipe == pipes[0]));
}

#[test]
fn cnd_15_a_leaf_is_delivered_before_its_stem() {
    for circuit in circuits() {
        let conduit = stem(&circuit);
        let trace = Trace::of(&circuit, &conduit);
        conduit.get(name("app.leaf")).emit(1);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [(name("app.leaf"), 1), (name("app"), 1)]);
    }
}

#[test]
fn cnd_16_every_enclosing_name_hears_once() {
    for circuit in circuits() {
        let conduit = circuit.conduit_with(Routing::Stem).expect("open");
        let trace = Trace::of(&circuit, &conduit);
        conduit.get(name("app.service.endpoint")).emit("hello");
        circuit.settle().expect("outside");
        let names = trace.take().into_iter().map(|(of, value)| (of.to_string(), value));
        assert!(names.eq(["app.service.endpoint", "app.service", "app"].map(|of| (of.to_owned(), "hello"))));
    }
}

#[test]
fn cnd_17_a_stem_gets_emissions_of_leaves_without_subscribers() {
    for circuit in circuits() {
        let conduit = stem(&circuit);
        let trace = Trace::new();
        let seen = trace.clone();
        let subscriber = circuit.subscriber(move |subject: &tidemark_circuit::Subject, registrar: &mut _| {
            let registrar: &mut tidemark_circuit::Registrar<'_, u32> = registrar;
            if subject.name() == name("app") {
                registrar.receptor(seen.receptor());
            }
        });
        conduit.subscribe(&subscriber.expect("open")).expect("open");
        (1..=3).for_each(|value| conduit.get(name("app.service")).emit(value));
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [1, 2, 3]);
    }
}

#[test]
fn cnd_18_a_stem_that_is_heard_later_hears_once() {
    for circuit in circuits() {
        let conduit = stem(&circuit);
        conduit.get(name("app.service")).emit(0);
        circuit.settle().expect("outside");
        let trace = Trace::of(&circuit, &conduit);
        conduit.get(name("app.service")).emit(1);
        circuit.settle().expect("outside");
        assert_eq!(under(&trace.take(), "app"), [1]);
    }
}

#[test]
fn cnd_19_a_name_of_one_part_is_its_own_stem() {
    for circuit in circuits() {
        let conduit = stem(&circuit);
        let trace = Trace::of(&circuit, &conduit);
        conduit.get(name("app")).emit(42);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [(name("app"), 42)]);
    }
}

#[test]
fn cnd_20_a_stem_hears_of_all_its_leaves_in_order() {
    for circuit in circuits() {
        let conduit = stem(&circuit);
        let trace = Trace::of(&circuit, &conduit);
        for (leaf, value) in [("app.alice", 1), ("app.bob", 2), ("app.alice", 3)] {
            conduit.get(name(leaf)).emit(value);
        }
        circuit.settle().expect("outside");
        let seen = trace.take();
        assert_eq!(under(&seen, "app"), [1, 2, 3]);
        assert_eq!((under(&seen, "app.alice"), under(&seen, "app.bob")), (vec![1, 3], vec![2]));
    }
}

// Derived pools.

/// A caller's own object around a pipe.
struct Wrapper(Pipe<u32>);

#[test]
fn cnd_04_one_name_has_one_object_around_its_pipe() {
    let conduit = Circuit::new().conduit::<u32>().expect("open");
    let pool = conduit.derive(|pipe| Wrapper(pipe.clone()));
    let wrappers = [(); 3].map(|()| pool.get(name("a")).expect("no factory that fails"));
    for wrapper in wrappers {
        assert!(std::ptr::eq(wrapper, wrappers[0]));
        assert_eq!(&wrapper.0, conduit.get(name("a")));
    }
}

#[test]
fn cnd_05_two_names_have_two_objects() {
    let pool = Circuit::new().conduit::<u32>().expect("open").derive(|pipe| Wrapper(pipe.clone()));
    let [a, b] = ["a", "b"].map(|path| pool.get(name(path)).expect("no factory that fails"));
    assert!(!std::ptr::eq(a, b));
    assert_ne!(a.0, b.0);
}

#[test]
fn cnd_07_one_name_has_one_object_however_often_it_is_asked_for() {
    let pool = Circuit::new().conduit::<u32>().expect("open").derive(|pipe| Wrapper(pipe.clone()));
    let first = pool.get(name("a")).expect("no factory that fails");
    assert!((0..100).all(|_| pool.get(name("a")).is_ok_and(|wrapper| std::ptr::eq(wrapper, first))));
}

/// The captures after these values enter the pool's pipe of one name.
fn captured<I, O>(
    recipe: &impl Recipe<In = I, Out = O>,
    values: impl IntoIterator<Item = I> + Clone,
    expected: &[O],
) where
    I: Send + 'static,
    O: Clone + Send + PartialEq + std::fmt::Debug + 'static,
{
    for circuit in circuits() {
        let conduit = circuit.conduit().expect("open");
        let captured = Captured::of(&circuit, &conduit);
        let pool = conduit.pool(recipe);
        values.clone().into_iter().for_each(|value| pool.get(name("a")).expect("open").emit(value));
        assert_eq!(emissions(&captured.drain()), expected);
    }
}

#[test]
fn cnd_10_a_pool_may_take_another_type() {
    let parsed = Flow::<&str>::new().map(|text| text.parse::<u32>().expect("a number"));
    captured(&parsed.map(|value| value + 1), ["10", "41"], &[11, 42]);
}

#[test]
fn cnd_11_a_pool_of_differences() {
    captured(&Fiber::new().diff(), [1, 1, 2, 2, 3], &[1, 2, 3]);
}

#[test]
fn cnd_12_a_pool_of_labels() {
    let labelled = Flow::<u32>::new().map(|value| format!("n={value}"));
    captured(&labelled, [1, 42], &["n=1".to_owned(), "n=42".to_owned()]);
}

#[test]
fn cnd_14_the_operators_of_a_pool_remember_each_name_by_itself() {
    for circuit in circuits() {
        let conduit = circuit.conduit().expect("open");
        let trace = Trace::of(&circuit, &conduit);
        let pool = conduit.pool(&Fiber::new().diff());
        for (path, value) in [("a", 1), ("a", 1), ("b", 1), ("b", 1), ("a", 2), ("b", 2)] {
            pool.get(name(path)).expect("open").emit(value);
        }
        circuit.settle().expect("outside");
        let seen = trace.take();
        assert_eq!((under(&seen, "a"), under(&seen, "b")), (vec![1, 2], vec![1, 2]));
    }
}
