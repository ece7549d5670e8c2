//! What a machine consists of. What it does is in the files beside this one.
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

/// Emissions are dropped: the circuit is closed, or being closed.
pub(super) const CLOSED: u32 = 1;
/// Nobody will look into the queues until the driver is told to.
pub(super) const IDLE: u32 = 2;
/// What was accepted before the close is done, and nothing will be any more.
pub(super) const ENDED: u32 = 4;
/// The ingress queue is bounded: admission asks first.
pub(super) const BOUNDED: u32 = 8;
/// The context has closed the circuit itself, or has come to the close in its order. Set there only.
pub(super) const CLOSED_INSIDE: u32 = 16;
/// A receptor of another circuit waits for this one, and runs it as soon as nobody else does.
pub(super) const HELPED: u32 = 32;
/// The driver came for it while somebody else ran it, who has the driver come again when leaving.
pub(super) const PUT_OFF: u32 = 64;

/// How many slots are passed before everybody can see it, at the latest. Who has registered for one of them is told at once.
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
/// The fields are in this order: what is seldom touched keeps apart what different threads touch often, see below. Padding would do
/// that as well, and make an idle circuit larger.
#[repr(C)]
pub(crate) struct Machine {
    // What who brings something looks at, and seldom anybody changes.
    pub(super) head: Head,
    pub(crate) bounds: Option<Box<Bounds>>,
    pub(super) lanes: Lanes,
    // Ends with the word that all who bring something write.
    pub(super) ingress: Ingress,
    pub(crate) failures: Failures,
    pub(crate) nodes: Nodes,
    pub(super) seed: u64,
    pub(crate) followers: Followers,
    // What those poll who wait.
    /// How many tickets are done with all that they caused, as others see who look often: so it is not written for each.
    pub(super) done: AtomicU64,
    pub(super) driver: Driver,
    pub(super) subject: Subject,
    pub(super) current: OnceLock<Current>,
    pub(super) recorded: AtomicBool,
    /// Where this is, as it was allocated: a reference to it could not be used to free it.
    pub(super) itself: NonNull<Self>,
    // What who runs it writes, most of it for each entry. Ends with what is seldom touched.
    pub(super) running: AtomicBool,
    /// How many tickets are done, exactly. For who is about to sleep.
    pub(super) finished: AtomicU64,
    pub(super) inside: UnsafeCell<Inside>,
    // Begins with what those write who wait.
    pub(crate) waiters: Waiters,
}

/// Who brings something, who waits and the context do not take cache lines from each other. Where locks and pointers are smaller they
/// may: that costs no more than time.
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
    // With a pipe that was used an idle circuit is to take 1 KiB at most, see the test of its footprint.
    assert!(!IS_USUAL || size_of::<Machine>() <= 512);
};

/// What belongs to the context.
#[derive(Default)]
#[repr(C)]
pub(super) struct Inside {
    /// In whose context the thread was before it came here.
    pub(super) outer: *const Head,
    pub(super) cursor: Cursor,
    /// The time of the input that is being handled, once somebody has asked.
    pub(super) time: u64,
    pub(super) has_time: bool,
    /// Whether the input that is being handled has led to a failure of which somebody in the circuit was told.
    pub(super) has_told: bool,
    /// Whether inputs come from a journal, which also has the circuit's close in its place.
    pub(super) replayed: bool,
    /// How many inputs came through lanes, about; begins anew after a while.
    pub(super) from_lanes: u32,
    /// There once the context knows of a lane.
    pub(super) readers: Option<Box<Readers>>,
    /// There if there is a given time or a recorder.
    pub(super) attendance: Option<Box<Attendance>>,
    pub(super) endings: Endings,
    pub(super) transit: Fifo,
    /// Whether the circuit is ending what is still open, on its way to its own end.
    pub(super) closing: bool,
    /// Whether the circuit drops its receptors, or has dropped them. What its queues have from then on is dropped.
    pub(super) over: bool,
}

/// What is done with each input of a circuit that is recorded, or whose clock somebody else sets.
#[derive(Default)]
pub(super) struct Attendance {
    /// The time that inputs have in a replay.
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

// SAFETY: `inside` is reached only by the thread that has set `running`; everything else is synchronised by itself.
unsafe impl Sync for Machine {}
// SAFETY: all parts may be dropped on any thread.
unsafe impl Send for Machine {}

/// A pointer to a head is one to its machine.
const _: () = assert!(offset_of!(Machine, head) == 0);

impl Machine {
    /// The machine with this head.
    ///
    /// # Safety
    ///
    /// The pointer came from a machine, which is there for as long as the borrow.
    #[inline]
    pub(crate) unsafe fn of<'a>(head: NonNull<Head>) -> &'a Self {
        // SAFETY: a machine begins with its head, so this is where it is; the rest as the caller says.
        unsafe { head.cast().as_ref() }
    }

    /// What others know of it.
    #[inline]
    pub(crate) fn head(&self) -> *const Head {
        // Not by a reference to the head, which would not lead to the machine.
        ptr::from_ref(self).cast()
    }

    pub(crate) fn subject(&self) -> &Subject {
        &self.subject
    }

    pub(crate) fn driver(&self) -> &Driver {
        &self.driver
    }

    /// A seed for the random numbers of what is attached to something of this name, for the first time, the second, and so on.
    /// It does not depend on what else was made before, nor on which thread asks.
    pub(crate) fn seed_for(&self, name: Name, attachment: u32) -> u64 {
        // FNV-1a: it only has to tell names apart, and to stay the same.
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        let hash = name.path().bytes().chain(attachment.to_le_bytes()).fold(0xCBF2_9CE4_8422_2325, step);
        hash ^ self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// The seed that all others come from.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.head.flags.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Whether it is closed to the caller: inside of the context from the place of the close in the order on, so that what is
    /// decided by it is decided alike in a replay.
    pub(crate) fn is_closed_here(&self) -> bool {
        let closed = if self.is_inside() { CLOSED_INSIDE } else { CLOSED };
        self.head.flags.load(Ordering::Acquire) & closed != 0
    }

    /// Refuses what a closed circuit does not do.
    pub(crate) fn check_open(&self, operation: &'static str) -> Result<(), Fault> {
        if self.is_closed_here() {
            return Err(Fault::new(self.subject.clone(), operation, "the circuit is closed"));
        }
        Ok(())
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.head.flags.load(Ordering::Acquire) & ENDED != 0
    }

    /// Has this ended before the circuit ends, behind all that were said before. In the context only.
    pub(crate) fn ends_with(&self, open: Weak<dyn Ending>) {
        assert!(self.is_inside(), "the caller is in the context of {}", self.subject);
        // SAFETY: in the context, and the borrow ends here.
        unsafe { (*self.inside.get()).endings.push(open) };
    }
}
