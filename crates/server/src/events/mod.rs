//! What clients are told without asking: messages on channels, keyspace notifications, invalidations of what they keep, and the
//! stream of changes.

pub(crate) mod change_stream;
pub(crate) mod invalidation;
pub(crate) mod invalidation_source;
pub(crate) mod keyspace_events;
pub(crate) mod publication;
pub(crate) mod pubsub;
