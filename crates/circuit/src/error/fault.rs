//! A call that a component refuses.

use std::error;
use std::fmt;

use crate::identity::subject::Subject;

/// A call that the component's state or ownership forbids: it is closed, or it belongs to another circuit.
///
/// Its text has the [id](crate::Id) of who is meant behind the path, as there may be many of one name: the path of what has no name
/// says little but of which circuit it is.
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
    /// A refusal by `subject` of `operation`, with the reason.
    pub fn new(subject: Subject, operation: &'static str, message: impl Into<String>) -> Self {
        Self { subject, operation, message: message.into() }
    }

    /// Who refused.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// What was asked for: the name of the method.
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// Why it was refused.
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
