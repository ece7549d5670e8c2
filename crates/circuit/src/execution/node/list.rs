//! The nodes of a circuit, as an intrusive list.
#![allow(unsafe_code, reason = "nodes are linked by bare pointers, under one lock")]

use std::ptr;
use std::sync::{Mutex, MutexGuard};

use super::header::{Header, Links};
use crate::sync::unpoisoned;

/// The existing nodes of a circuit, until it ends. A caller that makes a node later has to end it.
pub(crate) struct Nodes(Mutex<First>);

struct First(*mut Header);

/// Replaces the first node once the circuit has ended its nodes; their links have no meaning any
/// more.
const ENDED: *mut Header = ptr::dangling_mut();

// SAFETY: the list only links nodes, which are accessed under its lock.
unsafe impl Send for First {}

impl Nodes {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(First(ptr::null_mut())))
    }

    /// Adds a node. Returns false if the circuit has already ended its nodes, and so will not end
    /// this one.
    #[must_use]
    pub(super) fn insert(&self, node: *mut Header) -> bool {
        let mut first = self.lock();
        if first.0 == ENDED {
            return false;
        }
        // SAFETY: nodes in the list exist, and their links are accessed under this lock only.
        unsafe {
            (*node).links.set(Links { before: ptr::null_mut(), behind: first.0 });
            if let Some(second) = first.0.as_ref() {
                second.links.set(Links { before: node, ..second.links.get() });
            }
        }
        first.0 = node;
        true
    }

    pub(crate) fn remove(&self, node: *mut Header) {
        let mut first = self.lock();
        if first.0 == ENDED {
            return;
        }
        // SAFETY: as above.
        unsafe {
            let Links { before, behind } = (*node).links.get();
            match before.as_ref() {
                Some(before) => before.links.set(Links { behind, ..before.links.get() }),
                None => first.0 = behind,
            }
            if let Some(behind) = behind.as_ref() {
                behind.links.set(Links { before, ..behind.links.get() });
            }
        }
    }

    /// As [`Nodes::end`] if there are no nodes; returns false if there are.
    pub(crate) fn end_none(&self) -> bool {
        let mut first = self.lock();
        let is_empty = first.0.is_null() || first.0 == ENDED;
        if is_empty {
            first.0 = ENDED;
        }
        is_empty
    }

    /// Returns all nodes, for the circuit to end them. Empty if this was called before.
    pub(crate) fn end(&self) -> Vec<*mut Header> {
        let mut next = std::mem::replace(&mut self.lock().0, ENDED);
        let mut all = Vec::new();
        if next == ENDED {
            return all;
        }
        // SAFETY: nodes are freed only in the circuit's context, where the caller is, and links are
        // not changed any more.
        while let Some(node) = unsafe { next.as_ref() } {
            all.push(next);
            next = node.links.get().behind;
        }
        all
    }

    fn lock(&self) -> MutexGuard<'_, First> {
        unpoisoned(self.0.lock())
    }
}
