//! A journal with a planned fault, for tests of its users.

use super::{Journal, JournalError, Listener, Position, SnapshotSink};
use std::sync::{Arc, Mutex, PoisonError};

/// Kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A frame is refused.
    Append,
    /// Only this many bytes of a frame are written, and the error is detected.
    Torn(usize),
    /// A frame is accepted and never settles.
    Sync,
}

/// A fault and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The fault.
    pub fault: Fault,
    /// Number of the frame that it affects, from 1.
    pub at: u64,
}

/// A journal with one planned fault; everything after it fails as well.
///
/// ```
/// use tidemark_pool::journal::{Fault, FaultyJournal, Journal, MemoryJournal, Plan};
///
/// let memory = MemoryJournal::default();
/// let mut journal = FaultyJournal::new(memory.clone(), Plan { fault: Fault::Torn(2), at: 2 });
/// assert_eq!(journal.append(0, b"first"), Ok(1));
/// assert!(journal.append(0, b"second").is_err());
/// assert!(journal.append(0, b"third").is_err());
/// assert_eq!(memory.frames(), [&b"first"[..], b"se"]);
/// ```
#[derive(Debug)]
pub struct FaultyJournal<J> {
    journal: J,
    plan: Plan,
    taken: u64,
    state: Mutex<FaultyState>,
}

#[derive(Debug, Default)]
struct FaultyState {
    /// Last position that settles.
    end: Option<Position>,
    failure: Option<JournalError>,
}

impl<J: Journal> FaultyJournal<J> {
    /// Wraps `journal` with this fault.
    pub fn new(journal: J, plan: Plan) -> Self {
        Self { journal, plan, taken: 0, state: Mutex::default() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, FaultyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, what: &str) -> JournalError {
        let failure = JournalError::new(Arc::from(format!("{what} {} failed, as was planned", self.taken)));
        self.state().failure.get_or_insert(failure).clone()
    }
}

impl<J: Journal> Journal for FaultyJournal<J> {
    fn append(&mut self, time_us: u64, frame: &[u8]) -> Result<Position, JournalError> {
        if let Some(failure) = &self.state().failure {
            return Err(failure.clone());
        }
        self.taken += 1;
        if self.taken != self.plan.at {
            return self.journal.append(time_us, frame);
        }
        match self.plan.fault {
            Fault::Append => Err(self.fail("append")),
            Fault::Torn(bytes) => {
                self.journal.append(time_us, &frame[..bytes.min(frame.len())])?;
                Err(self.fail("append"))
            }
            Fault::Sync => {
                let position = self.journal.append(time_us, frame)?;
                self.state().end = Some(position - 1);
                Ok(position)
            }
        }
    }

    fn settle_when_durable(&mut self, position: Position) {
        self.journal.settle_when_durable(position);
    }

    fn request(&mut self, position: Position) {
        let end = self.state().end;
        if end.is_some_and(|end| position > end) {
            self.fail("sync");
        } else {
            self.journal.request(position);
        }
    }

    fn settled(&self) -> Result<Position, JournalError> {
        let state = self.state();
        match (&state.failure, state.end) {
            (Some(failure), _) => Err(failure.clone()),
            (None, end) => self.journal.settled().map(|settled| end.map_or(settled, |end| settled.min(end))),
        }
    }

    fn listen(&mut self, listener: Listener) {
        self.journal.listen(listener);
    }

    fn begin_snapshot(&mut self) -> Option<Box<dyn SnapshotSink>> {
        if self.state().failure.is_some() { None } else { self.journal.begin_snapshot() }
    }

    fn close(&mut self) -> Result<(), JournalError> {
        let closed = self.journal.close();
        match &self.state().failure {
            Some(failure) => Err(failure.clone()),
            None => closed,
        }
    }
}
