//! A counter on several replicas, each with its own pluses and minuses of all (PN-counter), that merge now and then.

use crate::counter::meter::Meter;
use crate::counter::named::Named;
use crate::counter::settings::Settings;
use crate::counter::subject::Subject;
use crate::counter::ticker::Ticker;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A worker always asks the same replica, which stores the operation. A merge is a call for every replica that writes nothing.
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

/// What each replica knows of the pluses and the minuses of each, by [`Key::place`].
struct Key(Box<[AtomicU64]>);

impl Key {
    fn new(replicas: usize) -> Self {
        Key((0..replicas * replicas * 2).map(|_| AtomicU64::new(0)).collect())
    }

    /// Where `knower` has the pluses of `of`; its minuses stand behind.
    fn place(replicas: usize, knower: usize, of: usize) -> usize {
        (knower * replicas + of) * 2
    }

    /// Every replica learns of every other whatever is more than it knows.
    fn merge(&self, replicas: usize) {
        let row = replicas * 2;
        for (learner, teacher) in (0..replicas).flat_map(|one| (0..replicas).map(move |other| (one, other))) {
            let (learner, teacher) = (&self.0[learner * row..][..row], &self.0[teacher * row..][..row]);
            for (known, taught) in learner.iter().zip(teacher) {
                known.fetch_max(taught.load(Relaxed), Relaxed);
            }
        }
    }

    /// The sum, as the first replica knows it.
    fn position(&self, replicas: usize) -> i64 {
        let pairs = self.0[..replicas * 2].chunks_exact(2);
        pairs.map(|pair| pair[0].load(Relaxed) as i64 - pair[1].load(Relaxed) as i64).sum()
    }
}

impl Shared {
    fn merge(&self) {
        self.keys.iter().for_each(|key| key.merge(self.replicas));
        (0..self.replicas).for_each(|_| self.meter.write(0));
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
            Ticker::start(settings.merge_interval, move || shared.merge())?
        };
        Ok(Replicated { shared, merger, meter: Arc::clone(meter) })
    }
}

impl Subject for Replicated {
    fn apply(&self, worker: usize, key: usize, is_minus: bool) -> anyhow::Result<i64> {
        let replicas = self.shared.replicas;
        let place = Key::place(replicas, worker % replicas, worker % replicas) + usize::from(is_minus);
        self.shared.keys.get(key).0[place].fetch_add(1, Relaxed);
        self.meter.write(1);
        Ok(if is_minus { -1 } else { 1 })
    }

    fn finish(&self) -> anyhow::Result<()> {
        self.merger.stop()?;
        self.shared.merge();
        Ok(())
    }

    fn positions(&self) -> Option<Vec<i64>> {
        Some(self.shared.keys.iter().map(|key| key.position(self.shared.replicas)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Relaxed};

    #[test]
    fn a_merge_tells_everybody_everything_and_nothing_twice() {
        let key = Key::new(3);
        for (replica, operations) in [4, 2, 1].into_iter().enumerate() {
            let sign = usize::from(replica == 1);
            key.0[Key::place(3, replica, replica) + sign].fetch_add(operations, Relaxed);
        }
        assert_eq!(key.position(3), 4);
        for _ in 0..2 {
            key.merge(3);
            assert_eq!(key.position(3), 4 - 2 + 1);
        }
        let rows: Vec<Vec<u64>> =
            key.0.chunks(6).map(|row| row.iter().map(|word| word.load(Relaxed)).collect()).collect();
        assert!(rows.iter().all(|row| *row == [4, 0, 0, 2, 1, 0]), "{rows:?}");
    }
}
