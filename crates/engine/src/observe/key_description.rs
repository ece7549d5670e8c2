//! Data of a key's value for `DEBUG OBJECT`.

use crate::engine::Engine;
use crate::keyspace::{form, hash};

/// The internal representation of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyDescription {
    /// Memory address of the entry.
    pub address: usize,
    /// Reply of `OBJECT ENCODING`.
    pub encoding: &'static str,
    /// Size of the entry in a snapshot, including key and deadline. Bytes.
    pub snapshot_bytes: usize,
    /// Time of the last access, in seconds since 1970.
    pub used_s: u32,
}

impl Engine {
    /// Describes a key without recording an access; `None` if it does not exist. O(bytes of the
    /// value), with the key's shard locked.
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
