//! Ends reservations of pools that are over.

use super::key_work::KeyWork;
use crate::keyspace::Database;

/// The command that ends a pool's reservations that are over.
const EXPIRE: &str = "pool.expire";

/// Pools, due when their first reservation is over.
pub(super) const RESERVATIONS: KeyWork = KeyWork {
    next: Database::next_reservation,
    take: |database, now_ms| database.first_reserving(now_ms).map(Box::from),
    run: |visited, db, key, now_us| {
        visited.unlocked(|engine| engine.may_log_unasked() && engine.run_due(EXPIRE, db, key, now_us))
    },
};
