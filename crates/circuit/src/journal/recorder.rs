//! Who is told of a circuit's inputs.
#![allow(unsafe_code, reason = "values are looked at where they lie, which has no type")]

use crate::execution::event::Event;
use crate::identity::subject::Subject;

/// What is told of inputs, before they are handled.
pub(crate) trait Recorder: Send + Sync {
    /// An emission from outside.
    ///
    /// # Safety
    ///
    /// The value is one of the type of the pipe with this subject, and nobody else looks at it meanwhile.
    unsafe fn emission(&self, time: u64, pipe: &Subject, value: *mut u8);

    /// Something else from outside.
    fn event(&self, time: u64, event: Event);

    /// Something from outside that cannot be written down.
    fn gap(&self, time: u64, what: &str);
}
