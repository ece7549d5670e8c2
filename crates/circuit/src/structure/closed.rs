//! Whether something was closed.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::execution::machine::Machine;
use crate::sync::thread;

/// Somebody has asked for it.
const ASKED: u8 = 1;
/// The circuit has asked for it itself, or has come to a close from outside in its order.
const INSIDE: u8 = 2;
/// Who has asked for it has put it into the order.
const PUT: u8 = 4;

/// Whether something of a circuit was closed: to everybody else from the moment on that somebody asks for it, to the circuit itself
/// from its place in the order on. So what a circuit decides by it is decided alike in a replay.
#[derive(Default)]
pub(crate) struct Closed(AtomicU8);

impl Closed {
    /// Asks for the close, which `put` puts into the order of the circuit. An ask from outside does not stand for one from inside,
    /// whose place may be ahead.
    ///
    /// If somebody else has asked before, this waits for the moment that that one takes to put it there: who settles the circuit then
    /// waits for the close as well.
    pub(crate) fn ask(&self, machine: &Machine, put: impl FnOnce()) {
        let is_inside = machine.is_inside();
        let (asked, known) = if is_inside { (ASKED | INSIDE, INSIDE) } else { (ASKED, ASKED) };
        if self.0.fetch_or(asked, Ordering::AcqRel) & known == 0 {
            put();
            self.0.fetch_or(PUT, Ordering::AcqRel);
        } else if !is_inside {
            // A circuit that has ended takes none, and has the one who asked drop what is left, which may ask once more.
            while self.0.load(Ordering::Acquire) & (PUT | INSIDE) == 0 && !machine.has_ended() {
                thread::yield_now();
            }
        }
    }

    /// Notes that what was put into the order closes this as well.
    pub(crate) fn expect(&self) {
        self.0.fetch_or(ASKED | PUT, Ordering::AcqRel);
    }

    /// Notes that the circuit has come to the close.
    pub(crate) fn reach(&self) {
        self.0.fetch_or(INSIDE, Ordering::AcqRel);
    }

    /// Whether it was closed, to whoever asks from there.
    pub(crate) fn is_closed(&self, is_inside: bool) -> bool {
        self.0.load(Ordering::Acquire) & if is_inside { INSIDE } else { ASKED } != 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::circuit::{Circuit, RunBy};

    #[test]
    fn each_side_asks_once_and_the_circuit_knows_only_what_it_has_come_to() {
        let circuit = Circuit::builder().run_by(RunBy::Owner).build().expect("valid");
        let machine = circuit.machine();
        let put = Cell::new(0);
        let ask = |closed: &Closed| {
            let before = put.get();
            closed.ask(machine, || put.set(before + 1));
            put.get() > before
        };
        let ask_inside = |closed: &Closed| {
            let _running = machine.enter().expect("nobody else is here");
            ask(closed)
        };
        let closed = Closed::default();
        assert!(ask(&closed) && !ask(&closed));
        assert!(closed.is_closed(false) && !closed.is_closed(true));
        assert!(ask_inside(&closed) && !ask_inside(&closed));
        assert!(closed.is_closed(true));

        let closed = Closed::default();
        closed.expect();
        assert!(closed.is_closed(false) && !closed.is_closed(true) && !ask(&closed));
        assert!(ask_inside(&closed));

        let closed = Closed::default();
        assert!(ask_inside(&closed) && !ask(&closed));
        let closed = Closed::default();
        assert!(ask(&closed));
        closed.reach();
        assert!(closed.is_closed(true) && !ask_inside(&closed));
    }
}
