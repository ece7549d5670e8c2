//! Readers that refuse rows without an end.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// Longest row. Bytes.
pub(super) const ROW_BYTES_MAX: usize = 16 << 20;

/// Bytes that may be read until the budget is renewed.
#[derive(Clone)]
pub(super) struct Budget(Rc<Cell<usize>>);

impl Budget {
    /// Renews the budget: a row begins.
    pub(super) fn renew(&self) {
        self.0.set(ROW_BYTES_MAX);
    }
}

/// Reader that fails once a row has taken its budget.
pub(super) struct Bounded<R> {
    inner: R,
    budget: Budget,
}

impl<R: Read> Bounded<R> {
    pub(super) fn new(inner: R) -> (Self, Budget) {
        let budget = Budget(Rc::new(Cell::new(ROW_BYTES_MAX)));
        (Self { inner, budget: budget.clone() }, budget)
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.budget.0.get();
        if left == 0 {
            let text = format!("a row has more than {} MiB: is a quote not closed?", ROW_BYTES_MAX >> 20);
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let length = buffer.len().min(left);
        let read = self.inner.read(&mut buffer[..length])?;
        self.budget.0.set(left - read);
        Ok(read)
    }
}
