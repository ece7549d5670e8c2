//! The log of a pool: events, chained frames, and captures of a running pool.

pub(crate) mod bytes;
pub(crate) mod capture;
pub(crate) mod chained;
pub(crate) mod event;
pub(crate) mod frame;
