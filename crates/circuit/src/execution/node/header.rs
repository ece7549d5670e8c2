//! What is known of a node whatever its type is, and what can be done with it so.
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

/// What the queues and the circuit need of a node, whatever its type.
#[repr(C)]
pub(crate) struct Header {
    /// Moves the value out and gives it to the receptor. Never unwinds.
    pub(super) run: unsafe fn(*mut Header, *mut u8),
    pub(super) value_bytes: u32,
    pub(super) value_words: u32,
    pub(super) table: &'static Table,
    pub(super) machine: NonNull<Head>,
    /// Handles that exist. While there are any, the node keeps its circuit alive. [`GONE`] once the node is gone, which is later
    /// than when it has none: its release has its place in the order.
    pub(super) handles: AtomicUsize,
    /// How many pipes were put in front of this one.
    pub(super) attachments: AtomicU32,
    pub(super) depth: Depth,
    /// Handles that do not keep the node, and one more while there is a node.
    pub(super) weak_handles: AtomicU32,
    /// Failures so far; touched in the circuit's context only.
    pub(super) failures: Cell<u32>,
    /// Whether the receptor is gone; touched in the circuit's context only.
    pub(super) emptied: Cell<bool>,
    /// Whether the receptor is the circuit's own, which goes on whatever values do to it.
    pub(super) built_in: bool,
    /// What is done about failures beyond what the circuit does about all.
    pub(super) care: Option<Box<Kept>>,
    pub(super) links: Cell<Links>,
    pub(super) subject: Subject,
}

/// The number of handles of a node of which there is only memory.
pub(super) const GONE: usize = usize::MAX;

/// What is particular to a type of node.
pub(super) struct Table {
    /// Drops a value that nobody will receive.
    pub(super) discard: unsafe fn(*mut u8),
    /// Drops the receptor.
    pub(super) empty: unsafe fn(*mut Header),
    /// Frees the node, whose receptor was dropped.
    pub(super) free: unsafe fn(*mut Header),
    /// How far behind the header the receptor begins.
    pub(super) receptor: usize,
}

/// Neighbours in the circuit's list of nodes, which that list's lock guards.
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

    /// Counts one more failure and returns how many there were.
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

/// The bytes of a value for this node.
///
/// # Safety
///
/// The node exists.
#[inline]
pub(crate) unsafe fn value_bytes(node: *const Header) -> usize {
    // SAFETY: the caller says that it exists.
    unsafe { (*node).value_bytes as usize }
}

/// The words of a value for this node.
///
/// # Safety
///
/// The node exists.
#[inline]
pub(crate) unsafe fn value_words(node: *const Header) -> usize {
    // SAFETY: as above.
    unsafe { (*node).value_words as usize }
}

/// Moves the value out and gives it to the node's receptor. A panic there is reported to the circuit.
///
/// # Safety
///
/// In the circuit's context; the node exists and is not being run already; `value` is one of its type.
#[inline]
pub(crate) unsafe fn deliver(node: *mut Header, value: *mut u8) {
    // SAFETY: as the caller says.
    unsafe { ((*node).run)(node, value) }
}

/// Drops a value for this node.
///
/// # Safety
///
/// The node exists, and `value` is one of its type, which the caller forgets.
pub(crate) unsafe fn discard_value(node: *mut Header, value: *mut u8) {
    // SAFETY: as the caller says.
    unsafe { ((*node).table.discard)(value) }
}

/// What drops values for this node, also after it is gone.
///
/// # Safety
///
/// The node exists.
pub(crate) unsafe fn discarder(node: *mut Header) -> unsafe fn(*mut u8) {
    // SAFETY: as the caller says.
    unsafe { (*node).table.discard }
}

/// Drops the receptor, unless that was done before. What comes from now on is lost.
///
/// # Safety
///
/// In the circuit's context, or alone; the node exists and is not being run.
pub(crate) unsafe fn empty_node(node: *mut Header) {
    // SAFETY: as the caller says.
    unsafe {
        drop_receptor(node);
        if let Some(care) = (*node).care() {
            care.stop_renewing();
        }
    }
}

/// Drops the receptor and all that the node knows besides. What comes from now on is dropped.
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

/// Replaces the receptor by a fresh one. If none can be made, the node is empty from now on.
///
/// # Safety
///
/// As for [`empty_node`].
pub(crate) unsafe fn renew_node(node: *mut Header) -> Result<(), Trouble> {
    // SAFETY: as the caller says; the care was kept for the node's own receptor, which is gone.
    unsafe {
        let Some(care) = (*node).care() else { return Ok(()) };
        // First, so that what it has for itself is there for the next.
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

/// Drops the receptor and frees the node, except for its memory while there are weak handles.
///
/// # Safety
///
/// As for [`empty_node`]; nothing but weak handles refers to the node.
pub(crate) unsafe fn free_node(node: *mut Header) {
    // SAFETY: as the caller says.
    unsafe {
        // First, so that what is dropped emits nothing to it any more.
        (*node).handles.store(GONE, Ordering::Release);
        end_node(node);
        forget_node(node);
    }
}

/// Gives the memory back if nobody else counts on it.
///
/// # Safety
///
/// The caller is counted, once, and forgets the node.
pub(super) unsafe fn forget_node(node: *mut Header) {
    // SAFETY: as the caller says; who is the last is alone.
    unsafe {
        if (*node).weak_handles.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            ((*node).table.free)(node);
        }
    }
}
