//! A call from a context in which it is not allowed.

use std::error;
use std::fmt;

/// A call from a context in which it is not allowed: waiting for a circuit from inside it, or from
/// inside one that it waits for, or accessing from outside what only the circuit may access.
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

    /// Returns whether the wait was refused because it would have closed a circle of circuits that
    /// wait for each other.
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

/// Message for a call of this method of a circuit from inside it.
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
