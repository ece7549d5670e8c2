//! The closed flag of components.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::execution::machine::Machine;
use crate::sync::thread;

/// A close was requested.
const ASKED: u8 = 1;
/// The circuit has requested the close itself, or has reached a close from outside in its order.
const INSIDE: u8 = 2;
/// The requesting thread has put the close into the circuit's order.
const PUT: u8 = 4;

/// Whether a component was closed. Outside the circuit this holds from the first request; inside,
/// from the close's place in the circuit's order. So a replay takes the same decisions as the
/// original run.
#[derive(Default)]
pub(crate) struct Closed(AtomicU8);

impl Closed {
    /// Requests the close, which `put` puts into the circuit's order. A request from outside does
    /// not replace one from inside, whose place in the order may be earlier.
    ///
    /// Outside the circuit, if another thread has requested the close before, this waits until that
    /// thread has put it into the order. So a settle after this call includes the close.
    pub(crate) fn ask(&self, machine: &Machine, put: impl FnOnce()) {
        let is_inside = machine.is_inside();
        let (asked, known) = if is_inside { (ASKED | INSIDE, INSIDE) } else { (ASKED, ASKED) };
        if self.0.fetch_or(asked, Ordering::AcqRel) & known == 0 {
            put();
            self.0.fetch_or(PUT, Ordering::AcqRel);
        } else if !is_inside {
            // An ended circuit takes no entries. The requesting thread then drops what is left,
            // which may request this close again.
            while self.0.load(Ordering::Acquire) & (PUT | INSIDE) == 0 && !machine.has_ended() {
                thread::yield_now();
            }
        }
    }

    /// Marks this as closed by an entry that is already in the circuit's order.
    pub(crate) fn expect(&self) {
        self.0.fetch_or(ASKED | PUT, Ordering::AcqRel);
    }

    /// Marks that the circuit has reached the close.
    pub(crate) fn reach(&self) {
        self.0.fetch_or(INSIDE, Ordering::AcqRel);
    }

    /// Returns whether this is closed, as seen from inside or outside the circuit.
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
            let _running = machine.enter().expect("no other thread is inside");
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
