//! The atomics of the cells: the standard library's, or loom's in models.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU64, Ordering, fence,
};
#[cfg(not(loom))]
pub(crate) use std::{hint, thread};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU64, Ordering, fence};
#[cfg(all(test, loom))]
pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU16};
#[cfg(loom)]
pub(crate) use loom::{hint, thread};
