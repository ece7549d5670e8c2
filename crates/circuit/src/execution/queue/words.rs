//! Memory for entries of any types: words that are accessed only through raw pointers.
//!
//! A `Box` would claim unique access to its content whenever it is moved or dereferenced, while the
//! pointers that the ends of a queue keep are in use.
#![allow(unsafe_code, reason = "owns an allocation by its pointer")]

use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

/// A word of memory that may hold a token or a part of a value.
pub(crate) type Word = MaybeUninit<u64>;

/// An allocation of words.
pub(crate) struct Words(NonNull<[Word]>);

// SAFETY: memory may be freed on any thread. The queue is responsible for its content.
unsafe impl Send for Words {}

impl Words {
    pub(crate) fn new(count: usize) -> Self {
        let words = NonNull::new(Box::into_raw(Box::new_uninit_slice(count)));
        Self(words.expect("a box is somewhere"))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn start(&self) -> *mut Word {
        self.0.cast().as_ptr()
    }

    pub(crate) fn end(&self) -> *mut Word {
        // SAFETY: that is the end of the allocation.
        unsafe { self.start().add(self.len()) }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: made as a box of as many words.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(self.start(), self.len())) });
    }
}

/// The words that a value of this many bytes takes.
pub(crate) const fn words_for(bytes: usize) -> usize {
    bytes.div_ceil(8)
}
