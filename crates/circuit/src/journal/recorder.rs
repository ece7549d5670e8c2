//! Interface of a recorder of a circuit's inputs.
#![allow(unsafe_code, reason = "values are looked at where they lie, which has no type")]

use crate::execution::event::Event;
use crate::identity::subject::Subject;

/// Records inputs, before they are handled: a journal with the type of its writer erased.
pub(crate) trait Recorder: Send + Sync {
    /// Records an emission from outside.
    ///
    /// # Safety
    ///
    /// The value is of the type of the pipe with this subject, and nothing else accesses it
    /// meanwhile.
    unsafe fn emission(&self, time: u64, pipe: &Subject, value: *mut u8);

    /// Records another input from outside.
    fn event(&self, time: u64, event: Event);

    /// Records that there was an input that cannot be recorded.
    fn gap(&self, time: u64, what: &str);
}
