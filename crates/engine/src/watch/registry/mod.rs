//! The registry of queries: registration, subscriptions, names, snapshots and removal.

pub(in crate::watch) mod beginning;
pub(in crate::watch) mod lookup;
pub(in crate::watch) mod named;
pub(in crate::watch) mod naming;
pub(in crate::watch) mod queries;
pub(in crate::watch) mod registration;
pub(in crate::watch) mod removal;
pub(in crate::watch) mod saving;
pub(in crate::watch) mod saving_walk;
pub(in crate::watch) mod subscription;
