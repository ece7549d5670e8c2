//! Lists: a deque of chunks of packed elements.
//!
//! ```text
//! chunks   [ a b c … ]  [ … ]  [ … x y z ]
//!            ▲                        ▲
//!          front                    back
//! ```
//!
//! A push or pop accesses only the first or last chunk and copies the element once. A short list is
//! one small buffer. A long one has an overhead of two bytes per element (ten from 255 bytes).

mod capture;
mod chunk;
mod end;
mod in_parts;

pub use end::End;

use super::Value;
use crate::keyspace::MAX_BYTES;
use crate::persist::record::{Cursor, put_bytes, put_varint};
use capture::ListCapture;
use chunk::{CHUNK_BYTES, Chunk};
use std::collections::VecDeque;
use std::ops::Range;
use xxhash_rust::xxh3::Xxh3;

/// A sequence of byte strings of at most [`MAX_BYTES`]. No chunk is empty.
#[derive(Debug, Default)]
pub struct List {
    chunks: VecDeque<Chunk>,
    len: usize,
    capture: Option<Box<ListCapture>>,
}

/// A place between elements: a chunk and an offset in it.
#[derive(Debug, Clone, Copy)]
struct ListPosition {
    chunk: usize,
    offset: usize,
}

impl List {
    /// Returns Redis's name of this representation.
    pub fn encoding(&self) -> &'static str {
        "quicklist"
    }

    /// Returns the number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the list is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an element at an end. O(1) amortised.
    #[inline]
    pub fn push(&mut self, end: End, element: &[u8]) {
        assert!(element.len() <= MAX_BYTES, "an element of {} bytes exceeds {MAX_BYTES}", element.len());
        self.before_change_at(end);
        let chunk = self.chunk_at(end);
        if !chunk.is_some_and(|chunk| chunk.push(end, element)) {
            self.push_chunk(end, element);
        }
        self.len += 1;
    }

    #[cold]
    fn push_chunk(&mut self, end: End, element: &[u8]) {
        if self.chunks.is_empty() {
            // Most lists stay short, so no capacity for a second chunk is reserved.
            self.chunks.reserve_exact(1);
        }
        match end {
            End::Front => {
                let full_size = self.chunks.front().is_some_and(Chunk::is_full_size);
                self.chunks.push_front(Chunk::of(element, end, full_size));
            }
            End::Back => {
                let full_size = self.chunks.back().is_some_and(Chunk::is_full_size);
                self.chunks.push_back(Chunk::of(element, end, full_size));
            }
        }
    }

    /// Removes the element at an end and passes it to `take`. O(1) amortised.
    #[inline]
    pub fn pop<R>(&mut self, end: End, take: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.before_change_at(end);
        let only = self.chunks.len() == 1;
        let chunk = self.chunk_at(end)?;
        let taken = take(chunk.peek(end));
        chunk.drop_one(end);
        let is_empty = chunk.len() == 0;
        if only && !is_empty && chunk.is_sparse() {
            chunk.shrink();
        }
        self.len -= 1;
        if is_empty {
            self.drop_chunk(end);
        }
        Some(taken)
    }

    /// Parses and adds an element at the back; `None` if its snapshot form is invalid.
    fn push_encoded(&mut self, bytes: &mut Cursor<'_>) -> Option<()> {
        self.push(End::Back, bytes.bytes().filter(|element| element.len() <= MAX_BYTES)?);
        Some(())
    }

    #[inline]
    fn chunk_at(&mut self, end: End) -> Option<&mut Chunk> {
        match end {
            End::Front => self.chunks.front_mut(),
            End::Back => self.chunks.back_mut(),
        }
    }

    /// Call it before the chunk at an end changes.
    #[inline]
    fn before_change_at(&mut self, end: End) {
        if self.capture.is_some() {
            self.before_change(match end {
                End::Front => 0,
                End::Back => self.chunks.len().saturating_sub(1),
            });
        }
    }

    /// Call it before the chunk at this index changes.
    #[inline]
    fn before_change(&mut self, index: usize) {
        if let Some(capture) = &mut self.capture
            && let Some(chunk) = self.chunks.get_mut(index)
        {
            capture.see(chunk);
        }
    }

    /// Call it with a chunk that was removed from the list.
    #[inline]
    fn after_departure(&mut self, chunk: Option<Chunk>) {
        if let (Some(capture), Some(chunk)) = (&mut self.capture, chunk) {
            capture.take_over(chunk);
        }
    }

    fn drop_chunk(&mut self, end: End) {
        let dropped = match end {
            End::Front => self.chunks.pop_front(),
            End::Back => self.chunks.pop_back(),
        };
        self.after_departure(dropped);
        if self.chunks.capacity() >= 64 && self.chunks.len() * 8 < self.chunks.capacity() {
            self.chunks.shrink_to(self.chunks.len() * 2);
        }
    }

    /// Moves the element at end `from` to end `to` and returns it; `None` if the list is empty.
    pub fn rotate(&mut self, from: End, to: End) -> Option<Vec<u8>> {
        let element = self.pop(from, <[u8]>::to_vec)?;
        self.push(to, &element);
        Some(element)
    }

    /// Returns the element at an index; a negative one counts from the back.
    ///
    /// O(chunks) from the nearer end, plus O(elements of one chunk).
    pub fn get(&self, index: i64) -> Option<&[u8]> {
        let place = self.place_of(self.absolute(index)?);
        Some(self.chunks[place.chunk].next(place.offset).0)
    }

    /// Returns the index from the front, if there is such an element.
    fn absolute(&self, index: i64) -> Option<usize> {
        let len = i64::try_from(self.len).ok()?;
        let index = if index < 0 { index.checked_add(len)? } else { index };
        usize::try_from(index).ok().filter(|&index| index < self.len)
    }

    /// Returns the place before the element at an index, which must exist.
    fn place_of(&self, index: usize) -> ListPosition {
        assert!(index < self.len, "element {index} of a list of {}", self.len);
        let (chunk, inside) = if index <= self.len / 2 {
            let (mut chunk, mut left) = (0, index);
            while left >= self.chunks[chunk].len() {
                left -= self.chunks[chunk].len();
                chunk += 1;
            }
            (chunk, left)
        } else {
            let (mut chunk, mut left) = (self.chunks.len() - 1, self.len - index);
            while left > self.chunks[chunk].len() {
                left -= self.chunks[chunk].len();
                chunk -= 1;
            }
            (chunk, self.chunks[chunk].len() - left)
        };
        ListPosition { chunk, offset: self.chunks[chunk].place_of(inside) }
    }

    /// Iterates over the elements from an index to the back.
    pub fn iter_from(&self, index: usize) -> Iter<'_> {
        if index >= self.len {
            return Iter { list: self, place: ListPosition { chunk: 0, offset: 0 }, left: 0 };
        }
        Iter { list: self, place: self.place_of(index), left: self.len - index }
    }

    /// Iterates over the elements from back to front.
    pub fn iter_back(&self) -> IterBack<'_> {
        let chunk = self.chunks.len().saturating_sub(1);
        let offset = self.chunks.back().map_or(0, Chunk::end);
        IterBack { list: self, place: ListPosition { chunk, offset }, left: self.len }
    }

    /// Replaces the element at an index, negative from the back; `false` if there is none.
    pub fn set(&mut self, index: i64, element: &[u8]) -> bool {
        let Some(index) = self.absolute(index) else { return false };
        let place = self.place_of(index);
        self.before_change(place.chunk);
        if !self.chunks[place.chunk].set(place.offset, element) {
            // The longer element does not fit: insert it next to the old one, then remove that.
            let old = self.chunks[place.chunk].next(place.offset).1;
            self.insert_at(ListPosition { offset: old, ..place }, element);
            self.trim_one(index);
        }
        true
    }

    /// Removes the element at an index, which must exist.
    fn trim_one(&mut self, index: usize) {
        let place = self.place_of(index);
        self.before_change(place.chunk);
        let chunk = &mut self.chunks[place.chunk];
        let before = chunk_index(chunk, place.offset);
        if before == 0 {
            chunk.drop_one(End::Front);
        } else {
            let mut behind = chunk.split(place.offset, before);
            behind.drop_one(End::Front);
            if behind.len() > 0 {
                self.chunks.insert(place.chunk + 1, behind);
            }
        }
        self.len -= 1;
        self.tidy(place.chunk.saturating_sub(1)..place.chunk + 3);
    }

    /// Inserts an element before or after the first one equal to `pivot`; `false` if there is none.
    pub fn insert_beside(&mut self, pivot: &[u8], behind: bool, element: &[u8]) -> bool {
        let Some((place, next)) = self.find(pivot) else { return false };
        self.insert_at(if behind { next } else { place }, element);
        true
    }

    /// Returns the places before and after the first element that equals `pivot`.
    fn find(&self, pivot: &[u8]) -> Option<(ListPosition, ListPosition)> {
        for (number, chunk) in self.chunks.iter().enumerate() {
            let mut offset = chunk.start();
            while offset < chunk.end() {
                let (element, next) = chunk.next(offset);
                if element == pivot {
                    return Some((
                        ListPosition { chunk: number, offset },
                        ListPosition { chunk: number, offset: next },
                    ));
                }
                offset = next;
            }
        }
        None
    }

    /// Inserts an element at a place of a list that is not empty.
    fn insert_at(&mut self, place: ListPosition, element: &[u8]) {
        let ListPosition { chunk: number, offset } = place;
        self.len += 1;
        if self.capture.is_some() {
            (number.saturating_sub(1)..number + 2).for_each(|number| self.before_change(number));
        }
        let chunk = &mut self.chunks[number];
        if chunk.insert(offset, element) {
            return;
        }
        if offset == chunk.start() {
            let pushed = number > 0 && self.chunks[number - 1].push(End::Back, element);
            if !pushed {
                self.chunks.insert(number, Chunk::of(element, End::Back, false));
            }
        } else if offset == chunk.end() {
            let next = self.chunks.get_mut(number + 1);
            if !next.is_some_and(|next| next.push(End::Front, element)) {
                self.chunks.insert(number + 1, Chunk::of(element, End::Back, false));
            }
        } else {
            let before = chunk_index(chunk, offset);
            let behind = chunk.split(offset, before);
            let pushed = chunk.push(End::Back, element);
            self.chunks.insert(number + 1, behind);
            if !pushed {
                self.chunks.insert(number + 1, Chunk::of(element, End::Back, false));
            }
            self.tidy(number..number + 3);
        }
    }

    /// Removes elements equal to `element`: the first `count`, the last `-count`, or all of them if
    /// `count` is 0. Returns the number removed.
    pub fn remove(&mut self, element: &[u8], count: i64) -> usize {
        let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        let (mut skip, limit) = match count {
            0 => (0, usize::MAX),
            1.. => (0, wanted),
            _ => {
                let all = self.iter_from(0).filter(|other| *other == element).count();
                (all.saturating_sub(wanted), wanted)
            }
        };
        let mut left = limit;
        for number in 0..self.chunks.len() {
            if left == 0 {
                break;
            }
            if self.capture.is_some() && self.chunks[number].contains(element) {
                self.before_change(number);
            }
            self.chunks[number].remove_equal(element, &mut skip, &mut left);
        }
        let removed = limit - left;
        if removed > 0 {
            self.len -= removed;
            self.tidy(0..self.chunks.len());
        }
        removed
    }

    /// Removes all elements except those at the indices `kept`. O(elements removed).
    pub fn trim(&mut self, kept: Range<usize>) {
        let kept = kept.start.min(self.len)..kept.end.min(self.len);
        if kept.is_empty() {
            for chunk in std::mem::take(&mut self.chunks) {
                self.after_departure(Some(chunk));
            }
            self.len = 0;
            return;
        }
        let back = self.len - kept.end;
        self.drop_elements(End::Front, kept.start);
        self.drop_elements(End::Back, back);
        let (len, kept_len) = (self.len, kept.len());
        assert!(len == kept_len, "a list has {len} elements left, and {kept_len} were to be kept");
        if self.chunks.len() == 1
            && let Some(only) = self.chunks.front_mut()
            && only.is_sparse()
        {
            only.shrink();
        }
    }

    fn drop_elements(&mut self, end: End, mut count: usize) {
        self.len -= count;
        while let Some(first) = self.chunk_at(end).map(|chunk| chunk.len()).filter(|&len| len <= count) {
            count -= first;
            self.drop_chunk(end);
        }
        if count > 0 {
            self.before_change_at(end);
            let chunk = self.chunk_at(end).expect("a list that has elements has a chunk");
            chunk.drop_many(end, count);
        }
    }

    /// Appends the elements of another list. O(chunks).
    pub(crate) fn append(&mut self, mut behind: Self) {
        assert!(
            self.capture.is_none() && behind.capture.is_none(),
            "a list that is captured is joined to another"
        );
        self.chunks.append(&mut behind.chunks);
        self.len += behind.len;
    }

    /// Removes empty chunks and merges small neighbours in a range of chunks.
    fn tidy(&mut self, range: Range<usize>) {
        let range = range.start..range.end.min(self.chunks.len());
        let mut kept: Vec<Chunk> = Vec::with_capacity(range.len());
        for chunk in self.chunks.drain(range.clone()) {
            // Chunks that a snapshot has not written yet must not be merged.
            let joined = chunk.len() == 0
                || chunk.place().is_none()
                    && kept.last_mut().is_some_and(|last| last.place().is_none() && last.absorb(&chunk));
            if !joined {
                kept.push(chunk);
            }
        }
        if range.start == self.chunks.len() {
            self.chunks.extend(kept);
        } else {
            for chunk in kept.into_iter().rev() {
                self.chunks.insert(range.start, chunk);
            }
        }
    }
}

/// Returns the number of elements before a place in a chunk.
fn chunk_index(chunk: &Chunk, place: usize) -> usize {
    let (mut offset, mut index) = (chunk.start(), 0);
    while offset < place {
        offset = chunk.next(offset).1;
        index += 1;
    }
    index
}

/// Iterator from front to back.
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    list: &'a List,
    place: ListPosition,
    left: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        if self.place.offset == self.list.chunks[self.place.chunk].end() {
            let chunk = self.place.chunk + 1;
            self.place = ListPosition { chunk, offset: self.list.chunks[chunk].start() };
        }
        let (element, next) = self.list.chunks[self.place.chunk].next(self.place.offset);
        self.place.offset = next;
        Some(element)
    }
}

/// Iterator from back to front.
#[derive(Debug, Clone)]
pub struct IterBack<'a> {
    list: &'a List,
    place: ListPosition,
    left: usize,
}

impl<'a> Iterator for IterBack<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        if self.place.offset == self.list.chunks[self.place.chunk].start() {
            let chunk = self.place.chunk - 1;
            self.place = ListPosition { chunk, offset: self.list.chunks[chunk].end() };
        }
        let (element, previous) = self.list.chunks[self.place.chunk].previous(self.place.offset);
        self.place.offset = previous;
        Some(element)
    }
}

impl Value for List {
    collection_methods!();

    fn encode(&self, into: &mut Vec<u8>) {
        put_varint(into, self.len as u64);
        self.iter_from(0).for_each(|element| put_bytes(into, element));
    }

    fn decode(bytes: &mut Cursor<'_>) -> Option<Self> {
        // Elements are added one by one, so a corrupt count cannot reserve more than the input.
        let count = bytes.varint().filter(|&count| count > 0)?;
        let mut list = Self::default();
        for _ in 0..count {
            list.push_encoded(bytes)?;
        }
        Some(list)
    }

    fn digest(&self) -> u64 {
        let mut hasher = Xxh3::new();
        for element in self.iter_from(0) {
            hasher.update(&(element.len() as u64).to_le_bytes());
            hasher.update(element);
        }
        hasher.digest()
    }
}

const _: () = assert!(CHUNK_BYTES < MAX_BYTES && MAX_BYTES + 10 <= u32::MAX as usize);

#[cfg(test)]
mod tests;
