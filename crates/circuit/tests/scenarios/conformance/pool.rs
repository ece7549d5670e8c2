//! Scenarios of pools.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use tidemark_circuit::{Circuit, Fault, Name, Pool, cortex};

use super::support::{circuits, name, wait_until};

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, unreachable_pub, reason = "read from the source, to prove that every scenario is covered")]
pub const NOT_APPLICABLE: &[(&str, &str)] = &[("POO-13", "Java: null arguments")];

/// Counts calls.
#[derive(Clone, Default)]
struct Calls(Arc<AtomicUsize>);

impl Calls {
    fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn so_far(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A pool derived from a conduit's pipes, and a pool of the cortex, with the same factory.
fn derived_and_root<T: Send + Sync + 'static>(
    circuit: &Circuit,
    factory: impl Fn(Name) -> Result<T, Fault> + Clone + Send + Sync + 'static,
) -> [Pool<T>; 2] {
    let for_root = factory.clone();
    let conduit = circuit.conduit::<u64>().expect("open");
    [conduit.try_derive(move |pipe| factory(pipe.into())), cortex().try_pool(for_root)]
}

fn absent<T>() -> Result<T, Fault> {
    Err(Fault::new(cortex().subject().clone(), "pool", "there is none"))
}

/// Checks that two requests get the same refusal from one call of the factory.
fn refuses_once(pool: &Pool<u64>, calls: &Calls, message: &str) {
    for _ in 0..2 {
        let fault = pool.get(name("one")).unwrap_err();
        assert_eq!(fault.message(), message);
    }
    assert!(std::ptr::eq(pool.get(name("one")).unwrap_err(), pool.get(name("one")).unwrap_err()));
    assert_eq!(calls.so_far(), 1);
}

#[test]
fn poo_01_that_there_is_none_is_remembered_by_a_derived_pool() {
    for circuit in circuits() {
        let calls = Calls::default();
        let counter = calls.clone();
        let [pool, _] = derived_and_root(&circuit, move |_| {
            counter.count();
            absent()
        });
        refuses_once(&pool, &calls, "there is none");
    }
}

#[test]
fn poo_02_a_failure_is_remembered_by_a_derived_pool() {
    for circuit in circuits() {
        let calls = Calls::default();
        let counter = calls.clone();
        let [pool, _] = derived_and_root(&circuit, move |_| {
            counter.count();
            panic!("no")
        });
        refuses_once(&pool, &calls, "the factory panicked for one: no");
    }
}

#[test]
fn poo_03_that_there_is_none_is_remembered_by_a_root_pool() {
    for circuit in circuits() {
        let calls = Calls::default();
        let counter = calls.clone();
        let [_, pool] = derived_and_root(&circuit, move |_| {
            counter.count();
            absent()
        });
        refuses_once(&pool, &calls, "there is none");
    }
}

#[test]
fn poo_04_a_failure_is_remembered_by_a_root_pool() {
    for circuit in circuits() {
        let calls = Calls::default();
        let counter = calls.clone();
        let [_, pool] = derived_and_root(&circuit, move |_| {
            counter.count();
            panic!("no")
        });
        refuses_once(&pool, &calls, "the factory panicked for one: no");
    }
}

#[test]
fn poo_05_a_root_pool_of_cells() {
    for circuit in circuits() {
        let calls = Calls::default();
        let (counter, maker) = (calls.clone(), circuit.clone());
        let cells = cortex().try_pool(move |name| {
            counter.count();
            maker.named(name).cell(0)
        });
        assert_eq!(calls.so_far(), 0);
        let cell = cells.get(name("level")).unwrap();
        assert_eq!(cell, cells.get(name("level")).unwrap());
        assert_eq!(cell.subject().name(), name("level"));
        cell.pipe().emit(7);
        circuit.settle().expect("outside");
        assert_eq!((cell.get(), calls.so_far()), (7, 1));
    }
}

#[test]
fn poo_06_a_subscriber_mirrors_a_conduit_into_a_pool_of_cells() {
    for circuit in circuits() {
        let maker = circuit.clone();
        let cells = cortex().try_pool(move |name| maker.named(name).cell(0));
        let conduit = circuit.conduit().expect("open");
        let pipes = cells.derive(|cell| cell.pipe().clone());
        conduit.subscribe(&circuit.subscriber_to(pipes).expect("open")).expect("open");
        for (path, value) in [("left", 1), ("right", 2), ("left", 3)] {
            conduit.get(name(path)).emit(value);
        }
        circuit.settle().expect("outside");
        assert_eq!(["left", "right"].map(|path| cells.get(name(path)).unwrap().get()), [3, 2]);
    }
}

#[test]
fn poo_07_the_factory_is_called_once_per_name() {
    for circuit in circuits() {
        let calls = Calls::default();
        let counter = calls.clone();
        let [derived, _] = derived_and_root(&circuit, move |name| {
            counter.count();
            Ok(name)
        });
        for path in ["one", "one"] {
            assert_eq!(derived.get(name(path)).ok(), Some(&name(path)));
        }
        assert_eq!(calls.so_far(), 1);
        derived.get(name("two")).unwrap();
        assert_eq!(calls.so_far(), 2);
    }
}

/// Twenty threads request one name concurrently, while the pool's factory runs.
fn contended(which: usize) {
    for circuit in circuits() {
        let calls = Calls::default();
        let counter = calls.clone();
        let asking = Arc::new(AtomicUsize::new(0));
        let others = Arc::clone(&asking);
        let pools = derived_and_root(&circuit, move |name| {
            counter.count();
            wait_until(|| others.load(Ordering::SeqCst) >= 2, "another thread asks");
            // Time for the other thread to get as far as it can.
            thread::sleep(Duration::from_millis(2));
            Ok(Arc::new(name))
        });
        let (pool, start) = (&pools[which], Barrier::new(20));
        let made: Vec<Arc<Name>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..20)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        asking.fetch_add(1, Ordering::SeqCst);
                        Arc::clone(pool.get(name("shared")).unwrap())
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(made.iter().all(|made_there| Arc::ptr_eq(made_there, &made[0])));
        assert_eq!(calls.so_far(), 1);
    }
}

#[test]
fn poo_08_one_of_twenty_threads_calls_the_factory_of_a_derived_pool() {
    contended(0);
}

#[test]
fn poo_09_one_of_twenty_threads_calls_the_factory_of_a_root_pool() {
    contended(1);
}

#[test]
fn poo_10_a_subject_or_a_component_stands_for_its_name() {
    for circuit in circuits() {
        let conduit = circuit.conduit::<u64>().expect("open");
        let pool = conduit.derive(|pipe| Name::from(pipe));
        let pipe = conduit.get(name("orders"));
        let by_name = pool.get(name("orders")).unwrap();
        assert!(std::ptr::eq(by_name, pool.get(pipe.subject()).unwrap()));
        assert!(std::ptr::eq(by_name, pool.get(pipe).unwrap()));
    }
}

#[test]
fn poo_11_pools_are_derived_from_derived_pools() {
    for circuit in circuits() {
        let calls = Calls::default();
        let counter = calls.clone();
        let texts = circuit.conduit::<u64>().expect("open").derive(|pipe| pipe.subject().name().to_string());
        let lengths = texts.derive(move |text| {
            counter.count();
            text.len()
        });
        for _ in 0..2 {
            assert_eq!(lengths.get(name("orders")).ok(), Some(&6));
        }
        assert_eq!(calls.so_far(), 1);
    }
}

/// A pool has no close; dropping it is the nearest.
#[test]
fn poo_12_what_a_pool_made_lives_on_without_it() {
    for circuit in circuits() {
        let maker = circuit.clone();
        let conduits = cortex().try_pool(move |name| maker.named(name).conduit::<u64>());
        let conduit = conduits.get(name("orders")).unwrap().clone();
        drop(conduits);
        assert!(!conduit.is_closed() && !circuit.is_closed());
    }
}

#[test]
fn a_factory_that_waits_for_itself_fails_instead() {
    let pool: Arc<std::sync::OnceLock<Pool<u64>>> = Arc::default();
    let again = Arc::clone(&pool);
    let circular = cortex().pool(move |name| *again.get().unwrap().get(name).unwrap() + 1);
    pool.set(circular.clone()).unwrap();
    let fault = circular.get(name("snake")).unwrap_err();
    assert!(fault.message().contains("asks its pool for snake"), "{fault}");
}

#[test]
fn where_a_pool_has_no_pipe_a_mirror_reports_it_once_and_goes_on() {
    for circuit in circuits() {
        let [source, target] = [(); 2].map(|()| circuit.conduit::<u64>().expect("open"));
        let seen = circuit.cell(0).expect("open");
        let found = seen.pipe().clone();
        let pipes = target.try_derive(move |pipe| {
            if pipe.subject().name() == name("bad") { absent() } else { Ok(found.clone()) }
        });
        source.subscribe(&circuit.subscriber_to(pipes).expect("open")).expect("open");
        for (path, value) in [("bad", 1), ("good", 2), ("bad", 3)] {
            source.get(name(path)).emit(value);
        }
        circuit.settle().expect("outside");
        assert_eq!((seen.get(), circuit.failures()), (2, 1));
    }
}
