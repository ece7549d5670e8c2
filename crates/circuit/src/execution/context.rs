//! In which circuit's context the running code is.

use std::cell::Cell;
use std::ptr;
use std::sync::OnceLock;
use std::time::Instant;

use crate::execution::machine::Head;
use crate::failure::thrown::shielded;
use crate::sync::thread_local;

thread_local! {
    /// The circuit that this thread is running, or null. Its lowest bit says that the thread has stepped out for a while.
    static INSIDE: Cell<*const Head> = const { Cell::new(ptr::null()) };
}

const OUT: usize = 1;

/// Whether the running code is in this circuit's context.
#[inline]
pub(crate) fn is_inside(machine: *const Head) -> bool {
    entered() == machine
}

/// The circuit whose context this is, if any. Valid as long as the caller does not leave the context.
#[inline]
pub(crate) fn inside() -> *const Head {
    let entered = entered();
    if entered.addr() & OUT == 0 { entered } else { ptr::null() }
}

/// What [`replace`] was last given on this thread: the circuit that it is running, if any, perhaps with a mark.
#[inline]
pub(crate) fn entered() -> *const Head {
    INSIDE.with(Cell::get)
}

/// The circuit itself, whether the thread has stepped out of it or not.
pub(crate) fn without_mark(entered: *const Head) -> *const Head {
    entered.map_addr(|address| address & !OUT)
}

/// Whether this thread is running any circuit, also if it has stepped out of it.
#[inline]
pub(crate) fn is_within_any() -> bool {
    !without_mark(entered()).is_null()
}

/// Enters a context, or leaves it with null, and returns the one before.
#[inline]
pub(crate) fn replace(machine: *const Head) -> *const Head {
    INSIDE.with(|inside| inside.replace(machine))
}

/// Runs code that is not the circuit's, though the circuit's thread has to run it: to that code it is as if it were outside. What
/// it emits to the circuit is an input like any other. That it must not wait for the circuit is still known.
fn step_out<R>(run: impl FnOnce() -> R) -> R {
    within(entered().map_addr(|address| address | OUT), run)
}

/// Runs code of the circuit that the thread may have stepped out of.
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

/// Calls code that is not the circuit's, see [`step_out`], and keeps what it throws from the circuit.
pub(crate) fn call_outside(call: impl FnOnce()) {
    step_out(|| shielded(call));
}

/// Nanoseconds since the process first asked.
pub(crate) fn clock_nanos() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
