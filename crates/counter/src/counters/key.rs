//! A counter with its name: one shared, reference-counted allocation.
//!
//! ```text
//!  ┌─────────┬────────────┬──────────┬─────────────┬───────┬──────────┐
//!  │ counter │ references │ settings │ name length │ state │ name ... │
//!  └─────────┴────────────┴──────────┴─────────────┴───────┴──────────┘
//! ```
//! A [`KeyRef`] is one reference; the last one frees the block. References are few: the table has
//! one, each handle has one, and the committer has some while the counter is dirty. A thread that
//! finds a counter by name has none: it is a reader (`readers`), and the table's reference is not
//! released before it has left.

#![allow(unsafe_code, reason = "a counter and its name in one block, of which there may be millions")]

use super::life::Life;
use crate::counter::Counter;
use crate::sync::{AtomicU16, Ordering, fence};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

/// The longest name that is possible. Bytes.
pub(crate) const MAX_NAME: usize = u16::MAX as usize;

/// Above this, references are not counted any more and the counter is never freed. Far enough from
/// overflow for concurrent increments by all threads.
const STICKY: u16 = 1 << 15;

/// The counter is dirty, and the committer has it.
const DIRTY: u16 = 1;
/// The counter has reached its threshold, and a commit has been requested.
const CALLED: u16 = 2;
/// The settings were changed individually and would be lost by an eviction.
const PINNED: u16 = 4;
/// One sweep since the last use.
const SWEEP: u16 = 1 << 8;
const SWEEPS: u16 = !(SWEEP - 1);

/// The header in front of the name.
#[repr(C)]
pub(crate) struct Key {
    counter: Counter,
    references: AtomicU16,
    /// Number of its settings; see `settings`.
    settings: AtomicU16,
    name_length: u16,
    /// Flags in the lower byte, sweeps since the last use in the upper.
    state: AtomicU16,
    life: Life,
}

impl Key {
    #[inline]
    pub(crate) fn counter(&self) -> &Counter {
        &self.counter
    }

    pub(crate) fn settings(&self) -> u16 {
        self.settings.load(Ordering::Relaxed)
    }

    pub(crate) fn set_settings(&self, settings: u16) {
        self.settings.store(settings, Ordering::Relaxed);
    }

    /// Whether a use needs no bookkeeping: the counter is dirty, and was used since the last sweep.
    #[inline]
    pub(crate) fn is_known_as_dirty_and_used(&self) -> bool {
        self.state.load(Ordering::Relaxed) & (DIRTY | SWEEPS) == DIRTY
    }

    /// Records a use, and returns whether the counter is dirty.
    pub(crate) fn touch(&self) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        if state & SWEEPS != 0 {
            self.state.fetch_and(!SWEEPS, Ordering::Relaxed);
        }
        state & DIRTY != 0
    }

    /// Marks it dirty; returns `false` if it was.
    pub(crate) fn set_dirty(&self) -> bool {
        self.state.fetch_or(DIRTY, Ordering::AcqRel) & DIRTY == 0
    }

    pub(crate) fn set_rested(&self) {
        self.state.fetch_and(!DIRTY, Ordering::AcqRel);
    }

    /// Records that a commit is requested because the threshold is reached; returns `false` if one
    /// was requested already.
    ///
    /// This and [`answer_call`](Self::answer_call) write even if nothing changes, so one of the two
    /// sees the other.
    pub(crate) fn call(&self) -> bool {
        self.state.fetch_or(CALLED, Ordering::AcqRel) & CALLED == 0
    }

    /// Clears the request after a commit, or if there was nothing to commit.
    pub(crate) fn answer_call(&self) {
        self.state.fetch_and(!CALLED, Ordering::AcqRel);
    }

    pub(crate) fn set_pinned(&self, is_pinned: bool) {
        if is_pinned {
            self.state.fetch_or(PINNED, Ordering::AcqRel);
        } else {
            self.state.fetch_and(!PINNED, Ordering::AcqRel);
        }
    }

    /// Records a sweep, and returns the number of earlier ones since the last use.
    pub(crate) fn sweep(&self) -> u16 {
        let sweeps = self.state.load(Ordering::Relaxed) / SWEEP;
        if sweeps < SWEEPS / SWEEP {
            self.state.fetch_add(SWEEP, Ordering::Relaxed);
        }
        sweeps
    }

    /// Whether only the table refers to it and nothing would be lost. If it cannot be found by
    /// name, that stays true.
    pub(crate) fn is_idle(&self) -> bool {
        let is_alone = self.references.load(Ordering::Acquire) == 1;
        is_alone && self.state.load(Ordering::Acquire) & (DIRTY | PINNED) == 0 && {
            let books = self.counter.books();
            books.sealed() == 0 && books.open() == 0
        }
    }
}

fn layout(name_length: usize) -> Layout {
    // A name has at most `MAX_NAME` bytes, so the sum is far from any limit.
    let (size, align) = (size_of::<Key>() + name_length, align_of::<Key>());
    Layout::from_size_align(size, align).expect("a small block")
}

fn name_of<'key>(key: NonNull<Key>) -> &'key [u8] {
    // SAFETY: private, and called only with pointers to blocks that live as long as 'key. The name
    // is written when a block is made and never changes. The pointers come from the allocation, so
    // they are valid for the whole block.
    unsafe {
        key.as_ref().life.is_used();
        let length = usize::from((*key.as_ptr()).name_length);
        std::slice::from_raw_parts(key.as_ptr().add(1).cast::<u8>(), length)
    }
}

/// A counted reference.
pub(crate) struct KeyRef(NonNull<Key>);

// SAFETY: a key consists of atomics, a counter, which is `Sync`, and a name that never changes.
unsafe impl Send for KeyRef {}
// SAFETY: as above.
unsafe impl Sync for KeyRef {}

impl KeyRef {
    /// Creates a key with one reference.
    pub(crate) fn new(name: &[u8], counter: Counter, settings: u16) -> Self {
        assert!(name.len() <= MAX_NAME, "checked by the caller that takes a name from outside");
        let layout = layout(name.len());
        // SAFETY: the layout is not empty.
        let block = unsafe { alloc(layout) };
        #[allow(clippy::cast_ptr_alignment, reason = "the layout has a key's alignment")]
        let Some(key) = NonNull::new(block.cast::<Key>()) else { handle_alloc_error(layout) };
        let head = Key {
            counter,
            references: AtomicU16::new(1),
            settings: AtomicU16::new(settings),
            name_length: name.len() as u16,
            state: AtomicU16::new(0),
            life: Life::begin(),
        };
        // SAFETY: the block has room for the header, at its alignment, and for the name after it.
        unsafe {
            key.write(head);
            std::ptr::copy_nonoverlapping(name.as_ptr(), key.as_ptr().add(1).cast::<u8>(), name.len());
        }
        Self(key)
    }

    pub(crate) fn name(&self) -> &[u8] {
        name_of(self.0)
    }

    /// Returns the address, which identifies the key while a reference exists.
    pub(crate) fn place(&self) -> usize {
        self.0.addr().get()
    }

    /// Returns an uncounted reference.
    #[inline]
    pub(crate) fn found(&self) -> Found<'_> {
        Found { key: self.0, _inside: PhantomData }
    }

    /// Converts the reference to a pointer, which stays counted.
    pub(super) fn into_raw(self) -> NonNull<Key> {
        let key = self.0;
        std::mem::forget(self);
        key
    }

    /// # Safety
    /// The pointer comes from [`into_raw`](Self::into_raw), and is passed here at most once.
    pub(super) unsafe fn from_raw(key: NonNull<Key>) -> Self {
        Self(key)
    }
}

impl Deref for KeyRef {
    type Target = Key;

    #[inline]
    fn deref(&self) -> &Key {
        // SAFETY: the reference keeps the block alive.
        let key = unsafe { self.0.as_ref() };
        key.life.is_used();
        key
    }
}

impl Clone for KeyRef {
    fn clone(&self) -> Self {
        let before = self.references.fetch_add(1, Ordering::Relaxed);
        if before >= STICKY {
            self.references.store(STICKY + STICKY / 2, Ordering::Relaxed);
        }
        Self(self.0)
    }
}

impl Drop for KeyRef {
    fn drop(&mut self) {
        // Checked before the reference is released: afterwards the key must not be touched.
        if self.references.load(Ordering::Relaxed) >= STICKY {
            return;
        }
        let before = self.references.fetch_sub(1, Ordering::Release);
        assert_ne!(before, 0, "more references are given up than there are");
        if before == 1 {
            fence(Ordering::Acquire);
            let layout = layout(usize::from(self.name_length));
            // SAFETY: this was the last reference, so the block has not been freed.
            if !unsafe { self.0.as_ref() }.life.ends() {
                return;
            }
            // SAFETY: this was the last reference, so the block is unused; it was allocated with
            // this layout.
            unsafe {
                self.0.drop_in_place();
                dealloc(self.0.as_ptr().cast(), layout);
            }
        }
    }
}

/// An uncounted reference, valid for as long as `'inside`.
#[derive(Clone, Copy)]
pub(crate) struct Found<'inside> {
    key: NonNull<Key>,
    _inside: PhantomData<&'inside ()>,
}

impl<'inside> Found<'inside> {
    /// # Safety
    /// A counted reference exists for as long as `'inside`.
    pub(super) unsafe fn new(key: NonNull<Key>) -> Self {
        Self { key, _inside: PhantomData }
    }

    #[inline]
    pub(crate) fn name(self) -> &'inside [u8] {
        name_of(self.key)
    }

    pub(super) fn pointer(self) -> NonNull<Key> {
        self.key
    }

    /// Returns a counted reference.
    pub(crate) fn hold(self) -> KeyRef {
        // SAFETY: a counted reference exists; this temporary copy does not release it.
        let theirs = std::mem::ManuallyDrop::new(unsafe { KeyRef::from_raw(self.key) });
        KeyRef::clone(&theirs)
    }
}

impl Deref for Found<'_> {
    type Target = Key;

    #[inline]
    fn deref(&self) -> &Key {
        // SAFETY: a counted reference exists for as long as this value.
        let key = unsafe { self.key.as_ref() };
        key.life.is_used();
        key
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Kind, Promise};

    fn key(name: &[u8]) -> KeyRef {
        KeyRef::new(name, Counter::new(Kind::Plain, Promise::Relaxed { cap: 10 }, 5), 3)
    }

    #[test]
    fn a_key_has_its_name_and_its_counter_until_the_last_reference_has_gone() {
        for name in [&b""[..], b"a", b"tenant:1", &vec![7; MAX_NAME]] {
            let first = key(name);
            let second = first.clone();
            drop(first);
            assert_eq!((second.name(), second.counter().position(), second.settings()), (name, 5, 3));
            assert!(second.is_idle());
        }
    }

    #[test]
    fn a_key_with_more_references_than_are_counted_stays() {
        let key = key(b"popular");
        let others: Vec<_> = (0..70_000).map(|_| key.clone()).collect();
        drop(others);
        assert_eq!(key.name(), b"popular");
        assert!(!key.is_idle());
        key.counter().add(1).unwrap();
        // Freed by hand, because sticky references are never freed.
        key.references.store(1, Ordering::Relaxed);
    }

    #[test]
    fn sweeps_are_counted_since_the_last_use_and_do_not_touch_the_flags() {
        let key = key(b"k");
        assert!(key.set_dirty());
        assert!(!key.set_dirty());
        for sweeps in 0..300 {
            assert_eq!(key.sweep(), sweeps.min(255));
        }
        assert!(!key.is_known_as_dirty_and_used());
        assert!(key.touch());
        assert!(key.is_known_as_dirty_and_used());
        key.set_rested();
        assert!(!key.touch());
    }
}

/// All interleavings of two threads with references to one key, explored by loom.
#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::{Kind, Promise};
    use loom::thread;

    /// The thread that releases the last reference has seen what all other threads did with the
    /// key, and no thread uses it afterwards.
    #[test]
    fn loom_the_last_reference_ends_a_key() {
        loom::model(|| {
            let key = KeyRef::new(b"key", Counter::new(Kind::Plain, Promise::Relaxed { cap: 10 }, 0), 0);
            let other = key.clone();
            let thread = thread::spawn(move || {
                let third = other.clone();
                drop(other);
                assert_eq!(third.name(), b"key");
            });
            assert_eq!(key.name(), b"key");
            drop(key);
            thread.join().unwrap();
        });
    }

    /// Of two threads that mark a key dirty concurrently exactly one succeeds, and the flags are
    /// independent.
    #[test]
    fn loom_flags_are_set_by_one() {
        loom::model(|| {
            let key = KeyRef::new(b"key", Counter::new(Kind::Plain, Promise::Relaxed { cap: 10 }, 0), 0);
            let other = key.clone();
            let thread = thread::spawn(move || {
                other.sweep();
                other.set_dirty()
            });
            let mine = key.set_dirty();
            key.touch();
            let theirs = thread.join().unwrap();
            assert!(mine != theirs);
            assert!(!key.set_dirty());
        });
    }
}
