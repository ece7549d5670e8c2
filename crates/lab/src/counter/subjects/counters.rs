//! Our counters: what cancels is never stored.

use crate::counter::keyed::{Counters, Options};
use crate::counter::meter::Meter;
use crate::counter::metered::{Metered, open};
use crate::counter::settings::Settings;
use crate::counter::subject::{Exposure, Subject};
use crate::counter::variant::Variant;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidemark_counter::store::Store;
use tidemark_counter::{Kind, Promise};

/// Counters that commit to a store.
pub(in crate::counter) struct Committed {
    counters: Counters,
    names: Arc<[String]>,
    /// Of each key, where there is one.
    limit: Option<i64>,
    reader: Mutex<Option<Box<dyn Store>>>,
}

impl Committed {
    pub(in crate::counter) fn new(
        settings: &Settings,
        names: &Arc<[String]>,
        meter: &Arc<Meter>,
    ) -> anyhow::Result<Self> {
        let opened = open(&settings.store);
        let is_gated = settings.variant.is_gated();
        let limit = is_gated.then_some(settings.initial_scalar as i64);
        let promise = match settings.variant {
            Variant::Exact => Promise::Exact { block: settings.block },
            _ => Promise::Relaxed { cap: settings.cap },
        };
        let options = Options {
            kind: limit.map_or(Kind::Plain, |limit| Kind::Quota { limit }),
            promise,
            threshold: settings.threshold,
            low_threshold: settings.low_threshold,
            interval: settings.commit_interval,
            max_age: settings.commit_max_age,
        };
        let store = Box::new(Metered::new(opened.store, Arc::clone(meter)));
        let counters = Counters::open(store, names, &options)?;
        Ok(Committed { counters, names: Arc::clone(names), limit, reader: Mutex::new(opened.reader) })
    }
}

impl Subject for Committed {
    #[inline]
    fn apply(&self, _: usize, key: usize, is_minus: bool) -> anyhow::Result<i64> {
        match (self.limit, is_minus) {
            (None, _) => {
                let delta = if is_minus { -1 } else { 1 };
                self.counters.add(key, delta).map(|()| delta)
            }
            (Some(_), false) => self.counters.take(key).map(i64::from),
            (Some(_), true) => self.counters.refund(key).map(|units| -(units as i64)),
        }
    }

    fn exposure(&self) -> Exposure {
        self.counters.exposure()
    }

    fn finish(&self) -> anyhow::Result<()> {
        self.counters.close()
    }

    fn stored(&self) -> anyhow::Result<Option<Vec<i64>>> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(reader) = reader.as_mut() else { return Ok(None) };
        let keys: Vec<&[u8]> = self.names.iter().map(String::as_bytes).collect();
        let positions = reader.load(&keys)?.into_iter().map(Option::unwrap_or_default).collect();
        Ok(Some(positions))
    }

    fn positions(&self) -> Option<Vec<i64>> {
        Some(self.counters.positions())
    }

    fn limit(&self, _: Duration) -> Option<i64> {
        self.limit
    }
}
