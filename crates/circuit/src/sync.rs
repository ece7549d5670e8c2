//! Atomics, locks and cells of the queues: from the standard library, or from loom where schedules
//! are explored.
#![cfg_attr(loom, allow(unsafe_code, reason = "what loom lacks of the standard library"))]

#[cfg(not(loom))]
mod chosen {
    pub(crate) use std::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
    pub(crate) use std::{hint, thread, thread_local};

    /// A cell whose content is accessed through a raw pointer. Has loom's interface, which records
    /// each access.
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
    use loom::sync::atomic;
    pub(crate) use loom::sync::atomic::{Ordering, fence};
    pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub(crate) use loom::{hint, thread};

    /// Loom's macro takes no `const` initialisers.
    macro_rules! local {
        ($(#[$about:meta])* static $name:ident: $type:ty = const { $value:expr };) => {
            loom::thread_local! { $(#[$about])* static $name: $type = $value; }
        };
    }

    pub(crate) use local as thread_local;

    /// Loom models sequential consistency for fences only and treats SeqCst accesses as acquire and
    /// release. A fence before each SeqCst load restores the one total order of SeqCst loads,
    /// stores and read-modify-writes, and orders nothing else.
    fn order_load(order: Ordering) -> Ordering {
        if order != Ordering::SeqCst {
            return order;
        }
        fence(Ordering::SeqCst);
        Ordering::Acquire
    }

    macro_rules! exchange {
        ($value:ty: $($name:ident),*) => {
            $(pub(crate) fn $name(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.0.$name(current, new, success, order_load(failure))
            })*
        };
    }

    macro_rules! atomic {
        ($name:ident($value:ty) $(<$parameter:ident>)?: $($change:ident),*) => {
            #[derive(Debug)]
            pub(crate) struct $name$(<$parameter>)?(atomic::$name$(<$parameter>)?);

            #[allow(dead_code, reason = "all have the same")]
            impl$(<$parameter>)? $name$(<$parameter>)? {
                pub(crate) fn new(value: $value) -> Self {
                    Self(atomic::$name::new(value))
                }

                pub(crate) fn load(&self, order: Ordering) -> $value {
                    self.0.load(order_load(order))
                }

                pub(crate) fn store(&self, value: $value, order: Ordering) {
                    self.0.store(value, order);
                }

                exchange!($value: compare_exchange, compare_exchange_weak);

                $(pub(crate) fn $change(&self, value: $value, order: Ordering) -> $value {
                    self.0.$change(value, order)
                })*
            }
        };
    }

    atomic!(AtomicBool(bool): swap);
    atomic!(AtomicU32(u32): swap, fetch_add, fetch_sub, fetch_or, fetch_and);
    atomic!(AtomicU64(u64): swap, fetch_add, fetch_sub, fetch_min);
    atomic!(AtomicUsize(usize): swap, fetch_add, fetch_sub);
    atomic!(AtomicPtr(*mut T)<T>: swap);

    impl Default for AtomicUsize {
        fn default() -> Self {
            Self::new(0)
        }
    }

    impl AtomicUsize {
        pub(crate) fn fetch_update(
            &self,
            set: Ordering,
            fetch: Ordering,
            change: impl FnMut(usize) -> Option<usize>,
        ) -> Result<usize, usize> {
            self.0.fetch_update(set, order_load(fetch), change)
        }
    }

    /// Replacement for the standard library's, which loom lacks and which would block all of loom's
    /// threads.
    #[derive(Debug)]
    pub(crate) struct OnceLock<T> {
        is_set: AtomicBool,
        setting: Mutex<()>,
        value: UnsafeCell<Option<T>>,
    }

    // SAFETY: the value is written once, under the lock, and read by other threads only after that.
    unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}

    impl<T> OnceLock<T> {
        pub(crate) fn new() -> Self {
            Self { is_set: AtomicBool::new(false), setting: Mutex::new(()), value: UnsafeCell::new(None) }
        }

        pub(crate) fn get(&self) -> Option<&T> {
            if !self.is_set.load(Ordering::Acquire) {
                return None;
            }
            // SAFETY: the value does not change any more.
            self.value.with(|value| unsafe { (*value).as_ref() })
        }

        pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
            let setting = super::lock(&self.setting);
            if self.get().is_none() {
                let made = make();
                // SAFETY: no thread reads the value before `is_set` is stored, and the lock keeps
                // other writers out.
                self.value.with_mut(|value| unsafe { *value = Some(made) });
                self.is_set.store(true, Ordering::Release);
            }
            drop(setting);
            self.get().expect("it was set")
        }
    }
}

use std::mem::MaybeUninit;
use std::sync::{LockResult, PoisonError};

pub(crate) use chosen::*;

/// Returns the guard of a lock or a wait, also if a thread panicked while it held the lock: code
/// that can panic never leaves what the crate's locks guard half-changed.
pub(crate) fn unpoisoned<G>(held: LockResult<G>) -> G {
    held.unwrap_or_else(PoisonError::into_inner)
}

/// Locks the mutex and ignores poisoning, see [`unpoisoned`].
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    unpoisoned(mutex.lock())
}

/// Waits on the condition and ignores poisoning, see [`unpoisoned`].
pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    unpoisoned(condition.wait(guard))
}

/// Bytes of a cache line. Two fields at least this far apart never share a line.
pub(crate) const LINE_BYTES: usize = 64;

/// A value that shares no cache line with its neighbours, so that writing it does not slow down
/// their readers. It uses padding, because an alignment would make allocations several times as
/// expensive.
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
}

impl<T> std::ops::Deref for Apart<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}
