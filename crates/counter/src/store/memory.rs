//! A store in memory, lost with its process: for tests, and for counters that need not survive.

use super::{Batch, Claim, Error, Receipt, Rejected, Store, check_writer};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Positions and writers in memory. Clones share one store, so several writers can use it.
///
/// ```
/// use tidemark_counter::store::{Batch, Delta, Memory, Receipt, Store};
///
/// let mut store = Memory::default();
/// let claim = store.claim("billing").unwrap();
/// let batch = Batch {
///     writer: "billing".into(),
///     epoch: claim.epoch,
///     sequence: claim.last_sequence + 1,
///     deltas: vec![Delta { key: (*b"tenant:1").into(), amount: 20 }],
/// };
/// assert_eq!(store.commit(&batch).unwrap(), Receipt::Applied);
/// assert_eq!(store.commit(&batch).unwrap(), Receipt::Duplicate);
/// assert_eq!(store.load(&[b"tenant:1"]).unwrap(), [Some(20)]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Memory(Arc<Mutex<Contents>>);

#[derive(Debug, Default)]
struct Contents {
    positions: HashMap<Box<[u8]>, i64>,
    writers: HashMap<String, Claim>,
}

impl Memory {
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Memory {
    fn claim(&mut self, writer: &str) -> Result<Claim, Error> {
        check_writer(writer)?;
        let mut contents = self.contents();
        let claim = contents.writers.entry(writer.to_owned()).or_default();
        claim.epoch += 1;
        Ok(*claim)
    }

    fn commit(&mut self, batch: &Batch) -> Result<Receipt, Error> {
        let Contents { positions, writers } = &mut *self.contents();
        let known = writers.get(&batch.writer).copied().unwrap_or_default();
        if let Some(receipt) = known.judge(batch)? {
            return Ok(receipt);
        }
        let sums: Vec<_> = batch
            .deltas
            .iter()
            .map(|delta| positions.get(&delta.key).copied().unwrap_or(0).checked_add(delta.amount))
            .collect();
        let rejected: Vec<_> =
            (0..sums.len()).filter(|index| sums[*index].is_none()).map(Rejected::overflow).collect();
        if !rejected.is_empty() {
            return Err(Error::Rejected(rejected));
        }
        for (delta, sum) in batch.deltas.iter().zip(sums) {
            positions.insert(delta.key.clone(), sum.expect("no sum that leaves 64 bits is stored"));
        }
        writers.insert(batch.writer.clone(), Claim { last_sequence: batch.sequence, ..known });
        Ok(Receipt::Applied)
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<Vec<Option<i64>>, Error> {
        let contents = self.contents();
        Ok(keys.iter().map(|key| contents.positions.get(*key).copied()).collect())
    }
}
