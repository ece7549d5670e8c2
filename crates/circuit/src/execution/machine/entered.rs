//! Which machines' contexts a thread is in, and what time it is there.
#![allow(unsafe_code, reason = "see the parent module")]

use std::ptr::{self, NonNull};

use super::head::Head;
use super::state::Machine;
use crate::execution::context;

impl Machine {
    /// The machine with this head, or none if the head is null.
    ///
    /// # Safety
    ///
    /// As for [`Machine::of`].
    #[inline]
    unsafe fn at<'a>(head: *const Head) -> Option<&'a Self> {
        // SAFETY: as the caller says.
        NonNull::new(head.cast_mut()).map(|head| unsafe { Self::of(head) })
    }

    #[inline]
    pub(crate) fn is_inside(&self) -> bool {
        context::is_inside(self.head())
    }

    /// The machine in whose context the caller runs.
    pub(crate) fn with_inside<R>(f: impl FnOnce(Option<&Self>) -> R) -> R {
        // SAFETY: the thread that runs a machine has a reference to it.
        f(unsafe { Self::at(context::inside()) })
    }

    /// The machine in whose context the caller runs, or that it has stepped out of.
    pub(super) fn entered_here<'a>() -> Option<&'a Self> {
        // SAFETY: the thread that runs a machine has a reference to it until the caller has
        // returned.
        unsafe { Self::at(context::without_mark(context::entered())) }
    }

    /// Returns whether this thread is in the machine's context, or in that of another machine which
    /// runs inside it.
    #[inline]
    pub(crate) fn is_entered_here(&self) -> bool {
        // Usually the thread is in no context.
        !context::entered().is_null() && Self::each_entered_here(|machine| ptr::eq(machine, self))
    }

    /// Visits the machines in whose context this thread is, innermost first, until `is_right`
    /// accepts one; false if it accepts none.
    #[cold]
    pub(super) fn each_entered_here(mut is_right: impl FnMut(&Self) -> bool) -> bool {
        let mut at = context::entered();
        // SAFETY: this thread is in the context of every machine visited, and the thread that runs
        // a machine has a reference to it.
        while let Some(machine) = unsafe { Self::at(context::without_mark(at)) } {
            if is_right(machine) {
                return true;
            }
            // SAFETY: as above.
            at = unsafe { (*machine.inside.get()).outer };
        }
        false
    }

    /// Time of the input that is being handled. In the context only.
    pub(crate) fn stimulus_nanos(&self) -> u64 {
        debug_assert!(self.is_inside());
        // SAFETY: in the context, and no borrow is kept.
        unsafe {
            let inside = self.inside.get();
            if !(*inside).has_time {
                ((*inside).time, (*inside).has_time) = (context::clock_nanos(), true);
            }
            (*inside).time
        }
    }
}

/// Nanoseconds on a monotonic clock. Inside a circuit it is constant while one input and everything
/// it causes are handled, so that every operator reads the same time.
pub(crate) fn now_nanos() -> u64 {
    Machine::with_inside(|machine| machine.map_or_else(context::clock_nanos, Machine::stimulus_nanos))
}
