//! Estimates how many elements a command visits, before it runs.

use crate::command::KeySpec;
use crate::engine::Engine;
use crate::execute::call::Call;
use crate::keyspace::{Entry, ValueRef, hash};
use crate::value::Object;

/// Bytes of a string that count as one element.
const STRING_BYTES: usize = 64;

impl Engine {
    /// Estimates how many elements a command visits that [visits all](crate::command::Command::visits_all).
    /// O(keys of the command); O(shards) if it visits all keys.
    pub fn effort(&self, call: &Call<'_>) -> usize {
        let db = usize::from(call.db);
        if matches!(call.command.keys, KeySpec::All | KeySpec::Each) {
            return (0..self.keyspace().shard_count())
                .map(|index| self.keyspace().lock(index).database(db).len())
                .sum();
        }
        let of_key = |key: &[u8]| {
            let shard = self.keyspace().lock(self.keyspace().shard_of(key));
            shard.database(db).get(hash(key), key).map_or(0, elements)
        };
        call.command.keys.keys(call.args).map(of_key).sum()
    }
}

fn elements(entry: &Entry) -> usize {
    match entry.value() {
        ValueRef::Raw(bytes) => bytes.len() / STRING_BYTES,
        ValueRef::Object(Object::Bytes(bytes)) => bytes.len() / STRING_BYTES,
        ValueRef::Object(Object::List(list)) => list.len(),
        ValueRef::Object(Object::Hash(hash)) => hash.len(),
        ValueRef::Object(Object::Set(set)) => set.len(),
        ValueRef::Object(Object::SortedSet(set)) => set.len(),
        ValueRef::Object(Object::Counter(_) | Object::Limit(_) | Object::Pool(_))
        | ValueRef::Int(_)
        | ValueRef::Unit
        | ValueRef::Float(_) => 1,
    }
}
