//! Loads a snapshot's frames into the keyspace.

mod partial;
mod sights;

use crate::engine::Engine;
use crate::keyspace::form::{self, Form, Head, Part};
use crate::keyspace::{Entry, LIBRARIES, Payload, SESSIONS};
use crate::persist::apply_error::{ApplyError, shown};
use crate::persist::blocks::BlockFinder;
use crate::persist::change::check_database;
use crate::persist::record::Cursor;
use crate::value::Type;
use crate::watch::Scope;
use partial::{Destination, Partial, Wrong, decode_piece};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Loads frames, in any order and from several threads, into an engine that has none of their keys.
///
/// A value in parts is assembled here and placed at its key after its last part, so that no reader
/// sees an incomplete value.
pub struct Loader<'e> {
    engine: &'e Engine,
    /// Keys outside this scope are skipped.
    scope: &'e Scope,
    /// Access time of the loaded entries, in seconds since 1970.
    clock: u32,
    /// Values in parts by number.
    partial: Mutex<HashMap<u64, Arc<Mutex<Partial>>>>,
    /// Numbers of the values in parts that are skipped.
    outside: Mutex<HashSet<u64>>,
    /// Bytes of frames that were loaded.
    bytes: AtomicUsize,
    blocks: BlockFinder,
}

impl Engine {
    /// Starts to load a snapshot into the keyspace, which must have none of its keys. `now_us`, in
    /// microseconds since 1970, becomes their access time, which a snapshot does not store.
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
            blocks: BlockFinder::new(Arc::clone(engine.log().block_files()), engine.series_memory()),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed) + self.blocks.bytes()
    }

    /// Loads a frame's entries.
    ///
    /// # Errors
    /// The problem and its byte offset in the frame. The caller adds the frame's number: see
    /// [`ApplyError::in_frame`].
    pub fn load_frame(&self, frame: &[u8]) -> Result<(), ApplyError> {
        let mut bytes = Cursor::with_blocks(frame, &self.blocks);
        let db = bytes.u8().ok_or_else(|| bytes.malformed("the database is missing"))?;
        if db != SESSIONS && db != LIBRARIES {
            check_database(&bytes, db)?;
        }
        while !bytes.is_empty() {
            let start = bytes.offset();
            let form = form::decode(&mut bytes).ok_or_else(|| {
                let tag = frame[start];
                let what = format!("what begins at byte {start}, of type {tag}, cannot be read to its end");
                bytes.malformed(self.explained(what.into(), &frame[start..]))
            })?;
            let is_taken = self
                .load_form(db, form, &mut bytes)
                .map_err(|what| bytes.malformed(self.explained(what, &frame[start..])))?;
            if is_taken {
                self.bytes.fetch_add(bytes.offset() - start, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Adds the block that could not be read, if that is the reason, and the key whose it is.
    fn explained(&self, what: Wrong, item: &[u8]) -> Wrong {
        let Some(failure) = self.blocks.take_failure() else { return what };
        let mut bytes = Cursor::new(item);
        let of_key = match form::decode_key(&mut bytes) {
            Some(form::KeyOrNumber::Key(key)) => format!(" of the series at key {}", shown(key)),
            Some(form::KeyOrNumber::Number(number)) => match lock(&self.partial).get(&number) {
                Some(partial) => format!(" of {}", lock(partial).shown(number)),
                None => format!(" of value {number}"),
            },
            None => String::new(),
        };
        format!("a block{of_key} cannot be read: {failure}").into()
    }

    /// Loads the next item of a frame, for a part including its elements. Returns `false` if it is
    /// skipped.
    fn load_form(&self, db: u8, form: Form<'_>, bytes: &mut Cursor<'_>) -> Result<bool, Wrong> {
        match form {
            Form::Whole(entry) if !self.scope.contains(entry.key()) => Ok(false),
            Form::Whole(entry) => self.insert(db, entry).map(|()| true),
            Form::InParts(head) if !self.scope.contains(head.key) => {
                lock(&self.outside).insert(head.number);
                lock(&self.partial).remove(&head.number);
                Ok(false)
            }
            Form::InParts(head) => self.load_head(db, &head).map(|()| true),
            Form::Part(part) if lock(&self.outside).contains(&part.number) => {
                Partial::pass_over(&part, bytes).map(|()| false)
            }
            Form::Part(part) => self.load_part(&part, bytes).map(|()| true),
        }
    }

    /// Checks, after all frames are loaded, that no part is missing.
    pub fn finish(self) -> Result<(), ApplyError> {
        let partial = self.partial.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Some((number, first)) = partial.iter().min_by_key(|(number, _)| **number) else {
            sights::note_sights(self.engine.keyspace());
            return Ok(());
        };
        let (values, first) = (partial.len(), lock(first));
        Err(ApplyError::Incomplete { values, loaded: first.loaded(), first: first.shown(*number) })
    }

    fn insert(&self, db: u8, entry: Entry) -> Result<(), Wrong> {
        let is_misplaced = match db {
            SESSIONS => entry.type_of() != Type::OnceSession,
            LIBRARIES => entry.type_of() != Type::String,
            _ => entry.type_of() == Type::OnceSession,
        };
        if is_misplaced {
            let (key, kind) = (shown(entry.key()), entry.type_of().name());
            return Err(format!("key {key} of database {db} holds a {kind}").into());
        }
        entry.touch(self.clock);
        if let Some(at) = entry.deadline() {
            self.engine.deadlines().lower(at);
        }
        let keyspace = self.engine.keyspace();
        if db == LIBRARIES {
            keyspace.note_libraries();
        }
        let hash = crate::keyspace::hash(entry.key());
        let mut shard = keyspace.lock(keyspace.shard_of(entry.key()));
        let database = shard.database_mut(db as usize);
        if database.get(hash, entry.key()).is_some() {
            return Err(format!("key {} of database {db} has been loaded before", shown(entry.key())).into());
        }
        database.insert(hash, entry);
        for at in database.next_reservation().into_iter().chain(database.next_field_time()) {
            self.engine.deadlines().lower(at);
        }
        Ok(())
    }

    fn load_head(&self, db: u8, head: &Head<'_>) -> Result<(), Wrong> {
        let partial = self.partial(head.number, head.kind)?;
        let mut partial = lock(&partial);
        partial.set_place(db, head)?;
        self.complete(head.number, partial)
    }

    fn load_part(&self, part: &Part, bytes: &mut Cursor<'_>) -> Result<(), Wrong> {
        let partial = self.partial(part.number, part.kind)?;
        if part.kind.snapshot_form().has_ordered_parts() {
            // Decoded without the lock, so that another thread can load another part.
            let piece = decode_piece(part, bytes)?;
            let mut partial = lock(&partial);
            partial.add(part, piece)?;
            return self.complete(part.number, partial);
        }
        let mut partial = lock(&partial);
        partial.load(part, bytes)?;
        self.complete(part.number, partial)
    }

    fn partial(&self, number: u64, kind: Type) -> Result<Arc<Mutex<Partial>>, Wrong> {
        let mut partial = lock(&self.partial);
        if let Some(partial) = partial.get(&number) {
            return Ok(Arc::clone(partial));
        }
        let new = Arc::new(Mutex::new(Partial::new(kind)?));
        partial.insert(number, Arc::clone(&new));
        Ok(new)
    }

    /// Places the value at its key if all of its parts are loaded.
    fn complete(&self, number: u64, mut partial: MutexGuard<'_, Partial>) -> Result<(), Wrong> {
        let Some((object, Destination { db, key, deadline })) = partial.complete(number)? else {
            return Ok(());
        };
        drop(partial);
        lock(&self.partial).remove(&number);
        self.insert(db, Entry::new(&key, Payload::Object(Box::new(object)), deadline))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
