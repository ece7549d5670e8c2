//! A bounded queue that drops its oldest emission to make room, for circuits with
//! `Overflow::DropOldest`.
//!
//! It has a lock, because here producers take entries out as well. Entries that are no emissions
//! are never dropped. The entry that the consumer handles is stored outside the lock.
#![allow(
    unsafe_code,
    reason = "values of any types are moved in and out as words; each function says what it relies on"
)]

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::ptr;

use super::token::Token;
use super::words::words_for;
use crate::sync::{Mutex, MutexGuard, UnsafeCell, lock};

type Word = MaybeUninit<u64>;

const SMALL_WORDS: usize = 3;

/// The queue as shared by all threads.
pub(crate) struct SharedLatest {
    queue: Mutex<Latest>,
    /// The entry that is being handled. Only the consumer accesses it.
    taken: UnsafeCell<Option<Entry>>,
}

/// See the module.
pub(crate) struct Latest {
    entries: VecDeque<Entry>,
    emissions: usize,
    capacity: usize,
}

/// An entry with its ticket.
pub(crate) struct Entry {
    ticket: u64,
    pub(crate) token: Token,
    value: Value,
}

enum Value {
    Small([Word; SMALL_WORDS]),
    Large(Box<[Word]>),
}

// SAFETY: the queue owns its entries, and they are `Send`, which `push` requires of its caller.
unsafe impl Send for Latest {}
// SAFETY: as above.
unsafe impl Send for SharedLatest {}
// SAFETY: callers of `take` and `drop_taken` guarantee that they are the only consumer.
unsafe impl Sync for SharedLatest {}

impl SharedLatest {
    /// As [`Latest::new`].
    pub(crate) fn new(capacity: usize) -> Self {
        Self { queue: Mutex::new(Latest::new(capacity)), taken: UnsafeCell::new(None) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Latest> {
        lock(&self.queue)
    }

    /// Takes out the first entry. Returns its token, and where its value is until
    /// [`SharedLatest::drop_taken`].
    ///
    /// # Safety
    ///
    /// The caller is the only consumer, and is done with the entry taken before.
    pub(crate) unsafe fn take(&self) -> Option<(Token, *mut u8)> {
        let entry = self.lock().pop()?;
        self.taken.with_mut(|taken| {
            // SAFETY: as the caller says.
            let entry = unsafe { &mut *taken }.insert(entry);
            Some((entry.token, entry.value()))
        })
    }

    /// Drops the entry that was taken out, whose value was moved. Returns its ticket, if there is
    /// one.
    ///
    /// # Safety
    ///
    /// The caller is the only consumer.
    pub(crate) unsafe fn drop_taken(&self) -> Option<u64> {
        // SAFETY: as the caller says.
        self.taken.with_mut(|taken| unsafe { (*taken).take() }.map(|entry| entry.ticket))
    }
}

impl Entry {
    /// Pointer to the value.
    pub(crate) fn value(&mut self) -> *mut u8 {
        match &mut self.value {
            Value::Small(words) => words.as_mut_ptr().cast(),
            Value::Large(words) => words.as_mut_ptr().cast(),
        }
    }
}

impl Latest {
    /// Makes a queue for this many emissions, at least one.
    fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a queue has room for an emission");
        Self { entries: VecDeque::new(), emissions: 0, capacity }
    }

    /// Appends an entry, and returns the oldest emission if it had to make room.
    ///
    /// # Safety
    ///
    /// `E` is `Send`, and the code that takes the entry out reads an `E`.
    pub(crate) unsafe fn push<E>(&mut self, ticket: u64, token: Token, value: E) -> Option<Entry> {
        let words = words_for(size_of::<E>());
        let value = std::mem::ManuallyDrop::new(value);
        let mut place = match words {
            ..=SMALL_WORDS => Value::Small([MaybeUninit::uninit(); SMALL_WORDS]),
            _ => Value::Large(Box::new_uninit_slice(words)),
        };
        let to: *mut Word = match &mut place {
            Value::Small(words) => words.as_mut_ptr(),
            Value::Large(words) => words.as_mut_ptr(),
        };
        // SAFETY: there is room for the bytes of an `E`, and the original is not dropped.
        unsafe { ptr::copy_nonoverlapping((&raw const value).cast::<u8>(), to.cast::<u8>(), size_of::<E>()) };
        let dropped = if token.as_emission().is_some() { self.make_room() } else { None };
        self.entries.push_back(Entry { ticket, token, value: place });
        dropped
    }

    fn make_room(&mut self) -> Option<Entry> {
        if self.emissions < self.capacity {
            self.emissions += 1;
            return None;
        }
        let oldest = self.entries.iter().position(|entry| entry.token.as_emission().is_some());
        self.entries.remove(oldest.expect("as many emissions are here as there is room for"))
    }

    /// Takes out the first entry.
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        if entry.token.as_emission().is_some() {
            self.emissions = self.emissions.checked_sub(1).expect("each emission that is here is counted");
        }
        Some(entry)
    }
}
