//! A snapshot before the disk is full: what the log asks of a program that takes snapshots, so that old segments can go before
//! records are refused.
//!
//! ```text
//!             no space for the next segment,
//!             or it would leave none for a snapshot          finish_relief, or it could not be taken
//!   Offered ────────────────────────────────► Wanted ──────────────────────────────────────► Done
//!      ▲                                        ▲                                             │ still no space:
//!      └──────── a segment is prepared ─────────┴──── the log has changed since ──────────────┘ records are refused
//! ```

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::shared::{Shared, State};

/// What a snapshot may take beyond the size of the last one, at least.
const SNAPSHOT_SLACK_BYTES: u64 = 1 << 20;
/// The part of the last snapshot's size by which the next may exceed it.
const SNAPSHOT_GROWTH_DIVISOR: u64 = 4;
/// The part of a segment by which the log must have grown since the last snapshot for another one to be of use.
const GROWTH_DIVISOR: u64 = 4;
/// How long after a snapshot that has not helped another is asked for, if anything has changed.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// How a snapshot may help against a shortage of space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relief {
    /// Nobody takes any.
    None,
    /// One would be taken if it were wanted.
    Offered,
    /// One is wanted, or being taken.
    Wanted,
    /// One was taken, or could not be, when the log had written so many bytes.
    Done { at: Instant, written_bytes: u64 },
}

impl Shared {
    /// What has to stay free for a snapshot when a segment is prepared, so that there is a way back from a disk that the log has
    /// filled. The state cannot have grown by more than what was logged; directly after a snapshot that is nothing.
    fn bytes_for_snapshot(&self, state: &State) -> u64 {
        if state.relief == Relief::None {
            return 0;
        }
        let last = self.snapshot_bytes.load(Ordering::Relaxed);
        let logged = self.written_bytes.load(Ordering::Relaxed);
        let since = logged.saturating_sub(self.snapshot_at_bytes.load(Ordering::Relaxed));
        last + (last / SNAPSHOT_GROWTH_DIVISOR).max(since) + SNAPSHOT_SLACK_BYTES
    }

    /// An error if a file of so many bytes would leave no space for a snapshot.
    pub(crate) fn check_free_space(&self, bytes: u64) -> io::Result<()> {
        let kept = self.bytes_for_snapshot(&self.lock());
        if kept == 0 {
            return Ok(());
        }
        match self.storage.free_bytes()? {
            Some(free) if free < bytes + kept => Err(io::Error::new(
                io::ErrorKind::StorageFull,
                format!(
                    "of {free} bytes that are free, {bytes} for it would not leave {kept} for a snapshot"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Whether a snapshot may help against the shortage that has just shown, or is being taken for it already; then records are
    /// not refused yet. Whether the listener is to be told.
    pub(crate) fn seek_relief(&self, state: &mut State) -> (bool, bool) {
        let logged = self.written_bytes.load(Ordering::Relaxed);
        let is_wanted = match state.relief {
            Relief::None => return (false, false),
            Relief::Wanted => return (true, false),
            Relief::Offered => true,
            Relief::Done { at, written_bytes } => {
                let has_grown = logged.saturating_sub(written_bytes);
                let is_worth_it = has_grown > self.options.segment_bytes / GROWTH_DIVISOR;
                is_worth_it || (has_grown > 0 && at.elapsed() >= RETRY_DELAY)
            }
        };
        if is_wanted {
            state.relief = Relief::Wanted;
        }
        // While records are refused it does not change that.
        (is_wanted && state.full.is_none(), is_wanted)
    }

    /// Notes that the relief that was wanted has come, or cannot come.
    pub(crate) fn end_relief(&self) {
        let mut state = self.lock();
        if state.relief == Relief::Wanted {
            let written_bytes = self.written_bytes.load(Ordering::Relaxed);
            state.relief = Relief::Done { at: Instant::now(), written_bytes };
        }
        self.chores.notify_one();
    }
}
