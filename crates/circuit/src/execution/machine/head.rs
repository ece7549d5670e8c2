//! The head of a machine: the part that a machine's components use.
//!
//! A node refers to its machine, a thread to the one it runs, a pool to those to be run; and a
//! machine in turn has nodes, a context and a driver. To avoid that cycle, these refer to a machine
//! by its head, the machine's first field: a pointer to the head is a pointer to the machine, and
//! `Machine::of` converts it.
#![allow(unsafe_code, reason = "see the parent module")]

use std::ptr::NonNull;

use crate::sync::{AtomicU32, AtomicU64};

/// First part of a machine: the words that are read first, and the reference count. Heads exist
/// only inside machines, so a pointer to a head implies a machine.
#[repr(C)]
pub(crate) struct Head {
    pub(super) flags: AtomicU32,
    /// Number of handles that an owner could run it with. Not counted for other drivers.
    pub(super) owners: AtomicU32,
    /// Reference count: handles of the circuit, the driver while it has something to do, and, in
    /// the upper half, nodes that have handles.
    pub(super) references: AtomicU64,
}

/// A counted reference to a machine, passed through code that has only heads. The receiver must
/// take it [over](super::MachineRef::take_over): dropping it does not decrement the count.
#[must_use = "the machine would be kept for ever"]
pub(crate) struct HandedOver(pub(super) NonNull<Head>);

// SAFETY: it is a reference to a machine, which may be used and dropped on any thread.
unsafe impl Send for HandedOver {}
