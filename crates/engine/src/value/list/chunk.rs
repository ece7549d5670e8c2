//! A run of list elements packed into one buffer with free space at both ends.
//!
//! ```text
//!  0      start                               end    capacity
//! ┌────────┬─────────┬─────────┬───┬───────────┬────────┐
//! │ free   │ element │ element │ … │ element   │ free   │
//! └────────┴─────────┴─────────┴───┴───────────┴────────┘
//! element   length │ bytes │ length mirrored
//! length    u8, or 255 and u32 little endian; mirrored: the same fields in the opposite order
//! ```
//!
//! The length at both ends allows iteration in both directions. A place between two elements is its
//! offset in the buffer; offsets are valid until the chunk changes.

use super::end::End;
use std::ops::Range;

/// Most bytes that several elements share: large enough to amortise the chunk's overhead, small
/// enough to scan and move.
pub(super) const CHUNK_BYTES: usize = 8 << 10;

/// Longest element that shares a chunk, so that at most a fifth of a full chunk is unused.
const ALONE_BYTES: usize = CHUNK_BYTES / 5;

/// Marks a four-byte length.
const LONG: u8 = u8::MAX;

/// Elements in order. At most [`CHUNK_BYTES`] are used unless there is only one element.
#[derive(Debug)]
pub(super) struct Chunk {
    buffer: Box<[u8]>,
    start: u32,
    end: u32,
    count: u32,
    /// In a captured list, 1 + the place at the cut until the chunk is written; otherwise 0.
    place: u32,
}

const _: () = assert!(size_of::<Chunk>() == 32, "the place costs nothing");

/// Returns the packed size of an element, in bytes.
#[inline]
fn packed_len(element: &[u8]) -> usize {
    element.len() + if element.len() < LONG as usize { 2 } else { 10 }
}

fn write(hole: &mut [u8], element: &[u8]) {
    // Not in release builds: the slices below have these lengths or panic.
    debug_assert_eq!(hole.len(), packed_len(element));
    let last = hole.len() - 1;
    if element.len() < LONG as usize {
        hole[0] = element.len() as u8;
        hole[last] = element.len() as u8;
        hole[1..last].copy_from_slice(element);
    } else {
        let length = (element.len() as u32).to_le_bytes();
        hole[0] = LONG;
        hole[1..5].copy_from_slice(&length);
        hole[5..last - 4].copy_from_slice(element);
        hole[last - 4..last].copy_from_slice(&length);
        hole[last] = LONG;
    }
}

impl Chunk {
    /// Creates a chunk of one element. `full_size`: many are expected to follow.
    pub(super) fn of(element: &[u8], end: End, full_size: bool) -> Self {
        let size = packed_len(element);
        let capacity = if size > ALONE_BYTES {
            size
        } else if full_size {
            CHUNK_BYTES
        } else {
            roomy(size)
        };
        let place = if end == End::Front { capacity - size } else { 0 };
        let mut buffer = vec![0; capacity].into_boxed_slice();
        write(&mut buffer[place..place + size], element);
        Self { buffer, start: place as u32, end: (place + size) as u32, count: 1, place: 0 }
    }

    /// Returns the number of elements.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns the place at the cut of a captured list, until the chunk is written.
    pub(super) fn place(&self) -> Option<u32> {
        self.place.checked_sub(1)
    }

    /// See [`Chunk::place`].
    pub(super) fn set_place(&mut self, place: Option<u32>) {
        self.place = place.map_or(0, |place| place + 1);
    }

    /// Iterates over the elements from front to back.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut at = self.start();
        std::iter::from_fn(move || {
            (at < self.end()).then(|| {
                let (element, next) = self.next(at);
                at = next;
                element
            })
        })
    }

    /// Whether the chunk contains an element.
    pub(super) fn contains(&self, element: &[u8]) -> bool {
        self.iter().any(|other| other == element)
    }

    /// Returns the bytes used by elements.
    pub(super) fn used(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether the buffer has the full size of shared chunks.
    pub(super) fn is_full_size(&self) -> bool {
        self.buffer.len() == CHUNK_BYTES
    }

    /// Whether most of the buffer is unused.
    #[inline]
    pub(super) fn is_sparse(&self) -> bool {
        self.buffer.len() >= 256 && self.used() * 8 < self.buffer.len()
    }

    /// Returns the place before the first element.
    #[inline]
    pub(super) fn start(&self) -> usize {
        self.start as usize
    }

    /// Returns the place after the last element.
    #[inline]
    pub(super) fn end(&self) -> usize {
        self.end as usize
    }

    /// Returns the element after a place and the place after it. `at` must be before the end.
    #[inline]
    pub(super) fn next(&self, at: usize) -> (&[u8], usize) {
        // Not in release builds, here and below: this is the inner loop of every iteration.
        debug_assert!(self.start() <= at && at < self.end());
        let short = self.buffer[at];
        if short < LONG {
            let bytes = at + 1..at + 1 + short as usize;
            let next = bytes.end + 1;
            (&self.buffer[bytes], next)
        } else {
            let bytes = at + 5..at + 5 + self.long_length(at + 1);
            let next = bytes.end + 5;
            (&self.buffer[bytes], next)
        }
    }

    /// Returns the element before a place and the place before it. `at` must be after the start.
    #[inline]
    pub(super) fn previous(&self, at: usize) -> (&[u8], usize) {
        debug_assert!(self.start() < at && at <= self.end());
        let short = self.buffer[at - 1];
        if short < LONG {
            let bytes = at - 1 - short as usize..at - 1;
            let previous = bytes.start - 1;
            (&self.buffer[bytes], previous)
        } else {
            let bytes = at - 5 - self.long_length(at - 5)..at - 5;
            let previous = bytes.start - 5;
            (&self.buffer[bytes], previous)
        }
    }

    fn long_length(&self, at: usize) -> usize {
        let length = self.buffer[at..].first_chunk().expect("four bytes of length lie in the chunk");
        u32::from_le_bytes(*length) as usize
    }

    /// Returns the place before the element at `index`, found from the nearer end. `index` is at
    /// most the number of elements.
    pub(super) fn place_of(&self, index: usize) -> usize {
        assert!(index <= self.len(), "element {index} of a chunk of {}", self.len());
        if index <= self.len() / 2 {
            (0..index).fold(self.start(), |at, _| self.next(at).1)
        } else {
            (index..self.len()).fold(self.end(), |at, _| self.previous(at).1)
        }
    }

    /// Returns the element at an end. The chunk must not be empty.
    #[inline]
    pub(super) fn peek(&self, end: End) -> &[u8] {
        match end {
            End::Front => self.next(self.start()).0,
            End::Back => self.previous(self.end()).0,
        }
    }

    /// Adds an element at an end; `false` if it does not fit.
    #[inline]
    pub(super) fn push(&mut self, end: End, element: &[u8]) -> bool {
        let size = packed_len(element);
        let room = if end == End::Front { self.start() } else { self.buffer.len() - self.end() };
        if size > room && (size > ALONE_BYTES || !self.make_room(end, size)) {
            return false;
        }
        let hole = match end {
            End::Front => {
                self.start -= size as u32;
                self.start()..self.start() + size
            }
            End::Back => {
                self.end += size as u32;
                self.end() - size..self.end()
            }
        };
        write(&mut self.buffer[hole], element);
        self.count += 1;
        // Not in release builds: a larger chunk would only be slower.
        debug_assert!(self.used() <= CHUNK_BYTES, "an element that takes more is alone");
        true
    }

    /// Removes the element at an end. The chunk must not be empty.
    #[inline]
    pub(super) fn drop_one(&mut self, end: End) {
        match end {
            End::Front => self.start = self.next(self.start()).1 as u32,
            End::Back => self.end = self.previous(self.end()).1 as u32,
        }
        self.count -= 1;
    }

    /// Removes `count` elements at an end.
    pub(super) fn drop_many(&mut self, end: End, count: usize) {
        match end {
            End::Front => self.start = self.place_of(count) as u32,
            End::Back => self.end = self.place_of(self.len() - count) as u32,
        }
        self.count -= count as u32;
    }

    /// Frees `size` bytes at an end by moving the elements or growing the buffer; `false` if the
    /// chunk would exceed its limit.
    ///
    /// Elements that use at most two thirds of the buffer move to its middle. This frees a sixth of
    /// the buffer at each end, so a byte moves a bounded number of times on average, even if a list
    /// grows at both ends or acts as a queue.
    #[cold]
    fn make_room(&mut self, end: End, size: usize) -> bool {
        let (used, capacity) = (self.used(), self.buffer.len());
        let needed = used + size;
        let start = if needed > CHUNK_BYTES {
            return false;
        } else if needed * 3 <= capacity * 2 {
            let other = (capacity - needed) / 2;
            if end == End::Front { capacity - other - used } else { other }
        } else if capacity < CHUNK_BYTES {
            let larger = roomy(needed);
            let start = if end == End::Front { larger - used } else { 0 };
            self.rebuild(larger, start);
            return true;
        } else {
            return false;
        };
        self.buffer.copy_within(self.start as usize..self.end as usize, start);
        (self.start, self.end) = (start as u32, (start + used) as u32);
        true
    }

    /// Frees unused memory.
    pub(super) fn shrink(&mut self) {
        let capacity = roomy(self.used());
        self.rebuild(capacity, (capacity - self.used()) / 2);
    }

    fn rebuild(&mut self, capacity: usize, start: usize) {
        let used = self.used();
        let mut buffer = vec![0; capacity].into_boxed_slice();
        buffer[start..start + used].copy_from_slice(&self.buffer[self.start()..self.end()]);
        self.buffer = buffer;
        (self.start, self.end) = (start as u32, (start + used) as u32);
    }

    /// Inserts an element at a place; `false` if it does not fit.
    pub(super) fn insert(&mut self, at: usize, element: &[u8]) -> bool {
        let inserted = self.replace(at..at, element);
        self.count += u32::from(inserted);
        inserted
    }

    /// Replaces an element; `false` if the new one does not fit, and then nothing changes.
    pub(super) fn set(&mut self, at: usize, element: &[u8]) -> bool {
        let next = self.next(at).1;
        self.replace(at..next, element)
    }

    fn replace(&mut self, old: Range<usize>, element: &[u8]) -> bool {
        let size = packed_len(element);
        let used = self.used() - old.len() + size;
        let others = self.len() - usize::from(!old.is_empty());
        if others > 0 && (used > CHUNK_BYTES || size > ALONE_BYTES) {
            return false;
        }
        let tail = self.end() - old.end;
        if self.buffer.len() < old.start + size + tail {
            let mut larger = Vec::with_capacity(roomy(used));
            larger.extend_from_slice(&self.buffer[self.start()..old.start]);
            let hole = larger.len();
            larger.resize(hole + size, 0);
            write(&mut larger[hole..], element);
            larger.extend_from_slice(&self.buffer[old.end..self.end()]);
            larger.resize(larger.capacity(), 0);
            self.buffer = larger.into_boxed_slice();
            self.start = 0;
        } else {
            self.buffer.copy_within(old.end..self.end as usize, old.start + size);
            write(&mut self.buffer[old.start..old.start + size], element);
        }
        self.end = self.start + used as u32;
        // A buffer larger than a chunk's must have no free space: `push` does not check the size.
        if self.is_sparse() || self.buffer.len() > used.max(CHUNK_BYTES) {
            self.shrink();
        }
        true
    }

    /// Splits the chunk at a place after `before` elements. Returns the non-empty second part.
    pub(super) fn split(&mut self, at: usize, before: usize) -> Self {
        assert!(before < self.len(), "a chunk of {} elements is split behind {before}", self.len());
        let tail = &self.buffer[at..self.end()];
        let mut buffer = vec![0; roomy(tail.len())];
        buffer[..tail.len()].copy_from_slice(tail);
        let (end, count) = (tail.len() as u32, self.count - before as u32);
        (self.end, self.count) = (at as u32, before as u32);
        Self { buffer: buffer.into_boxed_slice(), start: 0, end, count, place: 0 }
    }

    /// Appends the elements of the next chunk, if both fit in half a chunk.
    pub(super) fn absorb(&mut self, behind: &Self) -> bool {
        let used = self.used() + behind.used();
        if used * 2 > CHUNK_BYTES {
            return false;
        }
        self.rebuild(roomy(used), 0);
        let end = self.end();
        self.buffer[end..used].copy_from_slice(&behind.buffer[behind.start()..behind.end()]);
        self.end = used as u32;
        self.count += behind.count;
        true
    }

    /// Removes elements equal to `element`: skips `skip`, removes `limit`, and decrements both.
    pub(super) fn remove_equal(&mut self, element: &[u8], skip: &mut usize, limit: &mut usize) {
        let (mut from, mut to) = (self.start(), self.start());
        while from < self.end() && (*limit > 0 || from != to) {
            let (bytes, next) = self.next(from);
            let matches = *limit > 0 && bytes == element;
            if matches && *skip == 0 {
                *limit -= 1;
                self.count -= 1;
            } else {
                *skip -= usize::from(matches);
                self.buffer.copy_within(from..next, to);
                to += next - from;
            }
            from = next;
        }
        if from == self.end() {
            self.end = to as u32;
        }
    }
}

/// Returns the buffer size for `used` bytes: with room to grow by half, up to the size of a chunk.
fn roomy(used: usize) -> usize {
    (used + used / 2).next_multiple_of(16).clamp(32, CHUNK_BYTES).max(used)
}
