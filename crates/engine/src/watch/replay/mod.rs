//! Replay of emissions that are no longer retained, from a snapshot and the log.

pub(in crate::watch) mod past;
pub(in crate::watch) mod pool_trail;
pub(in crate::watch) mod scope;
