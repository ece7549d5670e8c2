//! How a client follows the log: what it is sent of it, as far as it reads.

use crate::counters::Counter;
use crate::output::Output;
use std::time::{Duration, Instant};
use tidemark_changes::{End, Follower, Format, Told};
use tidemark_log::Lsn;
use tokio::sync::OwnedSemaphorePermit;

/// How a client follows the log.
#[derive(Debug)]
pub(crate) struct Following {
    follower: Follower,
    format: Format,
    /// The last record that the client was told of.
    told: Lsn,
    /// There may be changes that the client had no room for.
    is_behind: bool,
    /// After so long without a change the client is told up to where there was none.
    progress: Option<Duration>,
    progress_at: Option<Instant>,
    /// Free for others when the client follows no more.
    _place: OwnedSemaphorePermit,
}

impl Following {
    pub(crate) fn new(
        follower: Follower,
        format: Format,
        seen: Lsn,
        progress: Option<Duration>,
        place: OwnedSemaphorePermit,
    ) -> Following {
        let progress_at = progress.map(|after| Instant::now() + after);
        Following { follower, format, told: seen, is_behind: false, progress, progress_at, _place: place }
    }

    /// Whether there may be changes to write, for which there is room.
    pub(crate) fn may_catch_up(&self, output: &Output) -> bool {
        self.is_behind && output.has_room()
    }

    /// When time matters next.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        self.progress_at
    }

    /// Writes what the client has not been told yet, as far as it has room; whether it follows no more.
    pub(crate) fn tell(&mut self, output: &mut Output, written: &Counter) -> bool {
        let is_all = self.write(output, written);
        let end = if is_all { self.follower.end() } else { None };
        if let Some(end) = &end {
            self.write_end(end, output);
        }
        end.is_some()
    }

    /// Says up to where there was nothing, if that is due.
    pub(crate) fn tell_progress(&mut self, now: Instant, output: &mut Output) {
        if self.progress_at.is_some_and(|at| at <= now) {
            self.write_progress(output);
        }
    }

    /// Writes what waits, as far as there is room; whether that was all.
    fn write(&mut self, output: &mut Output, written: &Counter) -> bool {
        loop {
            self.is_behind = !output.has_room();
            if self.is_behind {
                return false;
            }
            let Some(told) = self.follower.next() else { return true };
            self.write_change(&told, output);
            written.add(1);
        }
    }

    fn write_change(&mut self, told: &Told, output: &mut Output) {
        self.told = told.lsn;
        self.progress_at = self.progress.map(|after| Instant::now() + after);
        begin(b"change", told.lsn, 3, output);
        match self.format {
            Format::Json => output.reply.bulk(&told.payload),
            Format::Binary => output.reply.encoded(&told.payload),
        }
    }

    /// Tells the client up to where there was nothing for it, if that is so.
    fn write_progress(&mut self, output: &mut Output) {
        if output.has_room()
            && let Some(lsn) = self.follower.caught_up_to()
        {
            self.told = lsn;
            begin(b"progress", lsn, 2, output);
        }
        self.progress_at = self.progress.map(|after| Instant::now() + after);
    }

    /// Tells the client why it follows no more, and how far it had got.
    fn write_end(&self, end: &End, output: &mut Output) {
        match end {
            End::Stale(floor) => {
                begin(b"stale", self.told, 3, output);
                output.reply.count(floor.0 as usize);
            }
            End::Unreadable(reason) | End::TooLong(reason) => {
                begin(b"failed", self.told, 3, output);
                output.reply.bulk(reason.as_bytes());
            }
        }
    }
}

/// Begins a frame of so many parts, of which the first two are these.
fn begin(what: &[u8], lsn: Lsn, parts: usize, output: &mut Output) {
    output.reply.push(parts);
    output.reply.bulk(what);
    output.reply.count(lsn.0 as usize);
}
