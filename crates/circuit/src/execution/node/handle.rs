//! Strong and weak handles of nodes.
#![allow(unsafe_code, reason = "see the parent module")]

use std::ptr::NonNull;

use super::header::{GONE, Header, forget_node};
use crate::execution::context::is_inside;
use crate::execution::depth::Depth;
use crate::execution::machine::{Machine, MachineRef};
use crate::failure::supervision::Supervision;
use crate::identity::subject::Subject;
use crate::sync::{Ordering, fence};

/// A counted handle of a node.
pub(crate) struct NodeRef(pub(super) NonNull<Header>);

/// A handle that keeps neither the node nor its circuit, only the node's memory.
pub(crate) struct WeakNodeRef(NonNull<Header>);

// SAFETY: a handle gives access only to the header's immutable parts and atomics; the receptor runs
// only in the circuit's context. Values and receptors are `Send`, which `NodeRef::make` requires.
unsafe impl Send for NodeRef {}
// SAFETY: as above.
unsafe impl Sync for NodeRef {}
// SAFETY: as above; it gives access only to the counts and the table.
unsafe impl Send for WeakNodeRef {}
// SAFETY: as above.
unsafe impl Sync for WeakNodeRef {}

impl NodeRef {
    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut Header {
        self.0.as_ptr()
    }

    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: a node is freed only after its last handle was dropped.
        unsafe { self.0.as_ref() }
    }

    #[inline]
    pub(crate) fn machine(&self) -> &Machine {
        // SAFETY: a node keeps its circuit alive while it has handles.
        unsafe { Machine::of(self.header().machine) }
    }

    #[cfg(feature = "stream")]
    pub(crate) fn machine_ref(&self) -> MachineRef {
        self.machine().to_ref()
    }

    pub(crate) fn subject(&self) -> &Subject {
        &self.header().subject
    }

    /// Returns the number of the next pipe attached in front of this one.
    pub(crate) fn next_attachment(&self) -> u32 {
        self.header().attachments.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn depth(&self) -> Depth {
        self.header().depth
    }

    /// How failures are handled, if not as the circuit does.
    pub(crate) fn supervision(&self) -> Option<Supervision> {
        self.header().supervision()
    }

    pub(crate) fn downgrade(&self) -> WeakNodeRef {
        let before = self.header().weak_handles.fetch_add(1, Ordering::Relaxed);
        assert!(before < u32::MAX / 2, "too many weak handles of one pipe");
        WeakNodeRef(self.0)
    }

    pub(crate) fn same(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Clone for NodeRef {
    fn clone(&self) -> Self {
        let before = self.header().handles.fetch_add(1, Ordering::Relaxed);
        assert!(before < usize::MAX / 2, "too many handles of one pipe");
        Self(self.0)
    }
}

impl Drop for NodeRef {
    fn drop(&mut self) {
        if self.header().handles.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            // SAFETY: the node held this reference while it had handles.
            let machine = unsafe { MachineRef::of_node(self.header().machine) };
            machine.release(self.0.as_ptr());
        }
    }
}

impl WeakNodeRef {
    pub(crate) fn subject(&self) -> &Subject {
        // SAFETY: a weak handle keeps the memory, including the subject.
        unsafe { (*self.0.as_ptr()).subject() }
    }

    /// Returns the node, if it has handles.
    pub(crate) fn upgrade(&self) -> Option<NodeRef> {
        // SAFETY: a weak handle keeps the memory.
        let handles = unsafe { &(*self.0.as_ptr()).handles };
        let mut before = handles.load(Ordering::Relaxed);
        while before > 0 && before != GONE {
            assert!(before < usize::MAX / 2, "too many handles of one pipe");
            // Acquire: the node may have been made by another thread.
            match handles.compare_exchange_weak(before, before + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(NodeRef(self.0)),
                Err(now) => before = now,
            }
        }
        None
    }
}

impl WeakNodeRef {
    /// Emits a value to the node: from inside its circuit until the node is freed, from elsewhere
    /// while it has handles. Inside, the outcome must depend on when the release is handled, not on
    /// when another thread drops a handle.
    ///
    /// # Safety
    ///
    /// The node takes an `E`.
    pub(crate) unsafe fn emit<E: Send>(&self, value: E) {
        let node = self.0.as_ptr();
        // SAFETY: a weak handle keeps the memory. The machine is only compared.
        let (machine, handles) = unsafe { ((*node).machine, &(*node).handles) };
        if is_inside(machine.as_ptr()) {
            // A node is freed before its machine is, so this is no other machine at the same
            // address.
            if handles.load(Ordering::Acquire) != GONE {
                // SAFETY: in the machine's context, the only place where nodes are freed; this
                // value is handled before that.
                unsafe { Machine::of(machine).emit(node, value) };
            }
        } else if let Some(strong) = self.upgrade() {
            // SAFETY: as the caller says; `strong` is a handle.
            unsafe { strong.machine().emit(node, value) };
        }
    }
}

impl Clone for WeakNodeRef {
    fn clone(&self) -> Self {
        // SAFETY: a weak handle keeps the memory.
        let before = unsafe { (*self.0.as_ptr()).weak_handles.fetch_add(1, Ordering::Relaxed) };
        assert!(before < u32::MAX / 2, "too many weak handles of one pipe");
        Self(self.0)
    }
}

impl Drop for WeakNodeRef {
    fn drop(&mut self) {
        // SAFETY: this handle is counted.
        unsafe { forget_node(self.0.as_ptr()) };
    }
}
