//! A word that is a number at first, and the place of something larger for good once there is such a thing.
#![allow(unsafe_code, reason = "a key that is not hot is to take no more room than a number does")]

use crate::sync::{AtomicPtr, Ordering};
use std::ptr;

const _: () = assert!(usize::BITS == 64, "counters are 64 bits wide");

/// See the module. It does not know by itself which of both it is: whoever has it says so.
#[derive(Debug)]
pub(crate) struct Base<T>(AtomicPtr<T>);

impl<T> Base<T> {
    pub(crate) fn new(number: i64) -> Self {
        Self(AtomicPtr::new(ptr::without_provenance_mut(number as usize)))
    }

    /// The number, if it is one.
    #[inline]
    pub(crate) fn number(&self) -> i64 {
        self.0.load(Ordering::Relaxed).addr() as i64
    }

    pub(crate) fn set_number(&self, number: i64) {
        self.0.store(ptr::without_provenance_mut(number as usize), Ordering::Relaxed);
    }

    /// From here on, and for as long as this exists, it is a place.
    pub(crate) fn set_place(&self, thing: Box<T>) {
        self.0.store(Box::into_raw(thing), Ordering::Release);
    }

    /// The thing whose place it is.
    ///
    /// # Safety
    /// [`set_place`](Self::set_place) has been called before, and the caller knows of it from who called it, by something that
    /// was stored behind it and read by an acquiring load.
    #[inline]
    pub(crate) unsafe fn thing(&self) -> &T {
        // SAFETY: it was made from a box, and is neither changed nor freed while it can be borrowed from `self`.
        unsafe { &*self.0.load(Ordering::Acquire) }
    }

    /// Frees the thing.
    ///
    /// # Safety
    /// As for [`thing`](Self::thing), and `self` is not used any more.
    pub(crate) unsafe fn free(&mut self) {
        // SAFETY: it was made from a box, and nobody else can have it because `self` is borrowed by nobody else.
        drop(unsafe { Box::from_raw(self.0.load(Ordering::Acquire)) });
    }
}
