//! No journal, for pools that need not survive their process.

use super::{Journal, JournalError, Listener, Position};

/// A journal that discards all frames.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoJournal {
    taken: Position,
}

impl Journal for NoJournal {
    fn append(&mut self, _time_us: u64, _frame: &[u8]) -> Result<Position, JournalError> {
        self.taken += 1;
        Ok(self.taken)
    }

    fn request(&mut self, _position: Position) {}

    fn settled(&self) -> Result<Position, JournalError> {
        Ok(self.taken)
    }

    fn listen(&mut self, _listener: Listener) {}

    fn close(&mut self) -> Result<(), JournalError> {
        Ok(())
    }
}
