//! Removes fields of hashes whose time has come.
//!
//! A field is there until a record removes it. A command that names the hash has it removed first, whether the
//! server is alone or leads a group, so no read has to look at times.

use super::key_work::KeyWork;
use crate::command::FIELDS_EXPIRE_NAME;
use crate::context::Keys;
use crate::engine::Engine;
use crate::keyspace::Database;

/// Hashes, due at the time of their first field.
pub(super) const FIELDS: KeyWork = KeyWork {
    next: Database::next_field_time,
    take: |database, now_ms| database.first_timed(now_ms).map(Box::from),
    run: |visited, db, key, now_us| {
        visited.unlocked(|engine| {
            engine.may_log_unasked() && engine.run_due(FIELDS_EXPIRE_NAME, db, key, now_us)
        })
    },
};

impl Engine {
    /// Removes and logs the fields that commands are about to meet and whose time has come. Locks the keys
    /// again by `lock` if there are any.
    ///
    /// A field that cannot be removed, because the log takes no records or removals are held, stays: a read
    /// sees it.
    #[cold]
    pub(crate) fn expire_fields_first<'e, 'a, I: Iterator<Item = (u8, &'a [u8])>>(
        &'e self,
        keys: &mut Keys<'e>,
        named: impl Fn() -> I,
        lock: impl Fn() -> Keys<'e>,
    ) {
        if named().any(|(db, key)| keys.is_field_due(db, key)) {
            self.expire_between(keys, &lock, &|now_us| {
                named().for_each(|(db, key)| self.expire_fields(db, key, now_us));
            });
        }
    }

    /// Removes and logs the fields of a hash whose time has come. The caller holds no locks.
    pub(crate) fn expire_fields(&self, db: u8, key: &[u8], now_us: u64) {
        let is_due = || self.keys(self.lock_one(key), db, now_us).is_field_due(db, key);
        while !self.is_following() && is_due() {
            let is_removed = !self.holds_removals(now_us)
                && self.may_log_unasked()
                && self.run_due(FIELDS_EXPIRE_NAME, db, key, now_us);
            if !is_removed {
                break;
            }
        }
    }
}
