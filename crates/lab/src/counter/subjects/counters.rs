//! Our named counters: changes that cancel are never stored.

use crate::counter::lookup::Lookup;
use crate::counter::meter::Meter;
use crate::counter::metered::{Metered, Reopen, open};
use crate::counter::settings::Settings;
use crate::counter::stopwatch::nanos;
use crate::counter::subject::{Exposure, Subject};
use crate::counter::variant::Variant;
use anyhow::Context;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tidemark_counter::counters::{self, Counters, Error, Handle};
use tidemark_counter::{Kind, Promise};

/// Writer name of commits.
pub(in crate::counter) const WRITER: &str = "lab";
/// Maximum number of loading threads: concurrent loads share requests to the store.
const LOADERS_MAX: usize = 64;

/// Counters that commit to a store.
pub(in crate::counter) struct Committed {
    counters: Counters,
    names: Arc<[String]>,
    /// One handle per counter, unless counters are looked up by name.
    handles: Option<Box<[Handle]>>,
    /// Limit of each key, if any.
    limit: Option<i64>,
    reopen: Option<Reopen>,
}

impl Committed {
    pub(in crate::counter) fn new(
        settings: &Settings,
        names: &Arc<[String]>,
        meter: &Arc<Meter>,
    ) -> anyhow::Result<Self> {
        let opened = open(&settings.store)?;
        let limit = settings.variant.is_gated().then_some(settings.initial_scalar as i64);
        let promise = match settings.variant {
            Variant::Exact => Promise::Exact { block: settings.block },
            _ => Promise::Relaxed { cap: settings.cap },
        };
        let each = counters::Settings {
            kind: limit.map_or(Kind::Plain, |limit| Kind::Quota { limit }),
            promise,
            high: settings.threshold,
            low: settings.low_threshold,
            max_age: settings.commit_max_age,
        };
        let options = counters::Options {
            writer: WRITER.into(),
            settings: Arc::new(move |_| each),
            interval: settings.commit_interval,
            max_keys: names.len(),
            idle: None,
            ..counters::Options::default()
        };
        let counters = Counters::open(Metered::new(opened.store, Arc::clone(meter)), options)?;
        let handles = load(&counters, names, settings.lookup)?;
        Ok(Committed { counters, names: Arc::clone(names), handles, limit, reopen: opened.reopen })
    }

    #[inline]
    fn name(&self, key: usize) -> &[u8] {
        self.names[key].as_bytes()
    }

    #[inline]
    fn add(&self, key: usize, delta: i64) -> Result<(), Error> {
        match &self.handles {
            Some(handles) => handles[key].add(delta),
            None => self.counters.add(self.name(key), delta),
        }
    }

    /// Takes `amount` units of a quota; returns false if fewer are left.
    #[inline]
    pub(in crate::counter) fn take(&self, key: usize, amount: u64) -> Result<bool, Error> {
        let taken = match &self.handles {
            Some(handles) => handles[key].take(amount),
            None => self.counters.take(self.name(key), amount),
        };
        match taken {
            Ok(()) => Ok(true),
            Err(Error::Exhausted) => Ok(false),
            Err(error) => Err(error),
        }
    }

    #[inline]
    fn refund(&self, key: usize) -> Result<u64, Error> {
        match &self.handles {
            Some(handles) => handles[key].refund(1),
            None => self.counters.refund(self.name(key), 1),
        }
    }
}

/// Loads all counters into memory before the measurement; returns their handles if they are used.
fn load(counters: &Counters, names: &[String], lookup: Lookup) -> Result<Option<Box<[Handle]>>, Error> {
    let share = names.len().div_ceil(LOADERS_MAX).max(1);
    let part = |names: &[String]| -> Result<Vec<Handle>, Error> {
        let mut handles = Vec::new();
        for name in names {
            let handle = counters.get(name.as_bytes())?;
            if lookup == Lookup::Handle {
                handles.push(handle);
            }
        }
        Ok(handles)
    };
    let parts: Result<Vec<_>, Error> = thread::scope(|scope| {
        let loaders: Vec<_> = names.chunks(share).map(|names| scope.spawn(move || part(names))).collect();
        let panicked = |_| Error::Broken { reason: "the thread that loads counters has panicked".into() };
        loaders.into_iter().map(|loader| loader.join().unwrap_or_else(|error| Err(panicked(error)))).collect()
    });
    let handles: Box<[Handle]> = parts?.into_iter().flatten().collect();
    Ok((lookup == Lookup::Handle).then_some(handles))
}

impl Subject for Committed {
    #[inline]
    fn apply(&self, _: usize, key: usize, is_minus: bool) -> anyhow::Result<i64> {
        Ok(match (self.limit, is_minus) {
            (None, _) => {
                let delta = if is_minus { -1 } else { 1 };
                self.add(key, delta).map(|()| delta)?
            }
            (Some(_), false) => self.take(key, 1).map(i64::from)?,
            (Some(_), true) => -(self.refund(key)? as i64),
        })
    }

    fn exposure(&self) -> anyhow::Result<Exposure> {
        let (mut sum, mut largest) = (0, 0);
        for name in self.names.iter() {
            let units = self.counters.state(name.as_bytes())?.uncommitted();
            (sum, largest) = (sum + units, units.max(largest));
        }
        let oldest = match self.counters.exposure() {
            Ok(all) => all.oldest,
            // After the final flush there is no committing thread, and nothing waits for it.
            Err(Error::Closed) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Exposure { units: sum, largest, oldest_ns: oldest.map_or(0, nanos) })
    }

    fn finish(&self) -> anyhow::Result<()> {
        Ok(self.counters.close()?)
    }

    fn stored(&self) -> anyhow::Result<Option<Vec<i64>>> {
        let Some(reopen) = &self.reopen else { return Ok(None) };
        let keys: Vec<&[u8]> = self.names.iter().map(String::as_bytes).collect();
        let positions = reopen().context("opening the store again")?.load(&keys)?;
        // A key that is not in the store has no commits: its value is 0.
        Ok(Some(positions.into_iter().map(Option::unwrap_or_default).collect()))
    }

    fn positions(&self) -> anyhow::Result<Option<Vec<i64>>> {
        let position = |name: &String| Ok(self.counters.state(name.as_bytes())?.position());
        self.names.iter().map(position).collect::<anyhow::Result<_>>().map(Some)
    }

    fn limit(&self, _: Duration) -> Option<i64> {
        self.limit
    }
}
