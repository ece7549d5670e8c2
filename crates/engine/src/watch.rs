//! Optimistic transactions: a flag that any change to a watched key raises.

use std::sync::atomic::{AtomicBool, Ordering};

/// One client's watch, shared with the shards of the keys that it watches.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    touched: AtomicBool,
}

impl Watch {
    /// Whether a watched key has changed.
    pub(crate) fn is_touched(&self) -> bool {
        self.touched.load(Ordering::Acquire)
    }

    pub(crate) fn touch(&self) {
        self.touched.store(true, Ordering::Release);
    }
}
