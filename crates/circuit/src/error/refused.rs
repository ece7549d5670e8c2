//! A value that a circuit did not accept.

use std::fmt;

/// Why a value was not accepted, with the value.
///
/// ```
/// use tidemark_circuit::{Circuit, Refused};
///
/// let circuit = Circuit::new();
/// let pipe = circuit.discard()?;
/// circuit.close();
/// let refused = pipe.try_emit("late").unwrap_err();
/// assert_eq!(refused, Refused::Closed("late"));
/// assert_eq!(refused.into_value(), "late");
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Refused<E> {
    /// The queue was full.
    Full(E),
    /// The circuit was closed.
    Closed(E),
    /// The queue was full, and the caller, a receptor of another circuit, would have waited for
    /// ever: this circuit waits for that one, directly or not.
    Circle(E),
}

impl<E> Refused<E> {
    /// Returns the value.
    pub fn into_value(self) -> E {
        match self {
            Self::Full(value) | Self::Closed(value) | Self::Circle(value) => value,
        }
    }
}

impl<E> fmt::Debug for Refused<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Closed(_) => "Closed(..)",
            Self::Circle(_) => "Circle(..)",
        })
    }
}

impl<E> fmt::Display for Refused<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the circuit's queue is full",
            Self::Closed(_) => "the circuit is closed",
            Self::Circle(_) => {
                "the circuit's queue is full, and it waits for the circuit that would wait for room; \
                 break the circle: have one of them reject or drop, or take more"
            }
        })
    }
}

impl<E> std::error::Error for Refused<E> {}
