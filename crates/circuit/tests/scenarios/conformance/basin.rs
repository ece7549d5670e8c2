//! Scenarios of basins.

use tidemark_circuit::Error;

use super::support::{Trace, circuits};

#[test]
fn bsn_01_a_closed_circuit_makes_no_basin() {
    for circuit in circuits() {
        circuit.close();
        let Err(Error::Fault(fault)) = circuit.basin::<u64>(16) else { panic!("a fault") };
        assert_eq!((fault.subject(), fault.operation()), (circuit.subject(), "basin"));
    }
}

/// A capacity below zero does not compile.
#[test]
fn bsn_02_a_basin_has_room() {
    for circuit in circuits() {
        assert!(matches!(circuit.basin::<u64>(0), Err(Error::Argument(_))));
    }
}

#[test]
fn bsn_03_draining_after_the_close_is_dropped() {
    for circuit in circuits() {
        let trace = Trace::new();
        let (basin, drain) = (circuit.basin(16).expect("open"), trace.pipe(&circuit));
        basin.pipe().emit(1);
        circuit.close_and_settle().expect("outside");
        basin.drain(&drain);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), []);
    }
}

#[test]
fn bsn_04_draining_empties() {
    for circuit in circuits() {
        let trace = Trace::new();
        let (basin, drain) = (circuit.basin(16).expect("open"), trace.pipe(&circuit));
        basin.pipe().emit(1);
        basin.pipe().emit(2);
        circuit.settle().expect("outside");
        basin.drain(&drain);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [1, 2]);
        basin.drain(&drain);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), []);
    }
}

#[test]
fn bsn_05_draining_keeps_the_order() {
    for circuit in circuits() {
        let trace = Trace::new();
        let (basin, drain) = (circuit.basin(16).expect("open"), trace.pipe(&circuit));
        basin.pipe().emit(7);
        basin.pipe().emit(8);
        basin.drain(&drain);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [7, 8]);
        assert_eq!(basin.pipe().subject().enclosure(), Some(basin.subject()));
    }
}

#[test]
fn bsn_06_the_oldest_makes_room() {
    for circuit in circuits() {
        let trace = Trace::new();
        let (basin, drain) = (circuit.basin(3).expect("open"), trace.pipe(&circuit));
        (1..=5).for_each(|value| basin.pipe().emit(value));
        circuit.settle().expect("outside");
        basin.drain(&drain);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [3, 4, 5]);
    }
}
