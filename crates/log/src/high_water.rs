//! The high-water thread: records in `END` how far an open log is durable. A start refuses a log
//! that ends before this mark.
//!
//! ```text
//!  records become durable    END is written and synced
//!  ──┬──────────────────────────┬─────────────────────────► time
//!    └─── at most NOTE_DELAY ───┘
//! ```
//!
//! A busy log pays for one more sync a second, on a thread that no caller waits for; an idle log
//! for none. The mark was durable before it is written, so `END` never claims records that a power
//! failure can lose.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Lsn;
use crate::end_file::{self, EndFile, LogEnd};
use crate::error::Failure;
use crate::shared::{Shared, State, wait};
use crate::storage::is_shortage;

/// Longest time between records becoming durable and the update of `END`.
const NOTE_DELAY: Duration = Duration::from_secs(1);

pub(crate) struct HighWater {
    shared: Arc<Shared>,
    file: Arc<EndFile>,
    /// LSN at which the records of this process start; repeated in every update.
    begun: Lsn,
    /// Durable LSN in `END`.
    noted: Lsn,
}

impl HighWater {
    pub(crate) fn new(shared: Arc<Shared>, file: Arc<EndFile>, begun: Lsn, noted: Lsn) -> Self {
        Self { shared, file, begun, noted }
    }

    /// Runs until the log is closed or fails.
    pub(crate) fn run(mut self) {
        while let Some(durable) = self.next_mark() {
            let noted = self.noted;
            assert!(durable > noted, "record {durable} would be noted as durable behind record {noted}");
            match self.file.write(LogEnd { closed: false, durable, next: self.begun }) {
                Ok(()) => self.noted = durable,
                // A copy-on-write file system needs space even for this. Retried after the next
                // delay.
                Err(error) if is_shortage(&error) => {}
                Err(error) => {
                    let what = format!("writing {}", end_file::path(&*self.shared.storage));
                    self.shared.fail(Failure::new(what, error));
                    return;
                }
            }
        }
    }

    /// Waits until more is durable than `END` records, and then for the delay, so that more
    /// accumulates. `None` if the log is closed or has failed.
    fn next_mark(&self) -> Option<Lsn> {
        let shared = &self.shared;
        let mut state = shared.lock();
        while self.durable(&state) == self.noted {
            if has_ended(&state) {
                return None;
            }
            state = wait(&shared.wakers.advanced, state);
        }
        let clock = &shared.options.clock;
        let note_at = clock.now() + NOTE_DELAY;
        while let rest = clock.timeout(note_at)
            && !rest.is_zero()
        {
            if has_ended(&state) {
                return None;
            }
            let result = shared.wakers.high_water.wait_timeout(state, rest);
            state = result.unwrap_or_else(PoisonError::into_inner).0;
        }
        // After a failed sync the content of the disk is unknown: no new mark is written.
        (!has_ended(&state)).then(|| self.durable(&state))
    }

    /// Returns the newest record known to be durable. A segment is synced before its successor
    /// starts, in every durability mode.
    fn durable(&self, state: &MutexGuard<'_, State>) -> Lsn {
        Lsn(self.shared.durable.load(Ordering::Acquire)).max(state.sealed)
    }
}

fn has_ended(state: &State) -> bool {
    state.closing || state.failure.is_some()
}
