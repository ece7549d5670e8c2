//! A word that holds a number first, and a pointer to something larger for good once that exists.
#![allow(unsafe_code, reason = "a key that is not hot is to take no more room than a number does")]

use crate::sync::{AtomicPtr, Ordering};
use std::ptr;

const _: () = assert!(usize::BITS == 64, "counters are 64 bits wide");

/// See the module. It does not record which of the two it holds; the caller must.
#[derive(Debug)]
pub(crate) struct Base<T>(AtomicPtr<T>);

impl<T> Base<T> {
    pub(crate) fn new(number: i64) -> Self {
        Self(AtomicPtr::new(ptr::without_provenance_mut(number as usize)))
    }

    /// Returns the number, if it holds one.
    #[inline]
    pub(crate) fn number(&self) -> i64 {
        self.0.load(Ordering::Relaxed).addr() as i64
    }

    pub(crate) fn set_number(&self, number: i64) {
        self.0.store(ptr::without_provenance_mut(number as usize), Ordering::Relaxed);
    }

    /// Stores a pointer to `thing`, for as long as this exists.
    pub(crate) fn set_place(&self, thing: Box<T>) {
        self.0.store(Box::into_raw(thing), Ordering::Release);
    }

    /// Returns the thing that is pointed to.
    ///
    /// The caller must have observed, by an acquiring load, a value that was stored after
    /// [`set_place`](Self::set_place) was called.
    #[inline]
    pub(crate) unsafe fn thing(&self) -> &T {
        // SAFETY: the pointer comes from a box that is neither changed nor freed while it is
        // borrowed from `self`.
        unsafe { &*self.0.load(Ordering::Acquire) }
    }

    /// Frees the thing.
    ///
    /// # Safety
    /// As for [`thing`](Self::thing), and `self` is not used again.
    pub(crate) unsafe fn free(&mut self) {
        // SAFETY: the pointer comes from a box, and `self` is borrowed exclusively, so there is no
        // other borrow of the thing.
        drop(unsafe { Box::from_raw(self.0.load(Ordering::Acquire)) });
    }
}
