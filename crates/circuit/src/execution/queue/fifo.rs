//! A queue of values of any types, used by one thread at a time: the transit queue of a circuit.
//!
//! ```text
//!   front chunk                       back chunk
//! ┌───────┬───────┬───────┬──────┐   ┌───────┬───────┬─────────┐
//! │ (read)│ token │ value │ ...  │ → │ token │ value │ free    │   words of 8 bytes; a value may take none
//! └───────┴───────┴───────┴──────┘   └───────┴───────┴─────────┘
//!         ▲ read          read_end ▲                 ▲ write
//! ```
//!
//! Entries are never split and never moved. A queue that is emptied again and again stays in one
//! chunk.
#![allow(
    unsafe_code,
    reason = "values of any types are moved in and out as words; each function says what it relies on"
)]

use std::collections::VecDeque;
use std::mem::offset_of;
use std::ptr;

use super::token::Token;
use super::words::{Word, Words, words_for};

const FIRST_CHUNK_WORDS: usize = 64;
const CHUNK_WORDS_MAX: usize = 2048;

/// A growing queue of entries. Keeps one chunk in reserve; [`Fifo::shrink`] frees memory.
///
/// Invariants: `read <= write` in the back chunk if that is also the front chunk, and then
/// `read_end` is null; otherwise `read <= read_end` in the front chunk. Each chunk after the front
/// holds at least one entry. The last word of a chunk stays unused, so that no entry ends where
/// another allocation may begin: `read == write` only if both are in one chunk.
///
/// Fields that each entry changes come first, fields that only a chunk changes last.
#[repr(C)]
pub(crate) struct Fifo {
    read: *mut Word,
    read_end: *mut Word,
    write: *mut Word,
    write_end: *mut Word,
    chunks: VecDeque<Chunk>,
    spare: Option<Words>,
}

struct Chunk {
    words: Words,
    /// Number of words that hold entries; set when the next chunk is begun.
    filled: usize,
}

// SAFETY: the queue owns its entries, and they are `Send`, which `push` requires of its caller.
unsafe impl Send for Fifo {}

impl Default for Fifo {
    fn default() -> Self {
        Self {
            read: ptr::null_mut(),
            read_end: ptr::null_mut(),
            write: ptr::null_mut(),
            write_end: ptr::null_mut(),
            chunks: VecDeque::new(),
            spare: None,
        }
    }
}

impl Fifo {
    /// Offset of the fields that only a chunk changes.
    pub(crate) const CHUNKS: usize = offset_of!(Self, chunks);

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.read == self.write
    }

    /// Appends an entry, which owns the value from then on.
    ///
    /// # Safety
    ///
    /// `E` is `Send`, and the code that takes the entry out reads an `E`.
    #[inline]
    pub(crate) unsafe fn push<E>(&mut self, token: Token, value: E) {
        let place = self.reserve(token, const { words_for(size_of::<E>()) });
        // SAFETY: `reserve` makes room for the words of an `E`; alignment is not assumed.
        unsafe { place.cast::<E>().write_unaligned(value) };
    }

    /// Appends an entry without a value.
    #[inline]
    pub(crate) fn push_token(&mut self, token: Token) {
        self.reserve(token, 0);
    }

    /// Writes the token and returns the room for a value of this many words.
    #[inline]
    fn reserve(&mut self, token: Token, value_words: usize) -> *mut Word {
        let needed = 1 + value_words;
        // Both are null or within one chunk.
        if (self.write_end.addr() - self.write.addr()) / 8 < needed {
            self.make_room(needed);
        }
        // SAFETY: there is room for `needed` words, at the latest since `make_room`.
        unsafe {
            let place = self.write;
            place.cast::<*mut ()>().write(token.into_raw());
            self.write = place.add(needed);
            place.add(1)
        }
    }

    /// Takes the first entry out. Returns its token, and where its value is until the next `push`.
    ///
    /// # Safety
    ///
    /// The queue is not empty. `value_words` returns the words that `push` used for the value of
    /// this token. The caller moves the value out before it calls anything else on this queue.
    #[inline]
    pub(crate) unsafe fn take(&mut self, value_words: impl FnOnce(Token) -> usize) -> (Token, *mut u8) {
        debug_assert!(!self.is_empty());
        if self.read == self.read_end {
            self.next_chunk();
        }
        // SAFETY: there is an entry at `read`, which `reserve` wrote with as many words for the value.
        unsafe {
            let token = Token::from_raw(self.read.cast::<*mut ()>().read());
            let value = self.read.add(1);
            self.read = value.add(value_words(token));
            (token, value.cast())
        }
    }

    #[cold]
    fn make_room(&mut self, needed: usize) {
        if self.is_empty()
            && let Some(chunk) = self.chunks.back()
            && chunk.words.len() > needed
        {
            assert_eq!(self.chunks.len(), 1, "an empty queue has one chunk");
            return self.begin_at_front();
        }
        if let Some(back) = self.chunks.back_mut() {
            back.filled = (self.write.addr() - back.words.start().addr()) / 8;
            if self.chunks.len() == 1 {
                self.read_end = self.write;
            }
        }
        let was_empty = self.is_empty();
        let words = self.new_chunk(needed);
        self.chunks.push_back(Chunk { words, filled: 0 });
        if was_empty {
            // The chunks before the new one are empty.
            self.chunks.drain(..self.chunks.len() - 1);
            self.begin_at_front();
        } else {
            let back = self.chunks.back().expect("a chunk was pushed");
            self.write = back.words.start();
            self.write_end = end_of_entries(&back.words);
        }
    }

    fn new_chunk(&mut self, needed: usize) -> Words {
        match self.spare.take() {
            Some(words) if words.len() > needed => words,
            _ => {
                let last = self.chunks.back().map_or(0, |chunk| chunk.words.len());
                let length = (last * 2).clamp(FIRST_CHUNK_WORDS, CHUNK_WORDS_MAX).max(needed + 1);
                Words::new(length)
            }
        }
    }

    /// Restarts reading and writing at the beginning of the only chunk.
    fn begin_at_front(&mut self) {
        assert_eq!(self.chunks.len(), 1, "nothing is read from another chunk");
        let words = &self.chunks[0].words;
        self.read = words.start();
        self.read_end = ptr::null_mut();
        self.write = words.start();
        self.write_end = end_of_entries(words);
    }

    #[cold]
    fn next_chunk(&mut self) {
        let done = self.chunks.pop_front().expect("there is an entry behind this chunk");
        if self.spare.as_ref().is_none_or(|spare| spare.len() < done.words.len()) {
            self.spare = Some(done.words);
        }
        let single = self.chunks.len() == 1;
        let front = self.chunks.front().expect("there is an entry behind this chunk");
        let start = front.words.start();
        self.read = start;
        // SAFETY: `filled` words of this chunk hold entries.
        self.read_end = if single { ptr::null_mut() } else { unsafe { start.add(front.filled) } };
    }

    /// Frees memory, down to the smallest chunk, if the queue is empty.
    pub(crate) fn shrink(&mut self) {
        if self.is_empty() && self.chunks.front().is_some_and(|chunk| chunk.words.len() > FIRST_CHUNK_WORDS) {
            *self = Self::default();
        }
        self.spare = None;
    }
}

/// Upper bound of where the entries of a chunk end.
fn end_of_entries(words: &Words) -> *mut Word {
    assert!(words.len() > 0, "a chunk has room for a token");
    // SAFETY: within the allocation.
    unsafe { words.start().add(words.len() - 1) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A token that encodes how many words follow.
    fn token(words: usize) -> Token {
        Token::from_raw(ptr::without_provenance_mut((words + 1) * 8))
    }

    fn words(token: Token) -> usize {
        token.into_raw().addr() / 8 - 1
    }

    /// Enough for several chunks; Miri takes a second for a hundred.
    const STEPS_MAX: usize = if cfg!(miri) { 100 } else { 400 };

    #[derive(Clone, Debug)]
    enum FifoStep {
        Push(u64),
        PushLarge([u64; 5]),
        PushToken,
        Pop,
        Shrink,
    }

    fn step() -> impl Strategy<Value = FifoStep> {
        prop_oneof![
            3 => any::<u64>().prop_map(FifoStep::Push),
            2 => any::<[u64; 5]>().prop_map(FifoStep::PushLarge),
            1 => Just(FifoStep::PushToken),
            4 => Just(FifoStep::Pop),
            1 => Just(FifoStep::Shrink),
        ]
    }

    proptest! {
        #[test]
        fn gives_back_in_order_what_was_put_in(steps in prop::collection::vec(step(), 0..STEPS_MAX)) {
            let mut fifo = Fifo::default();
            let mut model = VecDeque::new();
            for step in steps {
                match step {
                    // SAFETY: `token` encodes the words of the value.
                    FifoStep::Push(value) => unsafe {
                        fifo.push(token(1), value);
                        model.push_back(vec![value]);
                    },
                    // SAFETY: as above.
                    FifoStep::PushLarge(value) => unsafe {
                        fifo.push(token(5), value);
                        model.push_back(value.to_vec());
                    },
                    FifoStep::PushToken => {
                        fifo.push_token(token(0));
                        model.push_back(Vec::new());
                    }
                    FifoStep::Pop => {
                        // SAFETY: as above; the words are read before anything else is done.
                        let got = (!fifo.is_empty()).then(|| unsafe {
                            let (token, value) = fifo.take(words);
                            let value = value.cast::<[u8; 8]>();
                            let word = |index| u64::from_ne_bytes(value.add(index).read());
                            (0..words(token)).map(word).collect::<Vec<_>>()
                        });
                        prop_assert_eq!(got, model.pop_front());
                    }
                    FifoStep::Shrink => fifo.shrink(),
                }
                prop_assert_eq!(fifo.is_empty(), model.is_empty());
                // Another allocation may begin where one ends: positions in two chunks must not be
                // equal.
                for chunk in &fifo.chunks {
                    prop_assert_ne!(fifo.write, chunk.words.end());
                    prop_assert_ne!(fifo.read, chunk.words.end());
                }
            }
        }
    }
}
