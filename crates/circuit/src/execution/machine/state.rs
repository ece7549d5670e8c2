//! The fields of a machine. Its behaviour is in the files next to this one.
#![allow(unsafe_code, reason = "see the parent module")]

use std::cell::UnsafeCell;
use std::mem::offset_of;
use std::ptr::{self, NonNull};
use std::sync::{Arc, OnceLock, Weak};

use super::head::Head;
use crate::error::Fault;
use crate::execution::bounds::Bounds;
use crate::execution::current::Current;
use crate::execution::driver::Driver;
use crate::execution::ending::{Ending, Endings};
use crate::execution::lanes::{Lanes, Readers};
use crate::execution::node::Nodes;
use crate::execution::queue::fifo::Fifo;
use crate::execution::queue::ingress::{Cursor, Ingress};
use crate::execution::waiters::Waiters;
use crate::failure::account::Failures;
use crate::identity::name::Name;
use crate::identity::subject::Subject;
use crate::journal::Recorder;
use crate::observe::followers::Followers;
use crate::sync::{AtomicBool, AtomicU64, LINE_BYTES, Ordering};

/// The circuit is closed or being closed: emissions are dropped.
pub(super) const CLOSED: u32 = 1;
/// The driver checks the queues only after a notification.
pub(super) const IDLE: u32 = 2;
/// What was accepted before the close is done; nothing else will be.
pub(super) const ENDED: u32 = 4;
/// The ingress queue is bounded: admission requests room first.
pub(super) const BOUNDED: u32 = 8;
/// The context has closed the circuit itself, or has reached the close in its order. Set only in
/// the context.
pub(super) const CLOSED_INSIDE: u32 = 16;
/// A receptor of another circuit waits for this one, and runs it as soon as no other thread does.
pub(super) const HELPED: u32 = 32;
/// The driver arrived while another thread ran the circuit; that thread reschedules the driver when
/// it leaves.
pub(super) const PUT_OFF: u32 = 64;

/// Number of tickets after which progress is published at the latest. Registered waiters are woken
/// immediately.
pub(super) const PUBLISH_EVERY: u64 = 32;

/// How a call of `Running::run` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The queues were empty.
    Idle,
    /// The budget was used up.
    More,
    /// Everything up to the given ticket is done.
    Reached,
}

/// A circuit without its driver's threads. See the module.
///
/// The order of the fields matters: rarely used fields separate those that different threads use
/// often, see below. Padding would do so too, and make an idle circuit larger.
#[repr(C)]
pub(crate) struct Machine {
    // Read by producers, rarely changed.
    pub(super) head: Head,
    pub(crate) bounds: Option<Box<Bounds>>,
    pub(super) lanes: Lanes,
    // Ends with the word that all producers write.
    pub(super) ingress: Ingress,
    pub(crate) failures: Failures,
    pub(crate) nodes: Nodes,
    pub(super) seed: u64,
    pub(crate) followers: Followers,
    // Polled by waiters.
    /// Number of tickets done with all that they caused, as published for polling: not updated for
    /// each ticket.
    pub(super) done: AtomicU64,
    pub(super) driver: Driver,
    pub(super) subject: Subject,
    pub(super) current: OnceLock<Current>,
    pub(super) recorded: AtomicBool,
    /// Pointer to this, as allocated: one derived from a reference could not be used to free it.
    pub(super) itself: NonNull<Self>,
    // Written by the runner, most of it for each entry. Ends with rarely used fields.
    pub(super) running: AtomicBool,
    /// Exact number of tickets done. For threads about to sleep.
    pub(super) finished: AtomicU64,
    pub(super) inside: UnsafeCell<Inside>,
    // Begins with the words that waiters write.
    pub(crate) waiters: Waiters,
}

/// Producers, waiters and the context do not share cache lines. On targets with smaller locks and
/// pointers they may, which costs only time.
const _: () = {
    const IS_USUAL: bool = cfg!(all(not(loom), target_os = "linux", target_pointer_width = "64"));
    const HINT: usize = offset_of!(Machine, ingress) + Ingress::HINT;
    const TAIL: usize = offset_of!(Machine, ingress) + Ingress::TAIL;
    const DONE: usize = offset_of!(Machine, done);
    const RUNNING: usize = offset_of!(Machine, running);
    const INSIDE: usize = offset_of!(Machine, inside);
    const CHUNKS: usize = INSIDE + offset_of!(Inside, transit) + Fifo::CHUNKS;
    const WAITERS: usize = offset_of!(Machine, waiters);
    assert!(offset_of!(Machine, lanes) < HINT && RUNNING < INSIDE);
    assert!(!IS_USUAL || HINT + LINE_BYTES <= TAIL);
    assert!(!IS_USUAL || TAIL + LINE_BYTES <= DONE);
    assert!(!IS_USUAL || DONE + LINE_BYTES <= RUNNING);
    assert!(!IS_USUAL || CHUNKS + LINE_BYTES - size_of::<u64>() <= WAITERS);
    // An idle circuit with a pipe that was used is to take at most 1 KiB, see the test of its
    // footprint.
    assert!(!IS_USUAL || size_of::<Machine>() <= 512);
};

/// The part of a machine that only its context accesses.
#[derive(Default)]
#[repr(C)]
pub(super) struct Inside {
    /// The context that the thread was in before it entered this one.
    pub(super) outer: *const Head,
    pub(super) cursor: Cursor,
    /// Time of the input that is being handled, once it was read.
    pub(super) time: u64,
    pub(super) has_time: bool,
    /// Whether a component of the circuit was notified of a failure that the current input led to.
    pub(super) has_reported: bool,
    /// Whether inputs come from a journal, which also has the circuit's close in its place.
    pub(super) replayed: bool,
    /// Approximate number of inputs that came through lanes; wraps around.
    pub(super) from_lanes: u32,
    /// Set once the context has seen a lane.
    pub(super) readers: Option<Box<Readers>>,
    /// Set while there is a given time or a recorder.
    pub(super) attendance: Option<Box<Attendance>>,
    pub(super) endings: Endings,
    pub(super) transit: Fifo,
    /// Whether the circuit is ending its open components, on the way to its own end.
    pub(super) closing: bool,
    /// Whether the circuit drops its receptors, or has dropped them. Later entries of its queues
    /// are dropped.
    pub(super) over: bool,
}

/// Recorder and time of a circuit that is recorded, or whose clock is set from outside.
#[derive(Default)]
pub(super) struct Attendance {
    /// Time of inputs in a replay or simulation.
    pub(super) given_time: Option<u64>,
    pub(super) recorder: Option<Arc<dyn Recorder>>,
}

impl Attendance {
    pub(super) fn is_over(&self) -> bool {
        self.given_time.is_none() && self.recorder.is_none()
    }
}

impl Inside {
    #[inline]
    pub(super) fn knows_no_lane(&self) -> bool {
        self.readers.as_ref().is_none_or(|readers| readers.is_empty())
    }
}

// SAFETY: only the thread that has set `running` accesses `inside`; everything else is `Sync` or
// constant.
unsafe impl Sync for Machine {}
// SAFETY: all parts may be dropped on any thread.
unsafe impl Send for Machine {}

/// A pointer to a head is a pointer to its machine.
const _: () = assert!(offset_of!(Machine, head) == 0);

impl Machine {
    /// Converts a head into its machine.
    ///
    /// # Safety
    ///
    /// The pointer came from a machine, which exists for as long as the borrow.
    #[inline]
    pub(crate) unsafe fn of<'a>(head: NonNull<Head>) -> &'a Self {
        // SAFETY: a machine begins with its head, so they have the same address; the rest as the
        // caller says.
        unsafe { head.cast().as_ref() }
    }

    /// The head, by which others refer to the machine.
    #[inline]
    pub(crate) fn head(&self) -> *const Head {
        // Not derived from a reference to the head, which would not be valid for the whole machine.
        ptr::from_ref(self).cast()
    }

    pub(crate) fn subject(&self) -> &Subject {
        &self.subject
    }

    pub(crate) fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Returns a seed for the random numbers of the first, second and so on attachment to a
    /// component of this name. It does not depend on what else was made before, nor on the calling
    /// thread.
    pub(crate) fn seed_for(&self, name: Name, attachment: u32) -> u64 {
        // FNV-1a: it only has to be stable and distinguish names.
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        let hash = name.path().bytes().chain(attachment.to_le_bytes()).fold(0xCBF2_9CE4_8422_2325, step);
        hash ^ self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// The seed from which all others are derived.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.head.flags.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Returns whether it is closed for the caller. Inside the context this holds from the close's
    /// place in the order on, so that decisions based on it are the same in a replay.
    pub(crate) fn is_closed_here(&self) -> bool {
        let closed = if self.is_inside() { CLOSED_INSIDE } else { CLOSED };
        self.head.flags.load(Ordering::Acquire) & closed != 0
    }

    /// Returns a fault if the circuit is closed.
    pub(crate) fn check_open(&self, operation: &'static str) -> Result<(), Fault> {
        if self.is_closed_here() {
            return Err(Fault::new(self.subject.clone(), operation, "the circuit is closed"));
        }
        Ok(())
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.head.flags.load(Ordering::Acquire) & ENDED != 0
    }

    /// Registers a component that ends before the circuit does, after those registered earlier. In
    /// the context only.
    pub(crate) fn ends_with(&self, open: Weak<dyn Ending>) {
        assert!(self.is_inside(), "the caller is in the context of {}", self.subject);
        // SAFETY: in the context, and the borrow ends here.
        unsafe { (*self.inside.get()).endings.push(open) };
    }
}
