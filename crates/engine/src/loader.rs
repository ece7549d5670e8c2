//! Bringing a snapshot's frames into the keyspace.

mod partial;

use crate::apply_error::ApplyError;
use crate::engine::Engine;
use crate::keyspace::form::{self, Form, Head, Part};
use crate::keyspace::{DATABASES, Entry, Payload};
use crate::query::Scope;
use crate::record::Cursor;
use crate::value::Type;
use partial::{Partial, Piece, Place};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Loads frames, in any order and from several threads, into an engine that has none of their keys.
///
/// A value that comes in parts is put together here and gets its key with its last part, so that nobody sees half of
/// it.
pub struct Loader<'e> {
    engine: &'e Engine,
    /// What is not of these keys is passed over.
    scope: &'e Scope,
    /// When the entries count as accessed, in seconds since 1970.
    clock: u32,
    /// Values in parts by number.
    partial: Mutex<HashMap<u64, Arc<Mutex<Partial>>>>,
    /// Numbers of those that are passed over.
    outside: Mutex<HashSet<u64>>,
    /// What has been taken of the frames.
    bytes: AtomicUsize,
}

impl Engine {
    /// Begins to load a snapshot into the keyspace, which has none of its keys. They count as accessed at `now_us`,
    /// microseconds since 1970: a snapshot does not say when they were.
    pub fn load(&self, now_us: u64) -> Loader<'_> {
        Loader::new(self, &Scope::Everything, (now_us / 1_000_000) as u32)
    }
}

impl<'e> Loader<'e> {
    pub(crate) fn new(engine: &'e Engine, scope: &'e Scope, clock: u32) -> Self {
        Self {
            engine,
            scope,
            clock,
            partial: Mutex::default(),
            outside: Mutex::default(),
            bytes: AtomicUsize::new(0),
        }
    }

    /// How many bytes of the frames have come into the keyspace.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Puts a frame's entries into the keyspace.
    pub fn load_frame(&self, frame: &[u8]) -> Result<(), ApplyError> {
        let mut bytes = Cursor::new(frame);
        let db = bytes.u8().filter(|&db| (db as usize) < DATABASES).ok_or(ApplyError::Malformed)?;
        while !bytes.is_empty() {
            let before = bytes.remaining();
            let is_taken = match form::decode(&mut bytes).ok_or(ApplyError::Malformed)? {
                Form::Whole(entry) if !self.scope.contains(entry.key()) => false,
                Form::Whole(entry) => self.insert(db, entry).map(|()| true)?,
                Form::InParts(head) if !self.scope.contains(head.key) => {
                    lock(&self.outside).insert(head.number);
                    lock(&self.partial).remove(&head.number);
                    false
                }
                Form::InParts(head) => self.load_head(db, &head).map(|()| true)?,
                Form::Part(part) if lock(&self.outside).contains(&part.number) => {
                    Partial::pass_over(&part, &mut bytes).ok_or(ApplyError::Malformed)?;
                    false
                }
                Form::Part(part) => self.load_part(&part, &mut bytes).map(|()| true)?,
            };
            if is_taken {
                self.bytes.fetch_add(before - bytes.remaining(), Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// To be called when all frames have been loaded: an error if a part of something is missing.
    pub fn finish(self) -> Result<(), ApplyError> {
        let partial = self.partial.into_inner().unwrap_or_else(PoisonError::into_inner);
        if partial.is_empty() { Ok(()) } else { Err(ApplyError::Incomplete { values: partial.len() }) }
    }

    fn insert(&self, db: u8, entry: Entry) -> Result<(), ApplyError> {
        entry.touch(self.clock);
        if let Some(at) = entry.deadline() {
            self.engine.lower_next_deadline(at);
        }
        let keyspace = self.engine.keyspace();
        let hash = crate::keyspace::hash(entry.key());
        let mut shard = keyspace.lock(keyspace.shard_of(entry.key()));
        let database = shard.database_mut(db as usize);
        if database.get(hash, entry.key()).is_some() {
            return Err(ApplyError::Malformed);
        }
        database.insert(hash, entry);
        if let Some(at) = database.next_reservation() {
            self.engine.lower_next_deadline(at);
        }
        Ok(())
    }

    fn load_head(&self, db: u8, head: &Head<'_>) -> Result<(), ApplyError> {
        let partial = self.partial(head.number, head.kind)?;
        let mut partial = lock(&partial);
        partial.set_place(db, head).ok_or(ApplyError::Malformed)?;
        self.complete(head.number, partial)
    }

    fn load_part(&self, part: &Part, bytes: &mut Cursor<'_>) -> Result<(), ApplyError> {
        let partial = self.partial(part.number, part.kind)?;
        if part.kind.has_ordered_parts() {
            // Without the lock: another thread may load another one meanwhile.
            let piece = Piece::decode(part, bytes).ok_or(ApplyError::Malformed)?;
            let mut partial = lock(&partial);
            partial.add(part, piece).ok_or(ApplyError::Malformed)?;
            return self.complete(part.number, partial);
        }
        let mut partial = lock(&partial);
        partial.load(part, bytes).ok_or(ApplyError::Malformed)?;
        self.complete(part.number, partial)
    }

    fn partial(&self, number: u64, kind: Type) -> Result<Arc<Mutex<Partial>>, ApplyError> {
        let mut partial = lock(&self.partial);
        if let Some(partial) = partial.get(&number) {
            return Ok(Arc::clone(partial));
        }
        let new = Arc::new(Mutex::new(Partial::new(kind).ok_or(ApplyError::Malformed)?));
        partial.insert(number, Arc::clone(&new));
        Ok(new)
    }

    /// Gives a value its key if that was the last part.
    fn complete(&self, number: u64, mut partial: MutexGuard<'_, Partial>) -> Result<(), ApplyError> {
        let Some((object, Place { db, key, deadline })) = partial.complete()? else { return Ok(()) };
        drop(partial);
        lock(&self.partial).remove(&number);
        self.insert(db, Entry::new(&key, Payload::Object(Box::new(object)), deadline))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
