//! What can go wrong, as values: a call on something closed or foreign, an argument out of range, a wrong context.

use std::error;
use std::fmt;
use std::io;
use std::sync::Arc;

use crate::bounds::Refused;
#[cfg(feature = "stream")]
use crate::inlet::InletError;
use crate::journal::ReplayError;
use crate::subject::Subject;

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

/// A call from a context in which it cannot be answered: waiting for a circuit from inside of it, or of one that it waits for itself,
/// or touching from outside what only the circuit may touch.
///
/// ```
/// use std::sync::mpsc;
/// use tidemark_circuit::Circuit;
///
/// let circuit = Circuit::new();
/// let (sender, receiver) = mpsc::channel();
/// let own = circuit.clone();
/// circuit.pipe(move |()| sender.send(own.settle()).unwrap())?.emit(());
/// assert!(receiver.recv().unwrap().is_err(), "a circuit cannot wait for itself");
/// circuit.close();
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextError {
    message: &'static str,
}

impl ContextError {
    pub(crate) const CIRCLE: Self = Self::new(
        "Cannot wait for a circuit that waits for this one, directly or through others: they would wait for ever; \
         emit to it instead, and have the answer come through a pipe",
    );

    pub(crate) const fn new(message: &'static str) -> Self {
        Self { message }
    }

    /// Whether the wait was refused because it would have closed a circle of circuits that wait for each other.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use tidemark_circuit::{Circuit, RunBy};
    ///
    /// let built = || Circuit::builder().run_by(RunBy::Thread).build();
    /// let (one, other) = (built()?, built()?);
    /// let (sender, outcomes) = mpsc::channel();
    /// let (back, said) = (one.clone(), sender.clone());
    /// let second = other.pipe(move |()| said.send(back.settle()).unwrap())?;
    /// let (behind, there) = (other.clone(), second.clone());
    /// let first = one.pipe(move |()| {
    ///     there.emit(());
    ///     sender.send(behind.settle()).unwrap();
    /// })?;
    /// first.emit(());
    /// let outcomes = [outcomes.recv()?, outcomes.recv()?];
    /// assert!(outcomes.iter().any(|outcome| outcome.as_ref().is_err_and(|error| error.is_circle())));
    /// one.close();
    /// other.close();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_circle(&self) -> bool {
        *self == Self::CIRCLE
    }
}

/// The message where this method of a circuit is called inside of it.
macro_rules! called_inside {
    ($method:literal) => {
        concat!(
            "Cannot call Circuit::",
            $method,
            " from within the circuit's context: emit what is to come later, or wait outside of it"
        )
    };
}

pub(crate) use called_inside;

impl fmt::Display for ContextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message)
    }
}

impl error::Error for ContextError {}

/// Any of the errors of this crate, for methods and functions that can fail in more than one way. The others become it by `?`, and so
/// do those of the system. Of what was [refused](Refused) only the reason stays: who wants the value takes it out before.
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
    /// The call came from a context in which it cannot be answered.
    Context(ContextError),
    /// A value was not taken.
    Refused(Refused<()>),
    /// A journal could not be replayed.
    Replay(Arc<ReplayError>),
    /// The system refused something: a thread, or what a journal is written to or read from.
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

/// The text is that of what it stands for, so the source is what stands behind that.
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

#[cfg(feature = "stream")]
impl<E> From<InletError<E>> for Error {
    fn from(error: InletError<E>) -> Self {
        match error {
            InletError::Refused(refused) => refused.into(),
            InletError::Context(error) => error.into(),
        }
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
