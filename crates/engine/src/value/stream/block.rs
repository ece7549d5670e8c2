//! A run of entries packed into one buffer.
//!
//! ```text
//! block   field names │ entry │ entry │ …
//! names   number varint │ (length varint │ bytes)*
//! entry   bytes after this field varint │ flags u8 │ ms varint │ seq varint │ content
//! content values of the block's field names, if the flags say so: value*
//!         otherwise: number of fields varint │ (value of the name, value)*
//! value   0 to 246: so many bytes │ 247: length varint, bytes │ 248 to 255: an integer of 1 to 8 bytes
//! ```
//!
//! The names are those of the first entry, which most entries repeat. `ms` counts from the block's first
//! ID, and so does `seq` in the same millisecond. A deleted entry keeps its place and is marked, so that
//! a deletion costs no copy; the block is dropped with its last entry. Integers are little endian.

use super::id::Id;
use crate::command::parse::canonical_integer;
use crate::persist::record::{put_bytes, put_varint};
use crate::value::text::{Decimal, Text};

/// Flag of a deleted entry.
const DELETED: u8 = 1;
/// Flag of an entry whose fields have the block's names.
const SAME_NAMES: u8 = 2;

/// Most bytes with a length of one byte.
const SHORT_MAX: usize = 246;
/// Marks a longer value.
const LONG: u8 = 247;

/// When a block is full, as in Redis. 0 is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeLimits {
    /// Most entries, deleted ones included: `stream-node-max-entries`.
    pub entries: usize,
    /// Most bytes, unless there is only one entry: `stream-node-max-bytes`.
    pub bytes: usize,
}

impl NodeLimits {
    /// Redis's defaults.
    pub const DEFAULT: Self = Self { entries: 100, bytes: 4096 };
    /// Offsets in a block have 32 bits.
    const MOST_BYTES: usize = 1 << 30;
}

/// Entries in the order of their IDs. At least one is not deleted.
#[derive(Debug, Clone)]
pub(super) struct Block {
    bytes: Vec<u8>,
    /// ID of the first entry that was added, from which the others count.
    first: Id,
    /// ID of the last entry, deleted or not.
    last: Id,
    /// ID of the last entry that is not deleted.
    last_live: Id,
    /// Number of entries that are not deleted.
    live: u32,
    /// Number of entries.
    total: u32,
    /// Offset of the first entry that is not deleted.
    start: u32,
    /// Offset of the first entry.
    body: u32,
}

/// An entry, in its block.
#[derive(Debug, Clone, Copy)]
pub struct EntryRef<'a> {
    id: Id,
    flags: u8,
    content: &'a [u8],
    names: &'a [u8],
}

/// An entry, and where it is in its block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Located<'a> {
    /// Offset of the entry.
    pub(super) at: usize,
    pub(super) entry: EntryRef<'a>,
    /// Offset behind it.
    pub(super) next: usize,
}

/// Reads what [`Block`] has written. Each method returns `None` if the bytes end before.
#[derive(Debug, Clone, Copy)]
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    #[inline]
    fn u8(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    #[inline]
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline]
    fn varint(&mut self) -> Option<u64> {
        let byte = self.u8()?;
        if byte < 0x80 { Some(u64::from(byte)) } else { self.long_varint(byte) }
    }

    fn long_varint(&mut self, first: u8) -> Option<u64> {
        let mut value = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return (shift < 63 || byte <= 1).then_some(value);
            }
        }
        None
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.varint()?).ok()?;
        self.take(len)
    }

    #[inline]
    fn value(&mut self) -> Option<Text<'a>> {
        let head = self.u8()?;
        if usize::from(head) <= SHORT_MAX {
            return self.take(usize::from(head)).map(Text::Bytes);
        }
        if head == LONG {
            return self.bytes().map(Text::Bytes);
        }
        let size = usize::from(head - LONG);
        let stored = self.take(size)?;
        let mut word = [0; 8];
        word[..size].copy_from_slice(stored);
        let unused = 64 - 8 * size as u32;
        let integer = (i64::from_le_bytes(word) << unused) >> unused;
        Some(Text::Int(integer, Decimal::of(integer)))
    }

    #[inline]
    fn skip_value(&mut self) -> Option<()> {
        let head = self.u8()?;
        match head {
            LONG => self.bytes()?,
            _ if usize::from(head) <= SHORT_MAX => self.take(usize::from(head))?,
            _ => self.take(usize::from(head - LONG))?,
        };
        Some(())
    }
}

/// What the block itself has written reads back.
const READS_BACK: &str = "a block's entries were checked when it was made";

impl<'a> EntryRef<'a> {
    /// Returns the ID.
    #[inline]
    pub fn id(&self) -> Id {
        self.id
    }

    /// Whether it is deleted. Only an iteration over all entries of a block meets such.
    pub(crate) fn is_deleted(&self) -> bool {
        self.flags & DELETED != 0
    }

    /// Whether its fields have the names of its block's first entry.
    pub(crate) fn has_same_names(&self) -> bool {
        self.flags & SAME_NAMES != 0
    }

    /// Returns the number of fields.
    #[inline]
    pub fn fields(&self) -> usize {
        let mut reader = Reader(if self.has_same_names() { self.names } else { self.content });
        reader.varint().expect(READS_BACK) as usize
    }

    /// Iterates over the names and values of the fields, in the order in which they were given.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (Text<'a>, Text<'a>)> + use<'a> {
        let (mut content, mut names) = (Reader(self.content), Reader(self.names));
        let same = self.has_same_names();
        let count = if same { names.varint() } else { content.varint() }.expect(READS_BACK);
        (0..count).map(move |_| {
            let name = if same { names.bytes().map(Text::Bytes) } else { content.value() }.expect(READS_BACK);
            (name, content.value().expect(READS_BACK))
        })
    }
}

impl Block {
    /// Creates a block of one entry. `fields` alternates names and values.
    pub(super) fn of(id: Id, fields: &[&[u8]]) -> Self {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, (fields.len() / 2) as u64);
        fields.iter().step_by(2).for_each(|name| put_bytes(&mut bytes, name));
        let body = bytes.len() as u32;
        let mut block =
            Self { bytes, first: id, last: id, last_live: id, live: 0, total: 0, start: body, body };
        block.push(id, fields);
        block
    }

    /// Returns the number of entries that are not deleted.
    #[inline]
    pub(super) fn live(&self) -> usize {
        self.live as usize
    }

    /// Returns the ID of the last entry, deleted or not.
    #[inline]
    pub(super) fn last(&self) -> Id {
        self.last
    }

    /// Returns the ID from which the others count.
    #[inline]
    pub(super) fn first(&self) -> Id {
        self.first
    }

    /// Returns the size of the buffer's content, in bytes.
    pub(super) fn used(&self) -> usize {
        self.bytes.len()
    }

    /// Whether one more entry belongs here, whose names and values have so many bytes.
    #[inline]
    pub(super) fn has_room(&self, bytes: usize, limits: NodeLimits) -> bool {
        let most_bytes = match limits.bytes {
            0 => NodeLimits::MOST_BYTES,
            bytes => bytes.min(NodeLimits::MOST_BYTES),
        };
        self.bytes.len() + bytes < most_bytes
            && (limits.entries == 0 || (self.total as usize) < limits.entries)
    }

    /// Appends an entry, whose ID must be greater than the last one. `fields` alternates names and
    /// values.
    #[inline]
    pub(super) fn push(&mut self, id: Id, fields: &[&[u8]]) {
        let (last, total) = (self.last, self.total);
        assert!(id > last || total == 0, "entry {id} is added behind {last}");
        let at = self.bytes.len();
        let same = self.has_names(fields);
        self.bytes.extend_from_slice(&[0, if same { SAME_NAMES } else { 0 }]);
        put_varint(&mut self.bytes, id.ms - self.first.ms);
        put_varint(&mut self.bytes, id.seq - if id.ms == self.first.ms { self.first.seq } else { 0 });
        if same {
            fields.iter().skip(1).step_by(2).for_each(|value| put_value(&mut self.bytes, value));
        } else {
            put_varint(&mut self.bytes, (fields.len() / 2) as u64);
            fields.iter().for_each(|value| put_value(&mut self.bytes, value));
        }
        let size = self.bytes.len() - at - 1;
        if size < 0x80 {
            self.bytes[at] = size as u8;
        } else {
            let mut length = Vec::with_capacity(10);
            put_varint(&mut length, size as u64);
            self.bytes.splice(at..=at, length);
        }
        (self.last, self.last_live) = (id, id);
        self.live += 1;
        self.total += 1;
    }

    /// Whether these are the block's names.
    #[inline]
    fn has_names(&self, fields: &[&[u8]]) -> bool {
        let mut names = Reader(&self.bytes[..self.body as usize]);
        names.varint() == Some((fields.len() / 2) as u64)
            && fields.iter().step_by(2).all(|name| names.bytes() == Some(name))
    }

    /// Frees unused memory: the block is full. Copies it, because the allocator keeps a place of which half
    /// is used as it is.
    pub(super) fn shrink(&mut self) {
        if self.bytes.capacity() > self.bytes.len() + self.bytes.len() / 8 {
            self.bytes = Vec::from(&self.bytes[..]);
        }
    }

    /// Returns the entry at an offset, deleted or not, and the offset behind it; `None` at the end.
    #[inline]
    fn entry_at(&self, at: usize) -> Option<(EntryRef<'_>, usize)> {
        let mut rest = Reader(self.bytes.get(at..).filter(|rest| !rest.is_empty())?);
        let mut entry = Reader(rest.bytes().expect(READS_BACK));
        let next = self.bytes.len() - rest.0.len();
        let flags = entry.u8().expect(READS_BACK);
        let ms = self.first.ms + entry.varint().expect(READS_BACK);
        let seq = entry.varint().expect(READS_BACK) + if ms == self.first.ms { self.first.seq } else { 0 };
        let names = &self.bytes[..self.body as usize];
        Some((EntryRef { id: Id { ms, seq }, flags, content: entry.0, names }, next))
    }

    /// Returns the first entry from an offset on that is not deleted.
    #[inline]
    pub(super) fn live_from(&self, mut at: usize) -> Option<Located<'_>> {
        loop {
            let (entry, next) = self.entry_at(at)?;
            if entry.flags & DELETED == 0 {
                return Some(Located { at, entry, next });
            }
            at = next;
        }
    }

    /// Returns the offset of the first entry that is not deleted.
    #[inline]
    pub(super) fn start(&self) -> usize {
        self.start as usize
    }

    /// Returns the ID of the first entry that is not deleted.
    #[inline]
    pub(super) fn first_live(&self) -> Id {
        let first = self.live_from(self.start());
        first.expect("a block has an entry that is not deleted").entry.id
    }

    /// Iterates over the entries that are not deleted.
    pub(super) fn iter(&self) -> impl Iterator<Item = EntryRef<'_>> {
        let mut at = self.start();
        std::iter::from_fn(move || {
            let found = self.live_from(at)?;
            at = found.next;
            Some(found.entry)
        })
    }

    /// Iterates over all entries, deleted ones too.
    pub(super) fn with_deleted(&self) -> impl Iterator<Item = EntryRef<'_>> {
        let mut at = self.body as usize;
        std::iter::from_fn(move || {
            let (entry, next) = self.entry_at(at)?;
            at = next;
            Some(entry)
        })
    }

    /// Returns the number of deleted entries.
    pub(super) fn deleted(&self) -> usize {
        (self.total - self.live) as usize
    }

    /// Iterates over the names of the fields of the first entry.
    pub(super) fn names(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let mut names = Reader(&self.bytes[..self.body as usize]);
        let count = names.varint().expect(READS_BACK) as usize;
        (0..count).map(move |_| names.bytes().expect(READS_BACK))
    }

    /// Returns the offset of the first entry that is not deleted and whose ID is at least `id`.
    pub(super) fn seek(&self, id: Id) -> Option<usize> {
        let mut at = self.start();
        loop {
            let (entry, next) = self.entry_at(at)?;
            if entry.flags & DELETED == 0 && entry.id >= id {
                return Some(at);
            }
            at = next;
        }
    }

    /// Returns the ID of the last entry that is not deleted.
    #[inline]
    pub(super) fn last_live(&self) -> Id {
        self.last_live
    }

    /// Marks an entry as deleted; `false` if it is not there. The block may have no entry left then, and
    /// must be dropped.
    pub(super) fn delete(&mut self, id: Id) -> bool {
        let Some(at) = self.seek(id) else { return false };
        if self.entry_at(at).is_none_or(|(entry, _)| entry.id != id) {
            return false;
        }
        self.mark_deleted(at);
        if at == self.start() {
            self.skip_deleted();
        }
        if id == self.last_live {
            self.last_live = self.iter().last().map_or(self.first, |last| last.id);
        }
        true
    }

    /// Deletes up to `count` of the first entries, as long as `is_due` says so. Returns how many. A block
    /// without entries must be dropped.
    pub(super) fn delete_front(&mut self, count: usize, is_due: impl Fn(Id) -> bool) -> usize {
        let mut deleted = 0;
        while deleted < count
            && let Some(Located { at, entry, next }) = self.live_from(self.start())
            && is_due(entry.id)
        {
            self.mark_deleted(at);
            self.start = next as u32;
            deleted += 1;
        }
        self.skip_deleted();
        deleted
    }

    fn mark_deleted(&mut self, at: usize) {
        let mut rest = Reader(&self.bytes[at..]);
        rest.varint().expect(READS_BACK);
        let flags = self.bytes.len() - rest.0.len();
        self.bytes[flags] |= DELETED;
        self.live -= 1;
    }

    fn skip_deleted(&mut self) {
        let mut at = self.start();
        while let Some((entry, next)) = self.entry_at(at)
            && entry.flags & DELETED != 0
        {
            at = next;
        }
        self.start = at as u32;
    }

    /// Removes deleted entries at the end, so that the last ID is that of an entry.
    pub(super) fn cut_deleted_end(&mut self) {
        let (mut at, mut end, mut kept, mut total) = (self.body as usize, self.body as usize, self.first, 0);
        let mut seen = 0;
        while let Some((entry, next)) = self.entry_at(at) {
            seen += 1;
            if entry.flags & DELETED == 0 {
                (end, kept, total) = (next, entry.id, seen);
            }
            at = next;
        }
        self.bytes.truncate(end);
        (self.last, self.total) = (kept, total);
    }

    /// Appends the snapshot form.
    pub(super) fn encode(&self, into: &mut Vec<u8>) {
        put_varint(into, self.first.ms);
        put_varint(into, self.first.seq);
        put_bytes(into, &self.bytes);
    }

    /// Checks and takes over the bytes of a block; `None` if they are none.
    pub(super) fn decode(first: Id, bytes: &[u8]) -> Option<Self> {
        if bytes.len() > u32::MAX as usize {
            return None;
        }
        let mut names = Reader(bytes);
        for _ in 0..names.varint()? {
            names.bytes()?;
        }
        let body = bytes.len() - names.0.len();
        let (mut rest, mut last, mut last_live, mut start) = (names, None, None, None);
        let (mut live, mut total) = (0, 0);
        while !rest.0.is_empty() {
            let at = bytes.len() - rest.0.len();
            let (id, flags) = check_entry(first, &bytes[..body], rest.bytes()?)?;
            if last.map_or(id != first, |last| id <= last) {
                return None;
            }
            last = Some(id);
            total += 1;
            if flags & DELETED == 0 {
                live += 1;
                last_live = Some(id);
                start = start.or(Some(at));
            }
        }
        let (start, body) = (start? as u32, body as u32);
        let (last, last_live) = (last?, last_live?);
        Some(Self { bytes: bytes.to_vec(), first, last, last_live, live, total, start, body })
    }
}

/// Checks an entry, and returns its ID and flags.
fn check_entry(first: Id, names: &[u8], entry: &[u8]) -> Option<(Id, u8)> {
    let mut entry = Reader(entry);
    let flags = entry.u8().filter(|flags| flags & !(DELETED | SAME_NAMES) == 0)?;
    let ms = first.ms.checked_add(entry.varint()?)?;
    let seq = entry.varint()?.checked_add(if ms == first.ms { first.seq } else { 0 })?;
    let values =
        if flags & SAME_NAMES != 0 { Reader(names).varint()? } else { entry.varint()?.checked_mul(2)? };
    for _ in 0..values {
        entry.skip_value()?;
    }
    (values > 0 && entry.0.is_empty()).then_some((Id { ms, seq }, flags))
}

/// Appends a value: as an integer if that is shorter and reads back as the same bytes.
#[inline]
fn put_value(into: &mut Vec<u8>, value: &[u8]) {
    if (2..=20).contains(&value.len())
        && let Some(integer) = canonical_integer(value)
    {
        let bits = 65 - (integer ^ (integer >> 63)).leading_zeros();
        let size = bits.div_ceil(8) as usize;
        if size < value.len() {
            into.push(LONG + size as u8);
            into.extend_from_slice(&integer.to_le_bytes()[..size]);
            return;
        }
    }
    if value.len() <= SHORT_MAX {
        into.push(value.len() as u8);
    } else {
        into.push(LONG);
        put_varint(into, value.len() as u64);
    }
    into.extend_from_slice(value);
}
