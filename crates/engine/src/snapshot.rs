//! The whole state at one LSN, taken while commands go on.
//!
//! The cut is made with all shards locked for a moment; then the walk visits the shards in bounded slices. An entry that
//! is about to change before the walk has reached it is written out first, by whoever changes it. What is born after the
//! cut is not written at all. A frame holds entries of one database:
//!
//! ```text
//! frame   database u8 │ entry*
//! entry   type u8 │ deadline + 1 varint (0: none) │ key │ value
//! string  bytes                  integer  its 64 bits
//! others  as their type encodes them
//! ```

use crate::engine::{ApplyError, Engine};
use crate::keyspace::{DATABASES, Database, Entry, Payload, ValueRef};
use crate::record::{Cursor, put_bytes, put_varint};
use tidemark_log::Lsn;

use crate::value::{Collection, Hash, List, Object, Set, SortedSet};

const RAW: u8 = 0;
const INT: u8 = 1;
const BYTES: u8 = 2;
const LIST: u8 = 3;
const HASH: u8 = 4;
const SET: u8 = 5;
const SORTED_SET: u8 = 6;

/// What the walk takes under one lock, in small entries: some tens of microseconds, unless one is a large collection,
/// which is written out whole.
const SLICE: usize = 256;

/// Frames are filled up to so many bytes; only an entry that is larger by itself makes a larger one.
const FRAME_BYTES: usize = 512 << 10;

/// A snapshot under way. Dropping it unfinished is safe: the rest of the walk is done without keeping anything.
pub struct Snapshot<'e> {
    engine: &'e Engine,
    lsn: Lsn,
    shard: usize,
    frame: Vec<u8>,
    /// Pieces of database `number` that wait for their turn, the next one last.
    waiting: Vec<Vec<u8>>,
    number: u8,
}

impl<'e> Snapshot<'e> {
    /// Makes the cut. One snapshot at a time: the caller sees to it.
    pub(crate) fn begin(engine: &'e Engine) -> Self {
        let mut shards = engine.keyspace().lock_all();
        for shard in &mut shards {
            for (number, database) in shard.databases_mut().iter_mut().enumerate() {
                database.begin_copying(number as u8);
            }
        }
        // Every change is appended under its shards' locks, so with all of them held the log's end is the state.
        let lsn = engine.log().appended();
        Self { engine, lsn, shard: 0, frame: Vec::new(), waiting: Vec::new(), number: 0 }
    }

    /// The last record whose effect the snapshot contains.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// How far the walk has come, between 0 and 1.
    pub fn progress(&self) -> f64 {
        self.shard as f64 / self.engine.keyspace().shard_count() as f64
    }

    /// The next frame; `None` at the end.
    pub fn next_frame(&mut self) -> Option<Vec<u8>> {
        loop {
            while let Some(mut piece) = self
                .waiting
                .pop_if(|piece| self.frame.is_empty() || self.frame.len() + piece.len() <= FRAME_BYTES)
            {
                if self.frame.is_empty() {
                    self.frame.push(self.number);
                }
                self.frame.append(&mut piece);
            }
            if !self.waiting.is_empty() {
                return Some(std::mem::take(&mut self.frame));
            }
            if self.shard == self.engine.keyspace().shard_count() {
                return Some(std::mem::take(&mut self.frame)).filter(|frame| !frame.is_empty());
            }
            let slice = {
                let mut shard = self.engine.keyspace().lock(self.shard);
                // By need and not by number: SWAPDB may move a database that has not been walked to a lower number.
                let database = shard.databases_mut().iter_mut().find(|database| database.is_copying());
                database.and_then(|database| database.copy_slice(SLICE))
            };
            let Some(mut slice) = slice else {
                self.shard += 1;
                continue;
            };
            slice.absorb_detached();
            self.waiting = slice.entries.into_inner();
            self.waiting.reverse();
            let last_number = std::mem::replace(&mut self.number, slice.number);
            if last_number != slice.number && !self.frame.is_empty() {
                return Some(std::mem::take(&mut self.frame));
            }
        }
    }
}

impl Snapshot<'_> {
    /// Ends the walk at once. For the last snapshot of an engine only: entries that it has not seen are not told from
    /// those that a snapshot 65,536 later will have seen.
    pub fn give_up(mut self) {
        for shard in 0..self.engine.keyspace().shard_count() {
            let mut shard = self.engine.keyspace().lock(shard);
            shard.databases_mut().iter_mut().for_each(Database::stop_copying);
        }
        self.shard = self.engine.keyspace().shard_count();
        self.frame.clear();
        self.waiting.clear();
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        while self.next_frame().is_some() {}
    }
}

/// Puts a frame's entries into the keyspace, last accessed at `clock` in seconds since 1970. Frames may be loaded in any
/// order and by several threads.
pub(crate) fn load_frame(engine: &Engine, frame: &[u8], clock: u32) -> Result<(), ApplyError> {
    let mut cursor = Cursor::new(frame);
    let db = cursor.u8().filter(|&db| (db as usize) < DATABASES).ok_or(ApplyError::Malformed)?;
    while !cursor.is_empty() {
        let entry = decode_entry(&mut cursor).ok_or(ApplyError::Malformed)?;
        entry.touch(clock);
        if let Some(at) = entry.deadline() {
            engine.lower_next_deadline(at);
        }
        let hash = crate::keyspace::hash(entry.key());
        let mut shard = engine.keyspace().lock(engine.keyspace().shard_of(entry.key()));
        let database = shard.database_mut(db as usize);
        if database.get(hash, entry.key()).is_some() {
            return Err(ApplyError::Malformed);
        }
        database.insert(hash, entry);
    }
    Ok(())
}

/// Appends an entry's snapshot form.
pub(crate) fn encode_entry(entry: &Entry, into: &mut Vec<u8>) {
    let tag = match entry.value() {
        ValueRef::Raw(_) | ValueRef::Unit | ValueRef::Float(_) => RAW,
        ValueRef::Int(_) => INT,
        ValueRef::Object(Object::Bytes(_)) => BYTES,
        ValueRef::Object(Object::List(_)) => LIST,
        ValueRef::Object(Object::Hash(_)) => HASH,
        ValueRef::Object(Object::Set(_)) => SET,
        ValueRef::Object(Object::SortedSet(_)) => SORTED_SET,
    };
    into.push(tag);
    put_varint(into, entry.deadline().map_or(0, |at| at.saturating_add(1)));
    put_bytes(into, entry.key());
    match entry.value() {
        ValueRef::Raw(bytes) => put_bytes(into, bytes),
        ValueRef::Int(value) => into.extend_from_slice(&value.to_le_bytes()),
        ValueRef::Object(Object::Bytes(bytes)) => put_bytes(into, bytes),
        ValueRef::Object(Object::List(list)) => list.encode(into),
        ValueRef::Object(Object::Hash(hash)) => hash.encode(into),
        ValueRef::Object(Object::Set(set)) => set.encode(into),
        ValueRef::Object(Object::SortedSet(set)) => set.encode(into),
        ValueRef::Unit | ValueRef::Float(_) => {
            debug_assert!(false, "a key's value is never a bare member or score");
            put_bytes(into, &[]);
        }
    }
}

/// Reads an entry; `None` if the bytes are not one.
pub(crate) fn decode_entry(cursor: &mut Cursor<'_>) -> Option<Entry> {
    let tag = cursor.u8()?;
    let deadline = cursor.varint()?.checked_sub(1);
    let key = cursor.bytes().filter(|key| key.len() <= crate::keyspace::MAX_BYTES)?;
    let object = match tag {
        RAW => {
            let bytes = cursor.bytes().filter(|bytes| bytes.len() <= crate::keyspace::MAX_BYTES)?;
            return Some(Entry::new(key, Payload::Raw(bytes), deadline));
        }
        INT => return Some(Entry::new(key, Payload::Int(cursor.u64()?.cast_signed()), deadline)),
        BYTES => Object::Bytes(cursor.bytes()?.to_vec()),
        LIST => List::decode(cursor)?.into_object(),
        HASH => Hash::decode(cursor)?.into_object(),
        SET => Set::decode(cursor)?.into_object(),
        SORTED_SET => SortedSet::decode(cursor)?.into_object(),
        _ => return None,
    };
    (!object.is_empty()).then(|| Entry::new(key, Payload::Object(Box::new(object)), deadline))
}

/// The same value and deadline under another key.
pub(crate) fn copy_entry(entry: &Entry, key: &[u8]) -> Entry {
    let mut form = Vec::new();
    encode_entry(entry, &mut form);
    let copy = decode_entry(&mut Cursor::new(&form)).expect("what was encoded decodes");
    copy.renamed(key)
}
