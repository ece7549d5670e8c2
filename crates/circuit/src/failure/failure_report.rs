//! Failures of user code that were kept from spreading: what is known of one.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::failure::supervision::Remedy;
use crate::failure::thrown::message_of;
use crate::identity::subject::Subject;

/// A panic in a callback, which cost the value that the callback was given, and what was done about it.
///
/// Its text says everything, for a log: `cortex:cortex/circuit:plant/pipe:valve#5 failed to receive: 7 is too much (2 times,
/// restarted)`.
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

    /// That something could not be made anew, and why.
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

    /// The failure with how many there were and what was done about it.
    pub(crate) fn was(mut self, count: u32, remedy: Remedy) -> Self {
        assert!(count > 0, "this failure of {} is counted", self.subject);
        self.count = count;
        self.remedy = remedy;
        self
    }

    /// Whose callback failed.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// What was being done:
    ///
    /// - `receive`: a pipe or a receptor was given a value;
    /// - `clone`: a pipe of a conduit copied a value for one who has subscribed, who goes without;
    /// - `subscribe`, `close`: a subscriber, or the end of a subscription, was told of a pipe or of the end;
    /// - `update`: a port was to be changed;
    /// - `emit`: a receptor emitted to a circuit whose queue was full, and would have waited for room in a circle; the value was dropped,
    ///   and the subject is the circuit of the receptor. How threads meet decides whether that happens, so a replay does not repeat it;
    /// - `restart`: what had failed was to be made anew;
    /// - `record`: a value, or the writer of a [`crate::Recording`], was to tell of an input;
    /// - `run`: the circuit did something of its own.
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// What the panic said.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How often this callback has failed until now, this time included. Of `run` and `record`, which are nobody's callbacks: how many
    /// failures of all kinds the circuit has counted.
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

/// Why something could not be made anew.
pub(crate) enum Trouble {
    Panic(Box<dyn Any + Send>),
    Refusal(String),
}
