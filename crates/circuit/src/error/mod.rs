//! Errors of this crate: one type per file, and [`Error`] for all of them.

mod argument;
mod context;
mod fault;
mod refused;

use std::error;
use std::fmt;
use std::io;
use std::sync::Arc;

use crate::journal::ReplayError;

pub use argument::ArgumentError;
pub use context::ContextError;
pub(crate) use context::called_inside;
pub use fault::Fault;
pub use refused::Refused;

/// Any error of this crate, for functions that can fail in more than one way. `?` converts the
/// other errors to it, and those of the system. Of a [refused](Refused) value only the reason is
/// kept: take the value out before if it is needed.
///
/// ```
/// use tidemark_circuit::{Circuit, Error};
///
/// fn last_of(circuit: &Circuit, values: impl Iterator<Item = u64>) -> Result<u64, Error> {
///     let last = circuit.cell(0)?; // a Fault
///     values.for_each(|value| last.pipe().emit(value));
///     circuit.settle()?; // a ContextError
///     Ok(last.get())
/// }
/// assert_eq!(last_of(&Circuit::new(), 1..=3)?, 3);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A component is closed or belongs to another circuit.
    Fault(Fault),
    /// An argument is out of range.
    Argument(ArgumentError),
    /// The call came from a context in which it is not allowed.
    Context(ContextError),
    /// A circuit did not accept a value.
    Refused(Refused<()>),
    /// A journal could not be replayed.
    Replay(Arc<ReplayError>),
    /// The system refused something: a thread, or reading or writing a journal.
    Io(Arc<io::Error>),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => fault.fmt(f),
            Self::Argument(error) => error.fmt(f),
            Self::Context(error) => error.fmt(f),
            Self::Refused(refused) => fmt::Display::fmt(refused, f),
            Self::Replay(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
        }
    }
}

/// The text is the inner error's, so the source is the inner error's source.
impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Fault(_) | Self::Argument(_) | Self::Context(_) | Self::Refused(_) => None,
            Self::Replay(error) => error.source(),
            Self::Io(error) => error.source(),
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<ArgumentError> for Error {
    fn from(error: ArgumentError) -> Self {
        Self::Argument(error)
    }
}

impl From<ContextError> for Error {
    fn from(error: ContextError) -> Self {
        Self::Context(error)
    }
}

impl<E> From<Refused<E>> for Error {
    fn from(refused: Refused<E>) -> Self {
        Self::Refused(match refused {
            Refused::Full(_) => Refused::Full(()),
            Refused::Closed(_) => Refused::Closed(()),
            Refused::Circle(_) => Refused::Circle(()),
        })
    }
}

impl From<ReplayError> for Error {
    fn from(error: ReplayError) -> Self {
        Self::Replay(Arc::new(error))
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}
