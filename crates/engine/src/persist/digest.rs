//! A digest of the whole state, to compare two replays or replicas.
//!
//! Each key contributes a hash of its database, name, deadline and value. The contributions are
//! added, so their order does not matter. Of a value, the digest covers what clients can see, not
//! its encoding; of a counter, the logged state.

use crate::engine::Engine;
use crate::error::CommandError;
use crate::keyspace::{Entry, ValueRef};
use crate::value::{Decimal, Type};
use tidemark_series::naming;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

impl Engine {
    /// Digest of the whole state: equal for equal states, whatever their history.
    ///
    /// # Panics
    /// A block of a series cannot be read.
    pub fn digest(&self) -> u128 {
        self.try_digest().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Does the same as [`Engine::digest`].
    ///
    /// # Errors
    /// A block of a series cannot be read.
    pub fn try_digest(&self) -> Result<u128, CommandError> {
        CommandError::guard(|| Ok(self.sum_of_entries()))
    }

    fn sum_of_entries(&self) -> u128 {
        let mut sum = 0_u128;
        for shard in self.keyspace().lock_all() {
            for (number, database) in shard.databases().iter().enumerate() {
                database.table().for_each(|entry| {
                    let digest = naming(entry.key(), || entry_digest(number as u8, entry));
                    sum = sum.wrapping_add(digest);
                });
            }
        }
        sum
    }
}

fn entry_digest(db: u8, entry: &Entry) -> u128 {
    let mut hasher = Xxh3::new();
    hasher.update(&[db]);
    hasher.update(&entry.deadline().map_or([0xff; 8], u64::to_le_bytes));
    hasher.update(&(entry.key().len() as u64).to_le_bytes());
    hasher.update(entry.key());
    let (kind, value) = match entry.value() {
        ValueRef::Unit => (0, 0),
        ValueRef::Float(score) => (1, score.to_bits()),
        // The bytes of a string count, not its encoding.
        ValueRef::Raw(bytes) => (Type::String.code(), xxh3_64(bytes)),
        ValueRef::Int(value) => (Type::String.code(), xxh3_64(Decimal::of(value).as_bytes())),
        ValueRef::Object(object) => (object.kind().code(), object.value().digest()),
    };
    hasher.update(&[kind]);
    hasher.update(&value.to_le_bytes());
    hasher.digest128()
}
