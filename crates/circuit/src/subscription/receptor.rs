//! Receptors: the functions that receive values.

/// A receiver of values: a closure, a pipe, or the head of a chain of operators.
///
/// The receptor of a circuit's pipe runs only in that circuit's context, one value at a time, so it
/// may keep state without locks. If it panics, the value is lost to it and the circuit continues.
///
/// ```
/// use tidemark_circuit::Receptor;
///
/// let mut sum = 0;
/// let mut receptor = |value: i32| sum += value;
/// receptor.receive(2);
/// receptor.receive(3);
/// assert_eq!(sum, 5);
/// ```
pub trait Receptor<E>: Send {
    /// Receives one value.
    fn receive(&mut self, value: E);
}

impl<E, F: FnMut(E) + Send> Receptor<E> for F {
    #[inline]
    fn receive(&mut self, value: E) {
        self(value);
    }
}
