//! Estimates how many elements a command visits, before it runs.

use crate::command::KeySpec;
use crate::engine::Engine;
use crate::execute::call::Call;
use crate::keyspace::{Entry, ValueRef, hash};
use crate::value::elements_of_string;

impl Engine {
    /// Estimates how many elements a command visits that [may visit
    /// many](crate::command::Command::visits_all).
    /// O(keys of the command); O(shards) if it visits all keys.
    pub fn effort(&self, call: &Call<'_>) -> usize {
        let db = usize::from(call.db);
        if matches!(call.command.keys, KeySpec::All | KeySpec::Each) {
            if call.command.effort_of.is_some() {
                return usize::MAX;
            }
            return (0..self.keyspace().shard_count())
                .map(|index| self.keyspace().lock(index).database(db).len())
                .sum();
        }
        let of_key = |key: &[u8]| {
            let shard = self.keyspace().lock(self.keyspace().shard_of(key));
            shard.database(db).get(hash(key), key).map_or(0, |entry| elements(entry, call))
        };
        let of_arguments = || call.args.iter().map(|arg| arg.len()).sum();
        let given = if call.command.visits_arguments { of_arguments() } else { 0 };
        call.command.keys.keys(call.args).map(of_key).sum::<usize>() + given
    }
}

fn elements(entry: &Entry, call: &Call<'_>) -> usize {
    match entry.value() {
        ValueRef::Raw(bytes) => elements_of_string(bytes.len()),
        ValueRef::Object(object) => match call.command.effort_of {
            Some(effort_of) => effort_of(object, call.args),
            None => object.value().elements(),
        },
        ValueRef::Int(_) | ValueRef::Unit | ValueRef::Float(_) => 1,
    }
}
