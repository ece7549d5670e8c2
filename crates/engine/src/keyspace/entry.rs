//! A key and its value in one heap block behind one thin pointer.
//!
//! Header, optional deadline, key and value are laid out together. A lookup touches one cache line
//! besides the bucket, and the table stores eight bytes per key. Hash fields, set members and
//! sorted-set members use the same block.
//!
//! ```text
//!  Header (16 bytes)                      if EXPIRES   if fixed-size value
//! ┌─────────┬───────────┬───────┬──────┬────────────┬──────────────────────┬─────────┬───────────┐
//! │ key_len │ value_len │ clock │ kind │ deadline   │ i64 │ f64 │ Object   │ key     │ raw value │
//! │ u32     │ u32       │ u32   │flags │ u64 (ms)   │ 8 bytes              │ key_len │ value_len │
//! └─────────┴───────────┴───────┴──────┴────────────┴──────────────────────┴─────────┴───────────┘
//! ```
//!
//! This is the only module of the crate with `unsafe` code. Its invariants:
//! - `Entry` owns the block exclusively; it is not `Clone`, so no two entries point to one block.
//! - The block was allocated with [`Entry::layout`] of its current header, which changes only with
//!   a reallocation. Every byte of the layout is initialised before the constructor returns.
//! - `kind` says which fixed-size value the block holds. An object is a `Box<Object>` turned into a
//!   raw pointer; it is taken back exactly once, by `take_object` or by `drop`.
#![allow(unsafe_code)]

use super::reclaim::reclaim;
use super::table::Keyed;
use crate::error::CommandError;
use crate::value::{Decimal, Object, Text, Type, TypedValue};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// Maximum length of a string that Redis embeds in its object's block, in bytes.
const EMBEDDED: usize = 44;

/// Maximum length of a key and of a raw value: 512 MiB, as in Redis.
pub const MAX_BYTES: usize = 512 << 20;

const ALIGN: usize = 8;
const HEADER: usize = size_of::<Header>();
const _: () = assert!(HEADER == 16 && align_of::<Header>() <= ALIGN && MAX_BYTES < u32::MAX as usize);

#[repr(C)]
struct Header {
    key_len: u32,
    /// Bytes of a raw value; 0 for every other kind.
    value_len: u32,
    /// Seconds since 1970 of the last access. Atomic, because reading through `&Entry` is an access
    /// too.
    clock: AtomicU32,
    kind: u8,
    flags: u8,
    /// Number of the last snapshot that saw this entry.
    epoch: u16,
}

impl Header {
    fn copy(&self) -> Self {
        Self { clock: AtomicU32::new(self.clock.load(Relaxed)), ..*self }
    }
}

const EXPIRES: u8 = 1;

const UNIT: u8 = 0;
const RAW: u8 = 1;
const INT: u8 = 2;
const FLOAT: u8 = 3;
const OBJECT: u8 = 4;

/// The value of an entry, borrowed.
#[derive(Debug, Clone, Copy)]
pub enum ValueRef<'a> {
    /// No value: a member of a set.
    Unit,
    /// Bytes as the client sent them.
    Raw(&'a [u8]),
    /// An integer whose decimal form is what the client sent.
    Int(i64),
    /// The score of a sorted set's member.
    Float(f64),
    /// A value of any other type.
    Object(&'a Object),
}

/// A value to store in an entry.
#[derive(Debug)]
pub enum Payload<'a> {
    /// No value.
    Unit,
    /// Bytes to copy.
    Raw(&'a [u8]),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A boxed value.
    Object(Box<Object>),
}

/// A key with its value, deadline and bookkeeping.
pub struct Entry(NonNull<Header>);

// SAFETY: an `Entry` owns its block exclusively, and everything in the block, `Object` included, is
// `Send + Sync`.
unsafe impl Send for Entry {}
// SAFETY: as above. `&Entry` gives only shared access to plain bytes and `&Object`, and changes
// nothing but the clock, which is atomic.
unsafe impl Sync for Entry {}
const _: () = {
    const fn is_send_sync<T: Send + Sync>() {}
    is_send_sync::<Object>();
};

impl Entry {
    /// Allocates an entry. `deadline` is in milliseconds since 1970.
    ///
    /// Neither key nor raw value may exceed [`MAX_BYTES`]; callers refuse longer ones first.
    pub fn new(key: &[u8], payload: Payload<'_>, deadline: Option<u64>) -> Self {
        assert!(key.len() <= MAX_BYTES, "a key of {} bytes exceeds {MAX_BYTES}", key.len());
        let (kind, raw): (u8, &[u8]) = match &payload {
            Payload::Unit => (UNIT, &[]),
            Payload::Raw(bytes) => (RAW, bytes),
            Payload::Int(_) => (INT, &[]),
            Payload::Float(_) => (FLOAT, &[]),
            Payload::Object(_) => (OBJECT, &[]),
        };
        assert!(raw.len() <= MAX_BYTES, "a value of {} bytes exceeds {MAX_BYTES}", raw.len());
        let header = Header {
            key_len: key.len() as u32,
            value_len: raw.len() as u32,
            clock: AtomicU32::new(0),
            kind,
            flags: if deadline.is_some() { EXPIRES } else { 0 },
            epoch: 0,
        };
        let layout = Self::layout(&header);
        // SAFETY: the layout is never empty, because it contains the header. All writes below are
        // inside it: `fixed`, `key_at` and `raw_at` are the offsets from which `layout` computed
        // the size.
        unsafe {
            let Some(block) = NonNull::new(alloc(layout)) else { handle_alloc_error(layout) };
            block.cast::<Header>().write(header.copy());
            if let Some(deadline) = deadline {
                block.add(HEADER).cast::<u64>().write(deadline);
            }
            let fixed = block.add(fixed_at(&header));
            match payload {
                Payload::Unit | Payload::Raw(_) => {}
                Payload::Int(value) => fixed.cast::<i64>().write(value),
                Payload::Float(value) => fixed.cast::<f64>().write(value),
                Payload::Object(object) => fixed.cast::<*mut Object>().write(Box::into_raw(object)),
            }
            ptr::copy_nonoverlapping(key.as_ptr(), block.add(key_at(&header)).as_ptr(), key.len());
            ptr::copy_nonoverlapping(raw.as_ptr(), block.add(raw_at(&header)).as_ptr(), raw.len());
            Self(block.cast())
        }
    }

    fn layout(header: &Header) -> Layout {
        let size = raw_at(header) + header.value_len as usize;
        Layout::from_size_align(size, ALIGN).expect("two lengths under 512 MiB fit in a layout")
    }

    fn header(&self) -> &Header {
        // SAFETY: the block starts with an initialised header for as long as `self` lives.
        unsafe { self.0.as_ref() }
    }

    fn header_mut(&mut self) -> &mut Header {
        // SAFETY: as in `header`, and `&mut self` makes the access exclusive.
        unsafe { self.0.as_mut() }
    }

    fn at(&self, offset: usize) -> NonNull<u8> {
        // Not in release builds: every access to an entry passes here, and the offset comes from
        // the same header.
        debug_assert!(offset <= Self::layout(self.header()).size(), "offset inside the block");
        // SAFETY: callers pass offsets computed from this block's header, which are inside its
        // allocation.
        unsafe { self.0.cast::<u8>().add(offset) }
    }

    /// The key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        let header = self.header();
        // SAFETY: `key_len` initialised bytes lie at `key_at` for as long as `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.at(key_at(header)).as_ptr(), header.key_len as usize) }
    }

    /// Type of the value.
    pub fn type_of(&self) -> Type {
        match self.value() {
            ValueRef::Object(object) => object.kind(),
            _ => Type::String,
        }
    }

    /// Returns the value if it is a string, otherwise the wrong-type error.
    #[inline]
    pub fn text(&self) -> Result<Text<'_>, CommandError> {
        match self.value() {
            ValueRef::Raw(bytes) => Ok(Text::Bytes(bytes)),
            ValueRef::Int(value) => Ok(Text::Int(value, Decimal::of(value))),
            ValueRef::Object(Object::String(bytes)) => Ok(Text::Bytes(bytes)),
            _ => Err(CommandError::WrongType),
        }
    }

    /// Returns the value if it is a collection of this type, otherwise the wrong-type error.
    #[inline]
    pub fn collection<T: TypedValue>(&self) -> Result<&T, CommandError> {
        self.object().and_then(T::from_object).ok_or(CommandError::WrongType)
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> ValueRef<'_> {
        let header = self.header();
        let fixed = self.at(fixed_at(header));
        // SAFETY: `kind` says which value was written at `fixed`; raw bytes are at `raw_at`.
        unsafe {
            match header.kind {
                UNIT => ValueRef::Unit,
                RAW => ValueRef::Raw(std::slice::from_raw_parts(
                    self.at(raw_at(header)).as_ptr(),
                    header.value_len as usize,
                )),
                INT => ValueRef::Int(fixed.cast::<i64>().read()),
                FLOAT => ValueRef::Float(fixed.cast::<f64>().read()),
                OBJECT => ValueRef::Object(&**fixed.cast::<*mut Object>().as_ptr()),
                kind => unreachable!("an entry of kind {kind}"),
            }
        }
    }

    /// Returns the object, if the value is one.
    #[inline]
    pub fn object(&self) -> Option<&Object> {
        match self.value() {
            ValueRef::Object(object) => Some(object),
            _ => None,
        }
    }

    /// As [`Entry::object`], mutable.
    #[inline]
    pub fn object_mut(&mut self) -> Option<&mut Object> {
        let header = self.header().copy();
        if header.kind != OBJECT {
            return None;
        }
        // SAFETY: this block owns the object whose pointer is at `fixed_at`, and `&mut self` makes
        // the access exclusive.
        unsafe { Some(&mut **self.at(fixed_at(&header)).cast::<*mut Object>().as_ptr()) }
    }

    /// Replaces the value and keeps key, deadline and epoch; works in place if the size allows.
    #[inline]
    pub fn set(&mut self, payload: Payload<'_>) {
        let header = self.header().copy();
        // SAFETY: the kind is unchanged, so the slot at `fixed` or `raw_at` has exactly the size
        // that is written.
        unsafe {
            match (&payload, header.kind) {
                (Payload::Raw(bytes), RAW) if bytes.len() == header.value_len as usize => {
                    ptr::copy_nonoverlapping(bytes.as_ptr(), self.at(raw_at(&header)).as_ptr(), bytes.len());
                    return;
                }
                (Payload::Int(value), INT) => {
                    self.at(fixed_at(&header)).cast::<i64>().write(*value);
                    return;
                }
                (Payload::Float(value), FLOAT) => {
                    self.at(fixed_at(&header)).cast::<f64>().write(*value);
                    return;
                }
                _ => {}
            }
        }
        self.rebuild(payload, self.deadline());
    }

    /// Time at which the key expires, in milliseconds since 1970.
    #[inline]
    pub fn deadline(&self) -> Option<u64> {
        // SAFETY: the flag says that a deadline was written after the header.
        (self.header().flags & EXPIRES != 0).then(|| unsafe { self.at(HEADER).cast::<u64>().read() })
    }

    /// Sets or clears the deadline. Reallocates the block if a deadline is added or removed.
    pub fn set_deadline(&mut self, deadline: Option<u64>) {
        match (self.deadline(), deadline) {
            (None, None) => {}
            // SAFETY: the flag says that the block has room for a deadline after the header.
            (Some(_), Some(new)) => unsafe { self.at(HEADER).cast::<u64>().write(new) },
            _ => {
                let payload = self.take_payload();
                self.rebuild_owned(payload, deadline);
            }
        }
    }

    /// Returns the entry under another key.
    #[must_use]
    pub fn renamed(mut self, key: &[u8]) -> Self {
        let deadline = self.deadline();
        let payload = self.take_payload();
        let mut renamed = Self::new(key, payload.as_payload(), deadline);
        payload.give_to(&mut renamed);
        renamed.copy_bookkeeping(&self);
        renamed
    }

    /// Number of the last snapshot that saw this entry.
    pub fn epoch(&self) -> u16 {
        self.header().epoch
    }

    /// Marks the entry as seen by a snapshot, or as created after its cut.
    pub fn set_epoch(&mut self, epoch: u16) {
        self.header_mut().epoch = epoch;
    }

    /// Seconds since 1970 of the last access, as passed to [`Entry::touch`]; 0 if there was none.
    pub fn clock(&self) -> u32 {
        self.header().clock.load(Relaxed)
    }

    /// Name of Redis's encoding for the value; `None` for a bare member or score.
    pub fn encoding(&self) -> Option<&'static str> {
        match self.value() {
            ValueRef::Int(_) => Some("int"),
            ValueRef::Raw(bytes) => Some(if bytes.len() <= EMBEDDED { "embstr" } else { "raw" }),
            ValueRef::Object(object) => Some(object.encoding()),
            ValueRef::Unit | ValueRef::Float(_) => None,
        }
    }

    /// Records an access, in seconds since 1970.
    #[inline]
    pub fn touch(&self, seconds: u32) {
        let clock = &self.header().clock;
        // Storing an equal value would dirty the cache line for nothing.
        if clock.load(Relaxed) != seconds {
            clock.store(seconds, Relaxed);
        }
    }

    fn copy_bookkeeping(&mut self, from: &Self) {
        let (clock, epoch) = (from.clock(), from.epoch());
        let header = self.header_mut();
        *header.clock.get_mut() = clock;
        header.epoch = epoch;
    }

    fn rebuild(&mut self, payload: Payload<'_>, deadline: Option<u64>) {
        let mut rebuilt = Self::new(self.key(), payload, deadline);
        rebuilt.copy_bookkeeping(self);
        *self = rebuilt;
    }

    fn rebuild_owned(&mut self, payload: OwnedPayload, deadline: Option<u64>) {
        let mut rebuilt = Self::new(self.key(), payload.as_payload(), deadline);
        payload.give_to(&mut rebuilt);
        rebuilt.copy_bookkeeping(self);
        *self = rebuilt;
    }

    /// Moves the value out; an entry that held an object then holds the integer 0.
    fn take_payload(&mut self) -> OwnedPayload {
        match self.value() {
            ValueRef::Unit => OwnedPayload::Unit,
            ValueRef::Raw(bytes) => OwnedPayload::Raw(bytes.into()),
            ValueRef::Int(value) => OwnedPayload::Int(value),
            ValueRef::Float(value) => OwnedPayload::Float(value),
            ValueRef::Object(_) => OwnedPayload::Object(self.take_object().expect("the value is an object")),
        }
    }

    /// Takes the object out of the entry, which then holds the integer 0: same size, no destructor.
    pub fn take_object(&mut self) -> Option<Box<Object>> {
        let header = self.header().copy();
        if header.kind != OBJECT {
            return None;
        }
        let slot = self.at(fixed_at(&header));
        // SAFETY: the pointer came from `Box::into_raw`. The kind changes with it, so it is taken
        // only once.
        unsafe {
            let object = Box::from_raw(slot.cast::<*mut Object>().read());
            slot.cast::<i64>().write(0);
            self.header_mut().kind = INT;
            Some(object)
        }
    }
}

impl Keyed for Entry {
    fn key(&self) -> &[u8] {
        Self::key(self)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(object) = self.take_object()
            && object.is_large()
        {
            reclaim(object, 1);
        }
        let layout = Self::layout(self.header());
        // SAFETY: the block was allocated with this layout, and no reference to it remains.
        unsafe { dealloc(self.0.cast::<u8>().as_ptr(), layout) }
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry")
            .field("key", &String::from_utf8_lossy(self.key()))
            .field("value", &self.value())
            .field("deadline", &self.deadline())
            .finish()
    }
}

enum OwnedPayload {
    Unit,
    Raw(Box<[u8]>),
    Int(i64),
    Float(f64),
    Object(Box<Object>),
}

impl OwnedPayload {
    /// Returns the payload to allocate with; an object is stored afterwards by
    /// [`OwnedPayload::give_to`].
    fn as_payload(&self) -> Payload<'_> {
        match self {
            Self::Unit => Payload::Unit,
            Self::Raw(bytes) => Payload::Raw(bytes),
            Self::Int(value) => Payload::Int(*value),
            Self::Float(value) => Payload::Float(*value),
            Self::Object(_) => Payload::Int(0),
        }
    }

    fn give_to(self, entry: &mut Entry) {
        if let Self::Object(object) = self {
            let header = entry.header().copy();
            assert_eq!(header.kind, INT, "an object's slot was reserved as an integer");
            // SAFETY: an integer and an object's pointer have the same slot and size; the integer
            // has no destructor.
            unsafe { entry.at(fixed_at(&header)).cast::<*mut Object>().write(Box::into_raw(object)) };
            entry.header_mut().kind = OBJECT;
        }
    }
}

#[inline]
fn fixed_at(header: &Header) -> usize {
    HEADER + if header.flags & EXPIRES != 0 { size_of::<u64>() } else { 0 }
}

#[inline]
fn key_at(header: &Header) -> usize {
    fixed_at(header) + if matches!(header.kind, INT | FLOAT | OBJECT) { size_of::<u64>() } else { 0 }
}

#[inline]
fn raw_at(header: &Header) -> usize {
    key_at(header) + header.key_len as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_small_string_costs_its_bytes_and_sixteen() {
        let entry = Entry::new(b"0123456789abcdef", Payload::Raw(b"0123456789abcdef"), None);
        assert_eq!(Entry::layout(entry.header()).size(), 48);
        assert_eq!(size_of::<Option<Entry>>(), 8);
    }

    #[test]
    fn the_last_access_stays_with_the_key_whatever_becomes_of_its_block() {
        let mut entry = Entry::new(b"k", Payload::Int(1), None);
        assert_eq!(entry.clock(), 0);
        entry.touch(5);
        entry.set_deadline(Some(42));
        entry.set(Payload::Raw(b"longer than the number"));
        entry.set_deadline(None);
        let entry = entry.renamed(b"a longer key");
        assert_eq!(entry.clock(), 5);
        let (reader, other) = (&entry, &entry);
        reader.touch(6);
        assert_eq!(other.clock(), 6);
    }

    #[test]
    fn an_object_survives_deadline_and_rename() {
        let object = Box::new(Object::String(b"payload".to_vec()));
        let mut entry = Entry::new(b"k", Payload::Object(object), None);
        entry.set_epoch(7);
        entry.set_deadline(Some(42));
        let entry = entry.renamed(b"a longer key");
        assert_eq!(entry.key(), b"a longer key");
        assert_eq!((entry.deadline(), entry.epoch()), (Some(42), 7));
        assert!(matches!(entry.value(), ValueRef::Object(Object::String(bytes)) if bytes == b"payload"));
    }

    #[test]
    fn entries_of_every_kind_are_made_read_moved_to_another_thread_and_dropped() {
        let object = || Payload::Object(Box::new(Object::String(vec![b'o'; 100])));
        for key in [&b""[..], b"k", b"a key of an odd length."] {
            for deadline in [None, Some(0), Some(u64::MAX)] {
                for payload in [Payload::Unit, Payload::Raw(b""), Payload::Float(-0.0), object()] {
                    let expected = format!("{:?}", Entry::new(key, payload, deadline));
                    let payload = match &expected {
                        text if text.contains("Object") => object(),
                        text if text.contains("Float") => Payload::Float(-0.0),
                        text if text.contains("Raw") => Payload::Raw(b""),
                        _ => Payload::Unit,
                    };
                    let entry = Entry::new(key, payload, deadline);
                    let there = std::thread::spawn(move || {
                        assert_eq!(Entry::layout(entry.header()).size() % 8, entry.key().len() % 8);
                        format!("{entry:?}")
                    });
                    assert_eq!(there.join().expect("the thread ends"), expected);
                }
            }
        }
    }

    #[test]
    fn an_entry_whose_object_was_taken_holds_a_number_and_drops_nothing() {
        let mut entry = Entry::new(b"k", Payload::Object(Box::new(Object::String(b"b".to_vec()))), Some(1));
        let taken = entry.take_object().expect("an object");
        assert!(entry.take_object().is_none() && entry.object_mut().is_none());
        assert!(matches!(entry.value(), ValueRef::Int(0)));
        assert!(matches!(*taken, Object::String(bytes) if bytes == b"b"));
    }

    #[derive(Debug, Clone)]
    enum Step {
        Unit,
        Raw(Vec<u8>),
        Int(i64),
        Float(f64),
        Object(Vec<u8>),
        /// Appends to an object.
        Grow(u8),
        Deadline(Option<u64>),
        Rename(Vec<u8>),
        Bookkeeping(u32, u16),
    }

    /// What an entry must hold.
    #[derive(Debug, Clone, PartialEq)]
    enum Held {
        Unit,
        Raw(Vec<u8>),
        Int(i64),
        Float(u64),
        Object(Vec<u8>),
    }

    fn held(entry: &Entry) -> Held {
        match entry.value() {
            ValueRef::Unit => Held::Unit,
            ValueRef::Raw(bytes) => Held::Raw(bytes.to_vec()),
            ValueRef::Int(value) => Held::Int(value),
            ValueRef::Float(value) => Held::Float(value.to_bits()),
            ValueRef::Object(Object::String(bytes)) => Held::Object(bytes.clone()),
            ValueRef::Object(other) => panic!("unexpected {other:?}"),
        }
    }

    fn step() -> impl Strategy<Value = Step> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..40);
        prop_oneof![
            Just(Step::Unit),
            bytes().prop_map(Step::Raw),
            any::<i64>().prop_map(Step::Int),
            any::<f64>().prop_map(Step::Float),
            bytes().prop_map(Step::Object),
            any::<u8>().prop_map(Step::Grow),
            any::<Option<u64>>().prop_map(Step::Deadline),
            bytes().prop_map(Step::Rename),
            any::<(u32, u16)>().prop_map(|(clock, epoch)| Step::Bookkeeping(clock, epoch)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn every_sequence_of_changes_keeps_key_value_and_deadline(steps in proptest::collection::vec(step(), 0..30)) {
            let mut entry = Entry::new(b"key", Payload::Int(0), None);
            let (mut key, mut value, mut deadline) = (b"key".to_vec(), Held::Int(0), None);
            let mut bookkeeping = (0, 0);
            for step in steps {
                match step {
                    Step::Unit => { entry.set(Payload::Unit); value = Held::Unit; }
                    Step::Raw(bytes) => { entry.set(Payload::Raw(&bytes)); value = Held::Raw(bytes); }
                    Step::Int(number) => { entry.set(Payload::Int(number)); value = Held::Int(number); }
                    Step::Float(number) => {
                        entry.set(Payload::Float(number));
                        value = Held::Float(number.to_bits());
                    }
                    Step::Object(bytes) => {
                        entry.set(Payload::Object(Box::new(Object::String(bytes.clone()))));
                        value = Held::Object(bytes);
                    }
                    Step::Grow(byte) => {
                        if let (Some(Object::String(bytes)), Held::Object(model)) = (entry.object_mut(), &mut value) {
                            bytes.push(byte);
                            model.push(byte);
                        }
                    }
                    Step::Deadline(at) => { entry.set_deadline(at); deadline = at; }
                    Step::Rename(name) => { entry = entry.renamed(&name); key = name; }
                    Step::Bookkeeping(clock, epoch) => {
                        entry.touch(clock);
                        entry.set_epoch(epoch);
                        bookkeeping = (clock, epoch);
                    }
                }
                prop_assert_eq!(entry.key(), &key[..]);
                prop_assert_eq!(held(&entry), value.clone());
                prop_assert_eq!(entry.deadline(), deadline);
                prop_assert_eq!((entry.clock(), entry.epoch()), bookkeeping);
            }
        }
    }
}
