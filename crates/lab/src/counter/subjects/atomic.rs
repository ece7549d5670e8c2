//! A word for each key; every operation is stored before it is answered.

use crate::baseline::Atomic;
use crate::counter::meter::Meter;
use crate::counter::named::Named;
use crate::counter::settings::Settings;
use crate::counter::subject::Subject;
use std::sync::Arc;

/// Atomic additions, each with a call that writes one event.
pub(in crate::counter) struct Words {
    words: Named<Atomic>,
    meter: Arc<Meter>,
}

impl Words {
    pub(in crate::counter) fn new(
        _: &Settings,
        names: &Arc<[String]>,
        meter: &Arc<Meter>,
    ) -> anyhow::Result<Self> {
        Ok(Words { words: Named::new(names, |_| Atomic::default()), meter: Arc::clone(meter) })
    }
}

impl Subject for Words {
    fn apply(&self, _: usize, key: usize, is_minus: bool) -> anyhow::Result<i64> {
        let delta = if is_minus { -1 } else { 1 };
        self.words.get(key).add(delta);
        self.meter.write(1);
        Ok(delta)
    }

    fn positions(&self) -> anyhow::Result<Option<Vec<i64>>> {
        Ok(Some(self.words.iter().map(Atomic::value).collect()))
    }
}
