//! A few short pairs in one block of memory, in insertion order.
//!
//! ```text
//! ┌─────────┬───────────┬─────────┬───────────┐
//! │ key_len │ value_len │ key     │ value     │  the next pair …
//! │ u8      │ u8        │ key_len │ value_len │
//! └─────────┴───────────┴─────────┴───────────┘
//! ```
//!
//! A pair costs two bytes of overhead. Every operation is O(bytes): a search scans the block, a
//! change moves what follows. With at most [`MAX_PAIRS`] short pairs, a scan costs about as much as
//! the cache miss of a hash table.

/// Maximum number of pairs in one block.
pub(super) const MAX_PAIRS: usize = 128;

/// Maximum length of a key and of a value, in bytes.
pub(super) const MAX_ELEMENT: usize = 64;

/// Length of a pair's head, which holds both lengths. Bytes.
const HEAD: usize = 2;
const _: () = assert!(MAX_PAIRS <= u8::MAX as usize);
const _: () = assert!(MAX_ELEMENT <= u8::MAX as usize);

/// Pairs of byte strings with distinct keys.
#[derive(Debug, Default)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    len: u8,
}

/// Position of a pair in the block, until the next change of the block.
#[derive(Debug, Clone, Copy)]
pub(super) struct PairPosition {
    offset: usize,
    key_len: u8,
    value_len: u8,
}

impl PairPosition {
    fn key(self) -> std::ops::Range<usize> {
        let start = self.offset + HEAD;
        start..start + self.key_len as usize
    }

    fn value(self) -> std::ops::Range<usize> {
        let start = self.key().end;
        start..start + self.value_len as usize
    }
}

impl Packed {
    /// Returns the number of pairs.
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether a key and a value are short enough for any block.
    pub(super) fn admits(key: &[u8], value: &[u8]) -> bool {
        key.len() <= MAX_ELEMENT && value.len() <= MAX_ELEMENT
    }

    /// Whether one more pair fits.
    pub(super) fn has_room(&self) -> bool {
        self.len() < MAX_PAIRS
    }

    /// Returns the pair at an offset; `None` at the end of the block.
    #[inline]
    fn place(&self, offset: usize) -> Option<PairPosition> {
        match self.bytes.get(offset..)? {
            &[key_len, value_len, ..] => Some(PairPosition { offset, key_len, value_len }),
            _ => None,
        }
    }

    /// Finds the pair with a key.
    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> Option<PairPosition> {
        // Keys of one collection often share length and prefix, so the last byte is compared first.
        let last = key.last();
        let mut offset = 0;
        while let Some(place) = self.place(offset) {
            if place.key_len as usize == key.len() {
                let candidate = &self.bytes[place.key()];
                if candidate.last() == last && candidate == key {
                    return Some(place);
                }
            }
            offset = place.value().end;
        }
        None
    }

    /// Returns the value of a pair.
    pub(super) fn value(&self, place: PairPosition) -> &[u8] {
        &self.bytes[place.value()]
    }

    /// Replaces the value of a pair, which keeps its position in the order. The value must be
    /// [admitted](Self::admits).
    pub(super) fn replace(&mut self, place: PairPosition, value: &[u8]) {
        assert!(Self::admits(&[], value), "a value of {} bytes is longer than {MAX_ELEMENT}", value.len());
        if value.len() == place.value_len as usize {
            self.bytes[place.value()].copy_from_slice(value);
        } else {
            self.bytes.splice(place.value(), value.iter().copied());
            self.bytes[place.offset + 1] = value.len() as u8;
        }
    }

    /// Appends a pair. It must be [admitted](Self::admits), the block must have
    /// [room](Self::has_room), and the key must not be in the block.
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        let (key_len, value_len, pairs) = (key.len(), value.len(), self.len());
        let fits = self.has_room() && Self::admits(key, value);
        assert!(fits, "a pair of {key_len} and {value_len} bytes does not fit a block of {pairs} pairs");
        // Not in release builds: the caller has just searched.
        debug_assert!(self.find(key).is_none(), "the key is not in the block");
        let needed = HEAD + key_len + value_len;
        if self.bytes.capacity() - self.bytes.len() < needed {
            // Grows by a quarter, so that many small blocks do not waste half of their memory.
            self.bytes.reserve_exact(needed.max(self.bytes.len() / 4));
        }
        self.bytes.extend_from_slice(&[key_len as u8, value_len as u8]);
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.len += 1;
    }

    /// Removes a pair.
    pub(super) fn remove(&mut self, place: PairPosition) {
        self.bytes.drain(place.offset..place.value().end);
        self.len -= 1;
    }

    /// Iterates over all pairs in insertion order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut offset = 0;
        std::iter::from_fn(move || {
            let place = self.place(offset)?;
            offset = place.value().end;
            Some((&self.bytes[place.key()], &self.bytes[place.value()]))
        })
    }
}
