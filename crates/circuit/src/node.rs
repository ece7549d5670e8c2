//! A pipe's insides: what runs when a value arrives, behind one pointer whatever the types are.
#![allow(
    unsafe_code,
    reason = "one pointer stands for nodes of any type; the table of each node knows which"
)]

mod list;

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::mem::{ManuallyDrop, offset_of};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use crate::care::{Care, Kept};
use crate::context::is_inside;
use crate::depth::Depth;
use crate::failure::Trouble;
use crate::machine::{Head, Machine, MachineRef};
use crate::queue::fifo::words_for;
use crate::receptor::Receptor;
use crate::subject::Subject;
use crate::supervision::Supervision;
use crate::sync::{AtomicU32, AtomicUsize, Ordering, fence};
use crate::thrown::shielded;
use list::Links;

pub(crate) use list::Nodes;

/// What the queues and the circuit need of a node, whatever its type.
#[repr(C)]
pub(crate) struct Header {
    /// Moves the value out and gives it to the receptor. Never unwinds.
    run: unsafe fn(*mut Header, *mut u8),
    value_bytes: u32,
    value_words: u32,
    table: &'static Table,
    machine: NonNull<Head>,
    /// Handles that exist. While there are any, the node keeps its circuit alive. [`GONE`] once the node is gone, which is later
    /// than when it has none: its release has its place in the order.
    handles: AtomicUsize,
    /// How many pipes were put in front of this one.
    attachments: AtomicU32,
    depth: Depth,
    /// Handles that do not keep the node, and one more while there is a node.
    weak_handles: AtomicU32,
    /// Failures so far; touched in the circuit's context only.
    failures: Cell<u32>,
    /// Whether the receptor is gone; touched in the circuit's context only.
    emptied: Cell<bool>,
    /// Whether the receptor is the circuit's own, which goes on whatever values do to it.
    built_in: bool,
    /// What is done about failures beyond what the circuit does about all.
    care: Option<Box<Kept>>,
    links: Cell<Links>,
    subject: Subject,
}

/// The number of handles of a node of which there is only memory.
const GONE: usize = usize::MAX;

/// What is particular to a type of node.
struct Table {
    /// Drops a value that nobody will receive.
    discard: unsafe fn(*mut u8),
    /// Drops the receptor.
    empty: unsafe fn(*mut Header),
    /// Frees the node, whose receptor was dropped.
    free: unsafe fn(*mut Header),
    /// How far behind the header the receptor begins.
    receptor: usize,
}

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
    /// Dropped by `empty`. Reached in the circuit's context only.
    receptor: UnsafeCell<ManuallyDrop<R>>,
}

/// A counted handle of a node.
pub(crate) struct NodeRef(NonNull<Header>);

/// A handle that keeps neither the node nor its circuit: only the node's memory.
pub(crate) struct WeakNodeRef(NonNull<Header>);

// SAFETY: a handle gives access to the header's immutable parts and atomics only; what is behind it runs in the circuit's
// context. Values and receptors are `Send`, which `NodeRef::make` demands.
unsafe impl Send for NodeRef {}
// SAFETY: as above.
unsafe impl Sync for NodeRef {}
// SAFETY: as above; it gives access to the counts and the table only.
unsafe impl Send for WeakNodeRef {}
// SAFETY: as above.
unsafe impl Sync for WeakNodeRef {}

impl NodeRef {
    /// A node with a receptor of the circuit's own. It always resumes: when it fails, that is a value's doing, which is not to
    /// cost all the others.
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

    /// A node with a receptor of users, and what is to be done about its failures.
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
            // The circuit has ended since the caller looked, and nobody but us knows of the node.
            // SAFETY: we are alone with it.
            unsafe { end_node(node.as_ptr()) };
        }
        Self(node)
    }

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

    /// The number of one more pipe in front of this one.
    pub(crate) fn next_attachment(&self) -> u32 {
        self.header().attachments.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn depth(&self) -> Depth {
        self.header().depth
    }

    /// What is done about failures, if that is not what the circuit does.
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
        // SAFETY: a weak handle keeps the memory, with who the node was.
        unsafe { (*self.0.as_ptr()).subject() }
    }

    /// The node, if it has handles.
    pub(crate) fn upgrade(&self) -> Option<NodeRef> {
        // SAFETY: a weak handle keeps the memory.
        let handles = unsafe { &(*self.0.as_ptr()).handles };
        let mut before = handles.load(Ordering::Relaxed);
        while before > 0 && before != GONE {
            assert!(before < usize::MAX / 2, "too many handles of one pipe");
            // Acquired so that what made the node is seen, should it have been another thread.
            match handles.compare_exchange_weak(before, before + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(NodeRef(self.0)),
                Err(now) => before = now,
            }
        }
        None
    }
}

impl WeakNodeRef {
    /// Gives the node a value. From inside of its circuit until the node is gone, and from elsewhere while it has handles: what a
    /// circuit does must not depend on when somebody lets go of a handle, but on when the release is handled.
    ///
    /// # Safety
    ///
    /// The node takes an `E`.
    pub(crate) unsafe fn emit<E: Send>(&self, value: E) {
        let node = self.0.as_ptr();
        // SAFETY: a weak handle keeps the memory. The machine is only compared.
        let (machine, handles) = unsafe { ((*node).machine, &(*node).handles) };
        if is_inside(machine.as_ptr()) {
            // A node is gone before its machine is, so this is no other machine in the same place.
            if handles.load(Ordering::Acquire) != GONE {
                // SAFETY: we are in the machine's context, where nodes go; what is emitted now is handled before that.
                unsafe { Machine::of(machine).emit(node, value) };
            }
        } else if let Some(strong) = self.upgrade() {
            // SAFETY: as the caller says; this is a handle.
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
unsafe fn forget_node(node: *mut Header) {
    // SAFETY: as the caller says; who is the last is alone.
    unsafe {
        if (*node).weak_handles.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            ((*node).table.free)(node);
        }
    }
}

/// The size of a type, which must not need more than half of what a `u32` counts.
const fn value_size<E>() -> u32 {
    assert!(size_of::<E>() < i32::MAX as usize, "values of two gigabytes cannot be emitted");
    size_of::<E>() as u32
}

unsafe fn run<E, R: Receptor<E>>(node: *mut Header, value: *mut u8) {
    // SAFETY: the caller of `deliver` answers for the value's type.
    let value = unsafe { value.cast::<E>().read_unaligned() };
    // SAFETY: the node exists.
    if unsafe { (*node).emptied.get() } {
        // SAFETY: as above.
        return unsafe { lose(node, value) };
    }
    // SAFETY: the receptor is there, and nobody else uses it: one context, and nodes are not re-entered.
    let receptor = unsafe { &mut **(*node.cast::<Node<R>>()).receptor.get() };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| receptor.receive(value))) {
        // SAFETY: the node exists, and its receptor has just been left.
        unsafe { failed(node, panic) };
    }
}

#[cold]
unsafe fn failed(node: *mut Header, panic: Box<dyn Any + Send>) {
    // SAFETY: the node is being run by its circuit, which exists.
    unsafe { Machine::of((*node).machine).report_panic(node, panic) };
}

/// A value for a node without a receptor goes to whom lost values are given.
#[cold]
unsafe fn lose<E>(node: *mut Header, value: E) {
    let mut value = ManuallyDrop::new(value);
    // SAFETY: the node is being run by its circuit, and takes an `E`, which is moved out or dropped, once.
    unsafe {
        let given = (*node).care().is_some_and(|care| care.lose((&raw mut value).cast()));
        if !given {
            shielded(|| ManuallyDrop::drop(&mut value));
        }
    }
}

unsafe fn discard<E>(value: *mut u8) {
    // SAFETY: the caller of `discard_value` answers for the value's type.
    let value = unsafe { value.cast::<E>().read_unaligned() };
    drop_value(value);
}

#[cold]
fn drop_value<E>(value: E) {
    shielded(|| drop(value));
}

unsafe fn empty<R>(node: *mut Header) {
    let receptor = unsafe { &mut *(*node.cast::<Node<R>>()).receptor.get() };
    // SAFETY: `drop_receptor` comes here once for each receptor.
    shielded(|| unsafe { ManuallyDrop::drop(receptor) });
}

unsafe fn free<R>(node: *mut Header) {
    // SAFETY: `NodeRef::make` made the node as this box.
    drop(unsafe { Box::from_raw(node.cast::<Node<R>>()) });
}
