//! A watched read as it was: its emissions made once more, from a snapshot and the records behind it.
//!
//! Emissions are a function of the log, so those that are not retained any more are not lost while the log is there. A second
//! engine, over nothing but what the read's answers depend on, is loaded from a snapshot, or is empty as the log began; the
//! records behind it are applied, and what the read emits then is what it emitted the first time: the same numbers, LSNs, times and bytes.
//!
//! ```text
//! snapshot ─► Past::loader, Past::load_query ─┐
//! records ──► Past::apply ────────────────────┴─► emissions
//!                  └─► PastError::Widened ─► Widening: all records once ─► a new Past over more keys ─► the same again
//! ```
//!
//! Which keys these are is a guess at first: those that the read names. A record that makes something of them out of others shows that
//! they are not enough. Then the records are looked through for what depends on what ([`Widening`]), and all begins anew.

use crate::command::{Extension, parse};
use crate::engine::Engine;
use crate::keyspace::{Entry, ValueRef, form, hash};
use crate::persist::apply_error::ApplyError;
use crate::persist::loader::Loader;
use crate::persist::record::{Cursor, kind};
use crate::value::Object;
use crate::watch::dormancy::Rest;
use crate::watch::emission::Emission;
use crate::watch::replay::scope::Scope;
use crate::watch::replay::scope::{Concern, Dependencies, for_each_command};
use crate::watch::retention::RetentionLimits;
use crate::watch::watched_read::{Query, SharedQuery};
use crate::wire::reply::{Protocol, Reply};
use crate::wire::shared_bytes::SharedBytes;
use std::sync::Arc;
use tidemark_log::{Log, Lsn, Record};

/// What an entry takes beside its key and value, about. Bytes.
const ENTRY_BYTES: usize = 64;

/// See the module's documentation.
pub struct Past {
    engine: Engine,
    id: Lsn,
    scope: Scope,
    /// What the keys may take.
    limit: usize,
    /// What may have been added to them since they were counted.
    added: usize,
    /// The number of the last emission.
    count: u64,
    /// The last record that was applied or passed over.
    last: Lsn,
    scratch: Reply,
}

/// Why a read's past cannot be made, or not in this way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PastError {
    /// The read depends on more keys than was known: see [`Past::widen`].
    #[error("the answers depend on further keys")]
    Widened,
    /// The keys take more than they may.
    #[error("the keys that the answers depend on take {bytes} bytes, more than the limit of {limit} bytes")]
    TooLarge {
        /// What they take.
        bytes: usize,
        /// What they may.
        limit: usize,
    },
    /// The read is not watched any more from here on.
    #[error("the read was forgotten")]
    Forgotten,
    /// The read is dormant in the snapshot, which does not know its number.
    #[error("the read is dormant in the snapshot")]
    Dormant,
    /// A record or frame makes no sense.
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

impl Past {
    /// The past of a query of the log, before anything is loaded or applied. What its answers depend on may take `limit` bytes.
    pub fn new(log: &Arc<Log>, query: &Query, limit: usize) -> Self {
        let engine = empty(log);
        let scope = Scope::of(query.read(), engine.keyspace());
        Self::within(engine, query.id(), scope, limit)
    }

    fn within(engine: Engine, id: Lsn, scope: Scope, limit: usize) -> Self {
        let scratch = Reply::new(Protocol::Resp2);
        Self { engine, id, scope, limit, added: 0, count: 0, last: Lsn::ZERO, scratch }
    }

    /// Loads the frames of a snapshot's keys. Those that do not matter are passed over.
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
        Ok(())
    }

    /// Loads the query from a frame of those of a snapshot that covers the log up to `lsn`, if it is in it. To be called when all
    /// keys are loaded.
    pub fn load_query(&mut self, lsn: Lsn, frame: &[u8]) -> Result<(), PastError> {
        self.engine.load_queries_if(lsn, 0, frame, |id| id == self.id)?;
        let Some(query) = self.engine.query(self.id) else { return Ok(()) };
        if query.is_dormant() {
            return Err(PastError::Dormant);
        }
        self.count = query.count();
        Ok(())
    }

    /// How many emissions there were up to here.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Applies the next record; what the query has emitted behind it.
    ///
    /// # Panics
    /// The record is not behind the last one.
    pub fn apply(&mut self, record: &Record<'_>) -> Result<Option<Emission>, PastError> {
        let (lsn, last) = (record.lsn, self.last);
        assert!(lsn > last, "record {lsn} is applied behind record {last}");
        self.last = lsn;
        match record.kind {
            kind::WATCH if record.lsn != self.id => return Ok(None),
            // How far subscribers are changes no answer.
            kind::NAMED | kind::UNNAMED => return Ok(None),
            // What was dormant elsewhere has emitted here, and goes on behind the same number.
            kind::WAKE => return self.check_wake(record),
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
        Ok(self.latest())
    }

    /// The last record that was applied or passed over.
    pub fn last(&self) -> Lsn {
        self.last
    }

    /// What an answer costs. Nanoseconds.
    pub(in crate::watch) fn cost_ns(&self) -> u64 {
        self.query().map_or(0, |query| query.cost.ns())
    }

    /// What the read's operators remember takes in a record, at most.
    pub(in crate::watch) fn filter_bytes(&self) -> usize {
        let mut bytes = Vec::new();
        if let Some(filtered) = self.query().and_then(|query| query.lock().rest().0.filtered) {
            crate::persist::record::put_bytes(&mut bytes, &filtered.shown);
            filtered.filtering.encode(&mut bytes);
        }
        bytes.len()
    }

    /// Where the read goes on behind the last record, and its answer there.
    ///
    /// # Panics
    /// The records have not begun the read yet.
    pub(in crate::watch) fn rest(&self) -> (Rest, SharedBytes) {
        let query = self.query().expect("the past of a read begins with the read");
        let state = query.lock();
        state.rest()
    }

    fn query(&self) -> Option<SharedQuery> {
        self.engine.query(self.id)
    }

    /// A record of this read's waking must say what was found here too.
    fn check_wake(&self, record: &Record<'_>) -> Result<Option<Emission>, PastError> {
        let mut bytes = Cursor::new(record.payload);
        if bytes.varint() == Some(self.id.0) {
            self.engine
                .apply_wake(record.time_us, &mut Cursor::new(record.payload))
                .map_err(|error| error.in_record(record.lsn))?;
        }
        Ok(None)
    }

    /// The emission that the last record has made, if it has.
    fn latest(&mut self) -> Option<Emission> {
        let latest = self.engine.query(self.id)?.latest_after(self.count);
        let mut emission = latest.expect("the latest emission of all queries is retained")?;
        let (number, before) = (emission.number, self.count);
        assert!(number == before + 1, "one record has made emissions {} to {number}", before + 1);
        self.count = emission.number;
        // The log does not say whether the change was asked to be told of only when it is durable.
        emission.durable = true;
        Some(emission)
    }

    /// Counts what the keys take, which is done each time that they may have grown by a quarter of what they may take.
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

    /// Begins to look for the keys that are missing, when [`PastError::Widened`] has said that some are.
    pub fn widen(self) -> Widening {
        let Self { engine, id, scope, limit, .. } = self;
        Widening { log: Arc::clone(engine.log()), id, scope, limit, dependencies: Dependencies::new(limit) }
    }
}

/// Looks for all that a read depends on. Every record is to be shown to it that the past begins with, as far as there are any.
pub struct Widening {
    log: Arc<Log>,
    id: Lsn,
    scope: Scope,
    limit: usize,
    dependencies: Dependencies,
}

impl Widening {
    /// Takes note of a record.
    pub fn note(&mut self, record: &Record<'_>) -> Result<(), PastError> {
        Ok(self.dependencies.note(record)?)
    }

    /// The past over all that was found, again before anything is loaded or applied.
    pub fn finish(self) -> Past {
        let closed = self.dependencies.close(&self.scope);
        // It was too small: if nothing is missing that the records know of, nothing is left out.
        let scope = if closed == self.scope { Scope::Everything } else { closed };
        Past::within(empty(&self.log), self.id, scope, self.limit)
    }
}

/// An engine that nobody asks anything: one shard is enough, and of emissions the latest.
fn empty(log: &Arc<Log>) -> Engine {
    let engine = Engine::new(Arc::clone(log), 1, 0);
    engine.limit_retention(RetentionLimits { bytes: 0, age_us: u64::MAX });
    engine
}

/// What an entry takes, about: in the time that it takes to encode it, if it is no string.
fn entry_bytes(entry: &Entry, scratch: &mut Vec<u8>) -> usize {
    ENTRY_BYTES + entry.key().len() + value_bytes(entry, scratch)
}

fn value_bytes(entry: &Entry, scratch: &mut Vec<u8>) -> usize {
    match entry.value() {
        ValueRef::Raw(bytes) => bytes.len(),
        ValueRef::Object(Object::Bytes(bytes)) => bytes.len(),
        ValueRef::Object(_) => {
            scratch.clear();
            form::encode(entry, scratch);
            scratch.len()
        }
        ValueRef::Int(_) | ValueRef::Unit | ValueRef::Float(_) => size_of::<u64>(),
    }
}

/// By how much the keys may grow with a record. O(its arguments), and for commands that make a value of others the time that
/// these take to encode.
fn growth(record: &Record<'_>, engine: &Engine) -> Result<usize, ApplyError> {
    let (mut growth, mut scratch) = (record.payload.len() + ENTRY_BYTES, Vec::new());
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
            // Where it writes is said in several ways: any of its numbers may be that of a bit, or of a field of bits.
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
