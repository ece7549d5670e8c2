//! What a pool has done, as a log keeps it: events in chained frames, and a pool that is seen while it goes on.

pub(crate) mod bytes;
pub(crate) mod capture;
pub(crate) mod chained;
pub(crate) mod event;
pub(crate) mod frame;
