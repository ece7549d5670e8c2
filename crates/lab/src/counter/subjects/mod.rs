//! Measured subjects: our counters and their alternatives.

mod asked;
mod atomic;
mod batch;
mod buckets;
mod counters;
mod crdt;
mod rated;

pub(super) use asked::gcra;
#[cfg(feature = "peers")]
pub(super) use asked::governor;
pub(super) use atomic::Words;
pub(super) use batch::Batched;
pub(super) use buckets::Buckets;
pub(super) use counters::{Committed, WRITER};
pub(super) use crdt::Replicated;
