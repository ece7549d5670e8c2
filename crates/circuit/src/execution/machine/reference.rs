//! Counted references to machines: a machine ends with the last one.
//!
//! Nodes that have handles keep their machine too, and are counted apart: handles of nodes may be held by receptors of the very
//! machine. So when the last reference that is no node's goes, nobody is left who could wait for the circuit. If it is run by who
//! waits, it is run one last time then, and what only its own receptors held is gone.
//!
//! A circuit that its owner runs ends earlier: with the last handle that it could be run with, whoever else refers to it.
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

/// The part of the count that is not of nodes.
const HANDLES: u64 = NODE - 1;

/// A node in the count.
const NODE: u64 = 1 << 32;

/// A counted reference to a machine.
pub(crate) struct MachineRef(pub(super) NonNull<Machine>);

// SAFETY: a machine may be used and dropped from any thread.
unsafe impl Send for MachineRef {}
// SAFETY: as above.
unsafe impl Sync for MachineRef {}

impl MachineRef {
    /// A reference to the machine in whose context this runs.
    pub(crate) fn inside() -> Self {
        Machine::with_inside(|machine| machine.expect("in a circuit's context").to_ref())
    }

    /// The reference of a node, which it gave up its own for.
    ///
    /// # Safety
    ///
    /// The pointer came from [`Machine::hold_for_node`], and this is its one way back.
    pub(crate) unsafe fn of_node(machine: NonNull<Head>) -> Self {
        // SAFETY: the node's part of the count has kept the machine until now, and this part does from now on.
        unsafe { machine.as_ref() }.references.fetch_sub(NODE - 1, Ordering::AcqRel);
        Self(machine.cast())
    }

    /// This reference, for somebody who knows no machines.
    pub(crate) fn hand_over(self) -> HandedOver {
        HandedOver(ManuallyDrop::new(self).0.cast())
    }

    /// The reference that was handed over.
    pub(crate) fn take_over(reference: HandedOver) -> Self {
        Self(reference.0.cast())
    }
}

impl Machine {
    /// A new machine, to which the caller has the only reference.
    #[allow(clippy::new_ret_no_self, reason = "a machine is known by references only")]
    pub(crate) fn new(
        subject: Subject,
        driver: Driver,
        seed: u64,
        bounds: Option<Bounds>,
        failures: Failures,
    ) -> MachineRef {
        barrier::prepare();
        let idle = if driver.must_be_told() { IDLE } else { 0 };
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
        // SAFETY: this was allocated for it.
        unsafe { itself.write(content) };
        MachineRef(itself)
    }

    /// One more reference to this machine.
    pub(crate) fn to_ref(&self) -> MachineRef {
        let before = self.head.references.fetch_add(1, Ordering::Relaxed);
        assert!(before & HANDLES < HANDLES / 2, "too many references to one circuit");
        MachineRef(self.itself)
    }

    /// The machine, which a node keeps from now on.
    pub(crate) fn hold_for_node(&self) -> NonNull<Head> {
        let before = self.head.references.fetch_add(NODE, Ordering::Relaxed);
        assert!(before < u64::MAX / 2, "too many pipes in one circuit");
        self.itself.cast()
    }

    /// One more handle that the circuit could be run with, by a caller that keeps a reference to it.
    pub(crate) fn add_owner(&self) {
        if matches!(self.driver, Driver::Owner(_)) {
            let before = self.head.owners.fetch_add(1, Ordering::Relaxed);
            assert!(before < u32::MAX / 2, "too many handles of one circuit");
        }
    }

    /// One handle less. With the last the circuit ends, because nothing that it accepts would ever be handled.
    pub(crate) fn give_up_owner(&self) {
        if !matches!(self.driver, Driver::Owner(_)) || self.head.owners.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        // From within, it is its end that drops what its receptors held.
        while !self.has_ended() && !self.is_entered_here() {
            if let Some(mut running) = self.enter() {
                return running.end_unhandled();
            }
            // Nobody can run it any more, so who is in it only looks.
            hint::spin_loop();
        }
    }

    /// Whether only one reference is left.
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
        // What the driver has to be told after this reference is gone must outlive the machine.
        let last_words = self.driver.on_abandoned();
        let before = match self.driver {
            Driver::Waiters => self.give_up_handle(),
            // Nobody else is left who could make another.
            _ if self.head.references.load(Ordering::Acquire) == 1 => 1,
            Driver::Owner(_) | Driver::Thread(_) | Driver::Pool(_) | Driver::SharedPool(_) => {
                self.head.references.fetch_sub(1, Ordering::AcqRel)
            }
        };
        match before {
            1 => self.free(),
            2 => {
                if let Some(tell) = last_words {
                    tell.tell();
                }
            }
            _ => {}
        }
    }
}

impl MachineRef {
    /// Gives this reference up and returns the count before. The last that is no node's first does for the nodes what nobody could
    /// do any more.
    fn give_up_handle(&self) -> u64 {
        let mut tended = None;
        let mut count = self.head.references.load(Ordering::Acquire);
        loop {
            // Who lets go of a node puts its release into the queue first. So if the count is the same as before we looked into
            // the queue, nothing has come that we would have to do.
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

    /// Does what is left to be done in a circuit that is run by who waits. False if somebody else is in it, for a moment.
    #[cold]
    fn tend(&self) -> bool {
        if self.has_ended() || self.is_entered_here() {
            return true;
        }
        // What was accepted is handled. Pipes that somebody else holds go on accepting, and this comes again with the last.
        if on_one_stack(|| self.run_for_caller(usize::MAX, self.ingress.tail())).is_none() {
            hint::spin_loop();
            return false;
        }
        // Whoever waits and found the machine running while we were in it has left what it wanted done to us.
        self.waiters.wake(u64::MAX);
        true
    }

    #[cold]
    fn free(&self) {
        if self.driver.is_run_by_waiters() && self.has_work() && !self.has_ended() {
            // Nobody will wait any more, so what was accepted is handled now; then it is closed, and this comes again.
            self.head.references.store(1, Ordering::Relaxed);
            let again = Self(self.0);
            return on_one_stack(|| {
                if let Some(mut running) = again.enter() {
                    running.run_to_end();
                }
            });
        }
        self.followers.gone();
        // SAFETY: this was the last reference, so nobody else is here, and no node has handles.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
