//! Relief snapshots: when the disk fills up, the log requests a snapshot, so that old segments can
//! be dropped before records are refused.
//!
//! [`relief_state`](crate::relief_state) shows the states of a request.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::relief_state::Relief;
use crate::shared::{Shared, State};

/// Minimum space for a snapshot beyond the size of the last one.
const SNAPSHOT_SLACK_BYTES: u64 = 1 << 20;
/// Fraction of the last snapshot's size by which the next may exceed it.
const SNAPSHOT_GROWTH_DIVISOR: u64 = 4;
/// Fraction of a segment by which the log must have grown since the last snapshot for another one
/// to help.
const GROWTH_DIVISOR: u64 = 4;
/// Delay before another request after a snapshot that did not help, if the log has grown at all.
const RETRY_DELAY: Duration = Duration::from_secs(1);

impl Shared {
    /// Returns the space to keep free for a snapshot when a segment is prepared: the way out of a
    /// full disk. The state cannot have grown by more than what was logged since the last snapshot.
    fn bytes_for_snapshot(&self, state: &State) -> u64 {
        if state.relief == Relief::None {
            return 0;
        }
        let last = self.sizes.snapshot.load(Ordering::Relaxed);
        let logged = self.sizes.written.load(Ordering::Relaxed);
        let since = logged.saturating_sub(self.sizes.written_at_snapshot.load(Ordering::Relaxed));
        last + (last / SNAPSHOT_GROWTH_DIVISOR).max(since) + SNAPSHOT_SLACK_BYTES
    }

    /// Returns an error if a file of `bytes` would leave no space for a snapshot.
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

    /// Requests a snapshot if one may help against a shortage of space. Returns whether to keep
    /// accepting records until it is done, and whether to notify the listener.
    pub(crate) fn seek_relief(&self, state: &mut State) -> (bool, bool) {
        let logged = self.sizes.written.load(Ordering::Relaxed);
        let is_wanted = match state.relief {
            Relief::None => return (false, false),
            Relief::Wanted => return (true, false),
            Relief::Offered => true,
            Relief::Done { at, written_bytes } => {
                let has_grown = logged.saturating_sub(written_bytes);
                let is_worth_it = has_grown > self.options.segment_bytes / GROWTH_DIVISOR;
                is_worth_it || (has_grown > 0 && self.options.clock.elapsed(at) >= RETRY_DELAY)
            }
        };
        if is_wanted {
            state.relief = Relief::Wanted;
        }
        // A request does not end a refusal that is already in force.
        (is_wanted && state.full.is_none(), is_wanted)
    }

    /// Records that the requested snapshot was taken or could not be taken.
    pub(crate) fn end_relief(&self) {
        let mut state = self.lock();
        if state.relief == Relief::Wanted {
            let written_bytes = self.sizes.written.load(Ordering::Relaxed);
            state.relief = Relief::Done { at: self.options.clock.now(), written_bytes };
        }
        self.wakers.housekeeping.notify_one();
    }
}
