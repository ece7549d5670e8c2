//! Flow control of watched reads that are published on channels.
//!
//! All messages of one turn of a channel share a [`Turn`]. A connection with room drops it; one
//! without keeps it until it has room. The last drop notifies the publishing thread, which then
//! publishes the next turn. So the slowest subscriber sets a channel's pace, and little is buffered
//! per subscriber.

use std::collections::BTreeSet;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidemark_engine::watch::SharedQuery;
use tidemark_log::{Clock, Lsn};

/// How long a connection that reads nothing may delay the other subscribers of a channel.
const PATIENCE: Duration = Duration::from_secs(10);

/// Notifications to the publishing thread. Last in the lock order: no lock is taken under it.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    notified: Mutex<Notified>,
    changed: Condvar,
}

/// Queries and channels to serve. Sets, which bounds them.
#[derive(Debug, Default)]
pub(crate) struct Notified {
    /// Queries that have emitted, or whose replay has progressed.
    pub(crate) queries: BTreeSet<Lsn>,
    /// Channels whose last turn has ended.
    pub(crate) channels: BTreeSet<Arc<[u8]>>,
    is_stopping: bool,
}

impl Mailbox {
    /// Notes that a query has emitted. Called from any thread, with shards locked.
    pub(crate) fn emitted(&self, query: &SharedQuery) {
        self.look_at(query.id());
    }

    /// Requests that the thread serves a query.
    pub(crate) fn look_at(&self, query: Lsn) {
        self.lock().queries.insert(query);
        self.changed.notify_one();
    }

    fn turn_has_ended(&self, channel: &Arc<[u8]>) {
        self.lock().channels.insert(Arc::clone(channel));
        self.changed.notify_one();
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.lock().is_stopping = true;
        self.changed.notify_one();
    }

    /// Waits for work; `None` when the thread is to end.
    pub(crate) fn wait(&self) -> Option<Notified> {
        let is_idle = |notified: &mut Notified| {
            !notified.is_stopping && notified.queries.is_empty() && notified.channels.is_empty()
        };
        let mut notified =
            self.changed.wait_while(self.lock(), is_idle).unwrap_or_else(PoisonError::into_inner);
        if notified.is_stopping { None } else { Some(mem::take(&mut *notified)) }
    }

    fn lock(&self) -> MutexGuard<'_, Notified> {
        self.notified.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Messages of one channel that are not all consumed. The last drop ends the turn.
#[derive(Debug)]
pub(crate) struct Turn {
    channel: Arc<[u8]>,
    mailbox: Arc<Mailbox>,
}

impl Turn {
    pub(crate) fn new(channel: &Arc<[u8]>, mailbox: &Arc<Mailbox>) -> Arc<Turn> {
        Arc::new(Turn { channel: Arc::clone(channel), mailbox: Arc::clone(mailbox) })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.mailbox.turn_has_ended(&self.channel);
    }
}

/// Turns that one connection delays, because its output is full; at most one per channel.
#[derive(Debug, Default)]
pub(crate) struct PendingTurns {
    turns: Vec<Arc<Turn>>,
    /// When the client last read something, or when the first turn was kept.
    since: Option<Instant>,
}

impl PendingTurns {
    pub(crate) fn keep(&mut self, turn: &Arc<Turn>, clock: &Clock) {
        // A turn's messages are consecutive, except for interleaved messages of other publishers.
        if !self.turns.iter().rev().any(|kept| Arc::ptr_eq(kept, turn)) {
            self.turns.push(Arc::clone(turn));
            self.since.get_or_insert_with(|| clock.now());
        }
    }

    /// Notes that the client has read something. Ends the turns if it `has_room`.
    pub(crate) fn note_progress(&mut self, has_room: bool, clock: &Clock) {
        if self.turns.is_empty() {
            return;
        }
        if has_room {
            *self = PendingTurns::default();
        } else {
            self.since = Some(clock.now());
        }
    }

    /// When a client that reads nothing is disconnected.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.since.and_then(|since| since.checked_add(PATIENCE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_ends_when_no_connection_keeps_it() {
        let (mailbox, channel): (Arc<Mailbox>, Arc<[u8]>) = (Arc::default(), b"c".as_slice().into());
        let (mut first, mut second) = (PendingTurns::default(), PendingTurns::default());
        let turn = Turn::new(&channel, &mailbox);
        first.keep(&turn, &Clock::System);
        first.keep(&turn, &Clock::System);
        second.keep(&turn, &Clock::System);
        drop(turn);
        first.note_progress(true, &Clock::System);
        second.note_progress(false, &Clock::System);
        assert!(mailbox.lock().channels.is_empty() && second.deadline().is_some());
        assert_eq!(first.deadline(), None);
        second.note_progress(true, &Clock::System);
        assert_eq!(mailbox.wait().map(|notified| notified.channels.contains(&channel)), Some(true));
    }

    #[test]
    fn a_mailbox_that_is_stopped_gives_nothing_more() {
        let mailbox = Mailbox::default();
        mailbox.look_at(Lsn(7));
        assert_eq!(mailbox.wait().map(|notified| notified.queries.len()), Some(1));
        mailbox.look_at(Lsn(7));
        mailbox.stop();
        assert!(mailbox.wait().is_none());
    }
}
