//! What `DEBUG OBJECT` says of a key's value.

use crate::engine::Engine;
use crate::keyspace::{form, hash};

/// A key's value as it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyDescription {
    /// Where the entry is in memory.
    pub address: usize,
    /// What `OBJECT ENCODING` answers.
    pub encoding: &'static str,
    /// How long the entry is in a snapshot, key and deadline included. Bytes.
    pub snapshot_bytes: usize,
    /// When the key was used last. Seconds since 1970.
    pub used_s: u32,
}

impl Engine {
    /// Describes a key without using it; `None` if there is none. O(bytes of the value), with the key's shard locked.
    pub fn describe_key(&self, db: u8, key: &[u8], now_us: u64) -> Option<KeyDescription> {
        let shard = self.keyspace().lock(self.keyspace().shard_of(key));
        let entry = shard.database(usize::from(db)).get(hash(key), key)?;
        if entry.deadline().is_some_and(|at| at <= now_us / 1000) {
            return None;
        }
        let mut form = Vec::new();
        form::encode(entry, &mut form);
        Some(KeyDescription {
            address: std::ptr::from_ref(entry.key()).addr(),
            encoding: entry.encoding()?,
            snapshot_bytes: form.len(),
            used_s: entry.clock(),
        })
    }
}
