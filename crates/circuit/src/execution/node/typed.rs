//! A node with its receptor, with the types of the receptor and its values.
#![allow(unsafe_code, reason = "see the parent module")]

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::mem::{ManuallyDrop, offset_of};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use super::handle::NodeRef;
use super::header::{Header, Links, Table, end_node};
use crate::execution::depth::Depth;
use crate::execution::machine::Machine;
use crate::execution::queue::words::words_for;
use crate::failure::care::Care;
use crate::failure::thrown::shielded;
use crate::identity::subject::Subject;
use crate::subscription::receptor::Receptor;
use crate::sync::{AtomicU32, AtomicUsize};

impl Table {
    const fn of<E, R>() -> &'static Self {
        const {
            &Table {
                discard: discard::<E>,
                empty: empty::<R>,
                free: free::<R>,
                receptor: offset_of!(Node<R>, receptor),
            }
        }
    }
}

#[repr(C)]
struct Node<R> {
    header: Header,
    /// Dropped by `empty`. Accessed in the circuit's context only.
    receptor: UnsafeCell<ManuallyDrop<R>>,
}

impl NodeRef {
    /// Makes a node with a receptor of the circuit's own. It always resumes: a failure is caused by
    /// a value, and must not cost the others.
    pub(crate) fn built_in<E, R>(
        machine: &Machine,
        subject: Subject,
        calls: Option<Depth>,
        receptor: R,
    ) -> Self
    where
        E: Send + 'static,
        R: Receptor<E> + 'static,
    {
        let depth = Depth::of(size_of::<E>(), calls);
        Self::make::<E, R>(machine, subject, depth, receptor, Care::default(), true)
    }

    /// Makes a node with a user's receptor, and with how its failures are handled.
    pub(crate) fn with_care<E, R>(
        machine: &Machine,
        subject: Subject,
        depth: Depth,
        receptor: R,
        care: Care<E, R>,
    ) -> Self
    where
        E: Send + 'static,
        R: Receptor<E> + 'static,
    {
        Self::make(machine, subject, depth, receptor, care, false)
    }

    fn make<E, R>(
        machine: &Machine,
        subject: Subject,
        depth: Depth,
        receptor: R,
        care: Care<E, R>,
        built_in: bool,
    ) -> Self
    where
        E: Send + 'static,
        R: Receptor<E> + 'static,
    {
        let header = Header {
            run: run::<E, R>,
            value_bytes: const { value_size::<E>() },
            value_words: const { words_for(size_of::<E>()) as u32 },
            table: Table::of::<E, R>(),
            machine: machine.hold_for_node(),
            handles: AtomicUsize::new(1),
            attachments: AtomicU32::new(0),
            depth,
            weak_handles: AtomicU32::new(1),
            failures: Cell::new(0),
            emptied: Cell::new(false),
            built_in,
            care: care.keep(),
            links: Cell::new(Links::default()),
            subject,
        };
        let node = Box::new(Node { header, receptor: UnsafeCell::new(ManuallyDrop::new(receptor)) });
        let node = NonNull::from(Box::leak(node)).cast::<Header>();
        if !machine.nodes.insert(node.as_ptr()) {
            // The circuit has ended since the caller checked, and no other thread has the node yet.
            // SAFETY: the caller has the node alone.
            unsafe { end_node(node.as_ptr()) };
        }
        Self(node)
    }
}

/// Returns the size of a type, at compile time. Fails from two gigabytes on.
const fn value_size<E>() -> u32 {
    assert!(size_of::<E>() < i32::MAX as usize, "values of two gigabytes cannot be emitted");
    size_of::<E>() as u32
}

unsafe fn run<E, R: Receptor<E>>(node: *mut Header, value: *mut u8) {
    // SAFETY: the caller of `deliver` guarantees the value's type.
    let value = unsafe { value.cast::<E>().read_unaligned() };
    // SAFETY: the node exists.
    if unsafe { (*node).emptied.get() } {
        // SAFETY: as above.
        return unsafe { lose(node, value) };
    }
    // SAFETY: the receptor exists, and nothing else uses it: there is one context, and nodes are
    // not re-entered.
    let receptor = unsafe { &mut **(*node.cast::<Node<R>>()).receptor.get() };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| receptor.receive(value))) {
        // SAFETY: the node exists, and its receptor has just returned.
        unsafe { failed(node, panic) };
    }
}

#[cold]
unsafe fn failed(node: *mut Header, panic: Box<dyn Any + Send>) {
    // SAFETY: the node's circuit runs it, and so exists.
    unsafe { Machine::of((*node).machine).report_panic(node, panic) };
}

/// Passes a value for a node without a receptor to the dead letters, or drops it.
#[cold]
unsafe fn lose<E>(node: *mut Header, value: E) {
    let mut value = ManuallyDrop::new(value);
    // SAFETY: the node's circuit runs it, and the node takes an `E`, which is moved out or dropped,
    // once.
    unsafe {
        let given = (*node).care().is_some_and(|care| care.lose((&raw mut value).cast()));
        if !given {
            shielded(|| ManuallyDrop::drop(&mut value));
        }
    }
}

unsafe fn discard<E>(value: *mut u8) {
    // SAFETY: the caller of `discard_value` guarantees the value's type.
    let value = unsafe { value.cast::<E>().read_unaligned() };
    drop_value(value);
}

#[cold]
fn drop_value<E>(value: E) {
    shielded(|| drop(value));
}

unsafe fn empty<R>(node: *mut Header) {
    // SAFETY: `NodeRef::make` made the node with an `R`, and `drop_receptor` calls this when
    // nothing else borrows it.
    let receptor = unsafe { &mut *(*node.cast::<Node<R>>()).receptor.get() };
    // SAFETY: `drop_receptor` calls this once for each receptor.
    shielded(|| unsafe { ManuallyDrop::drop(receptor) });
}

unsafe fn free<R>(node: *mut Header) {
    // SAFETY: `NodeRef::make` made the node as this box.
    drop(unsafe { Box::from_raw(node.cast::<Node<R>>()) });
}
