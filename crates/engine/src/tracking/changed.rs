//! A changed key that clients cache.

use smallvec::SmallVec;
use std::sync::Arc;

/// Ids of the trackers that have read a key, ascending.
pub(crate) type Readers = SmallVec<[u64; 2]>;

/// A changed key, and the trackers that have read it.
#[derive(Debug)]
pub(crate) struct Changed {
    pub(super) key: Arc<[u8]>,
    pub(super) readers: Readers,
}
