//! The third thread: notes in `END` how far the log is durable while it is open, the high-water mark below which a start
//! refuses to begin.
//!
//! ```text
//!  records become durable    END is written and synced
//!  ──┬──────────────────────────┬─────────────────────────► time
//!    └─── at most NOTE_DELAY ───┘
//! ```
//!
//! So `END` is at most that much, and one sync, behind what was acknowledged as durable. A busy log pays for one more sync a
//! second, on a thread that nobody waits for; an idle log for none. What is noted was durable before, so `END` never claims
//! what a power failure can take back.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Lsn;
use crate::end_file::{self, EndFile, LogEnd};
use crate::error::Failure;
use crate::shared::{Shared, State, wait};
use crate::storage::is_shortage;

/// How long records may have been durable before `END` says so.
const NOTE_DELAY: Duration = Duration::from_secs(1);

pub(crate) struct HighWater {
    shared: Arc<Shared>,
    file: Arc<EndFile>,
    /// Where the records of this process begin, which `END` goes on to say.
    begun: Lsn,
    /// What `END` calls durable.
    noted: Lsn,
}

impl HighWater {
    pub(crate) fn new(shared: Arc<Shared>, file: Arc<EndFile>, begun: Lsn, noted: Lsn) -> Self {
        Self { shared, file, begun, noted }
    }

    /// Works until the log is closed or fails.
    pub(crate) fn run(mut self) {
        while let Some(durable) = self.next_mark() {
            let noted = self.noted;
            assert!(durable > noted, "record {durable} would be noted as durable behind record {noted}");
            match self.file.write(LogEnd { closed: false, durable, next: self.begun }) {
                Ok(()) => self.noted = durable,
                // A file system that never overwrites in place needs space even for this. Tried again after the next delay.
                Err(error) if is_shortage(&error) => {}
                Err(error) => {
                    let what = format!("writing {}", end_file::path(&*self.shared.storage));
                    self.shared.fail(Failure::new(what, error));
                    return;
                }
            }
        }
    }

    /// Waits until more is durable than `END` says, and then for the delay, in which more becomes durable. `None` when the
    /// log is closed or has failed.
    fn next_mark(&self) -> Option<Lsn> {
        let shared = &self.shared;
        let mut state = shared.lock();
        while self.durable(&state) == self.noted {
            if has_ended(&state) {
                return None;
            }
            state = wait(&shared.advanced, state);
        }
        let note_at = Instant::now() + NOTE_DELAY;
        while let rest = note_at.saturating_duration_since(Instant::now())
            && !rest.is_zero()
        {
            if has_ended(&state) {
                return None;
            }
            let result = shared.ending.wait_timeout(state, rest);
            state = result.unwrap_or_else(PoisonError::into_inner).0;
        }
        // Behind a failed sync nobody knows what the disk holds: nothing more is called durable.
        (!has_ended(&state)).then(|| self.durable(&state))
    }

    /// The newest record that is known to be durable: a segment is synced before its successor is begun, whatever was asked for.
    fn durable(&self, state: &MutexGuard<'_, State>) -> Lsn {
        Lsn(self.shared.durable.load(Ordering::Acquire)).max(state.sealed)
    }
}

fn has_ended(state: &State) -> bool {
    state.closing || state.failure.is_some()
}
