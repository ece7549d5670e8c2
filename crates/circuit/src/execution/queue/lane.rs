//! A queue into a circuit for one producer: no shared counter, no read-modify-write.
//!
//! ```text
//!   chunk ── next ──► chunk
//!   ▲ reader             ▲ writer
//! ```
//!
//! The producer counts its entries in `written`, and every [`PUBLISH_EVERY`] entries also in
//! `published`. A busy consumer reads only `published`, so the cache line that the producer writes
//! for each entry stays with the producer. A consumer with nothing else to do reads `written`, so
//! no entry stays unseen.
//!
//! A producer is as fast as its stores. A store to a cache line that the consumer has read waits
//! until the producer owns the line again: several nanoseconds per entry if that happens line by
//! line, between stores to the producer's own data. So chunks are small, and each is zeroed before
//! it is written: stores to consecutive lines do not wait for each other, and after them the whole
//! chunk is in the producer's cache. That at least halves the cost of an entry at both ends.
#![allow(
    unsafe_code,
    reason = "values of any types are moved through shared chunks; each function says what it relies on"
)]

use std::ptr;

use super::token::Token;
use super::words::{Word, Words, words_for};
use crate::sync::{Apart, Arc, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

#[cfg(not(loom))]
const CHUNK_WORDS: usize = 256;
#[cfg(loom)]
const CHUNK_WORDS: usize = 4;

/// Up to where a consumer reads a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// What was published: all but the last few entries.
    Published,
    /// Everything.
    Written,
}

/// Approximate number of consumed chunks kept for the writer: as much as fits into a first-level
/// cache.
const SPARES_MAX: usize = 16;

/// Number of entries after which they are published to a busy consumer.
pub(crate) const PUBLISH_EVERY: u64 = 32;

struct Chunk {
    words: Words,
    /// The chunk after this one, set before an entry in it is counted.
    next: AtomicPtr<Chunk>,
}

impl Chunk {
    fn with_words(count: usize) -> *mut Self {
        Box::into_raw(Box::new(Self { words: Words::new(count), next: AtomicPtr::new(ptr::null_mut()) }))
    }
}

/// State shared by the two ends of a lane.
pub(crate) struct Lane {
    /// Number of entries written, plus [`CLOSED`] once there will be no more.
    written: Apart<AtomicU64>,
    published: Apart<AtomicU64>,
    consumed: Apart<AtomicU64>,
    /// Chunks that were read to their end, for the writer to reuse, linked by `next`. The reader
    /// pushes single chunks and the writer takes all of them, so no chunk can return while a thread
    /// uses it (no ABA problem).
    spares: AtomicPtr<Chunk>,
    /// Approximate length of `spares`: a chunk that is pushed while the writer takes all may not be
    /// counted.
    spares_count: AtomicUsize,
}

/// Bit of `written` that marks that the writer is gone.
const CLOSED: u64 = 1 << 63;

/// The producer's end.
pub(crate) struct Writer {
    lane: Arc<Lane>,
    chunk: *mut Chunk,
    write: *mut Word,
    end: *mut Word,
    written: u64,
    /// Chunks to reuse, linked by `next`.
    spares: *mut Chunk,
}

/// The consumer's end.
pub(crate) struct Reader {
    lane: Arc<Lane>,
    chunk: *mut Chunk,
    read: *mut Word,
    end: *mut Word,
    consumed: u64,
    /// The value of `written` or `published` that was read last.
    seen: u64,
}

// SAFETY: there is one writer and one reader; the values are `Send`, which `Writer::push` requires;
// entries are read only after they were counted with release and the count was loaded with acquire.
unsafe impl Send for Writer {}
// SAFETY: as above.
unsafe impl Send for Reader {}

/// Makes a lane and returns its two ends.
pub(crate) fn lane() -> (Writer, Reader) {
    let lane = Arc::new(Lane {
        written: Apart::new(AtomicU64::new(0)),
        published: Apart::new(AtomicU64::new(0)),
        consumed: Apart::new(AtomicU64::new(0)),
        spares: AtomicPtr::new(ptr::null_mut()),
        spares_count: AtomicUsize::new(0),
    });
    let chunk = Chunk::with_words(CHUNK_WORDS);
    // SAFETY: the chunk was just made.
    let (start, end) = unsafe { ((*chunk).words.start(), (*chunk).words.end()) };
    let writer =
        Writer { lane: Arc::clone(&lane), chunk, write: start, end, written: 0, spares: ptr::null_mut() };
    (writer, Reader { lane, chunk, read: start, end, consumed: 0, seen: 0 })
}

impl Lane {
    /// Number of entries written, and how many of them were consumed.
    pub(crate) fn counts(&self) -> (u64, u64) {
        // `consumed` is read first, so that it never exceeds `written`.
        let consumed = self.consumed.load(Ordering::Acquire);
        (self.written.load(Ordering::Acquire) & !CLOSED, consumed)
    }

    /// Returns whether there are entries that were not consumed.
    pub(crate) fn has_work(&self) -> bool {
        self.written.load(Ordering::Acquire) & !CLOSED != self.consumed.load(Ordering::Acquire)
    }
}

impl Writer {
    /// Appends an entry, which owns the value from then on. Allocates only where a chunk begins and
    /// no spare one is left.
    ///
    /// # Safety
    ///
    /// `E` is `Send`, and the code that takes the entry out reads an `E`.
    #[inline]
    pub(crate) unsafe fn push<E>(&mut self, token: Token, value: E) {
        let needed = 1 + const { words_for(size_of::<E>()) };
        if (self.end.addr() - self.write.addr()) / 8 < needed {
            self.next_chunk(needed);
        }
        // SAFETY: there is room for the entry.
        unsafe {
            self.write.cast::<*mut ()>().write(token.into_raw());
            self.write.add(1).cast::<E>().write_unaligned(value);
            self.write = self.write.add(needed);
        }
        self.written += 1;
        self.lane.written.store(self.written, Ordering::Release);
        if self.written.is_multiple_of(PUBLISH_EVERY) {
            self.lane.published.store(self.written, Ordering::Release);
        }
    }

    #[cold]
    fn next_chunk(&mut self, needed: usize) {
        if self.write != self.end {
            // SAFETY: there is at least one word. A null token sends the reader to the next chunk.
            unsafe { self.write.cast::<*mut ()>().write(ptr::null_mut()) };
        }
        let chunk = self.take_spare(needed).unwrap_or_else(|| Chunk::with_words(CHUNK_WORDS.max(needed)));
        // SAFETY: the new chunk is the writer's; the old one is not freed before the reader has
        // seen its successor.
        unsafe {
            // Only for the cache, see the module.
            ptr::write_bytes((*chunk).words.start(), 0, CHUNK_WORDS);
            (*chunk).next.store(ptr::null_mut(), Ordering::Relaxed);
            (self.write, self.end) = ((*chunk).words.start(), (*chunk).words.end());
            (*self.chunk).next.store(chunk, Ordering::Release);
        }
        self.chunk = chunk;
    }

    /// Returns a consumed chunk, if there is one and `needed` words fit.
    fn take_spare(&mut self, needed: usize) -> Option<*mut Chunk> {
        if needed > CHUNK_WORDS {
            return None;
        }
        if self.spares.is_null() {
            self.spares = self.lane.spares.swap(ptr::null_mut(), Ordering::Acquire);
            self.lane.spares_count.store(0, Ordering::Relaxed);
        }
        let chunk = self.spares;
        // SAFETY: spare chunks belong to the writer once it has taken them.
        let spare = unsafe { chunk.as_ref() }?;
        self.spares = spare.next.load(Ordering::Relaxed);
        assert_eq!(spare.words.len(), CHUNK_WORDS, "larger chunks are not kept");
        Some(chunk)
    }

    /// The shared state of this lane.
    pub(crate) fn lane(&self) -> &Arc<Lane> {
        &self.lane
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.lane.written.store(self.written | CLOSED, Ordering::Release);
        self.lane.published.store(self.written, Ordering::Release);
        free_all(self.spares);
    }
}

impl Reader {
    /// Number of entries consumed.
    pub(crate) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Reads the number of entries written.
    pub(crate) fn written(&mut self) -> u64 {
        self.seen = self.lane.written.load(Ordering::Acquire) & !CLOSED;
        self.seen
    }

    /// Returns whether there will never be another entry.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.lane.written.load(Ordering::Acquire) == self.consumed | CLOSED
    }

    /// Number of known entries. If there are none, reads the count up to this edge of the lane
    /// first.
    #[inline]
    pub(crate) fn known(&mut self, edge: Edge) -> usize {
        if self.consumed == self.seen {
            self.seen = match edge {
                // `published` may be less than what was seen of `written`.
                Edge::Published => self.lane.published.load(Ordering::Acquire).max(self.seen),
                Edge::Written => self.lane.written.load(Ordering::Acquire) & !CLOSED,
            };
        }
        (self.seen - self.consumed) as usize
    }

    /// Takes the next known entry. Returns its token, and where its value is until the next call of
    /// this or of [`Reader::consume`].
    ///
    /// # Safety
    ///
    /// `known` or `written` has counted it, and `value_words` returns the words that `push` used
    /// for the value of this token.
    #[inline]
    pub(crate) unsafe fn next(&mut self, value_words: impl FnOnce(Token) -> usize) -> (Token, *mut u8) {
        // SAFETY: an entry was counted, so it is here, or the chunk ends here and it is in the
        // next.
        unsafe {
            if self.read == self.end || self.read.cast::<*mut ()>().read().is_null() {
                self.next_chunk();
            }
            let token = Token::from_raw(self.read.cast::<*mut ()>().read());
            let value = self.read.add(1);
            self.read = value.add(value_words(token));
            self.consumed += 1;
            (token, value.cast())
        }
    }

    /// Marks all entries taken so far as done.
    pub(crate) fn consume(&self) {
        self.lane.consumed.store(self.consumed, Ordering::Release);
    }

    #[cold]
    unsafe fn next_chunk(&mut self) {
        // SAFETY: the writer has left this chunk, and set its successor before it counted an entry
        // there.
        unsafe {
            let next = (*self.chunk).next.load(Ordering::Acquire);
            assert!(!next.is_null(), "entry {} has no chunk", self.consumed);
            self.give_back(self.chunk);
            self.chunk = next;
            (self.read, self.end) = ((*next).words.start(), (*next).words.end());
        }
    }

    /// Passes a chunk that was read to its end to the writer, or frees it if there are enough.
    fn give_back(&self, chunk: *mut Chunk) {
        // SAFETY: the reader owns it.
        let is_large = unsafe { (*chunk).words.len() } > CHUNK_WORDS;
        if is_large || self.lane.spares_count.load(Ordering::Relaxed) >= SPARES_MAX {
            return free(chunk);
        }
        self.lane.spares_count.fetch_add(1, Ordering::Relaxed);
        let mut first = self.lane.spares.load(Ordering::Relaxed);
        loop {
            // SAFETY: writer and reader have both left the chunk, so the reader owns it until the
            // exchange.
            unsafe { (*chunk).next.store(first, Ordering::Relaxed) };
            match self.lane.spares.compare_exchange_weak(first, chunk, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// The lane that this reads.
    pub(crate) fn lane(&self) -> *const Lane {
        Arc::as_ptr(&self.lane)
    }
}

impl Drop for Reader {
    /// The writer must be gone, and all entries taken: only memory is left to free.
    fn drop(&mut self) {
        assert!(self.is_exhausted(), "entries behind {} were not taken", self.consumed);
        free_all(self.lane.spares.swap(ptr::null_mut(), Ordering::Acquire));
        free(self.chunk);
    }
}

/// Frees a chunk and those linked behind it.
fn free_all(mut chunk: *mut Chunk) {
    // SAFETY: as for `free`.
    while let Some(first) = unsafe { chunk.as_ref() } {
        let next = first.next.load(Ordering::Relaxed);
        free(chunk);
        chunk = next;
    }
}

fn free(chunk: *mut Chunk) {
    if !chunk.is_null() {
        // SAFETY: chunks are made as boxes, and the caller is the only owner.
        drop(unsafe { Box::from_raw(chunk) });
    }
}
