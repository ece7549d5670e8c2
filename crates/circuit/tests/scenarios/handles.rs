//! Handles and errors: what every one of them supports.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

use tidemark_circuit::{
    ArgumentError, Circuit, CircuitBuilder, Error, Fault, Fiber, Flow, Pipe, Recording, Refused, Replay,
    RunBy, Scope, Simulation, ThreadPool,
};

fn circuit() -> Circuit {
    Circuit::builder().run_by(RunBy::Waiters).build().expect("no thread")
}

/// Checks that a clone is equal, also in a set, and that another handle of the same name is not.
fn assert_distinct<T: Clone + Debug + Eq + Hash>(one: T, other: T) {
    assert_eq!(one, one.clone());
    assert_ne!(one, other);
    assert_eq!(count_different([one.clone(), one, other]), 2);
}

fn count_different<T: Eq + Hash, const N: usize>(all: [T; N]) -> usize {
    HashSet::from(all).len()
}

/// Compares two handles that a circuit makes in the same way.
fn assert_distinct_handles<T: Clone + Debug + Eq + Hash>(make: impl Fn(&Circuit) -> T) {
    let circuit = circuit();
    assert_distinct(make(&circuit), make(&circuit));
}

#[test]
fn handles_are_equal_if_they_are_of_the_same_thing_and_go_into_sets() {
    assert_distinct(circuit(), circuit());
    assert_distinct_handles(|circuit| circuit.discard::<u8>().expect("open"));
    assert_distinct_handles(|circuit| circuit.discard::<u8>().expect("open").downgrade());
    assert_distinct_handles(|circuit| circuit.conduit::<u8>().expect("open"));
    assert_distinct_handles(|circuit| {
        circuit.subscriber_to(circuit.conduit::<u8>().expect("open")).expect("open")
    });
    assert_distinct_handles(|circuit| {
        circuit.conduit().expect("open").tap(&Fiber::<u8>::new()).expect("open")
    });
    assert_distinct_handles(|circuit| circuit.bank::<u8>().expect("open"));
    assert_distinct_handles(|circuit| circuit.cell(0).expect("open"));
    assert_distinct_handles(|circuit| circuit.port(0).expect("open"));
    assert_distinct_handles(|circuit| circuit.pin(0).expect("open"));
    assert_distinct_handles(|circuit| circuit.basin::<u8>(1).expect("open"));
    assert_eq!(count_different([Scope::new(), Scope::new()]), 2);
}

#[test]
fn a_weak_pipe_whose_pipe_is_gone_is_still_itself() {
    let circuit = circuit();
    let weak = |pipe: Pipe<u8>| pipe.downgrade();
    assert_distinct(weak(circuit.discard().expect("open")), weak(circuit.discard().expect("open")));
}

#[test]
fn drivers_can_be_compared_and_shown() {
    let pool = ThreadPool::new(1).expect("a thread");
    let by = |run_by: &RunBy| Circuit::builder().run_by(run_by.clone()).build().expect("a thread").run_by();
    for run_by in [RunBy::Pool(pool), RunBy::Thread, RunBy::Waiters, RunBy::Owner] {
        assert_eq!(by(&run_by), run_by);
    }
    assert_ne!(RunBy::Pool(ThreadPool::new(1).expect("a thread")), by(&RunBy::SharedPool));
    let shown = format!("{:?} {:?} {:?}", CircuitBuilder::default(), Fiber::<u8>::new(), Flow::<u8>::new());
    assert!(shown.contains("SharedPool") && shown.contains("Fiber") && shown.contains("Flow"), "{shown}");
    assert!(format!("{:?}", Simulation::new(1)).contains("nanos: 0"));
}

#[test]
fn every_error_of_the_crate_becomes_the_one_for_all() {
    fn all(which: u8) -> Result<(), Error> {
        let circuit = Circuit::builder().run_by(RunBy::Waiters).build()?;
        let pipe = circuit.discard::<String>()?;
        match which {
            0 => drop(circuit.basin::<u8>(0)?),
            1 => drop(ThreadPool::new(0)?),
            2 => drop(Circuit::builder().bounded(0, tidemark_circuit::Overflow::Reject).build()?),
            3 => {
                circuit.close();
                pipe.try_emit("late".to_owned())?;
            }
            4 => drop(Replay::new(&b"no journal"[..])?),
            5 => {
                circuit.close();
                drop(circuit.lane()?);
            }
            6 => {
                let recording = Recording::new(&circuit, Full);
                recording.begin()?;
                recording.finish()?;
            }
            _ => circuit.settle()?,
        }
        Ok(())
    }
    assert!((0..3).all(|which| matches!(all(which), Err(Error::Argument(_)))));
    assert!(matches!(all(3), Err(Error::Refused(Refused::Closed(())))));
    assert!(matches!(all(4), Err(Error::Replay(_))));
    assert!(matches!(all(5), Err(Error::Fault(_))));
    assert!(matches!(all(6), Err(Error::Io(_))));
    assert!(all(7).is_ok());
    let texts: Vec<_> = (0..7).map(|which| all(which).expect_err("refused").to_string()).collect();
    assert!(texts[6].contains("the disk is full"), "{texts:?}");
}

/// A disk without space.
struct Full;

impl std::io::Write for Full {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("the disk is full"))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_fault_says_which_of_many_without_names_it_means() {
    let (one, other) = (circuit(), circuit());
    let pipe = other.discard::<u8>().expect("open");
    let fault: Fault =
        one.named(one.subject().name()).prepend(&pipe, &Fiber::<u8>::new()).expect_err("foreign");
    let text = fault.to_string();
    for subject in [one.subject(), pipe.subject()] {
        assert!(text.contains(&format!("#{}", subject.id())), "{text}");
    }
}

#[test]
fn an_argument_is_refused_in_the_name_of_the_method_that_was_called() {
    let refused = |error: Option<ArgumentError>| error.expect("refused").operation();
    assert_eq!(refused(Fiber::<u8>::new().steady(0).err()), "steady");
    assert_eq!(refused(Fiber::<u8>::new().steady_by(0, |_, _| true).err()), "steady_by");
    let incomparable = Fiber::new().range(f64::NAN, 1.0).expect_err("refused").to_string();
    assert!(incomparable.contains("compare"), "{incomparable}");
}
