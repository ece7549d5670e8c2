//! The atomics, locks and cells of the queues: the standard library's, or loom's where the schedule is being explored.

#[cfg(not(loom))]
mod chosen {
    pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    pub(crate) use std::sync::{Arc, Mutex, MutexGuard};

    /// A cell whose content is reached through a raw pointer. Has loom's interface, which notes each access.
    #[derive(Debug, Default)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        #[inline]
        pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
            read(self.0.get())
        }

        #[inline]
        pub(crate) fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
            change(self.0.get())
        }
    }
}

#[cfg(loom)]
mod chosen {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};
}

use std::mem::MaybeUninit;

pub(crate) use chosen::*;

/// Locks, also if a thread panicked while it held the lock: what these locks guard is never left half-changed by code that
/// can panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A value that shares no cache line with its neighbours, so that writing it does not slow down who reads those. Padding does
/// that without an alignment, which would make allocations several times as expensive.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Apart<T> {
    before: MaybeUninit<[u64; 7]>,
    value: T,
    behind: MaybeUninit<[u64; 7]>,
}

impl<T> Apart<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { before: MaybeUninit::uninit(), value, behind: MaybeUninit::uninit() }
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> std::ops::Deref for Apart<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}
