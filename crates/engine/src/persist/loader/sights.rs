//! The index of what lenses see, which is not in snapshots.

use crate::keyspace::Keyspace;
use crate::value::{Lens, TypedValue};

/// Notes what all lenses see.
pub(super) fn note_sights(keyspace: &Keyspace) {
    let mut shards = keyspace.lock_all();
    let mut sights = Vec::new();
    for shard in &shards {
        for (db, database) in
            shard.databases().iter().enumerate().filter(|(_, database)| database.has_links())
        {
            for entry in database.table().iter() {
                let lens = entry.object().and_then(Lens::from_object);
                let seen = lens.into_iter().flat_map(Lens::keys);
                sights.extend(seen.map(|key| (db, Box::<[u8]>::from(key), Box::<[u8]>::from(entry.key()))));
            }
        }
    }
    for (db, key, lens) in sights {
        shards[keyspace.shard_of(&key)].database_mut(db).note_sight(&key, &lens, true);
    }
}
