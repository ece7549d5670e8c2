//! A client's output: bytes to send, and the log progress that they wait for.
//!
//! ```text
//!   sent │ may be sent now │ needs LSN 7 written │ needs LSN 9 committed
//!        ^                 ^ hold (offset, 7)    ^ hold (offset, 9)
//! ```
//!
//! Replies are sent in the order of their commands, so everything after a held reply is held too.

use std::collections::VecDeque;
use tidemark_engine::{Protocol, Reply};
use tidemark_log::{Log, Lsn};

/// A drained buffer larger than this is freed. Bytes.
const KEPT_BYTES: usize = 16 * 1024;

/// While more than this is pending, a client gets no emissions, changes or invalidations: they stay
/// at their source until the client has read. Bytes.
const OUTBOX_BYTES: usize = 256 * 1024;

/// Log progress that output waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// The record survives the end of the process.
    Written(Lsn),
    /// The record is committed: see [`Log::committed`].
    Committed(Lsn),
}

/// Progress of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reached {
    pub(crate) written: Lsn,
    /// At most `written`.
    pub(crate) committed: Lsn,
}

impl Reached {
    pub(crate) fn by(log: &Log) -> Reached {
        // Read before `written`, so `committed` is never ahead of it.
        let committed = log.committed();
        Reached { written: log.written().max(committed), committed }
    }

    pub(crate) fn has(self, until: Until) -> bool {
        match until {
            Until::Written(lsn) => lsn <= self.written,
            Until::Committed(lsn) => lsn <= self.committed,
        }
    }

    /// The further of both.
    pub(crate) fn max(self, other: Reached) -> Reached {
        Reached { written: self.written.max(other.written), committed: self.committed.max(other.committed) }
    }

    /// Raises it to include `until`.
    fn add(&mut self, until: Until) {
        match until {
            Until::Written(lsn) => self.written = self.written.max(lsn),
            Until::Committed(lsn) => self.committed = self.committed.max(lsn),
        }
    }
}

/// Bytes from `offset` on may be sent once the log has reached `until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hold {
    offset: usize,
    until: Until,
}

/// A client's output buffer.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// Encodes replies at the end of the buffer.
    pub(crate) reply: Reply,
    /// Bytes at the start of the buffer that have been sent.
    sent: usize,
    /// In ascending order of offsets, each between `sent` and the end of the buffer.
    holds: VecDeque<Hold>,
    /// Maximum that any hold has ever waited for.
    wanted: Reached,
    /// Most bytes that may be pending.
    limit: usize,
}

impl Outbox {
    pub(crate) fn new(protocol: Protocol) -> Outbox {
        Outbox {
            reply: Reply::new(protocol),
            sent: 0,
            holds: VecDeque::new(),
            wanted: Reached::default(),
            limit: usize::MAX,
        }
    }

    /// Whether there is room for messages that the client has not requested.
    pub(crate) fn has_room(&self) -> bool {
        self.pending() <= OUTBOX_BYTES
    }

    /// Bytes of room for such messages.
    pub(crate) fn outbox_room(&self) -> usize {
        OUTBOX_BYTES.saturating_sub(self.pending())
    }

    /// Pending bytes, held or not.
    pub(crate) fn pending(&self) -> usize {
        debug_assert!(self.sent <= self.reply.len(), "sending and cutting off assert it: this is a hot path");
        self.reply.len() - self.sent
    }

    /// Sets the limit of pending bytes. A reply that exceeds it overflows
    /// ([`Reply::has_overflowed`]).
    pub(crate) fn set_limit(&mut self, bytes: usize) {
        self.limit = bytes;
        self.reply.set_limit(self.sent.saturating_add(bytes));
    }

    /// Limit of pending bytes.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Holds everything from `offset` of the buffer on until the log has reached `until`.
    pub(crate) fn hold(&mut self, offset: usize, until: Until) {
        self.assert_unsent(offset);
        // Nearly always last. The reply to `EXEC` begins before those of its commands, which may be
        // held already.
        let mut place = self.holds.len();
        while place > 0 && self.holds[place - 1].offset > offset {
            place -= 1;
        }
        // Implied by an earlier hold: later bytes cannot be sent earlier.
        let is_held = place > 0
            && match (self.holds[place - 1].until, until) {
                (Until::Committed(last), Until::Committed(lsn) | Until::Written(lsn))
                | (Until::Written(last), Until::Written(lsn)) => last >= lsn,
                (Until::Written(_), Until::Committed(_)) => false,
            };
        if !is_held {
            self.holds.insert(place, Hold { offset, until });
            self.wanted.add(until);
        }
    }

    /// Removes everything from `offset` on, with its holds.
    pub(crate) fn take_back(&mut self, offset: usize) {
        self.assert_unsent(offset);
        self.reply.truncate(offset);
        while self.holds.back().is_some_and(|hold| hold.offset >= offset) {
            self.holds.pop_back();
        }
    }

    /// Removes a reply, begun at `offset`, that exceeded the memory budget, so that the caller can
    /// write an error. The error inherits the reply's holds.
    pub(crate) fn give_up(&mut self, offset: usize) {
        self.rewrite(offset);
        self.reply.recover(offset, self.sent.saturating_add(self.limit));
    }

    /// Removes everything from `offset` on for a caller that writes a replacement, which inherits
    /// the holds of the removed bytes.
    pub(crate) fn rewrite(&mut self, offset: usize) {
        self.assert_unsent(offset);
        self.reply.truncate(offset);
        self.holds
            .iter_mut()
            .rev()
            .take_while(|hold| hold.offset > offset)
            .for_each(|hold| hold.offset = offset);
    }

    fn assert_unsent(&self, offset: usize) {
        let (sent, end) = (self.sent, self.reply.len());
        assert!(
            sent <= offset && offset <= end,
            "offset {offset} is not within the unsent bytes {sent}..{end}"
        );
    }

    /// What the first held reply waits for.
    pub(crate) fn waits_for(&self) -> Option<Until> {
        self.holds.front().map(|hold| hold.until)
    }

    /// Log progress that all replies ever held need.
    pub(crate) fn wanted(&self) -> Reached {
        self.wanted
    }

    /// Releases replies whose log progress is reached. Returns the progress that the released
    /// replies need; the caller asserts it against the log.
    #[must_use]
    pub(crate) fn release(&mut self, reached: Reached) -> Option<Reached> {
        let mut released = None;
        while let Some(hold) = self.holds.pop_front_if(|hold| reached.has(hold.until)) {
            released.get_or_insert_with(Reached::default).add(hold.until);
        }
        released
    }

    /// Drops all held replies, because what they wait for will not be committed. Returns whether
    /// there were any.
    pub(crate) fn drop_held(&mut self) -> bool {
        let Some(first) = self.holds.front() else { return false };
        self.reply.truncate(first.offset);
        self.holds.clear();
        true
    }

    /// Bytes that may be sent now.
    pub(crate) fn sendable(&self) -> &[u8] {
        let end = self.holds.front().map_or(self.reply.len(), |hold| hold.offset);
        &self.reply.bytes()[self.sent..end]
    }

    /// Notes that `count` of the sendable bytes were sent.
    pub(crate) fn advance(&mut self, count: usize) {
        let sendable = self.sendable().len();
        assert!(count <= sendable, "{count} bytes were sent and only {sendable} may leave");
        self.sent += count;
        if self.sent == self.reply.len() {
            self.sent = 0;
            // A hold may begin at the very end of the buffer, for a reply still to be written.
            self.holds.iter_mut().for_each(|hold| hold.offset = 0);
            if self.reply.buffer_mut().capacity() > KEPT_BYTES {
                *self.reply.buffer_mut() = Vec::new();
            } else {
                self.reply.truncate(0);
            }
        } else if self.sent >= KEPT_BYTES && self.sent >= self.reply.len() / 2 {
            // Moves at most as much as was sent: the cost is proportional to the traffic.
            let sent = std::mem::take(&mut self.sent);
            self.reply.buffer_mut().drain(..sent);
            self.holds.iter_mut().for_each(|hold| hold.offset -= sent);
        }
        self.reply.set_limit(self.sent.saturating_add(self.limit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outbox(text: &str) -> Outbox {
        let mut outbox = Outbox::new(Protocol::Resp2);
        outbox.reply.simple(text);
        outbox
    }

    fn committed(lsn: u64) -> Reached {
        Reached { written: Lsn(lsn), committed: Lsn(lsn) }
    }

    #[test]
    fn what_is_written_leaves_before_what_is_not_committed() {
        let mut outbox = outbox("a");
        for (text, until) in [
            ("b", Until::Written(Lsn(7))),
            ("c", Until::Committed(Lsn(5))),
            // An earlier hold implies this one.
            ("d", Until::Written(Lsn(5))),
            ("e", Until::Written(Lsn(9))),
        ] {
            let mark = outbox.reply.len();
            outbox.reply.simple(text);
            outbox.hold(mark, until);
        }
        assert_eq!(outbox.wanted(), Reached { written: Lsn(9), committed: Lsn(5) });
        let mut shows = |written, committed, expected: &[u8]| {
            let _ = outbox.release(Reached { written: Lsn(written), committed: Lsn(committed) });
            assert_eq!(outbox.sendable(), expected);
        };
        shows(6, 0, b"+a\r\n");
        shows(9, 4, b"+a\r\n+b\r\n");
        shows(9, 5, b"+a\r\n+b\r\n+c\r\n+d\r\n+e\r\n");
    }

    #[test]
    fn what_follows_a_held_reply_is_held_with_it() {
        let mut outbox = outbox("a");
        let mark = outbox.reply.len();
        outbox.reply.simple("b");
        outbox.hold(mark, Until::Committed(Lsn(7)));
        outbox.reply.simple("c");
        assert_eq!(outbox.sendable(), b"+a\r\n");
        outbox.advance(4);
        assert_eq!(outbox.sendable(), b"");
        assert_eq!(outbox.release(Reached { written: Lsn(9), committed: Lsn(6) }), None);
        let released = Reached { written: Lsn::ZERO, committed: Lsn(7) };
        assert_eq!(outbox.release(committed(8)), Some(released));
        assert_eq!(outbox.sendable(), b"+b\r\n+c\r\n");
    }

    #[test]
    fn a_client_that_never_pauses_still_gets_its_earlier_replies() {
        let mut outbox = Outbox::new(Protocol::Resp2);
        for lsn in 1..=3 {
            let mark = outbox.reply.len();
            outbox.reply.integer(lsn as i64);
            outbox.hold(mark, Until::Committed(Lsn(lsn)));
        }
        assert_eq!((outbox.waits_for(), outbox.wanted().committed), (Some(Until::Committed(Lsn(1))), Lsn(3)));
        assert_eq!(outbox.release(committed(2)).map(|released| released.committed), Some(Lsn(2)));
        assert_eq!(outbox.sendable(), b":1\r\n:2\r\n");
        outbox.advance(8);
        assert_eq!(outbox.release(committed(3)).map(|released| released.committed), Some(Lsn(3)));
        assert_eq!(outbox.sendable(), b":3\r\n");
    }

    #[test]
    fn an_answer_that_is_held_after_a_part_of_it_is_held_as_a_whole() {
        let mut outbox = outbox("before");
        let (whole, mark) = (outbox.reply.len(), outbox.reply.len() + 4);
        outbox.reply.array(1);
        outbox.reply.ok();
        outbox.hold(mark, Until::Committed(Lsn(9)));
        outbox.hold(whole, Until::Committed(Lsn(7)));
        assert_eq!(outbox.sendable(), b"+before\r\n");
        assert_eq!(outbox.release(committed(7)).map(|released| released.committed), Some(Lsn(7)));
        assert_eq!(outbox.sendable(), b"+before\r\n*1\r\n");
        assert_eq!(outbox.release(committed(9)).map(|released| released.committed), Some(Lsn(9)));
        assert_eq!(outbox.sendable(), b"+before\r\n*1\r\n+OK\r\n");
    }

    #[test]
    fn what_replaces_an_answer_waits_for_what_the_answer_waited_for() {
        let mut outbox = outbox("before");
        let mark = outbox.reply.len();
        outbox.reply.simple("QUEUED");
        outbox.hold(outbox.reply.len(), Until::Committed(Lsn(7)));
        outbox.reply.ok();
        outbox.rewrite(mark);
        // Shorter than the bytes before the held reply.
        outbox.reply.encoded(b"1");
        outbox.reply.encoded(b"a later answer");
        assert_eq!(outbox.sendable(), b"+before\r\n");
        assert!(outbox.release(committed(7)).is_some());
        assert_eq!(outbox.sendable(), b"+before\r\n1a later answer");
    }

    #[test]
    #[should_panic(expected = "3 bytes were sent and only 0 may leave")]
    fn sending_what_is_held_stops_the_process() {
        let mut outbox = outbox("a");
        outbox.hold(0, Until::Committed(Lsn(7)));
        outbox.advance(3);
    }

    #[test]
    fn a_failed_log_drops_held_replies_and_no_others() {
        let mut outbox = outbox("a");
        let mark = outbox.reply.len();
        outbox.reply.ok();
        outbox.hold(mark, Until::Written(Lsn(1)));
        outbox.reply.ok();
        assert!(outbox.drop_held());
        assert_eq!((outbox.sendable(), outbox.waits_for()), (b"+a\r\n".as_slice(), None));
        assert!(!outbox.drop_held());
    }

    #[test]
    fn sending_in_pieces_sends_everything_once() {
        let mut outbox = Outbox::new(Protocol::Resp2);
        let payload: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
        outbox.reply.bulk(&payload);
        let mark = outbox.reply.len();
        outbox.reply.ok();
        outbox.hold(mark, Until::Committed(Lsn(5)));
        let expected = outbox.reply.bytes().to_vec();
        let mut received = Vec::new();
        loop {
            let piece = outbox.sendable();
            if piece.is_empty() && outbox.release(committed(5)).is_none() {
                break;
            }
            let count = outbox.sendable().len().min(777);
            received.extend_from_slice(&outbox.sendable()[..count]);
            outbox.advance(count);
        }
        assert_eq!(received, expected);
        assert_eq!(outbox.pending(), 0);
    }
}
