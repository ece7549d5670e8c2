//! A journal in memory, for tests, and for programs that store the frames themselves.

use super::{Journal, JournalError, Listener, Position};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Default limit of a journal in memory, in bytes.
const BYTES_MAX: usize = 1 << 30;

/// Frames in memory. Clones share one journal, so another holder can read what is written.
///
/// ```
/// use tidemark_pool::journal::{Journal, MemoryJournal};
///
/// let journal = MemoryJournal::default();
/// let mut writer = journal.clone();
/// let position = writer.append(1, b"a frame").unwrap();
/// assert_eq!(writer.settled(), Ok(position));
/// assert_eq!(journal.frames(), [b"a frame"]);
/// ```
#[derive(Debug, Clone)]
pub struct MemoryJournal {
    contents: Arc<Mutex<Contents>>,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct Contents {
    bytes: Vec<u8>,
    /// End of each frame.
    ends: Vec<usize>,
    failure: Option<JournalError>,
}

impl Default for MemoryJournal {
    fn default() -> Self {
        Self::with_limit(BYTES_MAX)
    }
}

impl MemoryJournal {
    /// Creates a journal that fails, like one on a full disk, when its frames exceed `bytes_max`.
    /// The default is 1 GiB.
    pub fn with_limit(bytes_max: usize) -> Self {
        Self { contents: Arc::default(), bytes_max }
    }

    /// Returns copies of all frames, oldest first.
    pub fn frames(&self) -> Vec<Vec<u8>> {
        let contents = self.contents();
        let begins = std::iter::once(0).chain(contents.ends.iter().copied());
        begins.zip(&contents.ends).map(|(begin, &end)| contents.bytes[begin..end].to_vec()).collect()
    }

    /// Returns the size of all frames in bytes.
    pub fn bytes(&self) -> usize {
        self.contents().bytes.len()
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal for MemoryJournal {
    fn append(&mut self, _time_us: u64, frame: &[u8]) -> Result<Position, JournalError> {
        let bytes_max = self.bytes_max;
        let mut contents = self.contents();
        if let Some(failure) = &contents.failure {
            return Err(failure.clone());
        }
        if contents.bytes.len() + frame.len() > bytes_max {
            let failure = JournalError::new(format!(
                "it may take {bytes_max} bytes of memory, and has no room for {} more: give it a higher limit, or begin a new one",
                frame.len()
            ));
            contents.failure = Some(failure.clone());
            return Err(failure);
        }
        contents.bytes.extend_from_slice(frame);
        let end = contents.bytes.len();
        contents.ends.push(end);
        Ok(contents.ends.len() as Position)
    }

    fn request(&mut self, _position: Position) {}

    fn settled(&self) -> Result<Position, JournalError> {
        let contents = self.contents();
        match &contents.failure {
            Some(failure) => Err(failure.clone()),
            None => Ok(contents.ends.len() as Position),
        }
    }

    fn listen(&mut self, _listener: Listener) {}

    fn close(&mut self) -> Result<(), JournalError> {
        self.settled().map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_full_takes_nothing_more() {
        let mut journal = MemoryJournal::with_limit(3);
        assert_eq!(journal.append(0, b"ab"), Ok(1));
        let failure = journal.append(0, b"cd").expect_err("there is room for one byte");
        assert!(failure.to_string().contains("3 bytes"), "{failure}");
        assert_eq!(journal.append(0, b"c"), Err(failure.clone()), "a failure is final");
        assert_eq!((journal.settled(), journal.close()), (Err(failure.clone()), Err(failure)));
        assert_eq!(journal.frames(), [b"ab"]);
    }
}
