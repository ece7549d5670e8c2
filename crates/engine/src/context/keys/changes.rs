//! Reports of changes: to the log, to transactions and reads that watch a key, and to blocked
//! clients.

use super::Keys;
use crate::blocking::waiter::Waiter;
use crate::context::effects::Rewritten;
use crate::execute::noted::Noted;
use crate::keyspace::{Entry, hash};
use crate::value::series::PointsBefore;
use crate::watch::touched::{Moves, Touched};

/// Maximum bytes that the commands of a transaction may log in addition to their arguments, so that
/// the record fits.
const MAX_REWRITTEN_BYTES: usize = 192 << 20;

impl Keys<'_> {
    /// Reports that the key has changed: the command is logged, transactions that watch the key
    /// abort, and clients blocked on it are served after the command. `event` is the name of the
    /// Redis keyspace event.
    #[inline]
    pub fn changed(&mut self, key: &[u8], event: &'static str) {
        self.changed_in(key, event, || Touched::Everything);
    }

    /// As [`Keys::changed`], with the parts of the value that were touched: watched reads of other
    /// parts are not evaluated. Call it while the key is in its final state.
    #[inline]
    pub(crate) fn changed_in<'t>(
        &mut self,
        key: &[u8],
        event: &'static str,
        touched: impl FnOnce() -> Touched<'t>,
    ) {
        // Not in release builds: the names are constants, and each new name has a test.
        debug_assert!(event.bytes().all(|byte| byte.is_ascii_lowercase() || b"_.:-".contains(&byte)));
        self.changed_unannounced(key, touched);
        if self.events.are_wanted() {
            self.note_event(key, event);
        }
    }

    /// As [`Keys::changed_in`], for a change that Redis announces with no event.
    #[inline]
    pub(crate) fn changed_unannounced<'t>(&mut self, key: &[u8], touched: impl FnOnce() -> Touched<'t>) {
        self.effects.changed = true;
        let db = self.db();
        let shard = self.shard_mut(key);
        shard.touch(db, key);
        let (is_awaited, is_read) = (!shard.waiting().is_empty(), shard.is_read());
        let database = shard.database(usize::from(db));
        if database.is_copying() {
            database.assert_seen(hash(key), key);
        }
        let has_links = database.has_links();
        if is_awaited {
            self.note_ready(key);
        }
        if is_read {
            self.note_queries(key, &touched());
        }
        if has_links {
            self.follow_sights(key);
        }
    }

    /// Reports that the key has a series that is new. The caller reports the change of the key as well.
    #[inline]
    pub(crate) fn series_came(&mut self, key: &[u8]) {
        if self.shard(key).is_read() {
            self.note_queries(key, &Touched::Everything);
        }
    }

    /// Reports that the open bucket of a compacted series has changed: it is read from the source.
    #[inline]
    pub(crate) fn changed_open_bucket(&mut self, key: &[u8]) {
        if self.shard(key).is_read() {
            self.note_queries(key, &Touched::OpenBucket);
        }
    }

    /// Whether changes of the key's shard have subscribers.
    #[inline]
    pub(crate) fn is_read(&self, key: &[u8]) -> bool {
        self.shard(key).is_read()
    }

    /// Aborts transactions that watch the key, although nothing changed: Redis counts it as a
    /// change.
    pub(crate) fn abort_watches(&mut self, key: &[u8]) {
        let db = self.db();
        self.shard_mut(key).touch(db, key);
    }

    /// Reports a change of the key's volatile state, which is not logged: aborts transactions that
    /// watch the key and invalidates its client-side caches.
    #[inline]
    pub(crate) fn moved(&mut self, key: &[u8]) {
        let db = self.db();
        let shard = self.shard_mut(key);
        shard.touch(db, key);
        if shard.is_read() {
            self.note_kept(key);
        }
    }

    #[cold]
    fn note_kept(&mut self, key: &[u8]) {
        let mut noted = self.effects.take_noted();
        self.shard_mut(key).note_kept(key, &mut noted);
        if !noted.is_empty() {
            self.effects.rare_mut().noted = noted;
        }
    }

    /// Collects the watched reads and caching clients that the key's change concerns.
    #[cold]
    pub(super) fn note_queries(&mut self, key: &[u8], touched: &Touched<'_>) {
        let (db, mut noted) = (self.db(), self.effects.take_noted());
        let spared = self.shard_mut(key).note(db, key, touched, &mut noted);
        self.keyspace.count_spared(spared);
        // Also if no query is noted: one may have been by an earlier command of the same record.
        if let Touched::Points(before) = touched
            && !before.is_empty()
        {
            noted.push(Noted::Points { db, key: key.into(), before: (*before).into() });
        }
        if !noted.is_empty() {
            self.effects.rare_mut().noted = noted;
        }
    }

    /// Creates the record in which a command notes how it moves a sorted set's members, for
    /// [`Keys::changed_in`].
    pub(crate) fn moves(&self, key: &[u8]) -> Moves {
        Moves::none(self.is_watched(key))
    }

    /// Creates the record in which a command notes a series' points before it changes them, for
    /// [`Keys::changed_in`].
    #[inline]
    pub(crate) fn points_before(&self, key: &[u8]) -> PointsBefore {
        PointsBefore::none(self.is_watched(key))
    }

    /// Whether watched reads name the key.
    #[inline]
    fn is_watched(&self, key: &[u8]) -> bool {
        let shard = self.shard(key);
        shard.is_read() && !shard.index().of_key(self.db(), key).is_empty()
    }

    /// Marks the key as ready if a client is blocked on it that may be served. What a client reads may
    /// still change under these locks, so whether it waits no longer is found out when it is served.
    #[cold]
    pub(super) fn note_ready(&mut self, key: &[u8]) {
        let db = self.db();
        let held = self.peek(key).map(Entry::type_of);
        let is_awaited =
            |waiter: &Waiter| waiter.only_reads() || waiter.is_conditional() || waiter.can_take(held);
        if !self.shard(key).waiting().is_awaited(db, key, is_awaited) {
            return;
        }
        let ready = &mut self.effects.rare_mut().ready;
        // The points of a batch often change the same key one after the other.
        if ready.last().is_none_or(|(last_db, last)| (*last_db, &**last) != (db, key)) {
            ready.push((db, key.to_vec()));
        }
    }

    /// Reports a change of more than single keys: of the database `db`, and of `other` if the two
    /// were swapped.
    pub(crate) fn changed_everything(&mut self, db: u8, other: Option<u8>) {
        self.effects.changed = true;
        let (mut ready, mut noted) = (Vec::new(), self.effects.take_noted());
        let expired_until_ms = self.expired_until_ms;
        for shard in self.shards_mut() {
            shard.touch_database(db, other, expired_until_ms);
            for db in [Some(db), other].into_iter().flatten() {
                ready.extend(shard.waiting().keys(db).map(|key| (db, key.to_vec())));
                shard.note_database(db, &mut noted);
            }
        }
        noted.push(Noted::Everything);
        let rare = self.effects.rare_mut();
        rare.noted = noted;
        rare.ready.append(&mut ready);
    }

    /// Logs another command in place of the running one: a command with the same effect,
    /// independent of randomness, clock and blocking. May be called several times.
    pub fn log_instead(&mut self, name: &'static str, args: &[&[u8]]) {
        self.rewritten_bytes += args.iter().map(|arg| arg.len()).sum::<usize>();
        let args = args.iter().map(|arg| arg.to_vec()).collect();
        self.effects.rare_mut().rewritten.push(Rewritten { name, args });
    }

    /// Logs the running command with another argument at a position: with what it has chosen, where the
    /// client left that to it. Not together with [`Keys::log_instead`].
    pub(crate) fn log_with(&mut self, position: usize, arg: &[u8]) {
        self.effects.rare_mut().chosen = Some((position, arg.into()));
    }

    /// Whether [`Keys::log_instead`] may be called with this many bytes. Commands that log more
    /// than their arguments must check it before they change anything.
    pub fn may_log_instead(&self, bytes: usize) -> bool {
        bytes <= self.left_to_log_instead()
    }

    /// Bytes that may still be passed to [`Keys::log_instead`].
    pub(crate) fn left_to_log_instead(&self) -> usize {
        MAX_REWRITTEN_BYTES.saturating_sub(self.rewritten_bytes)
    }

    /// Delays the reply until the change is durable, in any durability mode.
    pub fn make_durable(&mut self) {
        self.effects.durable = true;
    }

    /// Delays a reply that shows earlier changes until they are durable, in any durability mode.
    pub(crate) fn reveal_durable(&mut self) {
        self.effects.reveals_logged = true;
        self.effects.durable = true;
    }
}
