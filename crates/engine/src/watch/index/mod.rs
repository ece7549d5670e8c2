//! Indices of the queries that a change can concern: per shard, by key and by part of its value.

pub(in crate::watch) mod key_list;
pub(in crate::watch) mod key_list_updates;
pub(in crate::watch) mod key_set;
pub(in crate::watch) mod selecting;
pub(in crate::watch) mod shard_index;
pub(in crate::watch) mod watched_key;
