//! A watched read's past: its emissions, replayed from a snapshot and the records after it.
//!
//! Emissions are a function of the log, so those no longer retained can be replayed while the log
//! has their records. A second engine, over only the keys that the answers depend on, is loaded
//! from a snapshot, or starts empty with the log. It applies the records and emits what was emitted
//! the first time: the same numbers, LSNs, times and bytes.
//!
//! ```text
//! snapshot ─► Past::load, Past::load_query ───┐
//! records ──► Past::apply ────────────────────┴─► emissions
//!                  └─► PastError::Widened ─► Widening: all records once ─► a new Past over more keys ─► the same again
//! ```
//!
//! The first guess at the keys is those that the read names. A record that computes one of them
//! from another key shows that this is not enough, as does a loaded value that links to another key.
//! Then the records are searched for dependencies ([`Widening`]), and the replay starts over.

use crate::command::{Extension, parse};
use crate::engine::Engine;
use crate::keyspace::{Entry, ValueRef, form, hash};
use crate::persist::apply_error::ApplyError;
use crate::persist::loader::Loader;
use crate::persist::record::{Cursor, kind};
use crate::value::Object;
use crate::watch::continuation::Continuation;
use crate::watch::emission::Emission;
use crate::watch::replay::scope::Scope;
use crate::watch::replay::scope::{Concern, Dependencies, for_each_command};
use crate::watch::retention::RetentionLimits;
use crate::watch::watched_read::{Query, SharedQuery};
use crate::wire::reply::{Protocol, Reply};
use crate::wire::shared_bytes::SharedBytes;
use std::sync::Arc;
use tidemark_log::{Log, Lsn, Record};

/// Approximate bytes of an entry besides its key and value.
const ENTRY_BYTES: usize = 64;

/// Bytes of a time and a value.
const POINT_BYTES: usize = 16;

/// See the module's documentation.
pub struct Past {
    engine: Engine,
    id: Lsn,
    scope: Scope,
    /// Limit on the bytes of the keys.
    limit: usize,
    /// Dependencies that the loaded values show.
    dependencies: Dependencies,
    /// Upper bound of the bytes added since they were counted.
    added: usize,
    /// Number of the last emission.
    count: u64,
    /// The last record that was applied or skipped.
    last: Lsn,
    scratch: Reply,
}

/// Why a read cannot be replayed, or not over these keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PastError {
    /// The read depends on further keys: see [`Past::widen`].
    #[error("the answers depend on further keys")]
    Widened,
    /// The keys exceed the limit.
    #[error("the keys that the answers depend on take {bytes} bytes, more than the limit of {limit} bytes")]
    TooLarge {
        /// Bytes of the keys.
        bytes: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The query ends here.
    #[error("the read was forgotten")]
    Forgotten,
    /// The read is dormant in the snapshot, which therefore lacks its number.
    #[error("the read is dormant in the snapshot")]
    Dormant,
    /// A block of a series that the read needs cannot be read from its file.
    #[error("a block of a series that the read needs is damaged or cannot be read")]
    Unreadable,
    /// A record or frame is malformed.
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

impl Past {
    /// Creates the past of a query of the log, with nothing loaded or applied. The keys that its
    /// answers depend on may take `limit` bytes.
    pub fn new(log: &Arc<Log>, query: &Query, limit: usize) -> Self {
        let engine = empty(log);
        let scope = Scope::of(query.read(), engine.keyspace());
        Self::within(engine, query.id(), scope, limit)
    }

    fn within(engine: Engine, id: Lsn, scope: Scope, limit: usize) -> Self {
        let scratch = Reply::new(Protocol::Resp2);
        let dependencies = Dependencies::new(limit);
        Self { engine, id, scope, limit, dependencies, added: 0, count: 0, last: Lsn::ZERO, scratch }
    }

    /// Loads the frames of a snapshot's keys. Skips keys out of scope.
    ///
    /// # Errors
    /// [`PastError::Widened`] if a loaded value links to a key out of scope.
    pub fn load<E: From<PastError>>(
        &mut self,
        frames: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<(), PastError>) -> Result<(), E>,
    ) -> Result<(), E> {
        let loader = Loader::new(&self.engine, &self.scope, 0);
        let limit = self.limit;
        frames(&mut |frame| {
            loader.load_frame(frame)?;
            if loader.bytes() > limit {
                return Err(PastError::TooLarge { bytes: loader.bytes(), limit });
            }
            Ok(())
        })?;
        self.added = loader.bytes();
        loader.finish().map_err(PastError::from)?;
        if self.note_links() { Err(PastError::Widened.into()) } else { Ok(()) }
    }

    /// Notes the links of the loaded values. Returns whether one leads out of the scope: a link that
    /// was made before the snapshot is in no record after it.
    fn note_links(&mut self) -> bool {
        let (mut is_wider, scope, dependencies) = (false, &self.scope, &mut self.dependencies);
        for shard in self.engine.keyspace().lock_all() {
            for database in shard.databases().iter().filter(|database| database.has_links()) {
                database.table().for_each(|entry| {
                    database.for_each_link(entry.key(), &mut |linked, _| {
                        is_wider |= !scope.contains(linked);
                        dependencies.note_link(entry.key(), linked);
                    });
                });
            }
        }
        is_wider
    }

    /// Loads the query, if present, from a query frame of a snapshot that covers the log up to
    /// `lsn`. To be called after all keys are loaded.
    pub fn load_query(&mut self, lsn: Lsn, frame: &[u8]) -> Result<(), PastError> {
        self.engine.load_queries_if(lsn, 0, frame, |id| id == self.id)?;
        let Some(query) = self.engine.query(self.id) else { return Ok(()) };
        if query.is_dormant() {
            return Err(PastError::Dormant);
        }
        self.count = query.count();
        Ok(())
    }

    /// Returns the number of emissions so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Applies the next record. Returns what the query emits after it.
    ///
    /// # Panics
    /// The record is not after the last one.
    pub fn apply(&mut self, record: &Record<'_>) -> Result<Option<Emission>, PastError> {
        let (lsn, last) = (record.lsn, self.last);
        assert!(lsn > last, "record {lsn} is applied behind record {last}");
        self.last = lsn;
        match record.kind {
            kind::WATCH if record.lsn != self.id => return Ok(None),
            // Positions of named subscriptions change no answer.
            kind::NAMED | kind::UNNAMED | kind::GROUP.. => return Ok(None),
            // A query that was dormant in the server has emitted here, and must be at the same
            // number.
            kind::WAKE => return self.check_wake(record),
            kind::TICK => return self.tick(record),
            kind::UNWATCH => {
                let mut bytes = Cursor::new(record.payload);
                let ended = bytes.varint();
                let ended = ended
                    .ok_or_else(|| bytes.malformed("the read that ends is missing").in_record(record.lsn))?;
                return if Lsn(ended) == self.id { Err(PastError::Forgotten) } else { Ok(None) };
            }
            _ => {}
        }
        let is_beginning = record.kind == kind::WATCH;
        match self.scope.concern(record)? {
            Concern::Nothing if !is_beginning => return Ok(None),
            Concern::Nothing | Concern::Within => {}
            Concern::Beyond => return Err(PastError::Widened),
        }
        let growth = growth(record, &self.engine)?;
        crate::persist::apply::apply(&self.engine, record, Some(&self.scope), &mut self.scratch)?;
        self.added = self.added.saturating_add(growth);
        if self.added > self.limit / 4 {
            self.count_bytes()?;
        }
        self.latest()
    }

    /// Returns the last record that was applied or skipped.
    pub fn last(&self) -> Lsn {
        self.last
    }

    pub(in crate::watch) fn cost_ns(&self) -> u64 {
        self.query().map_or(0, |query| query.cost.ns())
    }

    /// Returns the most bytes of the filter's state in a record.
    pub(in crate::watch) fn filter_bytes(&self) -> usize {
        let mut bytes = Vec::new();
        if let Some(filtered) = self.query().and_then(|query| query.lock().continuation().0.filtered) {
            crate::persist::record::put_bytes(&mut bytes, &filtered.shown);
            filtered.filtering.encode(&mut bytes);
        }
        bytes.len()
    }

    /// Returns where the read continues after the last record, and what it keeps of its answer there.
    ///
    /// # Panics
    /// The records have not begun the read yet.
    pub(in crate::watch) fn continuation(&self) -> (Continuation, SharedBytes) {
        let query = self.query().expect("the past of a read begins with the read");
        let state = query.lock();
        state.continuation()
    }

    fn query(&self) -> Option<SharedQuery> {
        self.engine.query(self.id)
    }

    /// Checks that a `wake` record of this read agrees with the replay.
    fn check_wake(&self, record: &Record<'_>) -> Result<Option<Emission>, PastError> {
        let mut bytes = Cursor::new(record.payload);
        if bytes.varint() == Some(self.id.0) {
            self.engine
                .apply_wake(record.time_us, &mut Cursor::new(record.payload))
                .map_err(|error| error.in_record(record.lsn))?;
        }
        Ok(None)
    }

    /// Moves the time of this read on, if the record is about it.
    fn tick(&mut self, record: &Record<'_>) -> Result<Option<Emission>, PastError> {
        let mut bytes = Cursor::new(record.payload);
        if bytes.varint() != Some(self.id.0) || self.query().is_none() {
            return Ok(None);
        }
        let applied = self.engine.apply_tick(record.lsn, record.time_us, &mut Cursor::new(record.payload));
        applied.map_err(|error| error.in_record(record.lsn))?;
        self.latest()
    }

    /// Returns the emission of the last record, if there is one.
    ///
    /// # Errors
    /// The answer cannot be read.
    fn latest(&mut self) -> Result<Option<Emission>, PastError> {
        let Some(query) = self.engine.query(self.id) else { return Ok(None) };
        // Nothing limits what answers cost here.
        if query.is_dormant() {
            return Err(PastError::Unreadable);
        }
        let latest = query.latest_after(self.count);
        let latest = latest.expect("the latest emission of all queries is retained");
        let Some(mut emission) = latest else { return Ok(None) };
        let (number, before) = (emission.number, self.count);
        assert!(number == before + 1, "one record has made emissions {} to {number}", before + 1);
        self.count = emission.number;
        // The log does not say whether the writer requested durability before emission.
        emission.durable = true;
        Ok(Some(emission))
    }

    /// Counts the bytes of the keys. Called whenever they may have grown by a quarter of the limit.
    fn count_bytes(&mut self) -> Result<(), PastError> {
        let (mut bytes, mut scratch) = (0, Vec::new());
        for shard in self.engine.keyspace().lock_all() {
            for database in shard.databases() {
                database.table().for_each(|entry| bytes += entry_bytes(entry, &mut scratch));
            }
        }
        self.added = 0;
        let limit = self.limit;
        if bytes > limit { Err(PastError::TooLarge { bytes, limit }) } else { Ok(()) }
    }

    /// Starts the search for the missing keys, after [`PastError::Widened`].
    pub fn widen(self) -> Widening {
        let Self { engine, id, scope, limit, dependencies, .. } = self;
        Widening { log: Arc::clone(engine.log()), id, scope, limit, dependencies }
    }
}

/// Search for all keys that a read depends on. It must see every record that the past starts from.
pub struct Widening {
    log: Arc<Log>,
    id: Lsn,
    scope: Scope,
    limit: usize,
    dependencies: Dependencies,
}

impl Widening {
    /// Adds the dependencies of a record.
    pub fn note(&mut self, record: &Record<'_>) -> Result<(), PastError> {
        Ok(self.dependencies.note(record)?)
    }

    /// Returns the past over all keys found, with nothing loaded or applied.
    pub fn finish(self) -> Past {
        let closed = self.dependencies.close(&self.scope);
        // The scope was too small. If the records show no further key, take all.
        let scope = if closed == self.scope { Scope::Everything } else { closed };
        Past::within(empty(&self.log), self.id, scope, self.limit)
    }
}

/// Creates an engine for replay: one shard is enough, and only the latest emission is retained.
fn empty(log: &Arc<Log>) -> Engine {
    let engine = Engine::new(Arc::clone(log), 1, 0);
    engine.limit_retention(RetentionLimits { bytes: 0, age_us: u64::MAX });
    // Blocks stay in their files: a replay reads few of them.
    engine.limit_series_memory(0);
    engine
}

/// Returns the approximate bytes of an entry. Encodes the value, unless it is a string.
fn entry_bytes(entry: &Entry, scratch: &mut Vec<u8>) -> usize {
    ENTRY_BYTES + entry.key().len() + value_bytes(entry, scratch)
}

fn value_bytes(entry: &Entry, scratch: &mut Vec<u8>) -> usize {
    match entry.value() {
        ValueRef::Raw(bytes) => bytes.len(),
        ValueRef::Object(Object::String(bytes)) => bytes.len(),
        ValueRef::Object(Object::Series(series)) => series.bytes(),
        ValueRef::Object(_) => {
            scratch.clear();
            form::encode(entry, scratch);
            scratch.len()
        }
        ValueRef::Int(_) | ValueRef::Unit | ValueRef::Float(_) => size_of::<u64>(),
    }
}

/// Returns an upper bound of the growth of the keys by a record. O(its arguments), plus the time to
/// encode the values that a command derives from.
fn growth(record: &Record<'_>, engine: &Engine) -> Result<usize, ApplyError> {
    // A point takes at least one byte of a record, and at most this much memory.
    let expansion = if record.kind == kind::POINTS { POINT_BYTES } else { 1 };
    let (mut growth, mut scratch) = (record.payload.len() * expansion + ENTRY_BYTES, Vec::new());
    let mut of_key = |db: u8, key: &[u8]| {
        let shard = engine.keyspace().lock(engine.keyspace().shard_of(key));
        shard.database(db as usize).get(hash(key), key).map_or(0, |entry| value_bytes(entry, &mut scratch))
    };
    for_each_command(record, |db, command, args| {
        if command.copies_keys() {
            growth += command.keys.keys(args).map(|key| of_key(db, key)).sum::<usize>();
        }
        growth += match command.extension {
            Extension::None => 0,
            Extension::Byte => offset(args.get(2)).saturating_sub(of_key(db, args[1])),
            Extension::Bit => (offset(args.get(2)) / 8).saturating_sub(of_key(db, args[1])),
            // Offsets have several forms: any number may be a bit's, or a field's.
            Extension::BitField => {
                let bits = args.iter().skip(2).map(|arg| {
                    arg.strip_prefix(b"#")
                        .map_or_else(|| offset(Some(arg)), |arg| 64_usize.saturating_mul(offset(Some(&arg))))
                });
                (bits.max().unwrap_or(0) / 8)
                    .saturating_sub(of_key(db, args[1]))
                    .min(crate::keyspace::MAX_BYTES)
            }
        };
    })?;
    Ok(growth)
}

fn offset(arg: Option<&&[u8]>) -> usize {
    arg.and_then(|arg| parse::canonical_integer(arg)).and_then(|at| usize::try_from(at).ok()).unwrap_or(0)
}
