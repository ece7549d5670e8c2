//! What is measured: our counters, and beside them what others do instead.

mod atomic;
mod batch;
mod buckets;
mod counters;
mod crdt;
mod gcra;

pub(super) use atomic::Atomic;
pub(super) use batch::Batched;
pub(super) use buckets::Buckets;
pub(super) use counters::Committed;
pub(super) use crdt::Replicated;
pub(super) use gcra::Gcra;
