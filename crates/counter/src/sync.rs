//! The atomics of the cells: the standard library's, or loom's where the schedule is being explored.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU64, Ordering};
#[cfg(not(loom))]
pub(crate) use std::{hint, thread};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use loom::{hint, thread};
