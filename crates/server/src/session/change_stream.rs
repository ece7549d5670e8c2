//! State of a client that follows the log.

use crate::net::outbox::Outbox;
use crate::observe::counters::Counter;
use std::time::{Duration, Instant};
use tidemark_changes::{EncodedRecord, End, Follower, Format};
use tidemark_log::{Clock, Lsn};
use tokio::sync::OwnedSemaphorePermit;

/// A client's position in the change stream, and its options.
#[derive(Debug)]
pub(crate) struct ChangeStream {
    follower: Follower,
    format: Format,
    /// LSN of the last record sent to the client.
    sent: Lsn,
    /// There may be changes that the outbox had no room for.
    is_behind: bool,
    /// A progress frame is sent after this time without a change.
    progress: Option<Duration>,
    progress_at: Option<Instant>,
    clock: Clock,
    /// Permit of the connection's place; dropping it frees the place.
    _place: OwnedSemaphorePermit,
}

impl ChangeStream {
    pub(crate) fn new(
        follower: Follower,
        format: Format,
        seen: Lsn,
        progress: Option<Duration>,
        place: OwnedSemaphorePermit,
        clock: &Clock,
    ) -> ChangeStream {
        let progress_at = progress.map(|after| clock.now() + after);
        let clock = clock.clone();
        ChangeStream {
            follower,
            format,
            sent: seen,
            is_behind: false,
            progress,
            progress_at,
            clock,
            _place: place,
        }
    }

    /// Whether there may be changes to write, and the outbox has room for them.
    pub(crate) fn may_catch_up(&self, outbox: &Outbox) -> bool {
        self.is_behind && outbox.has_room()
    }

    /// When the next progress frame is due.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        self.progress_at
    }

    /// Writes pending changes until the outbox is full. Returns whether the stream has ended.
    pub(crate) fn write_changes(&mut self, outbox: &mut Outbox, written: &Counter) -> bool {
        let is_all = self.write(outbox, written);
        let end = if is_all { self.follower.end() } else { None };
        if let Some(end) = &end {
            self.write_end(end, outbox);
        }
        end.is_some()
    }

    /// Writes a progress frame if one is due.
    pub(crate) fn write_progress(&mut self, now: Instant, outbox: &mut Outbox) {
        if self.progress_at.is_some_and(|at| at <= now) {
            self.write_progress_frame(outbox);
        }
    }

    /// Writes pending changes. Returns whether that was all of them.
    fn write(&mut self, outbox: &mut Outbox, written: &Counter) -> bool {
        loop {
            self.is_behind = !outbox.has_room();
            if self.is_behind {
                return false;
            }
            let Some(record) = self.follower.next() else { return true };
            self.write_change(&record, outbox);
            written.add(1);
        }
    }

    fn write_change(&mut self, record: &EncodedRecord, outbox: &mut Outbox) {
        self.sent = record.lsn;
        self.progress_at = self.progress.map(|after| self.clock.now() + after);
        begin(b"change", record.lsn, 3, outbox);
        match self.format {
            Format::Json => outbox.reply.bulk(&record.payload),
            Format::Binary => outbox.reply.encoded(&record.payload),
        }
    }

    /// Writes a progress frame if the client has everything.
    fn write_progress_frame(&mut self, outbox: &mut Outbox) {
        if outbox.has_room()
            && let Some(lsn) = self.follower.caught_up_to()
        {
            self.sent = lsn;
            begin(b"progress", lsn, 2, outbox);
        }
        self.progress_at = self.progress.map(|after| self.clock.now() + after);
    }

    /// Notifies the client why the stream has ended, and of the last LSN sent.
    fn write_end(&self, end: &End, outbox: &mut Outbox) {
        match end {
            End::Stale(floor) => {
                begin(b"stale", self.sent, 3, outbox);
                outbox.reply.count(floor.0 as usize);
            }
            End::Unreadable(reason) | End::TooLong(reason) => {
                begin(b"failed", self.sent, 3, outbox);
                outbox.reply.bulk(reason.as_bytes());
            }
        }
    }
}

/// Begins a frame of `parts` parts, of which `what` and `lsn` are the first two.
fn begin(what: &[u8], lsn: Lsn, parts: usize, outbox: &mut Outbox) {
    outbox.reply.push(parts);
    outbox.reply.bulk(what);
    outbox.reply.count(lsn.0 as usize);
}
