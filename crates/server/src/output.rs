//! What waits to be sent to a client, and what of it must still wait for the log.
//!
//! ```text
//!   sent │ may be sent now │ needs LSN 7 durable │ needs LSN 9 durable
//!        ^                 ^ hold (offset, 7)    ^ hold (offset, 9)
//! ```
//!
//! Replies leave in the order of their commands, so whatever follows a held reply is held with it.

use std::collections::VecDeque;
use tidemark_engine::{Protocol, Reply};
use tidemark_log::Lsn;

/// A drained buffer larger than this is given back to the allocator. Bytes.
const KEPT_BYTES: usize = 16 * 1024;

/// Bytes from `offset` on may leave when the log is durable up to `lsn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hold {
    offset: usize,
    lsn: Lsn,
}

/// A client's output buffer.
#[derive(Debug)]
pub(crate) struct Output {
    /// Encodes behind what waits already.
    pub(crate) reply: Reply,
    /// Bytes at the start of the buffer that have been sent.
    sent: usize,
    /// Ascending in both fields.
    holds: VecDeque<Hold>,
    /// The most bytes that may wait.
    limit: usize,
}

impl Output {
    pub(crate) fn new(protocol: Protocol) -> Output {
        Output { reply: Reply::new(protocol), sent: 0, holds: VecDeque::new(), limit: usize::MAX }
    }

    /// Bytes that wait, held or not.
    pub(crate) fn pending(&self) -> usize {
        self.reply.len() - self.sent
    }

    /// Sets how many bytes may wait. A reply that would exceed it overflows ([`Reply::has_overflowed`]).
    pub(crate) fn set_limit(&mut self, bytes: usize) {
        self.limit = bytes;
        self.reply.set_limit(self.sent.saturating_add(bytes));
    }

    /// How many bytes may wait.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Keeps everything from `offset` of the buffer on until the log is durable up to `lsn`.
    pub(crate) fn hold(&mut self, offset: usize, lsn: Lsn) {
        match self.holds.back() {
            // What comes later may leave no earlier.
            Some(last) if last.lsn >= lsn => {}
            _ => self.holds.push_back(Hold { offset, lsn }),
        }
    }

    /// Forgets everything from `offset` on, and what it would have waited for.
    pub(crate) fn take_back(&mut self, offset: usize) {
        debug_assert!(offset >= self.sent);
        self.reply.truncate(offset);
        while self.holds.back().is_some_and(|hold| hold.offset >= offset) {
            self.holds.pop_back();
        }
    }

    /// The record that the first held reply waits for.
    pub(crate) fn waits_for(&self) -> Option<Lsn> {
        self.holds.front().map(|hold| hold.lsn)
    }

    /// The last record that any held reply waits for.
    pub(crate) fn waits_for_last(&self) -> Option<Lsn> {
        self.holds.back().map(|hold| hold.lsn)
    }

    /// Releases replies that waited for records up to `durable`; whether there were any.
    pub(crate) fn release(&mut self, durable: Lsn) -> bool {
        let before = self.holds.len();
        while self.holds.front().is_some_and(|hold| hold.lsn <= durable) {
            self.holds.pop_front();
        }
        self.holds.len() < before
    }

    /// Replaces all held replies by an error: what they promise will not come true.
    pub(crate) fn fail_held(&mut self, write_error: impl FnOnce(&mut Reply)) {
        if let Some(first) = self.holds.front() {
            self.reply.truncate(first.offset);
            self.holds.clear();
            write_error(&mut self.reply);
        }
    }

    /// Bytes that may be sent now.
    pub(crate) fn sendable(&self) -> &[u8] {
        let end = self.holds.front().map_or(self.reply.len(), |hold| hold.offset);
        self.reply.bytes().get(self.sent..end).unwrap_or_default()
    }

    /// Notes that so many of the sendable bytes have left.
    pub(crate) fn advance(&mut self, count: usize) {
        debug_assert!(count <= self.sendable().len());
        self.sent += count;
        if self.sent == self.reply.len() {
            self.sent = 0;
            // A hold may begin at the very end of the buffer: a reply that is still to be written.
            self.holds.iter_mut().for_each(|hold| hold.offset = 0);
            if self.reply.buffer_mut().capacity() > KEPT_BYTES {
                *self.reply.buffer_mut() = Vec::new();
            } else {
                self.reply.truncate(0);
            }
        } else if self.sent >= KEPT_BYTES && self.sent >= self.reply.len() / 2 {
            // Moving at most as much as was sent keeps the cost proportional to the traffic.
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

    fn output(text: &str) -> Output {
        let mut output = Output::new(Protocol::Resp2);
        output.reply.simple(text);
        output
    }

    #[test]
    fn what_follows_a_held_reply_is_held_with_it() {
        let mut output = output("a");
        let mark = output.reply.len();
        output.reply.simple("b");
        output.hold(mark, Lsn(7));
        output.reply.simple("c");
        assert_eq!(output.sendable(), b"+a\r\n");
        output.advance(4);
        assert_eq!(output.sendable(), b"");
        assert!(!output.release(Lsn(6)));
        assert!(output.release(Lsn(7)));
        assert_eq!(output.sendable(), b"+b\r\n+c\r\n");
    }

    #[test]
    fn a_client_that_never_pauses_still_gets_its_earlier_replies() {
        let mut output = Output::new(Protocol::Resp2);
        for lsn in 1..=3 {
            let mark = output.reply.len();
            output.reply.integer(lsn as i64);
            output.hold(mark, Lsn(lsn));
        }
        assert_eq!((output.waits_for(), output.waits_for_last()), (Some(Lsn(1)), Some(Lsn(3))));
        output.release(Lsn(2));
        assert_eq!(output.sendable(), b":1\r\n:2\r\n");
        output.advance(8);
        output.release(Lsn(3));
        assert_eq!(output.sendable(), b":3\r\n");
    }

    #[test]
    fn a_failed_log_turns_held_replies_into_one_error() {
        let mut output = output("a");
        let mark = output.reply.len();
        output.reply.ok();
        output.hold(mark, Lsn(1));
        output.reply.ok();
        output.fail_held(|reply| reply.error_text("MISCONF no"));
        assert_eq!(output.sendable(), b"+a\r\n-MISCONF no\r\n");
    }

    #[test]
    fn sending_in_pieces_sends_everything_once() {
        let mut output = Output::new(Protocol::Resp2);
        let payload: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
        output.reply.bulk(&payload);
        let mark = output.reply.len();
        output.reply.ok();
        output.hold(mark, Lsn(5));
        let expected = output.reply.bytes().to_vec();
        let mut received = Vec::new();
        loop {
            let piece = output.sendable();
            if piece.is_empty() && !output.release(Lsn(5)) {
                break;
            }
            let count = output.sendable().len().min(777);
            received.extend_from_slice(&output.sendable()[..count]);
            output.advance(count);
        }
        assert_eq!(received, expected);
        assert_eq!(output.pending(), 0);
    }
}
