//! The part of a node that is independent of its type, and the operations on it.
#![allow(unsafe_code, reason = "see the parent module")]

use std::cell::Cell;
use std::ptr::{self, NonNull};

use crate::execution::depth::Depth;
use crate::execution::machine::Head;
use crate::failure::care::Kept;
use crate::failure::failure_report::Trouble;
use crate::failure::supervision::Supervision;
use crate::identity::subject::Subject;
use crate::sync::{AtomicU32, AtomicUsize, Ordering, fence};

/// What the queues and the circuit need of a node of any type.
#[repr(C)]
pub(crate) struct Header {
    /// Moves the value out and passes it to the receptor. Never unwinds.
    pub(super) run: unsafe fn(*mut Header, *mut u8),
    pub(super) value_bytes: u32,
    pub(super) value_words: u32,
    pub(super) table: &'static Table,
    pub(super) machine: NonNull<Head>,
    /// Number of handles. While there are any, the node keeps its circuit alive. [`GONE`] once the
    /// node is freed, which is later than when the count reaches zero: its release has its place in
    /// the order.
    pub(super) handles: AtomicUsize,
    /// Number of pipes attached in front of this one.
    pub(super) attachments: AtomicU32,
    pub(super) depth: Depth,
    /// Number of weak handles, plus one while the node exists.
    pub(super) weak_handles: AtomicU32,
    /// Failures so far; accessed in the circuit's context only.
    pub(super) failures: Cell<u32>,
    /// Whether the receptor was dropped; accessed in the circuit's context only.
    pub(super) emptied: Cell<bool>,
    /// Whether the receptor is the circuit's own, which always resumes after a failure.
    pub(super) built_in: bool,
    /// How failures are handled, where that differs from the circuit's way.
    pub(super) care: Option<Box<Kept>>,
    pub(super) links: Cell<Links>,
    pub(super) subject: Subject,
}

/// Number of handles of a freed node, of which only the memory is left.
pub(super) const GONE: usize = usize::MAX;

/// The functions and offsets of a type of node.
pub(super) struct Table {
    /// Drops a value that no receptor will receive.
    pub(super) discard: unsafe fn(*mut u8),
    /// Drops the receptor.
    pub(super) empty: unsafe fn(*mut Header),
    /// Frees the node, whose receptor was dropped.
    pub(super) free: unsafe fn(*mut Header),
    /// Offset of the receptor from the header.
    pub(super) receptor: usize,
}

/// Neighbours in the circuit's list of nodes, guarded by the lock of that list.
#[derive(Clone, Copy)]
pub(super) struct Links {
    pub(super) before: *mut Header,
    pub(super) behind: *mut Header,
}

impl Default for Links {
    fn default() -> Self {
        Self { before: ptr::null_mut(), behind: ptr::null_mut() }
    }
}

impl Header {
    pub(crate) fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Counts one more failure and returns the number of failures.
    pub(crate) fn count_failure(&self) -> u32 {
        self.failures.set(self.failures.get().saturating_add(1));
        self.failures.get()
    }

    pub(crate) fn supervision(&self) -> Option<Supervision> {
        self.care.as_ref().and_then(|care| care.supervision())
    }

    pub(crate) fn is_built_in(&self) -> bool {
        self.built_in
    }

    pub(crate) fn care(&self) -> Option<&Kept> {
        self.care.as_deref()
    }
}

/// Size in bytes of a value for this node.
///
/// # Safety
///
/// The node exists.
#[inline]
pub(crate) unsafe fn value_bytes(node: *const Header) -> usize {
    // SAFETY: as the caller says.
    unsafe { (*node).value_bytes as usize }
}

/// Size in words of a value for this node.
///
/// # Safety
///
/// The node exists.
#[inline]
pub(crate) unsafe fn value_words(node: *const Header) -> usize {
    // SAFETY: as above.
    unsafe { (*node).value_words as usize }
}

/// Moves the value out and passes it to the node's receptor. A panic there is reported to the
/// circuit.
///
/// # Safety
///
/// In the circuit's context; the node exists and is not running already; `value` is of its type.
#[inline]
pub(crate) unsafe fn deliver(node: *mut Header, value: *mut u8) {
    // SAFETY: as the caller says.
    unsafe { ((*node).run)(node, value) }
}

/// Drops a value for this node.
///
/// # Safety
///
/// The node exists, and `value` is of its type; the caller does not use it again.
pub(crate) unsafe fn discard_value(node: *mut Header, value: *mut u8) {
    // SAFETY: as the caller says.
    unsafe { ((*node).table.discard)(value) }
}

/// Returns the function that drops values for this node, also after it is freed.
///
/// # Safety
///
/// The node exists.
pub(crate) unsafe fn discarder(node: *mut Header) -> unsafe fn(*mut u8) {
    // SAFETY: as the caller says.
    unsafe { (*node).table.discard }
}

/// Drops the receptor, unless it was dropped before. Later values are lost.
///
/// # Safety
///
/// In the circuit's context, or without any other thread; the node exists and is not running.
pub(crate) unsafe fn empty_node(node: *mut Header) {
    // SAFETY: as the caller says.
    unsafe {
        drop_receptor(node);
        if let Some(care) = (*node).care() {
            care.stop_renewing();
        }
    }
}

/// Drops the receptor and the node's other callbacks. Later values are dropped.
///
/// # Safety
///
/// As for [`empty_node`].
pub(crate) unsafe fn end_node(node: *mut Header) {
    // SAFETY: as the caller says.
    unsafe {
        drop_receptor(node);
        if let Some(care) = (*node).care() {
            care.let_go();
        }
    }
}

/// Replaces the receptor by a fresh one. If none can be made, the node stays empty.
///
/// # Safety
///
/// As for [`empty_node`].
pub(crate) unsafe fn renew_node(node: *mut Header) -> Result<(), Trouble> {
    // SAFETY: as the caller says; the care was made for the node's own receptor, which was dropped.
    unsafe {
        let Some(care) = (*node).care() else { return Ok(()) };
        // First, so that the fresh receptor can use what the old one held.
        drop_receptor(node);
        care.renew(node.byte_add((*node).table.receptor).cast())?;
        (*node).emptied.set(false);
    }
    Ok(())
}

/// # Safety
///
/// As for [`empty_node`].
unsafe fn drop_receptor(node: *mut Header) {
    // SAFETY: as the caller says.
    unsafe {
        if !(*node).emptied.replace(true) {
            ((*node).table.empty)(node);
        }
    }
}

/// Drops the receptor and frees the node. Its memory stays while there are weak handles.
///
/// # Safety
///
/// As for [`empty_node`]; nothing but weak handles refers to the node.
pub(crate) unsafe fn free_node(node: *mut Header) {
    // SAFETY: as the caller says.
    unsafe {
        // First, so that the drops emit nothing more to this node.
        (*node).handles.store(GONE, Ordering::Release);
        end_node(node);
        forget_node(node);
    }
}

/// Gives up one part of the weak count, and frees the memory with the last.
///
/// # Safety
///
/// The caller has one part of the count, and does not use the node again.
pub(super) unsafe fn forget_node(node: *mut Header) {
    // SAFETY: as the caller says; the last one has the node alone.
    unsafe {
        if (*node).weak_handles.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            ((*node).table.free)(node);
        }
    }
}
