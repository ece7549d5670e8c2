//! The end of a way: what is done with a value.

/// What receives values: a closure, a pipe, or the head of a chain of operators.
///
/// A receptor of a circuit's pipe runs in that circuit's context only, one value at a time, so it may keep state
/// without locks. If it panics, the value is lost on this way, and the circuit goes on.
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
    /// Takes one value.
    fn receive(&mut self, value: E);
}

impl<E, F: FnMut(E) + Send> Receptor<E> for F {
    #[inline]
    fn receive(&mut self, value: E) {
        self(value);
    }
}
