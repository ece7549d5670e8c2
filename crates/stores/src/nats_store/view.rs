//! The state that results from the messages of a stream.

use crate::record::{Rest, decode};
use crate::state::{Outcome, State};
use std::collections::HashMap;

/// The first byte of a piece of a copy; those of records differ.
const COPY: u8 = 3;

/// The result of all messages up to `last`, applied in order.
///
/// ```text
/// piece of a copy   3 │ up to which message u64 │ which copy u64 │ index u32 │ count u32 │ part of a state
/// ```
/// A copy comes after what it copies, possibly among later records. Once all its pieces are stored,
/// everything up to the message that it names may be removed.
#[derive(Debug)]
pub(crate) struct View {
    state: State,
    /// The first message of the stream when reading began.
    first: u64,
    /// The last message that was applied.
    last: u64,
    /// Whether `state` is based on the beginning of the stream or on a copy. Until then, records
    /// wait for a later copy.
    is_based: bool,
    waiting: Vec<(u64, Vec<u8>)>,
    /// The pieces read of each copy, while a copy is needed.
    copies: HashMap<(u64, u64), Vec<Vec<u8>>>,
    /// Bytes of the records after the beginning of the last copy, from any store.
    bytes_behind_copy: usize,
}

/// A message that was not written by a store of counters.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotOurs;

impl View {
    /// Creates the view of a stream whose first message is `first`.
    pub(crate) fn new(first: u64) -> Self {
        Self {
            state: State::default(),
            first,
            last: first.max(1) - 1,
            is_based: first <= 1,
            waiting: Vec::new(),
            copies: HashMap::new(),
            bytes_behind_copy: 0,
        }
    }

    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Returns the state; `None` while its basis is missing.
    pub(crate) fn state(&self) -> Option<&State> {
        self.is_based.then_some(&self.state)
    }

    /// Whether enough has been written to replace it by a copy.
    pub(crate) fn is_copy_due(&self, after_bytes: usize) -> bool {
        self.is_based && self.bytes_behind_copy >= after_bytes.max(self.state.bytes())
    }

    /// Returns the messages of a copy. `copy` must be unique among copies.
    pub(crate) fn copy(&self, copy: u64, chunk_bytes: usize) -> Vec<Vec<u8>> {
        let chunks = self.state.chunks(chunk_bytes);
        let count = chunks.len() as u32;
        let piece = |(index, chunk): (u32, Vec<u8>)| {
            let mut piece = vec![COPY];
            piece.extend_from_slice(&self.last.to_le_bytes());
            piece.extend_from_slice(&copy.to_le_bytes());
            piece.extend_from_slice(&index.to_le_bytes());
            piece.extend_from_slice(&count.to_le_bytes());
            piece.extend_from_slice(&chunk);
            piece
        };
        (0..).zip(chunks).map(piece).collect()
    }

    /// Applies the next message. `None` if it is not a record, or its outcome is not known yet.
    pub(crate) fn take(&mut self, payload: &[u8]) -> Result<Option<Outcome>, NotOurs> {
        self.last += 1;
        if payload.first() == Some(&COPY) {
            return self.take_piece(payload).map(|()| None);
        }
        self.bytes_behind_copy += payload.len();
        if !self.is_based {
            self.waiting.push((self.last, payload.to_vec()));
            return Ok(None);
        }
        let record = decode(payload).ok_or(NotOurs)?;
        Ok(Some(self.state.apply(record)))
    }

    fn take_piece(&mut self, payload: &[u8]) -> Result<(), NotOurs> {
        let mut rest = Rest(payload);
        let mut read = || {
            rest.byte()?;
            Some((rest.number()?, rest.number()?, rest.length()?, rest.length()?))
        };
        let (up_to, copy, index, count) = read().ok_or(NotOurs)?;
        if index == 0 {
            self.bytes_behind_copy = 0;
        }
        // A slow copy may be older than a faster one that has already replaced messages: then
        // messages between it and the first one are missing.
        if self.is_based || up_to.saturating_add(1) < self.first {
            return Ok(());
        }
        let pieces = self.copies.entry((up_to, copy)).or_default();
        // Pieces are in order: one that does not follow belongs to a copy whose beginning is gone.
        if index != pieces.len() || index >= count {
            return Ok(());
        }
        pieces.push(rest.0.to_vec());
        if pieces.len() < count {
            return Ok(());
        }
        let mut state = State::default();
        for piece in pieces.iter() {
            state.load_chunk(piece).ok_or(NotOurs)?;
        }
        self.copies = HashMap::new();
        for (_, payload) in
            std::mem::take(&mut self.waiting).into_iter().filter(|(number, _)| *number > up_to)
        {
            state.apply(decode(&payload).ok_or(NotOurs)?);
        }
        (self.state, self.is_based) = (state, true);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{encode_batch, encode_claim};
    use tidemark_counter::store::{Batch, Claim, Delta};

    fn claim(epoch: u64) -> Vec<u8> {
        let mut record = Vec::new();
        encode_claim(&mut record, "writer", epoch);
        record
    }

    fn batch(sequence: u64) -> Vec<u8> {
        let mut record = Vec::new();
        let deltas =
            ["all", &sequence.to_string()].map(|key| Delta { key: key.as_bytes().into(), amount: 1 });
        let batch = Batch { writer: "writer".into(), epoch: 1, sequence, deltas: deltas.to_vec() };
        encode_batch(&mut record, &batch);
        record
    }

    /// Reads the messages from `first` on, numbered from 1.
    fn read(messages: &[Vec<u8>], first: usize) -> View {
        let mut view = View::new(first as u64);
        for message in &messages[first - 1..] {
            view.take(message).expect("one of ours");
        }
        view
    }

    #[test]
    fn a_copy_among_later_records_stands_for_what_is_gone() {
        let mut messages = vec![claim(1)];
        messages.extend((1..=20).map(batch));
        let copied = read(&messages, 1);
        let pieces = copied.copy(7, 100);
        assert!(pieces.len() > 3, "{}", pieces.len());
        // Another store writes, and its copy breaks off in the middle.
        let up_to = messages.len();
        messages.extend(copied.copy(8, 50).into_iter().take(3));
        for (sequence, piece) in (21..).zip(pieces) {
            messages.extend([batch(sequence), piece]);
        }
        let whole = read(&messages, 1);
        assert!(whole.state().expect("all is there").position(b"all").is_some_and(|sum| sum > 23));
        for first in 2..=up_to + 1 {
            assert_eq!(read(&messages, first).state(), whole.state(), "from {first}");
        }
        // Without its beginning a copy is unusable.
        let cut = read(&messages, up_to + 6);
        assert_eq!(cut.state(), None);
        assert_eq!(cut.last(), whole.last());
    }

    #[test]
    fn a_copy_that_comes_behind_a_newer_one_stands_for_nothing() {
        let mut messages = vec![claim(1)];
        messages.extend((1..=3).map(batch));
        let old = read(&messages, 1).copy(1, 1 << 20);
        messages.extend((4..=6).map(batch));
        let (new, up_to) = (read(&messages, 1).copy(2, 1 << 20), messages.len());
        messages.extend(old);
        assert_eq!(read(&messages, up_to + 1).state(), None, "batches between them are missing");
        messages.extend(new);
        messages.push(batch(7));
        let view = read(&messages, up_to + 1);
        assert_eq!(view.state().and_then(|state| state.position(b"all")), Some(7));
    }

    #[test]
    fn what_was_not_written_by_a_store_is_noticed() {
        let mut view = View::new(1);
        for message in [&b""[..], b"x", &[COPY, 0], &claim(1)[..5]] {
            assert!(view.take(message).is_err(), "{message:?}");
        }
        assert_eq!(view.state().expect("nothing is missing").claim_of("writer"), Claim::default());
    }

    #[test]
    fn a_copy_is_due_when_as_much_was_written() {
        let mut view = read(&[claim(1)], 1);
        assert!(!view.is_copy_due(200));
        for sequence in 1.. {
            view.take(&batch(sequence)).expect("one of ours");
            if view.is_copy_due(200) {
                assert!(sequence < 100);
                break;
            }
        }
        let piece = view.copy(1, 1 << 20).remove(0);
        view.take(&piece).expect("one of ours");
        assert!(!view.is_copy_due(200), "a copy is running");
    }
}
