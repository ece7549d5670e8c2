//! An argument that an operation does not take.

use std::error;
use std::fmt;

/// An argument outside of what the operation takes.
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
    /// A refusal of an argument of `operation`, with what would be accepted.
    pub fn new(operation: &'static str, message: impl Into<String>) -> Self {
        Self { operation, message: message.into() }
    }

    /// The name of the method.
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
