//! A value that a circuit did not accept.

use std::fmt;

/// Why a value was not accepted, with the value, so that the caller can emit it again or use it
/// otherwise.
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
    /// The queue was full. There may be room later.
    Full(E),
    /// The circuit was closed, which is final.
    Closed(E),
    /// The queue was full, and waiting for room would have been a deadlock: the caller is a
    /// receptor of a circuit that this one waits for, directly or through others.
    Circle(E),
}

impl<E> Refused<E> {
    /// Returns the value that was not accepted.
    pub fn into_value(self) -> E {
        match self {
            Self::Full(value) | Self::Closed(value) | Self::Circle(value) => value,
        }
    }
}

/// Without the value, so that a value of any type can be refused.
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
                "the circuit's queue is full, and waiting for room would be a deadlock: the circuit \
                 waits for the one that emits; break the circle: let the queue of one of them reject \
                 or drop values, or hold more"
            }
        })
    }
}

impl<E> std::error::Error for Refused<E> {}
