//! Limits how many circuits run nested on one stack.
#![allow(unsafe_code, reason = "see the parent module")]

use std::mem;
use std::panic::resume_unwind;
use std::ptr;
use std::sync::mpsc;
use std::thread;

use super::head::Head;
use super::state::Machine;
use crate::execution::context;
use crate::execution::making::Made;
use crate::observe::telemetry;

/// Number of nested circuits on one stack.
const DEPTH_MAX: u32 = 32;

/// Calls `run`, which may run a circuit for the caller. Its receptors may run the next circuit, and
/// so on: after `DEPTH_MAX` nested circuits the call moves to the stack of another thread, if the
/// system gives one.
#[inline]
pub(super) fn on_one_stack<R: Send + 'static>(run: impl Fn() -> R + Sync) -> R {
    if has_deep_stack() { apart(run) } else { run() }
}

/// Returns whether as many nested circuits run on this stack as are allowed.
#[inline]
fn has_deep_stack() -> bool {
    if !context::is_within_any() {
        return false;
    }
    let mut depth = 0_u32;
    Machine::each_entered_here(|_| {
        depth += 1;
        false
    });
    depth.is_multiple_of(DEPTH_MAX)
}

/// Runs `run` on another thread as if it were this one, which waits: in the contexts of the same
/// circuits, with the same values being made, and with the same `tracing` subscriber. Runs it on
/// this thread if the system gives none.
#[cold]
fn apart<R: Send + 'static>(run: impl Fn() -> R + Sync) -> R {
    /// What this thread lends until it has its answer.
    struct Lent<'a, R> {
        /// The context that the thread is in.
        entered: *const Head,
        run: *const (dyn Fn() -> R + Sync + 'a),
    }
    // SAFETY: `run` is `Sync`. The machines that the thread is in the context of do not change
    // until it has its answer; only the other thread touches them.
    unsafe impl<R> Send for Lent<'_, R> {}

    impl<R> Lent<'_, R> {
        /// Runs it there. The thread-locals that are dropped when that thread ends are its own.
        ///
        /// # Safety
        ///
        /// The thread that has lent this waits.
        unsafe fn run(self) -> R {
            context::replace(self.entered);
            // SAFETY: as the caller says.
            let outcome = unsafe { (*self.run)() };
            context::replace(ptr::null());
            outcome
        }
    }

    let (answer, answered) = mpsc::channel();
    let lent = Lent { entered: context::entered(), run: ptr::from_ref::<dyn Fn() -> R + Sync + '_>(&run) };
    // SAFETY: this thread waits until there is an answer, or until no sender is left to give one;
    // nothing lent is used after that. It does not wait for the end of the thread: what is dropped
    // then belongs to that thread, and may wait for circuits that this one is in.
    let lent = unsafe { mem::transmute::<Lent<'_, R>, Lent<'static, R>>(lent) };
    let (listener, made) = (telemetry::Listener::here(), Made::here());
    let work = move || {
        made.take_over();
        // SAFETY: see above.
        let outcome = listener.hears(|| unsafe { lent.run() });
        // Fails only if no receiver waits.
        let _ = answer.send(outcome);
    };
    let thread = thread::Builder::new().name("circuits-apart".to_owned()).spawn(work);
    let Ok(thread) = thread else { return run() };
    if let Ok(outcome) = answered.recv() {
        return outcome;
    }
    // Running a circuit does not unwind, unless an invariant is broken.
    match thread.join() {
        Err(panic) => resume_unwind(panic),
        Ok(()) => unreachable!("it has given no answer"),
    }
}
