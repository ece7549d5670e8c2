//! The head of a machine: all of it that is known to what a machine consists of.
//!
//! A node knows the machine that it is of, a thread the one that it runs, and a pool those that are to be run; a machine has nodes,
//! a context and a driver. So those know a machine by its head, which it begins with: a pointer to the head is one to the
//! machine, and `Machine::of` makes it that.
#![allow(unsafe_code, reason = "see the parent module")]

use std::ptr::NonNull;

use crate::sync::{AtomicU32, AtomicU64};

/// What a machine begins with: what of it is looked at first, and who keeps it. There are no others, so that whoever has one has a
/// machine.
#[repr(C)]
pub(crate) struct Head {
    pub(super) flags: AtomicU32,
    /// How many handles there are that an owner could run it with. Not counted for other drivers.
    pub(super) owners: AtomicU32,
    /// Who keeps the machine: handles of the circuit and the driver while it has something to do, and, counted apart, nodes that
    /// have handles.
    pub(super) references: AtomicU64,
}

/// A counted reference to a machine on its way through hands that know no machines. Whoever comes to it next has to take it
/// [over](super::MachineRef::take_over): dropping it does not count it down.
#[must_use = "the machine would be kept for ever"]
pub(crate) struct HandedOver(pub(super) NonNull<Head>);

// SAFETY: it is a reference to a machine, which may be used and dropped from any thread.
unsafe impl Send for HandedOver {}
