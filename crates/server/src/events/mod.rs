//! Messages that clients receive without a request: channel messages, keyspace notifications,
//! invalidations, and the change stream.

pub(crate) mod change_stream;
pub(crate) mod invalidation;
pub(crate) mod invalidation_source;
pub(crate) mod keyspace_events;
pub(crate) mod publication;
pub(crate) mod publishing;
pub(crate) mod pubsub;
