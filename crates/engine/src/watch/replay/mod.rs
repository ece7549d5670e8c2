//! Emissions that are not retained any more, made once more from a snapshot and the log.

pub(in crate::watch) mod past;
pub(in crate::watch) mod pool_trail;
pub(in crate::watch) mod scope;
