//! Report of a failure of user code that was caught.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::failure::supervision::Remedy;
use crate::failure::thrown::message_of;
use crate::identity::subject::Subject;

/// A panic in a callback, which cost the value that was being handled, and the remedy.
///
/// Its text has all fields, for a log: `cortex:cortex/circuit:plant/pipe:valve#5 failed to receive:
/// 7 is too much (2 times, restarted)`.
#[derive(Clone, Debug)]
pub struct Failure {
    subject: Subject,
    operation: &'static str,
    message: Arc<str>,
    count: u32,
    remedy: Remedy,
}

impl Failure {
    pub(crate) fn of_panic(subject: Subject, operation: &'static str, panic: Box<dyn Any + Send>) -> Self {
        Self { subject, operation, message: message_of(panic), count: 1, remedy: Remedy::Resumed }
    }

    /// Reports that a restart failed, and why.
    pub(crate) fn of_restart(subject: Subject, count: u32, trouble: Trouble) -> Self {
        let operation = "restart";
        let failure = match trouble {
            Trouble::Panic(panic) => Self::of_panic(subject, operation, panic),
            Trouble::Refusal(message) => {
                Self { subject, operation, message: message.into(), count, remedy: Remedy::Resumed }
            }
        };
        failure.was(count, Remedy::Quarantined)
    }

    /// Sets the number of failures and the remedy.
    pub(crate) fn was(mut self, count: u32, remedy: Remedy) -> Self {
        assert!(count > 0, "this failure of {} is counted", self.subject);
        self.count = count;
        self.remedy = remedy;
        self
    }

    /// Component whose callback failed.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Operation that failed:
    ///
    /// - `receive`: a pipe or a receptor handled a value;
    /// - `clone`: a pipe of a conduit cloned a value for a subscriber, which does not get it;
    /// - `subscribe`, `close`: a callback of a subscriber was notified of a pipe, or one of a
    ///   subscription of its end;
    /// - `update`: a port was updated;
    /// - `emit`: a receptor emitted to a circuit whose queue was full, and would have waited for
    ///   room in a circle; the value was dropped, and the subject is the receptor's circuit. This
    ///   depends on the timing of threads, so a replay does not repeat it;
    /// - `restart`: a failed receptor was made again;
    /// - `record`: a value, or the writer of a [`crate::Recording`], recorded an input;
    /// - `run`: the circuit did work of its own.
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// Message of the panic.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Number of failures of this callback so far, including this one. For `run` and `record`,
    /// which belong to no callback, the number of all failures of the circuit.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// What was done about it.
    pub fn remedy(&self) -> Remedy {
        self.remedy
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, operation, message, count, remedy } = self;
        let times = if *count == 1 { "time" } else { "times" };
        write!(f, "{subject:?} failed to {operation}: {message} ({count} {times}, {remedy})")
    }
}

/// Why a restart failed.
pub(crate) enum Trouble {
    Panic(Box<dyn Any + Send>),
    Refusal(String),
}
