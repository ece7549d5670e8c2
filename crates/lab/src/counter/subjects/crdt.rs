//! A counter on several replicas, each with its own view of all pluses and minuses (PN-counter),
//! merged periodically.

use crate::baseline::{PnCounter, Refused};
use crate::counter::meter::Meter;
use crate::counter::named::Named;
use crate::counter::settings::Settings;
use crate::counter::subject::Subject;
use crate::counter::ticker::Ticker;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A worker always uses the same replica, which stores the operation. A merge is one call per
/// replica that writes nothing.
pub(in crate::counter) struct Replicated {
    shared: Arc<Shared>,
    merger: Ticker,
    meter: Arc<Meter>,
}

struct Shared {
    keys: Named<Key>,
    replicas: usize,
    meter: Arc<Meter>,
}

/// A key's counter at each replica.
struct Key(Box<[Mutex<PnCounter>]>);

impl Key {
    fn new(replicas: usize) -> Self {
        Key((0..replicas).map(|_| Mutex::default()).collect())
    }

    fn at(&self, replica: usize) -> MutexGuard<'_, PnCounter> {
        self.0[replica].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, replica: usize, is_minus: bool) -> Result<(), Refused> {
        let (mut counter, number) = (self.at(replica), replica as u64);
        if is_minus { counter.decrement(number, 1) } else { counter.increment(number, 1) }
    }

    /// Merges the state of all replicas into each.
    fn merge(&self) -> Result<(), Refused> {
        let mut all = PnCounter::default();
        (0..self.0.len()).try_for_each(|replica| all.merge(&self.at(replica)))?;
        (0..self.0.len()).try_for_each(|replica| self.at(replica).merge(&all))
    }

    /// Returns the value at the first replica.
    fn position(&self) -> i64 {
        i64::try_from(self.at(0).value()).expect("no run counts 2^63 operations")
    }
}

impl Shared {
    fn merge(&self) -> anyhow::Result<()> {
        self.keys.iter().try_for_each(Key::merge)?;
        (0..self.replicas).for_each(|_| self.meter.write(0));
        Ok(())
    }
}

impl Replicated {
    pub(in crate::counter) fn new(
        settings: &Settings,
        names: &Arc<[String]>,
        meter: &Arc<Meter>,
    ) -> anyhow::Result<Self> {
        let replicas = settings.replicas;
        let keys = Named::new(names, |_| Key::new(replicas));
        let shared = Arc::new(Shared { keys, replicas, meter: Arc::clone(meter) });
        let merger = {
            let shared = Arc::clone(&shared);
            // An error that prevents a merge also fails the last one, which reports it.
            Ticker::start(settings.merge_interval, move || _ = shared.merge())?
        };
        Ok(Replicated { shared, merger, meter: Arc::clone(meter) })
    }
}

impl Subject for Replicated {
    fn apply(&self, worker: usize, key: usize, is_minus: bool) -> anyhow::Result<i64> {
        self.shared.keys.get(key).count(worker % self.shared.replicas, is_minus)?;
        self.meter.write(1);
        Ok(if is_minus { -1 } else { 1 })
    }

    fn finish(&self) -> anyhow::Result<()> {
        self.merger.stop()?;
        self.shared.merge()
    }

    fn positions(&self) -> anyhow::Result<Option<Vec<i64>>> {
        Ok(Some(self.shared.keys.iter().map(Key::position).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::Key;

    #[test]
    fn a_merge_gives_each_replica_everything_once() {
        let key = Key::new(3);
        for (replica, operations) in [4, 2, 1].into_iter().enumerate() {
            (0..operations).for_each(|_| key.count(replica, replica == 1).unwrap());
        }
        assert_eq!(key.position(), 4);
        for _ in 0..2 {
            key.merge().unwrap();
            assert_eq!([0, 1, 2].map(|replica| key.at(replica).value()), [3; 3]);
        }
    }
}
