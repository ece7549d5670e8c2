//! The in-memory state of a store that is a sequence of records.

use crate::record::{Record, Rest, put_bytes};
use std::collections::HashMap;
use tidemark_counter::store::{Batch, Claim, Delta, Error, Receipt, Rejected};

const WRITER: u8 = b'W';
const POSITION: u8 = b'P';
/// Most bytes of an entry in a copy, without its name.
const ENTRY_BYTES: usize = 21;

/// The complete stored state, a deterministic function of the sequence of records.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct State {
    positions: HashMap<Box<[u8]>, i64>,
    writers: HashMap<String, Claim>,
    /// Size of a copy. Bytes.
    bytes: usize,
}

/// Result of a record.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It has changed the state.
    Applied,
    /// It had been applied before.
    Duplicate,
    /// It has changed nothing, for this reason.
    Ignored(Error),
}

impl State {
    /// Returns the claim of a writer.
    pub(crate) fn claim_of(&self, writer: &str) -> Claim {
        self.writers.get(writer).copied().unwrap_or_default()
    }

    /// Returns the position of a counter.
    pub(crate) fn position(&self, key: &[u8]) -> Option<i64> {
        self.positions.get(key).copied()
    }

    /// Returns the approximate size of a copy. Bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the answer to a batch; `None` if it must be applied, and can be.
    pub(crate) fn judge(&self, batch: &Batch) -> Result<Option<Receipt>, Error> {
        if let Some(receipt) = self.claim_of(&batch.writer).judge(batch)? {
            return Ok(Some(receipt));
        }
        let overflows = |(index, delta): (usize, &Delta)| {
            self.position(&delta.key).unwrap_or(0).checked_add(delta.amount).is_none().then_some(index)
        };
        let rejected: Vec<_> =
            batch.deltas.iter().enumerate().filter_map(overflows).map(Rejected::overflow).collect();
        if rejected.is_empty() { Ok(None) } else { Err(Error::Rejected(rejected)) }
    }

    /// Applies a record, completely or not at all.
    pub(crate) fn apply(&mut self, record: Record) -> Outcome {
        match record {
            // Epochs only rise: a claim of an epoch that is taken has no effect.
            Record::Claim { writer, epoch } => {
                let known = self.claim_of(&writer);
                if epoch <= known.epoch {
                    return Outcome::Ignored(Error::Fenced { writer, epoch: known.epoch });
                }
                self.set_writer(writer, Claim { epoch, ..known });
                Outcome::Applied
            }
            Record::Batch(batch) => match self.judge(&batch) {
                Ok(None) => {
                    self.add(batch);
                    Outcome::Applied
                }
                Ok(Some(_)) => Outcome::Duplicate,
                Err(error) => Outcome::Ignored(error),
            },
        }
    }

    /// Adds a batch that has been judged.
    fn add(&mut self, batch: Batch) {
        for delta in batch.deltas {
            // Saturates only if a key occurs twice, which it must not.
            let sum = self.position(&delta.key).unwrap_or(0).saturating_add(delta.amount);
            self.set_position(delta.key, sum);
        }
        self.set_writer(batch.writer, Claim { epoch: batch.epoch, last_sequence: batch.sequence });
    }

    fn set_position(&mut self, key: Box<[u8]>, position: i64) {
        let length = key.len();
        if self.positions.insert(key, position).is_none() {
            self.bytes += ENTRY_BYTES + length;
        }
    }

    fn set_writer(&mut self, writer: String, claim: Claim) {
        let length = writer.len();
        if self.writers.insert(writer, claim).is_none() {
            self.bytes += ENTRY_BYTES + length;
        }
    }

    /// Copies the state in chunks of about `chunk_bytes`, each readable on its own; at least one.
    pub(crate) fn chunks(&self, chunk_bytes: usize) -> Vec<Vec<u8>> {
        let mut chunk = Vec::new();
        let mut done = Vec::new();
        let mut begin = |chunk: &mut Vec<u8>, more: usize| {
            if !chunk.is_empty() && chunk.len() + more > chunk_bytes {
                done.push(std::mem::take(chunk));
            }
        };
        for (writer, claim) in &self.writers {
            begin(&mut chunk, ENTRY_BYTES + writer.len());
            chunk.push(WRITER);
            put_bytes(&mut chunk, writer.as_bytes());
            chunk.extend_from_slice(&claim.epoch.to_le_bytes());
            chunk.extend_from_slice(&claim.last_sequence.to_le_bytes());
        }
        for (key, position) in &self.positions {
            begin(&mut chunk, ENTRY_BYTES + key.len());
            chunk.push(POSITION);
            put_bytes(&mut chunk, key);
            chunk.extend_from_slice(&position.to_le_bytes());
        }
        done.push(chunk);
        done
    }

    /// Adds the entries of a chunk of a copy. `None` if it is invalid; the entries before the
    /// invalid one have been added.
    #[must_use]
    pub(crate) fn load_chunk(&mut self, chunk: &[u8]) -> Option<()> {
        let mut rest = Rest(chunk);
        while !rest.0.is_empty() {
            match rest.byte()? {
                WRITER => {
                    let writer = rest.text()?;
                    let claim = Claim { epoch: rest.number()?, last_sequence: rest.number()? };
                    self.set_writer(writer, claim);
                }
                POSITION => {
                    let key = rest.bytes()?;
                    let position = rest.number()? as i64;
                    self.set_position(key.into(), position);
                }
                _ => return None,
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(writer: &str, epoch: u64, sequence: u64, deltas: &[(&str, i64)]) -> Record {
        let deltas = deltas
            .iter()
            .map(|(key, amount)| Delta { key: key.as_bytes().into(), amount: *amount })
            .collect();
        Record::Batch(Batch { writer: writer.into(), epoch, sequence, deltas })
    }

    fn claim(writer: &str, epoch: u64) -> Record {
        Record::Claim { writer: writer.into(), epoch }
    }

    #[test]
    fn records_that_do_not_follow_change_nothing() {
        let mut state = State::default();
        assert!(matches!(state.apply(claim("a", 2)), Outcome::Applied));
        assert!(matches!(state.apply(batch("a", 2, 1, &[("k", 5)])), Outcome::Applied));
        let before = state.clone();
        assert!(matches!(state.apply(claim("a", 2)), Outcome::Ignored(Error::Fenced { epoch: 2, .. })));
        assert!(matches!(state.apply(batch("a", 2, 1, &[("k", 5)])), Outcome::Duplicate));
        assert!(matches!(state.apply(batch("a", 2, 3, &[("k", 5)])), Outcome::Ignored(Error::Gap { .. })));
        assert!(matches!(state.apply(batch("a", 1, 2, &[("k", 5)])), Outcome::Ignored(Error::Fenced { .. })));
        let too_much = batch("a", 2, 2, &[("j", 1), ("k", i64::MAX)]);
        let Outcome::Ignored(Error::Rejected(rejected)) = state.apply(too_much) else { panic!("rejected") };
        assert_eq!(rejected.iter().map(|rejected| rejected.index).collect::<Vec<_>>(), [1]);
        assert_eq!(state, before);
    }

    #[test]
    fn a_copy_in_any_chunks_is_the_same_state() {
        let mut state = State::default();
        for number in 0..100 {
            state.apply(claim(&format!("writer {number}"), number + 1));
            let key = format!("key {number}");
            state.apply(batch(&format!("writer {number}"), number + 1, 1, &[(&key, -(number as i64))]));
        }
        for chunk_bytes in [1, 100, 1 << 20] {
            let mut copy = State::default();
            for chunk in state.chunks(chunk_bytes) {
                copy.load_chunk(&chunk).expect("a chunk");
            }
            assert_eq!(copy, state);
        }
        assert_eq!(State::default().chunks(100), [Vec::<u8>::new()]);
    }

    #[test]
    fn a_chunk_that_is_cut_is_none() {
        let mut state = State::default();
        state.apply(claim("writer", 1));
        state.apply(batch("writer", 1, 1, &[("key", 1)]));
        let chunk = state.chunks(1 << 20).remove(0);
        for end in 1..chunk.len() {
            let is_whole = State::default().load_chunk(&chunk[..end]).is_some();
            // A cut at the end of the first entry cannot be detected here: the caller checks that
            // chunks are complete.
            assert_eq!(is_whole, end == 1 + 4 + "writer".len() + 16, "{end}");
        }
    }
}
