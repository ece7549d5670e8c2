//! Active expiry: keys whose time has come leave in the order of their deadlines, each removal a record of the log.

use crate::engine::Engine;
use crate::keyspace::{DATABASES, hash};

/// How long expiry rests when the log takes no records.
const RETRY_MS: u64 = 1000;

pub(crate) fn expire_due(engine: &Engine, now_us: u64, budget: usize) -> Option<u64> {
    let now_ms = now_us / 1000;
    // Deadlines that commands set from here on lower the bound again by themselves.
    engine.store_next_deadline(None);
    let mut left = budget;
    let mut next: Option<u64> = None;
    for index in 0..engine.keyspace().shard_count() {
        let mut shard = engine.keyspace().lock(index);
        for db in 0..DATABASES {
            while left > 0
                && let Some(key) = shard.database(db).first_due(now_ms).map(<[u8]>::to_vec)
            {
                // Without a log that takes it a key stays: what is not recorded must not happen.
                if engine.check_writable().is_err() || !engine.log_expiry(db as u8, &key, now_us) {
                    engine.lower_next_deadline(now_ms + RETRY_MS);
                    return engine.next_deadline();
                }
                shard.database_mut(db).remove(hash(&key), &key);
                shard.touch(db as u8, &key);
                left -= 1;
            }
            let earliest = shard.database(db).next_deadline();
            next = [next, earliest].into_iter().flatten().min();
        }
    }
    if let Some(at) = next {
        engine.lower_next_deadline(at);
    }
    engine.next_deadline()
}
