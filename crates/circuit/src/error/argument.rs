//! An argument that an operation does not accept.

use std::error;
use std::fmt;

/// An argument that the operation does not accept.
///
/// ```
/// use tidemark_circuit::Fiber;
///
/// let error = Fiber::<u64>::new().every(0).err().unwrap();
/// assert_eq!(error.to_string(), "every: must be at least 1");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentError {
    operation: &'static str,
    message: String,
}

impl ArgumentError {
    /// Makes an error for an argument of `operation`; `message` says what is accepted.
    pub fn new(operation: &'static str, message: impl Into<String>) -> Self {
        Self { operation, message: message.into() }
    }

    /// Name of the method.
    pub fn operation(&self) -> &'static str {
        self.operation
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.message)
    }
}

impl error::Error for ArgumentError {}
