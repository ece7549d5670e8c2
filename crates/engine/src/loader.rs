//! Bringing a snapshot's frames into the keyspace.

use crate::apply_error::ApplyError;
use crate::engine::Engine;
use crate::keyspace::form::{self, Form, Head, Part};
use crate::keyspace::{DATABASES, Entry, Payload};
use crate::query::Scope;
use crate::record::Cursor;
use crate::value::{Collection, Hash, InParts, List, Object, Set, SortedSet, Type};
use std::collections::{BTreeMap, HashMap, HashSet};
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

/// A value of which something has come.
struct Partial {
    object: Object,
    /// A list's runs of elements by their places. Those of other types need no order.
    runs: BTreeMap<u64, List>,
    /// Elements that have come, and, once it is known, how many there are.
    loaded: u64,
    count: Option<u64>,
    place: Option<Place>,
}

/// Where a value belongs.
struct Place {
    db: u8,
    key: Box<[u8]>,
    deadline: Option<u64>,
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
                    let mut passed_over = Partial::new(part.kind).ok_or(ApplyError::Malformed)?;
                    passed_over.load(&part, &mut bytes).ok_or(ApplyError::Malformed)?;
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
        Ok(())
    }

    fn load_head(&self, db: u8, head: &Head<'_>) -> Result<(), ApplyError> {
        let partial = self.partial(head.number, head.kind)?;
        let mut partial = lock(&partial);
        if partial.place.is_some() || partial.object.kind() != head.kind {
            return Err(ApplyError::Malformed);
        }
        partial.place = Some(Place { db, key: head.key.into(), deadline: head.deadline });
        partial.count = Some(head.count);
        self.complete(head.number, partial)
    }

    fn load_part(&self, part: &Part, bytes: &mut Cursor<'_>) -> Result<(), ApplyError> {
        let partial = self.partial(part.number, part.kind)?;
        if part.kind == Type::List {
            // Without the lock: another thread may load another run meanwhile.
            let mut run = List::default();
            decode_elements(&mut run, part, bytes).ok_or(ApplyError::Malformed)?;
            let mut partial = lock(&partial);
            partial.add_run(part, run).ok_or(ApplyError::Malformed)?;
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

impl Partial {
    /// Nothing of a value of this type; `None` if such values do not come in parts.
    fn new(kind: Type) -> Option<Self> {
        let object = match kind {
            Type::String | Type::Counter | Type::Limit => return None,
            Type::List => List::default().into_object(),
            Type::Hash => Hash::default().into_object(),
            Type::Set => Set::default().into_object(),
            Type::SortedSet => SortedSet::default().into_object(),
        };
        Some(Self { object, runs: BTreeMap::new(), loaded: 0, count: None, place: None })
    }

    /// Adds a list's run of elements; `None` if it has come before.
    fn add_run(&mut self, part: &Part, run: List) -> Option<()> {
        self.loaded += u64::from(part.count);
        let is_new = self.runs.insert(part.run, run).is_none();
        (is_new && self.object.kind() == Type::List).then_some(())
    }

    /// Reads a part's elements; `None` if the bytes are not such elements, or some have come before.
    fn load(&mut self, part: &Part, bytes: &mut Cursor<'_>) -> Option<()> {
        if self.object.kind() != part.kind {
            return None;
        }
        self.loaded += u64::from(part.count);
        decode_elements(self.object.in_parts_mut()?, part, bytes)
    }

    /// The value and where it belongs, if all has come.
    fn complete(&mut self) -> Result<Option<(Object, Place)>, ApplyError> {
        let Some(count) = self.count else { return Ok(None) };
        if self.loaded < count {
            return Ok(None);
        }
        let mut object = std::mem::replace(&mut self.object, Object::Bytes(Vec::new()));
        if let Object::List(list) = &mut object {
            for (expected, (place, run)) in (0..).zip(std::mem::take(&mut self.runs)) {
                if place != expected {
                    return Err(ApplyError::Malformed);
                }
                list.append(run);
            }
        }
        let whole = self.loaded == count && count > 0;
        let place = self.place.take().filter(|_| whole).ok_or(ApplyError::Malformed)?;
        Ok(Some((object, place)))
    }
}

fn decode_elements(value: &mut dyn InParts, part: &Part, bytes: &mut Cursor<'_>) -> Option<()> {
    (0..part.count).try_for_each(|_| value.decode_element(bytes))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
