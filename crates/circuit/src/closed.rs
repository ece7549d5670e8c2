//! Whether something was closed.

use std::sync::atomic::{AtomicU8, Ordering};

/// Somebody has asked for it.
const ASKED: u8 = 1;
/// The circuit has asked for it itself, or has come to a close from outside in its order.
const INSIDE: u8 = 2;

/// Whether something of a circuit was closed: to everybody else from the moment on that somebody asks for it, to the circuit itself
/// from its place in the order on. So what a circuit decides by it is decided alike in a replay.
#[derive(Default)]
pub(crate) struct Closed(AtomicU8);

impl Closed {
    /// Notes that somebody asks for the close; true if it is to be put into the order. An ask from outside does not stand for one
    /// from inside, whose place may be ahead.
    pub(crate) fn ask(&self, is_inside: bool) -> bool {
        let (asked, known) = if is_inside { (ASKED | INSIDE, INSIDE) } else { (ASKED, ASKED) };
        self.0.fetch_or(asked, Ordering::AcqRel) & known == 0
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_asks_once_and_the_circuit_knows_only_what_it_has_come_to() {
        let closed = Closed::default();
        assert!(closed.ask(false) && !closed.ask(false));
        assert!(closed.is_closed(false) && !closed.is_closed(true));
        assert!(closed.ask(true) && !closed.ask(true));
        assert!(closed.is_closed(true));

        let closed = Closed::default();
        assert!(closed.ask(true) && !closed.ask(false));
        let closed = Closed::default();
        assert!(closed.ask(false));
        closed.reach();
        assert!(closed.is_closed(true) && !closed.ask(true));
    }
}
