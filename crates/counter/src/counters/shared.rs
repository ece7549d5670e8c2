//! What handles, callers by name and the thread that commits have in common.

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

/// How many parts the keys have.
const SHARDS: usize = 64;

pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) inbox: Inbox,
    pub(crate) settings: AllSettings,
    hasher: RandomState,
    shards: Box<[Shard; SHARDS]>,
    /// Keys in memory, and those that have a place reserved because they are being loaded.
    keys: AtomicUsize,
    /// Why nothing is committed any more. Set before the counters are frozen.
    stopped: OnceLock<Error>,
    pub(crate) figures: Figures,
}

/// What happens, counted.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) loads: AtomicU64,
    pub(crate) evictions: AtomicU64,
    /// As the committer has said it last: its counts, and how many counters are dirty.
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

    /// How many keys are in memory.
    pub(crate) fn keys(&self) -> usize {
        self.keys.load(Ordering::Relaxed)
    }

    /// Reserves the place of a key, if there is one.
    pub(crate) fn reserve(&self) -> bool {
        let max = self.options.max_keys;
        let reserved = self
            .keys
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |keys| (keys < max).then_some(keys + 1));
        reserved.is_ok()
    }

    /// For how many more keys there is a place.
    pub(crate) fn places(&self) -> usize {
        self.options.max_keys.saturating_sub(self.keys())
    }

    /// So many keys have been put away.
    pub(crate) fn put_away(&self, keys: usize) {
        self.release(keys);
        self.figures.evictions.fetch_add(keys as u64, Ordering::Relaxed);
    }

    /// So many keys are not in memory any more.
    pub(crate) fn release(&self, keys: usize) {
        let before = self.keys.fetch_sub(keys, Ordering::AcqRel);
        assert!(keys <= before, "{keys} places are given back, and {before} are taken");
    }

    /// Why nothing is committed any more, if that is so.
    pub(crate) fn stopped(&self) -> Option<Error> {
        self.stopped.get().cloned()
    }

    /// Nothing is committed any more but what `each` is called with: counters with something that is not. Counters go no further from what is
    /// stored.
    ///
    /// A window of no width is what stops them: it takes nothing on the way of those who move counters.
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

    /// Changes what a counter is. Whether it stays so until it is changed again, and the counter in memory as long.
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
        // What is uncommitted may have reached another threshold.
        self.note(key.found());
        Ok(())
    }

    /// Somebody has used a counter: whoever commits is told what it does not know.
    #[cold]
    pub(crate) fn note(&self, found: Found<'_>) {
        if !found.touch() {
            self.inbox.note(found);
        }
        if found.counter().is_due() && found.call() {
            // Where nobody reads it any more, the counter cannot be moved either.
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
