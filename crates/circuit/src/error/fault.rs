//! A call that a component refuses.

use std::error;
use std::fmt;

use crate::identity::subject::Subject;

/// A call that the component's state or ownership forbids: it is closed, or it belongs to another
/// circuit.
///
/// Its text has the [id](crate::Id) of the component after its path, because many components may
/// have the same path: without a name of its own, a component's path identifies little more than
/// its circuit.
///
/// ```
/// use tidemark_circuit::Circuit;
///
/// let circuit = Circuit::new();
/// circuit.close();
/// let fault = circuit.lane().unwrap_err();
/// let id = circuit.subject().id();
/// assert_eq!(fault.to_string(), format!("lane of cortex:cortex/circuit:circuit#{id}: the circuit is closed"));
/// assert_eq!(fault.subject(), circuit.subject());
/// ```
#[derive(Clone, Debug)]
pub struct Fault {
    subject: Subject,
    operation: &'static str,
    message: String,
}

impl Fault {
    /// Makes an error for an `operation` that `subject` refuses, with the reason.
    pub fn new(subject: Subject, operation: &'static str, message: impl Into<String>) -> Self {
        Self { subject, operation, message: message.into() }
    }

    /// Component that refused.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Name of the method that was called.
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// Reason for the refusal.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {:?}: {}", self.operation, self.subject, self.message)
    }
}

impl error::Error for Fault {}
