//! A word for each key; operations are stored in batches, without netting.

use crate::baseline::Atomic;
use crate::counter::meter::Meter;
use crate::counter::named::Named;
use crate::counter::settings::Settings;
use crate::counter::subject::Subject;
use crate::counter::ticker::Ticker;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

/// The worker that fills a batch stores it before its operation is answered; a thread stores old
/// batches.
pub(in crate::counter) struct Batched {
    words: Named<Atomic>,
    pending: Arc<Pending>,
    flusher: Ticker,
}

struct Pending {
    operations: Mutex<u64>,
    size: u64,
    meter: Arc<Meter>,
}

impl Batched {
    pub(in crate::counter) fn new(
        settings: &Settings,
        names: &Arc<[String]>,
        meter: &Arc<Meter>,
    ) -> anyhow::Result<Self> {
        let pending = Arc::new(Pending {
            operations: Mutex::new(0),
            size: settings.batch_size,
            meter: Arc::clone(meter),
        });
        let flusher = {
            let pending = Arc::clone(&pending);
            Ticker::start(settings.batch_interval, move || pending.store(0))?
        };
        Ok(Batched { words: Named::new(names, |_| Atomic::default()), pending, flusher })
    }
}

impl Pending {
    fn push(&self) {
        let is_full = {
            let mut operations = self.operations.lock().unwrap_or_else(PoisonError::into_inner);
            *operations += 1;
            *operations >= self.size
        };
        if is_full {
            self.store(self.size);
        }
    }

    /// Stores the batch if it has at least `least` operations: another thread may have stored it
    /// meanwhile.
    fn store(&self, least: u64) {
        let operations = {
            let mut operations = self.operations.lock().unwrap_or_else(PoisonError::into_inner);
            if *operations < least { 0 } else { mem::take(&mut *operations) }
        };
        if operations > 0 {
            self.meter.write(operations);
        }
    }
}

impl Subject for Batched {
    fn apply(&self, _: usize, key: usize, is_minus: bool) -> anyhow::Result<i64> {
        let delta = if is_minus { -1 } else { 1 };
        self.words.get(key).add(delta);
        self.pending.push();
        Ok(delta)
    }

    fn finish(&self) -> anyhow::Result<()> {
        self.flusher.stop()?;
        self.pending.store(0);
        Ok(())
    }

    fn positions(&self) -> anyhow::Result<Option<Vec<i64>>> {
        Ok(Some(self.words.iter().map(Atomic::value).collect()))
    }
}
