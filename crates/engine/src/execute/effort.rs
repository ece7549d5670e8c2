//! Estimates how many elements a command visits, before it runs.

use crate::command::{self, Command, KeySpec};
use crate::engine::Engine;
use crate::execute::call::Call;
use crate::keyspace::{Entry, ValueRef, hash};
use crate::value::Object;
use std::sync::LazyLock;

/// Commands that visit all elements of their keys, or all keys. Commands over a range of a list or
/// sorted set cost only as much as the range and are not included.
const VISIT_ALL: &[&str] = &[
    "keys",
    "sort",
    "sort_ro",
    "smembers",
    "sinter",
    "sintercard",
    "sinterstore",
    "sunion",
    "sunionstore",
    "sdiff",
    "sdiffstore",
    "hgetall",
    "hkeys",
    "hvals",
    "zunion",
    "zunionstore",
    "zinter",
    "zintercard",
    "zinterstore",
    "zdiff",
    "zdiffstore",
    "bitop",
    "bitcount",
    "bitpos",
    "copy",
    "lpos",
    "linsert",
    "lrem",
];

/// Whether a command visits all elements, by command id.
static VISITS_ALL: LazyLock<Vec<bool>> = LazyLock::new(|| {
    let len = command::all().map(|row| usize::from(row.id) + 1).max().unwrap_or(0);
    let mut visits_all = vec![false; len];
    for row in command::all().filter(|row| VISIT_ALL.contains(&row.name)) {
        visits_all[usize::from(row.id)] = true;
    }
    visits_all
});

/// Bytes of a string that count as one element.
const STRING_BYTES: usize = 64;

impl Engine {
    /// Whether a command visits everything in its keys, so that [`Engine::effort`] is worth
    /// calling. O(1).
    #[inline]
    pub fn visits_all(command: &Command) -> bool {
        VISITS_ALL.get(usize::from(command.id)).copied().unwrap_or(false)
    }

    /// Estimates how many elements such a command visits. O(keys of the command); O(shards) if it
    /// visits all keys.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_visits_all_is_one_of_the_table() {
        let names: Vec<&str> = command::all().map(|row| row.name).collect();
        let missing: Vec<&&str> = VISIT_ALL.iter().filter(|name| !names.contains(name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
