//! The state machine of a circuit: two queues, one context, one order. Drivers decide when and on which thread it runs.
//!
//! [`Running::run`] is the whole of it: the transit queue is emptied, then one entry of the ingress queue is taken, and so on.
//! What is in the ingress queue was put there by anybody; what is in the transit queue by the circuit's own receptors.
#![allow(
    unsafe_code,
    reason = "what the one context owns is reached without a lock; `running` says who has it"
)]

mod admission;
mod reference;
mod running;
mod settling;
mod waits;

use std::any::Any;
use std::cell::UnsafeCell;
use std::mem::{MaybeUninit, offset_of};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::sync::{Arc, OnceLock, Weak};

use crate::barrier;
use crate::bounds::Bounds;
use crate::context;
use crate::current::Current;
use crate::driver::Driver;
use crate::ending::{Ending, Endings};
use crate::error::Fault;
use crate::event::Event;
use crate::failure::{Failure, Trouble};
use crate::failures::Failures;
use crate::followers::Followers;
use crate::journal::Recorder;
use crate::lanes::{Lanes, Readers};
use crate::name::Name;
use crate::node::{self, Header, Nodes};
use crate::pipe::Pipe;
use crate::queue::fifo::Fifo;
use crate::queue::ingress::{Cursor, Ingress};
use crate::queue::token::{Entry, Token};
use crate::subject::Subject;
use crate::supervision::{Remedy, Restarts, Supervision};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, LINE_BYTES, Ordering};
use crate::telemetry;
use crate::thrown::shielded;
use crate::waiters::Waiters;

pub(crate) use reference::MachineRef;
pub(crate) use running::Running;
use running::{value_bytes, value_words};

/// Emissions are dropped: the circuit is closed, or being closed.
const CLOSED: u32 = 1;
/// Nobody will look into the queues until the driver is told to.
const IDLE: u32 = 2;
/// What was accepted before the close is done, and nothing will be any more.
const ENDED: u32 = 4;
/// The ingress queue is bounded: admission asks first.
const BOUNDED: u32 = 8;
/// The context has closed the circuit itself, or has come to the close in its order. Set there only.
const CLOSED_INSIDE: u32 = 16;
/// A receptor of another circuit waits for this one, and runs it as soon as nobody else does.
const HELPED: u32 = 32;
/// The driver came for it while somebody else ran it, who has the driver come again when leaving.
const PUT_OFF: u32 = 64;

/// How many slots are passed before everybody can see it, at the latest. Who has registered for one of them is told at once.
const PUBLISH_EVERY: u64 = 32;

/// How a call of [`Running::run`] ended.
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
    flags: AtomicU32,
    /// How many handles there are that an owner could run it with. Not counted for other drivers.
    owners: AtomicU32,
    /// Who keeps the machine: handles of the circuit and the driver while it has something to do, and, counted apart, nodes that
    /// have handles.
    references: AtomicU64,
    pub(crate) bounds: Option<Box<Bounds>>,
    lanes: Lanes,
    // Ends with the word that all who bring something write.
    ingress: Ingress,
    pub(crate) failures: Failures,
    pub(crate) nodes: Nodes,
    seed: u64,
    pub(crate) followers: Followers,
    // What those poll who wait.
    /// How many tickets are done with all that they caused, as others see who look often: so it is not written for each.
    done: AtomicU64,
    driver: Driver,
    subject: Subject,
    current: OnceLock<Current>,
    recorded: AtomicBool,
    /// Where this is, as it was allocated: a reference to it could not be used to free it.
    itself: NonNull<Self>,
    // What who runs it writes, most of it for each entry. Ends with what is seldom touched.
    running: AtomicBool,
    /// How many tickets are done, exactly. For who is about to sleep.
    finished: AtomicU64,
    inside: UnsafeCell<Inside>,
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
struct Inside {
    /// In whose context the thread was before it came here.
    outer: *const Machine,
    cursor: Cursor,
    /// The time of the input that is being handled, once somebody has asked.
    time: u64,
    has_time: bool,
    /// Whether the input that is being handled has led to a failure of which somebody in the circuit was told.
    has_told: bool,
    /// Whether inputs come from a journal, which also has the circuit's close in its place.
    replayed: bool,
    /// How many inputs came through lanes, about; begins anew after a while.
    from_lanes: u32,
    /// There once the context knows of a lane.
    readers: Option<Box<Readers>>,
    /// There if there is a given time or a recorder.
    attendance: Option<Box<Attendance>>,
    endings: Endings,
    transit: Fifo,
    /// Whether the circuit is ending what is still open, on its way to its own end.
    closing: bool,
}

/// What is done with each input of a circuit that is recorded, or whose clock somebody else sets.
#[derive(Default)]
struct Attendance {
    /// The time that inputs have in a replay.
    given_time: Option<u64>,
    recorder: Option<Arc<dyn Recorder>>,
}

impl Attendance {
    fn is_over(&self) -> bool {
        self.given_time.is_none() && self.recorder.is_none()
    }
}

impl Inside {
    #[inline]
    fn knows_no_lane(&self) -> bool {
        self.readers.as_ref().is_none_or(|readers| readers.is_empty())
    }
}

// SAFETY: `inside` is reached only by the thread that has set `running`; everything else is synchronised by itself.
unsafe impl Sync for Machine {}
// SAFETY: all parts may be dropped on any thread.
unsafe impl Send for Machine {}

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
            flags: AtomicU32::new(idle | bounded),
            running: AtomicBool::new(false),
            recorded: AtomicBool::new(false),
            references: AtomicU64::new(1),
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
            owners: AtomicU32::new(0),
            itself,
            finished: AtomicU64::new(0),
            inside: UnsafeCell::new(Inside::default()),
        };
        // SAFETY: this was allocated for it.
        unsafe { itself.write(content) };
        MachineRef(itself)
    }

    pub(crate) fn subject(&self) -> &Subject {
        &self.subject
    }

    pub(crate) fn current(&self) -> &Current {
        self.current.get_or_init(|| Current::new(self.subject.name(), Some(self.subject.clone())))
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

    /// The time that the next inputs have, instead of the clock's. For circuits that their owner runs, between two runs.
    pub(crate) fn set_time(&self, nanos: u64) {
        if let Some(running) = self.enter() {
            // SAFETY: we are in the context.
            unsafe {
                (*self.inside.get()).attendance.get_or_insert_default().given_time = Some(nanos);
            }
            drop(running);
        }
    }

    /// Reserves the circuit for a journal, which [`Machine::begin_recording`] is given next; false if one is told already.
    pub(crate) fn reserve_recording(&self) -> bool {
        !self.recorded.swap(true, Ordering::AcqRel)
    }

    /// Has the journal that the circuit is reserved for told of inputs from here on.
    pub(crate) fn begin_recording(&self, recorder: Arc<dyn Recorder>) {
        self.set_recorder(|_| true, Some(recorder));
    }

    /// Has this journal, which is the one that is told, be told of nothing from here on.
    pub(crate) fn end_recording(&self, recorder: Arc<dyn Recorder>) {
        // Another one may have begun inside of the circuit, ahead of this.
        let is_told = move |told: &Arc<dyn Recorder>| ptr::addr_eq(Arc::as_ptr(told), Arc::as_ptr(&recorder));
        self.set_recorder(is_told, None);
        self.recorded.store(false, Ordering::Release);
    }

    /// Has this journal told from here on, if none is or `gives_way` says so of the one that is.
    fn set_recorder(
        &self,
        gives_way: impl FnOnce(&Arc<dyn Recorder>) -> bool + Send + 'static,
        recorder: Option<Arc<dyn Recorder>>,
    ) {
        self.submit(Event::Other, move || {
            Self::with_inside(|machine| {
                let machine = machine.expect("jobs run in the circuit's context");
                // SAFETY: in the context; recorders are dropped outside of the borrow.
                let before = unsafe {
                    let place = &mut (*machine.inside.get()).attendance;
                    let attendance = place.get_or_insert_default();
                    if !attendance.recorder.as_ref().is_none_or(gives_way) {
                        return;
                    }
                    let before = std::mem::replace(&mut attendance.recorder, recorder);
                    place.take_if(|attendance| attendance.is_over());
                    before
                };
                drop(before);
            });
        });
    }

    /// Tells the journal, if there is one, of an input that came as a job, as if it were an emission to this pipe. In the context
    /// only.
    pub(crate) fn record_as_emission<E: Send + 'static>(&self, pipe: &Pipe<E>, value: &mut E) {
        // SAFETY: the pipe takes an `E`.
        unsafe { self.record_as_emission_to(pipe.subject(), value) };
    }

    /// As [`Machine::record_as_emission`].
    ///
    /// # Safety
    ///
    /// The pipe with this subject takes an `E`.
    pub(crate) unsafe fn record_as_emission_to<E>(&self, pipe: &Subject, value: &mut E) {
        // SAFETY: as the caller says.
        self.record(|recorder, time| unsafe { recorder.emission(time, pipe, ptr::from_mut(value).cast()) });
    }

    /// Tells the journal, if there is one, of an input that it cannot have. In the context only.
    pub(crate) fn record_gap(&self, what: &str) {
        self.record(|recorder, time| recorder.gap(time, what));
    }

    /// Tells the journal, if there is one, of the input that is being handled. In the context only.
    ///
    /// This calls code of users, writers and values. What they throw is reported and goes no further: an input is handled
    /// whether it could be recorded or not.
    fn record(&self, tell: impl FnOnce(&dyn Recorder, u64)) {
        debug_assert!(self.is_inside());
        // SAFETY: in the context. Another handle, because what is called may change ours.
        let attendance = unsafe { &(*self.inside.get()).attendance };
        let recorder = attendance.as_ref().and_then(|attendance| attendance.recorder.clone());
        let Some(recorder) = recorder else { return };
        let time = self.stimulus_nanos();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| tell(&*recorder, time))) {
            self.report("record", panic);
        }
    }

    /// Whether the input that is being handled has had the circuit send something to itself. In the context only.
    pub(crate) fn has_caused(&self) -> bool {
        debug_assert!(self.is_inside());
        // SAFETY: in the context.
        unsafe { !(*self.inside.get()).transit.is_empty() }
    }

    /// Whether the circuit's own close is left to a journal that is run again. For circuits that their owner runs, between two
    /// runs; false if it is being run.
    pub(crate) fn set_replayed(&self, replayed: bool) -> bool {
        let running = self.enter();
        if running.is_some() {
            // SAFETY: we are in the context.
            unsafe { (*self.inside.get()).replayed = replayed };
        }
        running.is_some()
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.flags.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Whether it is closed to the caller: inside of the context from the place of the close in the order on, so that what is
    /// decided by it is decided alike in a replay.
    pub(crate) fn is_closed_here(&self) -> bool {
        let closed = if self.is_inside() { CLOSED_INSIDE } else { CLOSED };
        self.flags.load(Ordering::Acquire) & closed != 0
    }

    /// Refuses what a closed circuit does not do.
    pub(crate) fn check_open(&self, operation: &'static str) -> Result<(), Fault> {
        if self.is_closed_here() {
            return Err(Fault::new(self.subject.clone(), operation, "the circuit is closed"));
        }
        Ok(())
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.flags.load(Ordering::Acquire) & ENDED != 0
    }

    #[inline]
    pub(crate) fn is_inside(&self) -> bool {
        context::is_inside(self)
    }

    /// The machine in whose context the caller runs.
    pub(crate) fn with_inside<R>(f: impl FnOnce(Option<&Self>) -> R) -> R {
        // SAFETY: whoever runs a machine has a reference to it.
        f(unsafe { context::inside().as_ref() })
    }

    /// The time of the input that is being handled. In the context only.
    pub(crate) fn stimulus_nanos(&self) -> u64 {
        debug_assert!(self.is_inside());
        // SAFETY: in the context, and no borrow is kept.
        unsafe {
            let inside = self.inside.get();
            if !(*inside).has_time {
                ((*inside).time, (*inside).has_time) = (context::clock_nanos(), true);
            }
            (*inside).time
        }
    }

    /// Whether somebody in the circuit was told already of a failure that the input led to which is being handled. In the
    /// context only.
    pub(crate) fn has_told_of_failure(&self) -> bool {
        debug_assert!(self.is_inside());
        // SAFETY: in the context.
        unsafe { (*self.inside.get()).has_told }
    }

    /// Somebody in the circuit is told of a failure next. In the context only.
    pub(crate) fn tells_of_failure(&self) {
        debug_assert!(self.is_inside());
        // SAFETY: in the context, and the borrow ends here.
        unsafe { (*self.inside.get()).has_told = true };
    }

    /// Has this ended before the circuit ends, behind all that were said before. In the context only.
    pub(crate) fn ends_with(&self, open: Weak<dyn Ending>) {
        debug_assert!(self.is_inside());
        // SAFETY: in the context, and the borrow ends here.
        unsafe { (*self.inside.get()).endings.push(open) };
    }

    /// Enters the context, unless somebody is in it.
    pub(crate) fn enter(&self) -> Option<Running<'_>> {
        // Writes nothing where it fails: who is in it leaves by an ordinary store.
        if self.running.compare_exchange(false, true, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return None;
        }
        let outer = context::replace(self);
        // SAFETY: we are in the context.
        unsafe { (*self.inside.get()).outer = outer };
        Some(Running { machine: self })
    }

    /// The machine in whose context the caller runs, or has stepped out of.
    fn entered_here<'a>() -> Option<&'a Self> {
        // SAFETY: whoever runs a machine has a reference to it, until the caller has returned.
        unsafe { context::without_mark(context::entered()).as_ref() }
    }

    /// Whether this thread is in the machine's context, or in that of another machine which is run inside of it.
    #[inline]
    pub(crate) fn is_entered_here(&self) -> bool {
        // Nearly always it is in none.
        !context::entered().is_null() && Self::each_entered_here(|machine| ptr::eq(machine, self))
    }

    /// Shows the machines in whose context this thread is, the innermost first, until one is the right one; false if none is.
    #[cold]
    fn each_entered_here(mut is_right: impl FnMut(&Self) -> bool) -> bool {
        let mut at = context::entered();
        // SAFETY: this thread is in the context of all that it comes across, and whoever runs a machine has a reference to it.
        while let Some(machine) = unsafe { context::without_mark(at).as_ref() } {
            if is_right(machine) {
                return true;
            }
            // SAFETY: as above.
            at = unsafe { (*machine.inside.get()).outer };
        }
        false
    }

    /// Does about a receptor's panic what its supervision says, and reports it.
    ///
    /// # Safety
    ///
    /// In the context; the node exists and is not being run.
    pub(crate) unsafe fn report_panic(&self, node: *mut Header, panic: Box<dyn Any + Send>) {
        // SAFETY: the node exists, and no borrow is held while code of users runs.
        let (count, subject, supervision) =
            unsafe { ((*node).count_failure(), (*node).subject().clone(), (*node).supervision()) };
        let failure = Failure::of_panic(subject, "receive", panic);
        // SAFETY: as above.
        let restarts = unsafe { (*node).care().and_then(|care| care.restarts()) };
        // SAFETY: as above.
        let own = if unsafe { (*node).is_built_in() } { Some(Supervision::Resume) } else { supervision };
        let mut remedy = self.remedy(own, count, restarts);
        let mut trouble = None;
        if remedy == Remedy::Restarted {
            // SAFETY: as the caller says.
            trouble = unsafe { node::renew_node(node) }.err();
        }
        if remedy == Remedy::Quarantined || trouble.is_some() {
            remedy = Remedy::Quarantined;
            // SAFETY: as the caller says.
            unsafe { node::empty_node(node) };
        }
        self.report_remedied(failure.was(count, remedy), trouble);
    }

    /// What to do about somebody's failure that is the one of this number. See [`Supervision::remedy`].
    pub(crate) fn remedy(
        &self,
        own: Option<Supervision>,
        count: u32,
        restarts: Option<&mut Restarts>,
    ) -> Remedy {
        self.supervises(own).remedy(count, restarts, || self.stimulus_nanos())
    }

    /// The supervision of who has this for its own.
    pub(crate) fn supervises(&self, own: Option<Supervision>) -> Supervision {
        own.unwrap_or_else(|| self.failures.supervision())
    }

    /// Reports a failure about which something was done, and why it could not be done, if so.
    pub(crate) fn report_remedied(&self, failure: Failure, trouble: Option<Trouble>) {
        self.failures.report(&failure);
        if let Some(trouble) = trouble {
            let subject = failure.subject().clone();
            self.failures.report(&Failure::of_restart(subject, failure.count(), trouble));
        }
        match failure.remedy() {
            Remedy::Resumed => {}
            Remedy::Restarted => telemetry::restarted(failure.subject(), failure.count()),
            Remedy::Quarantined => telemetry::quarantined(failure.subject(), failure.count()),
        }
    }

    /// Reports what a callback's panic said that goes on as it is, in the context that this runs in, or has stepped out of. It is
    /// the one of this number.
    #[cold]
    pub(crate) fn report_inside(
        subject: &Subject,
        operation: &'static str,
        count: u32,
        panic: Box<dyn Any + Send>,
    ) {
        let machine = Self::entered_here();
        debug_assert!(machine.is_some(), "in a circuit's context");
        if let Some(machine) = machine {
            let failure = Failure::of_panic(subject.clone(), operation, panic);
            machine.failures.report(&failure.was(count, Remedy::Resumed));
        }
    }

    /// Reports a panic in what the circuit does for itself.
    fn report(&self, operation: &'static str, panic: Box<dyn Any + Send>) {
        let count = u32::try_from(self.failures.count().saturating_add(1)).unwrap_or(u32::MAX);
        let failure = Failure::of_panic(self.subject.clone(), operation, panic);
        self.failures.report(&failure.was(count, Remedy::Resumed));
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let inside = self.inside.get_mut();
        let cursor = &mut inside.cursor;
        let mut released = Vec::new();
        let mut drop_entry = |token: Token, value: *mut u8| match token.entry() {
            // SAFETY: nodes are freed after both queues were emptied; the value is dropped here and nowhere else.
            Entry::Emission(node) => unsafe { node::discard_value(node, value) },
            Entry::Release(node) => released.push(node),
            // SAFETY: the token owned the job.
            Entry::Job(job) => shielded(|| drop(unsafe { Box::from_raw(job) })),
            Entry::Close | Entry::Barrier => {}
        };
        // SAFETY: this is the only thread that knows the machine.
        unsafe {
            if !self.lanes.is_empty() {
                let readers = inside.readers.get_or_insert_default();
                readers.refresh(&self.lanes);
                while let Some((reader, count)) = readers.before_barrier(&self.lanes) {
                    for _ in 0..count {
                        let (token, value) = reader.next(value_words);
                        drop_entry(token, value);
                    }
                }
            }
            while !inside.transit.is_empty() {
                let (token, value) = inside.transit.take(value_words);
                drop_entry(token, value);
            }
            match self.bounds.as_ref().and_then(|bounds| bounds.latest()) {
                None => {
                    while let Some((token, value)) = self.ingress.peek(cursor, value_bytes) {
                        drop_entry(token, value);
                        self.ingress.advance(cursor);
                    }
                }
                Some(latest) => {
                    while let Some((token, value)) = latest.take() {
                        drop_entry(token, value);
                    }
                }
            }
        }
        for node in released {
            // SAFETY: as above.
            unsafe { node::free_node(node) };
        }
    }
}
