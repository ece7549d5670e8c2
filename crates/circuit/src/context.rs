//! In which circuit's context the running code is.

use std::cell::Cell;
use std::ptr;
use std::sync::OnceLock;
use std::time::Instant;

use crate::machine::Machine;
use crate::sync::thread_local;

thread_local! {
    /// The circuit that this thread is running, or null.
    static INSIDE: Cell<*const Machine> = const { Cell::new(ptr::null()) };
}

/// Whether the running code is in this circuit's context.
#[inline]
pub(crate) fn is_inside(machine: *const Machine) -> bool {
    inside() == machine
}

/// The circuit whose context this is, if any. Valid as long as the caller does not leave the context.
#[inline]
pub(crate) fn inside() -> *const Machine {
    INSIDE.with(Cell::get)
}

/// Enters a context, or leaves it with null, and returns the one before.
#[inline]
pub(crate) fn replace(machine: *const Machine) -> *const Machine {
    INSIDE.with(|inside| inside.replace(machine))
}

/// Nanoseconds on a clock that only grows. Inside a circuit it stands still while one input and all that it causes are
/// handled, so that every operator reads the same time.
pub(crate) fn now_nanos() -> u64 {
    Machine::with_inside(|machine| machine.map_or_else(clock_nanos, Machine::stimulus_nanos))
}

/// Nanoseconds since the process first asked.
pub(crate) fn clock_nanos() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
