//! A store with metered calls.

use super::meter::Meter;
use super::real_stores;
use super::target::Target;
use std::sync::Arc;
use tidemark_counter::store::{Batch, Claim, Error, Memory, Receipt, Store};

/// Forwards every call and meters commits: one call each, and one write per change.
pub(super) struct Metered {
    inner: Box<dyn Store>,
    meter: Arc<Meter>,
}

/// A store that acknowledges every commit and stores nothing.
#[derive(Debug, Default)]
struct Nowhere {
    last_sequence: u64,
}

impl Metered {
    pub(super) fn new(inner: Box<dyn Store>, meter: Arc<Meter>) -> Self {
        Metered { inner, meter }
    }
}

impl Store for Metered {
    fn claim(&mut self, writer: &str) -> Result<Claim, Error> {
        self.inner.claim(writer)
    }

    fn commit(&mut self, batch: &Batch) -> Result<Receipt, Error> {
        self.meter.call(batch.deltas.len() as u64, || self.inner.commit(batch))
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<Vec<Option<i64>>, Error> {
        self.inner.load(keys)
    }

    fn max_deltas(&self) -> usize {
        self.inner.max_deltas()
    }
}

impl Store for Nowhere {
    fn claim(&mut self, _: &str) -> Result<Claim, Error> {
        Ok(Claim { epoch: 1, last_sequence: self.last_sequence })
    }

    fn commit(&mut self, batch: &Batch) -> Result<Receipt, Error> {
        self.last_sequence = batch.sequence;
        Ok(Receipt::Applied)
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<Vec<Option<i64>>, Error> {
        Ok(vec![None; keys.len()])
    }
}

/// Opens the same store again.
pub(super) type Reopen = Box<dyn Fn() -> Result<Box<dyn Store>, Error> + Send + Sync>;

/// A store for commits. If the commits can be read, also a function that opens it again afterwards.
pub(super) struct Opened {
    pub(super) store: Box<dyn Store>,
    pub(super) reopen: Option<Reopen>,
}

/// Opens the store.
pub(super) fn open(target: &Target) -> anyhow::Result<Opened> {
    Ok(match target {
        Target::Simulated | Target::Memory => {
            let memory = Memory::default();
            let store = Box::new(memory.clone());
            Opened { store, reopen: Some(Box::new(move || Ok(Box::new(memory.clone())))) }
        }
        Target::Nowhere => Opened { store: Box::new(Nowhere::default()), reopen: None },
        Target::Log(_) | Target::Redis(_) | Target::Postgres(_) | Target::Nats(_) => {
            let target = target.clone();
            Opened { store: open_durable(&target)?, reopen: Some(Box::new(move || open_durable(&target))) }
        }
    })
}

/// Opens a store that outlives the program.
pub(super) fn open_durable(target: &Target) -> Result<Box<dyn Store>, Error> {
    let none = || Error::Refused(format!("{target} ends with the program").into());
    real_stores::open(target)?.ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::{Meter, Metered, Target, open};
    use std::sync::Arc;
    use std::time::Duration;
    use tidemark_counter::store::{Batch, Delta, Receipt, Store};

    #[test]
    fn a_commit_is_a_call_with_as_many_writes_as_it_has_changes() {
        for (target, found) in [(Target::Memory, Some(4)), (Target::Nowhere, None)] {
            let meter = Arc::new(Meter::new(Duration::ZERO));
            let opened = open(&target).unwrap();
            let mut store = Metered::new(opened.store, Arc::clone(&meter));
            let claim = store.claim("lab").unwrap();
            let delta = |key: &[u8], amount| Delta { key: key.into(), amount };
            let batch = Batch {
                writer: "lab".into(),
                epoch: claim.epoch,
                sequence: claim.last_sequence + 1,
                deltas: vec![delta(b"a", 4), delta(b"b", -4)],
            };
            assert_eq!(store.commit(&batch).unwrap(), Receipt::Applied);
            assert_eq!((meter.asked().calls, meter.asked().writes), (1, 2));
            let read = opened.reopen.map(|reopen| reopen().unwrap().load(&[b"a"]).unwrap());
            assert_eq!(read.and_then(|read| read[0]), found);
        }
    }
}
