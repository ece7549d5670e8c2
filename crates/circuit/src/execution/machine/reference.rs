//! Counted references to machines: a machine ends with the last one.
//!
//! Nodes that have handles also keep their machine. They are counted separately, because receptors
//! of the same machine may hold handles of nodes. When the last reference that is not a node's is
//! dropped, no thread can wait for the circuit any more. A circuit that its waiters run is then run
//! one last time, which drops what only its own receptors held.
//!
//! A circuit that its owner runs ends earlier: with the last handle that it could be run with,
//! whatever else refers to it.
#![allow(unsafe_code, reason = "see the parent module")]

use std::cell::UnsafeCell;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::OnceLock;
use tidemark_barrier as barrier;

use super::head::{HandedOver, Head};
use super::stack::on_one_stack;
use super::state::{BOUNDED, IDLE, Inside, Machine};
use crate::execution::bounds::Bounds;
use crate::execution::driver::Driver;
use crate::execution::lanes::Lanes;
use crate::execution::node::Nodes;
use crate::execution::queue::ingress::Ingress;
use crate::execution::waiters::Waiters;
use crate::failure::account::Failures;
use crate::identity::subject::Subject;
use crate::observe::followers::Followers;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, hint};

/// Mask of the count's lower half: the references that are not nodes'.
const HANDLES: u64 = NODE - 1;

/// One node, in the count's upper half.
const NODE: u64 = 1 << 32;

/// A counted reference to a machine.
pub(crate) struct MachineRef(pub(super) NonNull<Machine>);

// SAFETY: a machine may be used and dropped on any thread.
unsafe impl Send for MachineRef {}
// SAFETY: as above.
unsafe impl Sync for MachineRef {}

impl MachineRef {
    /// Returns a reference to the machine in whose context the caller runs.
    pub(crate) fn inside() -> Self {
        Machine::with_inside(|machine| machine.expect("in a circuit's context").to_ref())
    }

    /// Converts a node's part of the count into a reference.
    ///
    /// # Safety
    ///
    /// The pointer came from [`Machine::hold_for_node`], and is converted back only once.
    pub(crate) unsafe fn of_node(machine: NonNull<Head>) -> Self {
        // One node less, one handle more.
        // SAFETY: the node's part of the count has kept the machine until now; the reference keeps
        // it from now on.
        unsafe { machine.as_ref() }.references.fetch_sub(NODE - 1, Ordering::AcqRel);
        Self(machine.cast())
    }

    /// Passes this reference on as a head.
    pub(crate) fn hand_over(self) -> HandedOver {
        HandedOver(ManuallyDrop::new(self).0.cast())
    }

    /// Converts a [handed-over](Self::hand_over) reference back.
    pub(crate) fn take_over(reference: HandedOver) -> Self {
        Self(reference.0.cast())
    }
}

impl Machine {
    /// Makes a machine and returns the only reference to it.
    #[allow(clippy::new_ret_no_self, reason = "a machine is known by references only")]
    pub(crate) fn new(
        subject: Subject,
        driver: Driver,
        seed: u64,
        bounds: Option<Bounds>,
        failures: Failures,
    ) -> MachineRef {
        barrier::prepare();
        let idle = if driver.needs_notification() { IDLE } else { 0 };
        let bounded = if bounds.is_some() { BOUNDED } else { 0 };
        let machine = Box::leak(Box::new(MaybeUninit::<Self>::uninit()));
        let itself = NonNull::from(&mut *machine).cast::<Self>();
        let content = Self {
            head: Head {
                flags: AtomicU32::new(idle | bounded),
                owners: AtomicU32::new(0),
                references: AtomicU64::new(1),
            },
            running: AtomicBool::new(false),
            recorded: AtomicBool::new(false),
            bounds: bounds.map(Box::new),
            lanes: Lanes::new(),
            ingress: Ingress::new(),
            failures,
            nodes: Nodes::new(),
            seed,
            followers: Followers::default(),
            done: AtomicU64::new(0),
            waiters: Waiters::new(),
            driver,
            subject,
            current: OnceLock::new(),
            itself,
            finished: AtomicU64::new(0),
            inside: UnsafeCell::new(Inside::default()),
        };
        // SAFETY: `itself` points to memory that was just allocated for a machine.
        unsafe { itself.write(content) };
        MachineRef(itself)
    }

    /// Returns one more reference to this machine.
    pub(crate) fn to_ref(&self) -> MachineRef {
        let before = self.head.references.fetch_add(1, Ordering::Relaxed);
        assert!(before & HANDLES < HANDLES / 2, "too many references to one circuit");
        MachineRef(self.itself)
    }

    /// Counts one more node, which keeps the machine until [`MachineRef::of_node`] converts its
    /// part of the count.
    pub(crate) fn hold_for_node(&self) -> NonNull<Head> {
        let before = self.head.references.fetch_add(NODE, Ordering::Relaxed);
        assert!(before < u64::MAX / 2, "too many pipes in one circuit");
        self.itself.cast()
    }

    /// Counts one more handle that the circuit could be run with; the caller keeps a reference
    /// besides. Does nothing unless the circuit's owner runs it.
    pub(crate) fn add_owner(&self) {
        if matches!(self.driver, Driver::Owner(_)) {
            let before = self.head.owners.fetch_add(1, Ordering::Relaxed);
            assert!(before < u32::MAX / 2, "too many handles of one circuit");
        }
    }

    /// Removes one handle that the circuit could be run with. With the last one the circuit ends,
    /// because no caller could handle what it accepts.
    pub(crate) fn give_up_owner(&self) {
        if !matches!(self.driver, Driver::Owner(_)) || self.head.owners.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        // If this thread is inside the circuit, the end that is under way drops what its receptors
        // held.
        while !self.has_ended() && !self.is_entered_here() {
            if let Some(mut running) = self.enter() {
                return running.end_unhandled();
            }
            // No caller can run it any more, so the thread inside is only checking and leaves soon.
            hint::spin_loop();
        }
    }

    /// Returns whether only one reference is left.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.head.references.load(Ordering::Acquire) == 1
    }
}

impl Deref for MachineRef {
    type Target = Machine;

    #[inline]
    fn deref(&self) -> &Machine {
        // SAFETY: a counted reference keeps the machine.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for MachineRef {
    fn clone(&self) -> Self {
        self.to_ref()
    }
}

impl Drop for MachineRef {
    fn drop(&mut self) {
        // The driver is notified after this reference is gone. Another thread may have dropped the
        // machine by then, so the notification is taken out of it first.
        let notification = self.driver.on_abandoned();
        let before = match self.driver {
            Driver::Waiters => self.give_up_handle(),
            // This is the only reference, so no other thread can make another.
            _ if self.head.references.load(Ordering::Acquire) == 1 => 1,
            Driver::Owner(_) | Driver::Thread(_) | Driver::Pool(_) | Driver::SharedPool(_) => {
                self.head.references.fetch_sub(1, Ordering::AcqRel)
            }
        };
        match before {
            1 => self.free(),
            2 => {
                if let Some(notification) = notification {
                    notification.send();
                }
            }
            _ => {}
        }
    }
}

impl MachineRef {
    /// Gives this reference up and returns the count before. The last one that is not a node's
    /// first does what only a waiter could have done.
    fn give_up_handle(&self) -> u64 {
        let mut tended = None;
        let mut count = self.head.references.load(Ordering::Acquire);
        loop {
            // A node pushes its release into the queue before it gives up its part of the count. So
            // if the count is the same as before the queue was emptied, no further work has arrived
            // that this thread must do.
            if count & HANDLES == 1 && count > NODE && tended != Some(count) {
                if self.tend() {
                    tended = Some(count);
                }
                count = self.head.references.load(Ordering::Acquire);
                continue;
            }
            match self.head.references.compare_exchange_weak(
                count,
                count - 1,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return count,
                Err(now) => count = now,
            }
        }
    }

    /// Handles what is left in a circuit that its waiters run. Returns false if another thread is
    /// in it for a moment.
    #[cold]
    fn tend(&self) -> bool {
        if self.has_ended() || self.is_entered_here() {
            return true;
        }
        // Handles what was accepted so far. Pipes held elsewhere still accept values; the last of
        // them runs this again.
        if on_one_stack(|| self.run_for_caller(usize::MAX, self.ingress.tail())).is_none() {
            hint::spin_loop();
            return false;
        }
        // A waiter that found the machine running meanwhile relies on this thread to wake it.
        self.waiters.wake(u64::MAX);
        true
    }

    /// Drops the machine, whose last reference this was.
    #[cold]
    fn free(&self) {
        if self.driver.is_run_by_waiters() && self.has_work() && !self.has_ended() {
            // No waiter is left, so what was accepted is handled now. Then the circuit is closed,
            // and dropping `again` frees it.
            self.head.references.store(1, Ordering::Relaxed);
            let again = Self(self.0);
            return on_one_stack(|| {
                if let Some(mut running) = again.enter() {
                    running.run_to_end();
                }
            });
        }
        self.followers.gone();
        // SAFETY: this was the last reference, so no other thread is here, and no node has handles.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
