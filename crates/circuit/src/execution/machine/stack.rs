//! How many circuits are run inside of each other on one stack.
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

/// How many circuits are run inside of each other on one stack.
const DEPTH_MAX: u32 = 32;

/// Does what may run a circuit for the caller. That one may have the next one run, and so on: after a number of them this goes on with
/// the stack of another thread, if one can be had.
#[inline]
pub(super) fn on_one_stack<R: Send + 'static>(run: impl Fn() -> R + Sync) -> R {
    if has_deep_stack() { apart(run) } else { run() }
}

/// Whether the thread runs as many circuits inside of each other as are to be on one stack.
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

/// Runs this on another thread as if it were this one, which waits for it: in the context of the same circuits, in the middle of making
/// the same, and heard by the same subscriber of `tracing`. On this one where the system gives no thread.
#[cold]
fn apart<R: Send + 'static>(run: impl Fn() -> R + Sync) -> R {
    /// What this thread lends until it has its answer.
    struct Lent<'a, R> {
        /// What the thread is in the context of.
        entered: *const Head,
        run: *const (dyn Fn() -> R + Sync + 'a),
    }
    // SAFETY: what it may do on another thread says `Sync`, and those that the thread is in the context of stay as they are until it has
    // its answer, touched by the other thread only.
    unsafe impl<R> Send for Lent<'_, R> {}

    impl<R> Lent<'_, R> {
        /// Runs it there. What the thread drops when it ends is not there any more.
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
    // SAFETY: nothing of it is used any more when there is an answer, or nobody is left to give one, and until then we wait. Not for
    // the end of the thread: what is dropped then is its own, and may wait for circuits that we hold.
    let lent = unsafe { mem::transmute::<Lent<'_, R>, Lent<'static, R>>(lent) };
    let (listener, made) = (telemetry::Listener::here(), Made::here());
    let work = move || {
        made.take_over();
        // SAFETY: see above.
        let outcome = listener.hears(|| unsafe { lent.run() });
        // Nobody waits for it if nobody is there.
        let _ = answer.send(outcome);
    };
    let thread = thread::Builder::new().name("circuits-apart".to_owned()).spawn(work);
    let Ok(thread) = thread else { return run() };
    if let Ok(outcome) = answered.recv() {
        return outcome;
    }
    // What circuits run does not unwind, unless an invariant is broken.
    match thread.join() {
        Err(panic) => resume_unwind(panic),
        Ok(()) => unreachable!("it has given no answer"),
    }
}
