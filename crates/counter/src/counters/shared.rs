//! The state that handles, callers by name and the commit thread share.

use super::inbox::{Inbox, Request};
use super::key::{Found, KeyRef};
use super::options::Options;
use super::settings::{AllSettings, Settings};
use super::shard::Shard;
use crate::committer::{Counts, Error, Extent, Keys, Timing};
use crate::counter::Counter;
use crate::promise::Promise;
use foldhash::fast::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use tidemark_barrier as barrier;

/// Number of parts of the key set.
const SHARDS: usize = 64;

pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) inbox: Inbox,
    pub(crate) settings: AllSettings,
    hasher: RandomState,
    shards: Box<[Shard; SHARDS]>,
    /// Keys in memory, plus the places reserved for keys that are being loaded.
    keys: AtomicUsize,
    /// Why nothing is committed any more. Set before the counters are frozen.
    stopped: OnceLock<Error>,
    pub(crate) figures: Figures,
}

/// Counts of events.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) loads: AtomicU64,
    pub(crate) evictions: AtomicU64,
    /// Last report of the committer: its counts, and the number of dirty counters.
    pub(crate) committer: Mutex<(Counts, usize)>,
}

impl Shared {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options,
            inbox: Inbox::default(),
            settings: AllSettings::default(),
            hasher: RandomState::default(),
            shards: Box::new(std::array::from_fn(|_| Shard::new())),
            keys: AtomicUsize::new(0),
            stopped: OnceLock::new(),
            figures: Figures::default(),
        }
    }

    #[inline]
    pub(crate) fn hash(&self, name: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(name);
        hasher.finish()
    }

    #[inline]
    pub(crate) fn shard(&self, hash: u64) -> &Shard {
        &self.shards[hash as usize % SHARDS]
    }

    pub(crate) fn shards(&self) -> &[Shard] {
        &*self.shards
    }

    /// Returns the number of keys in memory.
    pub(crate) fn keys(&self) -> usize {
        self.keys.load(Ordering::Relaxed)
    }

    /// Reserves a place for a key, if there is one.
    pub(crate) fn reserve(&self) -> bool {
        let max = self.options.max_keys;
        let reserved = self
            .keys
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |keys| (keys < max).then_some(keys + 1));
        reserved.is_ok()
    }

    /// Returns the number of free places for keys.
    pub(crate) fn places(&self) -> usize {
        self.options.max_keys.saturating_sub(self.keys())
    }

    /// Records the eviction of `keys` keys.
    pub(crate) fn put_away(&self, keys: usize) {
        self.release(keys);
        self.figures.evictions.fetch_add(keys as u64, Ordering::Relaxed);
    }

    /// Frees the places of `keys` keys.
    pub(crate) fn release(&self, keys: usize) {
        let before = self.keys.fetch_sub(keys, Ordering::AcqRel);
        assert!(keys <= before, "{keys} places are given back, and {before} are taken");
    }

    /// Returns why nothing is committed any more, if so.
    pub(crate) fn stopped(&self) -> Option<Error> {
        self.stopped.get().cloned()
    }

    /// Stops all moves, and calls `each` with every counter that has uncommitted changes; nothing
    /// else is committed any more.
    ///
    /// A window of zero width stops the moves, at no cost to the fast path.
    pub(crate) fn freeze(&self, error: Error, mut each: impl FnMut(&KeyRef)) {
        let _ = self.stopped.set(error);
        for shard in self.shards() {
            shard.lock().for_each(|key| {
                key.counter().set_promise(Promise::Relaxed { cap: 0 });
                let books = key.counter().books();
                if books.open() != 0 || books.sealed() != 0 {
                    each(key);
                }
            });
        }
    }

    /// Changes the settings of a counter. With `is_pinned`, they stay until the next change, and
    /// the counter stays in memory.
    pub(crate) fn change(
        &self,
        key: &KeyRef,
        is_pinned: bool,
        change: impl FnOnce(Settings) -> Settings,
    ) -> Result<(), Error> {
        let alone = self.shard(self.hash(key.name())).lock();
        if let Some(error) = self.stopped() {
            return Err(error);
        }
        let kind = key.counter().books().kind();
        let settings = change(Settings { kind, ..self.settings.get(key.settings()) }).bounded();
        key.set_settings(self.settings.number(&settings)?);
        key.set_pinned(is_pinned);
        settings.apply_to(key.counter());
        drop(alone);
        // The uncommitted units may have reached another threshold.
        self.note(key.found());
        Ok(())
    }

    /// Records a use of a counter, and notifies the committer of what it does not know yet.
    #[cold]
    pub(crate) fn note(&self, found: Found<'_>) {
        if !found.touch() {
            self.inbox.note(found);
        }
        if found.counter().is_due() && found.call() {
            // If the inbox is closed, the counter cannot move either.
            let _ =
                self.inbox.request(Request::Commit { key: found.hold(), extent: Extent::Net, waiter: None });
        }
    }
}

impl Keys for Shared {
    type Key = KeyRef;

    fn place(&self, key: &KeyRef) -> usize {
        key.place()
    }

    fn name<'key>(&self, key: &'key KeyRef) -> &'key [u8] {
        key.name()
    }

    fn counter<'key>(&self, key: &'key KeyRef) -> &'key Counter {
        key.counter()
    }

    fn timing(&self, key: &KeyRef) -> Timing {
        self.settings.get(key.settings()).timing()
    }

    fn committed(&self, key: &KeyRef) -> bool {
        key.answer_call();
        key.counter().is_due() && key.call()
    }

    fn rest(&self, key: &KeyRef) {
        key.set_rested();
    }

    fn barrier(&self) {
        barrier::heavy();
    }

    fn rouse(&self, key: &KeyRef) -> bool {
        key.set_dirty()
    }
}
