//! Tracks in which circuit's context the running code is.

use std::cell::Cell;
use std::ptr;
use std::sync::OnceLock;
use std::time::Instant;

use crate::execution::machine::Head;
use crate::failure::thrown::shielded;
use crate::sync::thread_local;

thread_local! {
    /// The circuit that this thread runs, or null. The lowest bit marks that the thread has stepped
    /// out of the context.
    static INSIDE: Cell<*const Head> = const { Cell::new(ptr::null()) };
}

const OUT: usize = 1;

/// Returns whether the running code is in this circuit's context.
#[inline]
pub(crate) fn is_inside(machine: *const Head) -> bool {
    entered() == machine
}

/// The circuit in whose context the caller runs, or null. Valid until the caller leaves the
/// context.
#[inline]
pub(crate) fn inside() -> *const Head {
    let entered = entered();
    if entered.addr() & OUT == 0 { entered } else { ptr::null() }
}

/// The last argument of [`replace`] on this thread: the circuit that it runs, if any, perhaps
/// marked as stepped out.
#[inline]
pub(crate) fn entered() -> *const Head {
    INSIDE.with(Cell::get)
}

/// Returns the circuit without the mark.
pub(crate) fn without_mark(entered: *const Head) -> *const Head {
    entered.map_addr(|address| address & !OUT)
}

/// Returns whether this thread runs any circuit, even if it has stepped out of it.
#[inline]
pub(crate) fn is_within_any() -> bool {
    !without_mark(entered()).is_null()
}

/// Enters a context, or leaves it with null. Returns the previous one.
#[inline]
pub(crate) fn replace(machine: *const Head) -> *const Head {
    INSIDE.with(|inside| inside.replace(machine))
}

/// Runs code that is not the circuit's on the circuit's thread, as if it were outside. What that
/// code emits to the circuit is ordinary input. It is still prevented from waiting for the circuit.
fn step_out<R>(run: impl FnOnce() -> R) -> R {
    within(entered().map_addr(|address| address | OUT), run)
}

/// Runs code of the circuit on a thread that may have stepped out of it.
pub(crate) fn step_in<R>(run: impl FnOnce() -> R) -> R {
    within(without_mark(entered()), run)
}

fn within<R>(context: *const Head, run: impl FnOnce() -> R) -> R {
    struct Back(*const Head);
    impl Drop for Back {
        fn drop(&mut self) {
            replace(self.0);
        }
    }
    let _back = Back(replace(context));
    run()
}

/// Calls code that is not the circuit's, see [`step_out`], and shields the circuit from its panics.
pub(crate) fn call_outside(call: impl FnOnce()) {
    step_out(|| shielded(call));
}

/// Returns the nanoseconds since the first call in this process.
pub(crate) fn clock_nanos() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
