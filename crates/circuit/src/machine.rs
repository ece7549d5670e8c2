//! The state machine of a circuit: two queues, one context, one order. Drivers decide when and on which thread it runs.
//!
//! [`Running::run`] is the whole of it: the transit queue is emptied, then one entry of the ingress queue is taken, and so on.
//! What is in the ingress queue was put there by anybody; what is in the transit queue by the circuit's own receptors.
#![allow(
    unsafe_code,
    reason = "what the one context owns is reached without a lock; `running` says who has it"
)]

use std::any::Any;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use crate::barrier;
use crate::bounds::{Admission, Bounds, Refused};
use crate::context;
use crate::current::Current;
use crate::driver::Driver;
use crate::error::ContextError;
use crate::event::Event;
use crate::failure::{Failure, Failures, shielded};
use crate::journal::Recorder;
use crate::lanes::{Lanes, Readers};
use crate::name::Name;
use crate::node::{self, Header, Nodes};
use crate::queue::fifo::Fifo;
use crate::queue::ingress::{Cursor, Ingress};
use crate::queue::lane::{Reader, Writer};
use crate::queue::latest;
use crate::queue::token::{Entry, Job, Token};
use crate::subject::Subject;
use crate::sync::{Apart, AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::waiters::Waiters;

/// Emissions are dropped: the circuit is closed, or being closed.
const CLOSED: u32 = 1;
/// The ingress queue is bounded: admission asks first.
const BOUNDED: u32 = 8;
/// Nobody will look into the queues until the driver is told to.
const IDLE: u32 = 2;
/// What was accepted before the close is done, and nothing will be any more.
const ENDED: u32 = 4;

/// How many entries are handled before who waits for them is told, at the latest.
const PUBLISH_EVERY: u32 = 32;

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
#[repr(C)]
pub(crate) struct Machine {
    flags: AtomicU32,
    /// Where this is, as it was allocated: a reference to it could not be used to free it.
    itself: NonNull<Self>,
    /// Who keeps the machine: handles of the circuit, nodes with handles, and the driver while it has something to do.
    references: AtomicUsize,
    running: AtomicBool,
    driver: Driver,
    subject: Subject,
    current: OnceLock<Current>,
    seed: u64,
    recorded: AtomicBool,
    pub(crate) failures: Failures,
    pub(crate) nodes: Nodes,
    pub(crate) waiters: Waiters,
    lanes: Lanes,
    pub(crate) bounds: Option<Box<Bounds>>,
    ingress: Ingress,
    // From here on in this order: what others poll, and what only the context touches, are kept apart.
    /// How many tickets are done with all that they caused. All of them once the circuit has ended.
    done: Apart<AtomicU64>,
    inside: UnsafeCell<Inside>,
}

/// What belongs to the context.
#[derive(Default)]
struct Inside {
    /// In whose context the thread was before it came here.
    outer: Option<NonNull<Machine>>,
    cursor: Cursor,
    transit: Fifo,
    readers: Readers,
    /// The entry of a bounded queue that is being handled.
    taken: Option<latest::Entry>,
    scratch: Vec<u64>,
    /// The time of the input that is being handled, once somebody has asked.
    time: Option<u64>,
    /// Whether there is a given time or a recorder.
    attended: bool,
    /// The time that inputs have in a replay.
    given_time: Option<u64>,
    recorder: Option<Arc<dyn Recorder>>,
    unpublished: u32,
}

// SAFETY: `inside` is reached only by the thread that has set `running`; everything else is synchronised by itself.
unsafe impl Sync for Machine {}
// SAFETY: all parts may be dropped on any thread.
unsafe impl Send for Machine {}

impl Machine {
    /// A new machine, to which the caller has the only reference.
    pub(crate) fn new(subject: Subject, driver: Driver, seed: u64, bounds: Option<Bounds>) -> MachineRef {
        let idle = if driver.must_be_told() { IDLE } else { 0 };
        let bounded = if bounds.is_some() { BOUNDED } else { 0 };
        let machine = Box::leak(Box::new(MaybeUninit::<Self>::uninit()));
        let itself = NonNull::from(&mut *machine).cast::<Self>();
        let content = Self {
            flags: AtomicU32::new(idle | bounded),
            itself,
            references: AtomicUsize::new(1),
            running: AtomicBool::new(false),
            driver,
            subject,
            current: OnceLock::new(),
            seed,
            recorded: AtomicBool::new(false),
            failures: Failures::default(),
            nodes: Nodes::new(),
            waiters: Waiters::new(),
            lanes: Lanes::default(),
            bounds: bounds.map(Box::new),
            ingress: Ingress::new(),
            done: Apart::new(AtomicU64::new(0)),
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

    /// One more reference to this machine.
    pub(crate) fn to_ref(&self) -> MachineRef {
        let before = self.references.fetch_add(1, Ordering::Relaxed);
        assert!(before < usize::MAX / 2, "too many references to one circuit");
        MachineRef(self.itself)
    }

    /// Whether only one reference is left.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.references.load(Ordering::Acquire) == 1
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
                (*self.inside.get()).given_time = Some(nanos);
                (*self.inside.get()).attended = true;
            }
            drop(running);
        }
    }

    /// Has a journal told of inputs from here on; false if one is told already.
    pub(crate) fn begin_recording(&self, recorder: Arc<dyn Recorder>) -> bool {
        let begins = !self.recorded.swap(true, Ordering::AcqRel);
        if begins {
            self.set_recorder(Some(recorder));
        }
        begins
    }

    /// Has the journal told of nothing from here on.
    pub(crate) fn end_recording(&self) {
        self.set_recorder(None);
        self.recorded.store(false, Ordering::Release);
    }

    fn set_recorder(&self, recorder: Option<Arc<dyn Recorder>>) {
        self.submit(Event::Other, move || {
            Self::with_inside(|machine| {
                let machine = machine.expect("jobs run in the circuit's context");
                // SAFETY: in the context; recorders are dropped outside of the borrow.
                let before = unsafe {
                    let inside = &mut *machine.inside.get();
                    inside.attended = recorder.is_some() || inside.given_time.is_some();
                    std::mem::replace(&mut inside.recorder, recorder)
                };
                drop(before);
            });
        });
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.flags.load(Ordering::Acquire) & CLOSED != 0
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
        // SAFETY: in the context, and nothing else holds a reference into `Inside` while user code runs.
        let time = unsafe { &mut (*self.inside.get()).time };
        *time.get_or_insert_with(context::clock_nanos)
    }

    /// Gives a value to a node of this circuit: to the back of the transit queue from inside, of the ingress queue from
    /// outside. Dropped if the circuit is closed.
    ///
    /// # Safety
    ///
    /// The node belongs to this machine, takes an `E`, and the caller has a handle of it.
    #[inline]
    pub(crate) unsafe fn emit<E: Send>(&self, node: *mut Header, value: E) {
        if self.is_inside() {
            // SAFETY: in the context, as above; the node takes an `E`.
            unsafe { (*self.inside.get()).transit.push(Token::emission(node), value) };
        } else {
            // SAFETY: as the caller says.
            unsafe { self.admit(node, value) };
        }
    }

    /// Gives a value to a node from outside of the context.
    ///
    /// # Safety
    ///
    /// As for [`Machine::emit`].
    #[inline]
    unsafe fn admit<E: Send>(&self, node: *mut Header, value: E) {
        let flags = self.flags.load(Ordering::Relaxed);
        if flags & (CLOSED | BOUNDED) != 0 {
            // SAFETY: as the caller says.
            if let Err(Refused::Full(_)) = unsafe { self.try_admit(node, value) }
                && let Some(bounds) = &self.bounds
            {
                bounds.count_dropped();
            }
            return;
        }
        // SAFETY: the node takes an `E`.
        unsafe { self.ingress.push(Token::emission(node), value) };
        self.tell_driver();
    }

    /// As [`Machine::emit`], but gives a value back that is not taken.
    ///
    /// # Safety
    ///
    /// As for [`Machine::emit`].
    pub(crate) unsafe fn try_emit<E: Send>(&self, node: *mut Header, value: E) -> Result<(), Refused<E>> {
        if self.is_inside() {
            // SAFETY: as in `emit`.
            unsafe { (*self.inside.get()).transit.push(Token::emission(node), value) };
            return Ok(());
        }
        // SAFETY: as the caller says.
        unsafe { self.try_admit(node, value) }
    }

    #[cold]
    unsafe fn try_admit<E: Send>(&self, node: *mut Header, value: E) -> Result<(), Refused<E>> {
        if self.is_closed() {
            return Err(Refused::Closed(value));
        }
        let token = Token::emission(node);
        let Some(bounds) = &self.bounds else {
            // SAFETY: the node takes an `E`.
            unsafe { self.ingress.push(token, value) };
            self.tell_driver();
            return Ok(());
        };
        if let Some(mut latest) = bounds.latest() {
            // SAFETY: as above. The ticket is taken under the lock, so entries are in the order of their tickets.
            let oldest = unsafe { latest.push(self.ingress.claim(), token, value) };
            // Under the lock, because the release of the entry's node may be next in the queue.
            // SAFETY: the node exists: its release, if there is one, is behind the entry.
            let oldest = oldest.map(|entry| (unsafe { node::discarder(entry.token) }, entry));
            drop(latest);
            self.tell_driver();
            if let Some((discard, mut entry)) = oldest {
                bounds.count_dropped();
                // SAFETY: the entry's value is of its node's type, and is in nobody's hands but ours.
                unsafe { discard(entry.value()) };
            }
            return Ok(());
        }
        match bounds.admit(|| self.is_closed()) {
            Admission::Granted => {
                // SAFETY: as above.
                unsafe { self.ingress.push(token, value) };
                self.tell_driver();
                Ok(())
            }
            Admission::Dropped => Ok(()),
            Admission::Refused if self.is_closed() => Err(Refused::Closed(value)),
            Admission::Refused => Err(Refused::Full(value)),
        }
    }

    /// As [`Machine::emit`], through the caller's own lane.
    ///
    /// # Safety
    ///
    /// As for [`Machine::emit`]; the lane is one of this machine's, and `asymmetric` is what the barrier said.
    #[inline]
    pub(crate) unsafe fn emit_by<E: Send>(
        &self,
        lane: &mut Writer,
        asymmetric: bool,
        node: *mut Header,
        value: E,
    ) {
        if self.is_inside() {
            // SAFETY: as in `emit`.
            return unsafe { (*self.inside.get()).transit.push(Token::emission(node), value) };
        }
        let flags = self.flags.load(Ordering::Relaxed);
        if flags & (CLOSED | BOUNDED) != 0 {
            // SAFETY: as the caller says.
            return unsafe { self.admit(node, value) };
        }
        // SAFETY: the node takes an `E`.
        unsafe { lane.push(Token::emission(node), value) };
        barrier::light(asymmetric);
        self.tell_driver();
    }

    /// A lane of this machine.
    pub(crate) fn open_lane(&self) -> Writer {
        self.lanes.open()
    }

    /// Says that a lane was closed.
    pub(crate) fn lane_closed(&self) {
        self.push_bare(Token::barrier());
    }

    /// Puts an entry without a value into the ingress queue.
    fn push_bare(&self, token: Token) {
        // SAFETY: there is no value behind a token that is no emission.
        unsafe {
            match self.bounds.as_ref().and_then(|bounds| bounds.latest()) {
                Some(mut latest) => drop(latest.push(self.ingress.claim(), token, ())),
                None => self.ingress.push(token, ()),
            }
        }
        self.tell_driver();
    }

    /// Has something done in its place in the order: behind what the caller emitted before. Dropped if the circuit is closed.
    pub(crate) fn submit(&self, event: Event, work: impl FnOnce() + Send + 'static) {
        let job = Job { event, work: Box::new(work) };
        if self.is_inside() {
            // SAFETY: in the context, as in `emit`.
            unsafe { (*self.inside.get()).transit.push_token(Token::job(job)) };
        } else if !self.is_closed() {
            self.push_bare(Token::job(job));
        }
    }

    /// Says that a node has no handles any more. It is freed in its place in the order: everything that was emitted to it
    /// before is handled first.
    pub(crate) fn release(&self, node: *mut Header) {
        self.push_bare(Token::release(node));
    }

    /// Ends the circuit after everything that was accepted so far. Does not wait.
    pub(crate) fn close(&self) {
        let before = self.flags.fetch_or(CLOSED, Ordering::AcqRel);
        if before & CLOSED != 0 {
            return;
        }
        if let Some(bounds) = &self.bounds {
            bounds.wake();
        }
        if !self.is_inside() && self.end_untouched() {
            return;
        }
        self.push_bare(Token::close());
    }

    /// Ends a circuit that has nothing to do and nothing to drop, without its driver.
    fn end_untouched(&self) -> bool {
        let Some(running) = self.enter() else { return false };
        // SAFETY: we are in the context.
        let handled = unsafe { (*self.inside.get()).cursor.ticket() };
        if self.ingress.tail() != handled || !self.nodes.is_empty() || !self.lanes.is_empty() {
            drop(running);
            // Whoever found the machine running while we looked has left what it wanted done to us.
            self.waiters.wake(u64::MAX);
            return false;
        }
        running.end();
        drop(running);
        self.driver.on_ended();
        true
    }

    /// Tells the driver that there is something in the queues, if it has gone to sleep over them.
    #[inline]
    fn tell_driver(&self) {
        if self.flags.load(Ordering::SeqCst) & IDLE != 0 {
            self.rouse();
        }
    }

    #[cold]
    fn rouse(&self) {
        if self.flags.fetch_and(!IDLE, Ordering::SeqCst) & IDLE != 0 {
            self.driver.wake(self);
        }
    }

    /// For a driver that found the queues empty: from now on it is told when something comes. False if something has come
    /// meanwhile and it is the caller who has to look; then nobody was told.
    pub(crate) fn go_idle(&self) -> bool {
        self.flags.fetch_or(IDLE, Ordering::SeqCst);
        if !self.lanes.is_empty() {
            barrier::heavy();
        }
        if self.has_work() && self.flags.fetch_and(!IDLE, Ordering::SeqCst) & IDLE != 0 {
            return false;
        }
        true
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.flags.load(Ordering::SeqCst) & IDLE != 0
    }

    /// Whether anything is claimed that is not done.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        self.done.load(Ordering::Acquire) != self.ingress.tail() || self.lanes.have_work()
    }

    /// Waits until everything that was admitted before is done with all that it caused, or the circuit has ended.
    #[inline]
    pub(crate) fn settle(&self) -> Result<(), ContextError> {
        if let Some(target) = self.settle_target()? {
            self.settle_at(target);
        }
        Ok(())
    }

    /// Where in the order one has to wait for, to have everything done that was admitted before; none if it is.
    #[inline]
    pub(crate) fn settle_target(&self) -> Result<Option<u64>, ContextError> {
        if self.is_entered_here() {
            return Err(ContextError::new("Cannot call Circuit::settle from within the circuit's context"));
        }
        let target = self.ingress.tail();
        let is_done = self.done.load(Ordering::Acquire) >= target;
        if is_done & self.lanes.is_empty() {
            return Ok(None);
        }
        Ok(self.target_behind_lanes(target))
    }

    #[cold]
    fn target_behind_lanes(&self, target: u64) -> Option<u64> {
        if self.lanes.have_work() {
            // What is in the lanes has no place in the order yet; it comes before this.
            self.push_bare(Token::barrier());
            return Some(self.ingress.tail());
        }
        (!self.is_done(target)).then_some(target)
    }

    /// As [`Machine::settle_at`] for a task: false if it has to wait, and then its waker will be called. `registered` is what
    /// the task was registered as before, and is changed.
    pub(crate) fn poll_settled(&self, target: u64, waker: &Waker, registered: &mut Option<u64>) -> bool {
        if self.driver.is_run_by_waiters()
            && let Some(mut running) = self.enter()
        {
            running.run(usize::MAX, target);
            drop(running);
            self.waiters.wake(u64::MAX);
        }
        if !self.is_done(target) {
            // Registered first, then looked, as a waiting thread does.
            *registered = Some(self.waiters.wake_later(target, waker, registered.take()));
            // Who runs the machine for itself wakes us when it leaves, if it has not left before we were registered.
            if self.driver.is_run_by_waiters() && !self.running.load(Ordering::SeqCst) {
                self.waiters.wake(u64::MAX);
            }
        }
        let is_done = self.is_done(target);
        if is_done && let Some(id) = registered.take() {
            self.waiters.remove(id);
        }
        is_done
    }

    fn is_done(&self, target: u64) -> bool {
        self.done.load(Ordering::Acquire) >= target || self.has_ended()
    }

    fn settle_at(&self, target: u64) {
        if !self.driver.is_run_by_waiters() {
            return self.waiters.wait(target, || self.is_done(target));
        }
        while !self.is_done(target) {
            match self.enter() {
                Some(mut running) => {
                    running.run(usize::MAX, target);
                    drop(running);
                    self.waiters.wake(u64::MAX);
                }
                // Whoever runs it may stop short of our target, and wakes us when it leaves.
                None => {
                    self.waiters.wait(target, || self.is_done(target) || !self.running.load(Ordering::SeqCst))
                }
            }
        }
    }

    /// The next entry of a bounded queue, which from then on is as good as gone from it.
    ///
    /// # Safety
    ///
    /// In the context, or alone. No reference into [`Inside`] is in use.
    #[cold]
    unsafe fn peek_bounded(&self, bounds: &Bounds) -> Option<(Token, *mut u8, usize)> {
        // Not through a reference to all of `Inside`: the caller may have one to its readers.
        let inside = self.inside.get();
        if let Some(mut latest) = bounds.latest() {
            // SAFETY: as the caller says.
            let entry = unsafe { &mut (*inside).taken }.insert(latest.pop()?);
            return Some((entry.token, entry.value(), 0));
        }
        // SAFETY: the machine's only cursor.
        let next = unsafe { self.ingress.peek(&mut (*inside).cursor, &mut (*inside).scratch, value_bytes) }?;
        if next.0.as_emission().is_some() {
            bounds.release();
        }
        Some(next)
    }

    /// Passes the entry that was peeked.
    ///
    /// # Safety
    ///
    /// In the context, or alone; the entry was handled. No reference into [`Inside`] is in use.
    #[inline]
    unsafe fn advance(&self, slots: usize) {
        // SAFETY: as the caller says.
        unsafe {
            let inside = self.inside.get();
            if slots > 0 {
                self.ingress.advance(&mut (*inside).cursor, slots);
            } else if let Some(entry) = (*inside).taken.take() {
                (*inside).cursor.skip_to(entry.ticket + 1);
            }
        }
    }

    /// Enters the context, unless somebody is in it.
    pub(crate) fn enter(&self) -> Option<Running<'_>> {
        if self.running.swap(true, Ordering::SeqCst) {
            return None;
        }
        let outer = NonNull::new(context::replace(self).cast_mut());
        // SAFETY: we are in the context.
        unsafe { (*self.inside.get()).outer = outer };
        Some(Running { machine: self })
    }

    /// Whether this thread is in the machine's context, or in that of another machine which is run inside of it.
    pub(crate) fn is_entered_here(&self) -> bool {
        let mut at = context::inside();
        // SAFETY: this thread is in the context of all that it comes across, and whoever runs a machine has a reference to it.
        while let Some(machine) = unsafe { at.as_ref() } {
            if ptr::eq(machine, self) {
                return true;
            }
            // SAFETY: as above.
            at = unsafe { (*machine.inside.get()).outer }
                .map_or(ptr::null(), |outer| outer.as_ptr().cast_const());
        }
        false
    }

    /// Counts and reports what a receptor's panic said, and applies the circuit's supervision to its node.
    ///
    /// # Safety
    ///
    /// In the context; the node exists and is not being run.
    pub(crate) unsafe fn report_panic(&self, node: *mut Header, panic: Box<dyn Any + Send>) {
        // SAFETY: the node exists.
        let (failures, subject) = unsafe { ((*node).count_failure(), (*node).subject().clone()) };
        self.failures.report(&Failure::of_panic(subject, "receive", panic));
        if self.failures.quarantines_after(failures) {
            // SAFETY: as the caller says.
            unsafe { node::empty_node(node) };
        }
    }

    /// As [`Machine::report_panic`], in the context that this runs in, for what is no pipe of its own.
    #[cold]
    pub(crate) fn report_inside(subject: &Subject, operation: &'static str, panic: Box<dyn Any + Send>) {
        Self::with_inside(|machine| {
            debug_assert!(machine.is_some(), "in a circuit's context");
            if let Some(machine) = machine {
                machine.report(subject.clone(), operation, panic);
            }
        });
    }

    /// Refuses what would wait for this machine inside of its context.
    pub(crate) fn check_outside(&self) -> Result<(), ContextError> {
        match self.is_entered_here() {
            true => Err(ContextError::new("Cannot wait for a circuit from within its own context")),
            false => Ok(()),
        }
    }

    fn report(&self, subject: Subject, operation: &'static str, panic: Box<dyn Any + Send>) {
        self.failures.report(&Failure::of_panic(subject, operation, panic));
    }
}

/// Where the next input comes from.
enum Source {
    /// An entry of the shared queue, with the number of its slots.
    Shared(Token, *mut u8, usize),
    /// So many entries of a lane.
    Lane(*mut Reader, usize),
    Nothing,
}

/// The right to run a machine: whoever has it is in its context.
pub(crate) struct Running<'a> {
    machine: &'a Machine,
}

impl Running<'_> {
    /// Handles entries until there are none, everything below the ticket `until` is done, or `budget` entries were handled.
    pub(crate) fn run(&mut self, budget: usize, until: u64) -> Progress {
        debug_assert!(budget > 0);
        let inside = self.machine.inside.get();
        let mut left = budget;
        if !self.drain_transit(&mut left) {
            return Progress::More;
        }
        loop {
            // SAFETY: we are in the context, and these borrows end before user code runs.
            let next = unsafe {
                if (*inside).cursor.ticket() >= until {
                    self.publish();
                    return Progress::Reached;
                }
                if left == 0 {
                    self.publish();
                    return Progress::More;
                }
                if self.machine.lanes.is_empty() && (*inside).readers.is_empty() {
                    self.peek()
                } else {
                    match self.next_source() {
                        Source::Shared(token, value, slots) => Some((token, value, slots)),
                        Source::Lane(reader, count) => {
                            if !self.handle_lane(reader, count, &mut left) {
                                return Progress::More;
                            }
                            continue;
                        }
                        Source::Nothing => None,
                    }
                }
            };
            let Some((token, value, slots)) = next else {
                self.publish();
                return Progress::Idle;
            };
            // A lane may have been opened after the look at them, and be older than this token. Having seen the token, we see it.
            // A bounded queue has taken the entry out already, but its circuit has nothing in lanes.
            if token.is_behind_lanes() && slots > 0 && self.has_unknown_lanes() {
                continue;
            }
            left -= 1;
            // SAFETY: the queue gave a token with its value, which stays at its place until `advance`.
            unsafe {
                self.begin_input(token, value);
                self.handle(token, value);
                self.machine.advance(slots);
            }
            if !self.drain_transit(&mut left) {
                return Progress::More;
            }
            self.publish_now_and_then();
        }
    }

    /// Handles what the circuit has sent itself. False if the budget was used up before.
    #[inline]
    fn drain_transit(&self, left: &mut usize) -> bool {
        let inside = self.machine.inside.get();
        while *left > 0 {
            // SAFETY: we are in the context, and this borrow ends before user code runs.
            let Some((token, value)) = (unsafe { (*inside).transit.pop(value_words) }) else { return true };
            *left -= 1;
            // SAFETY: the queue gave a token with its value, which is moved out first of all.
            unsafe { self.handle(token, value) };
        }
        // SAFETY: as above.
        unsafe { (*inside).transit.is_empty() }
    }

    /// Whether there are lanes and the context knows of none.
    fn has_unknown_lanes(&self) -> bool {
        // SAFETY: we are in the context, and this borrow ends here.
        !self.machine.lanes.is_empty() && unsafe { (*self.machine.inside.get()).readers.is_empty() }
    }

    /// Handles up to `count` entries of a lane, each with all that it causes. False if the budget is used up.
    ///
    /// # Safety
    ///
    /// The reader is one of the context's, and knows of as many entries.
    unsafe fn handle_lane(&self, reader: *mut Reader, count: usize, left: &mut usize) -> bool {
        let inside = self.machine.inside.get();
        for _ in 0..count {
            if *left == 0 {
                self.publish();
                return false;
            }
            *left -= 1;
            // SAFETY: as the caller says; borrows end before user code runs.
            unsafe {
                let (token, value) = (*reader).next(value_words);
                self.begin_input(token, value);
                self.handle(token, value);
            }
            if !self.drain_transit(left) {
                return false;
            }
        }
        true
    }

    /// The next entry of the shared queue.
    ///
    /// # Safety
    ///
    /// No reference to the cursor or the scratch is in use.
    #[inline]
    unsafe fn peek(&self) -> Option<(Token, *mut u8, usize)> {
        // SAFETY: we are in the context, which has the machine's only cursor.
        unsafe {
            // Not through a reference to all of `Inside`: the caller may have one to its readers.
            let inside = self.machine.inside.get();
            match &self.machine.bounds {
                None => self.machine.ingress.peek(&mut (*inside).cursor, &mut (*inside).scratch, value_bytes),
                Some(bounds) => self.machine.peek_bounded(bounds),
            }
        }
    }

    /// What is next where there are lanes.
    ///
    /// # Safety
    ///
    /// No reference into [`Inside`] is in use.
    unsafe fn next_source(&self) -> Source {
        // SAFETY: we are in the context.
        let readers = unsafe { &mut (*self.machine.inside.get()).readers };
        if readers.is_empty() {
            readers.refresh(&self.machine.lanes);
        }
        for exact in [false, true] {
            for _ in 0..=readers.len() {
                if readers.is_shared_turn() {
                    // SAFETY: `peek` touches other parts of `Inside`.
                    if let Some((token, value, slots)) = unsafe { self.peek() } {
                        if token.is_behind_lanes()
                            && let Some((reader, count)) = readers.before_barrier(&self.machine.lanes)
                        {
                            return Source::Lane(reader, count);
                        }
                        readers.count_shared();
                        return Source::Shared(token, value, slots);
                    }
                    readers.pass();
                } else {
                    // The whole turn is taken at once.
                    let turn = readers.take_turn(exact);
                    readers.pass();
                    if let Some((index, count)) = turn {
                        return Source::Lane(readers.at(index), count);
                    }
                }
            }
            readers.refresh(&self.machine.lanes);
        }
        Source::Nothing
    }

    /// What is to be done ahead of each input: the clock may be looked at anew.
    ///
    /// # Safety
    ///
    /// The value belongs to the token. No reference into [`Inside`] is in use.
    #[inline]
    unsafe fn begin_input(&self, token: Token, value: *mut u8) {
        // SAFETY: we are in the context.
        unsafe {
            let inside = &mut *self.machine.inside.get();
            inside.time = None;
            if inside.attended {
                self.begin_attended(token, value);
            }
        }
    }

    /// Gives an input the time of a replay, and tells the journal of it.
    ///
    /// # Safety
    ///
    /// As for `begin_input`.
    #[cold]
    unsafe fn begin_attended(&self, token: Token, value: *mut u8) {
        // SAFETY: we are in the context; the handle is cloned because recording calls code of users.
        let recorder = unsafe {
            let inside = &mut *self.machine.inside.get();
            inside.time = inside.given_time;
            inside.recorder.clone()
        };
        let (Some(recorder), Some(node)) = (recorder, token.as_emission()) else { return };
        let time = self.machine.stimulus_nanos();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the node exists, and the value is of its type.
            unsafe { recorder.emission(time, (*node).subject(), value) };
        }));
        if let Err(panic) = outcome {
            self.machine.report(self.machine.subject.clone(), "record", panic);
        }
    }

    #[cold]
    fn record_event(&self, event: Event) {
        // SAFETY: we are in the context, and this is no code of users.
        if let Some(recorder) = unsafe { &(*self.machine.inside.get()).recorder } {
            recorder.event(self.machine.stimulus_nanos(), event);
        }
    }

    /// # Safety
    ///
    /// The value belongs to the token, and is forgotten by the caller.
    #[inline]
    unsafe fn handle(&self, token: Token, value: *mut u8) {
        match token.as_emission() {
            // SAFETY: a node exists until its release is handled, which comes behind everything that was emitted to it.
            Some(node) => unsafe { node::deliver(node, value) },
            None => self.handle_other(token.entry()),
        }
    }

    #[cold]
    fn handle_other(&self, entry: Entry) {
        match entry {
            Entry::Emission(_) => unreachable!("emissions are delivered"),
            Entry::Release(node) => {
                self.machine.nodes.remove(node);
                // SAFETY: nobody has a handle of the node, and what was emitted to it has been handled.
                unsafe { node::free_node(node) };
            }
            Entry::Job(job) => {
                // SAFETY: the token owned the job.
                let job = unsafe { Box::from_raw(job) };
                if self.machine.has_ended() {
                    return shielded(|| drop(job));
                }
                self.record_event(job.event);
                if let Err(panic) = catch_unwind(AssertUnwindSafe(job.work)) {
                    self.machine.report(self.machine.subject.clone(), "run", panic);
                }
            }
            Entry::Close => {
                self.record_event(Event::CloseCircuit);
                self.end();
            }
            Entry::Barrier => {}
        }
    }

    #[inline]
    fn publish_now_and_then(&self) {
        // SAFETY: we are in the context.
        let unpublished = unsafe { &mut (*self.machine.inside.get()).unpublished };
        *unpublished += 1;
        if *unpublished > PUBLISH_EVERY {
            self.publish();
        }
    }

    /// Tells who waits how far we are.
    fn publish(&self) {
        // SAFETY: we are in the context.
        let ticket = unsafe {
            (*self.machine.inside.get()).unpublished = 0;
            (*self.machine.inside.get()).readers.consume();
            (*self.machine.inside.get()).cursor.ticket()
        };
        let done = &self.machine.done;
        if done.load(Ordering::Relaxed) == ticket {
            return;
        }
        if self.machine.driver.is_run_by_waiters() {
            // Who waits is woken when this run ends.
            done.store(ticket, Ordering::Release);
        } else {
            // In one order with a waiter's registering: either we see it, or it sees this.
            done.swap(ticket, Ordering::SeqCst);
            self.machine.waiters.wake(ticket);
        }
    }

    /// Drops all receptors. From now on whatever arrives is dropped.
    fn end(&self) {
        self.machine.flags.fetch_or(CLOSED | ENDED, Ordering::SeqCst);
        for node in self.machine.nodes.list() {
            // SAFETY: we are in the context, between two entries: no receptor is running. A node leaves the list only here.
            unsafe { node::empty_node(node) };
        }
        self.machine.waiters.wake(u64::MAX);
    }

    /// How many tickets were handled so far.
    pub(crate) fn handled(&self) -> u64 {
        // SAFETY: we are in the context.
        unsafe { (*self.machine.inside.get()).cursor.ticket() }
    }

    /// Gives back memory that a backlog needed, if there is none any more.
    pub(crate) fn shrink(&mut self) {
        // SAFETY: we are in the context.
        unsafe {
            let inside = &mut *self.machine.inside.get();
            inside.transit.shrink();
            inside.scratch = Vec::new();
            self.machine.ingress.settle(&mut inside.cursor);
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // SAFETY: we are in the context.
        let outer = unsafe { (*self.machine.inside.get()).outer };
        context::replace(outer.map_or(ptr::null(), |outer| outer.as_ptr().cast_const()));
        // In one order with a waiter's registering, see `settle_at`.
        self.machine.running.swap(false, Ordering::SeqCst);
    }
}

#[inline]
fn value_bytes(token: Token) -> usize {
    // SAFETY: a node exists while there are entries for it.
    token.as_emission().map_or(0, |node| unsafe { node::value_bytes(node) })
}

#[inline]
fn value_words(token: Token) -> usize {
    // SAFETY: a node exists while there are entries for it.
    token.as_emission().map_or(0, |node| unsafe { node::value_words(node) })
}

/// A counted reference to a machine.
pub(crate) struct MachineRef(NonNull<Machine>);

// SAFETY: a machine may be used and dropped from any thread.
unsafe impl Send for MachineRef {}
// SAFETY: as above.
unsafe impl Sync for MachineRef {}

impl MachineRef {
    /// A reference to the machine in whose context this runs.
    pub(crate) fn inside() -> Self {
        Machine::with_inside(|machine| machine.expect("in a circuit's context").to_ref())
    }

    /// The pointer holds the reference from now on.
    pub(crate) fn into_raw(self) -> NonNull<Machine> {
        std::mem::ManuallyDrop::new(self).0
    }

    /// # Safety
    ///
    /// The pointer came from [`MachineRef::into_raw`], and this is its one way back.
    pub(crate) unsafe fn from_raw(raw: NonNull<Machine>) -> Self {
        Self(raw)
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
        match self.references.fetch_sub(1, Ordering::AcqRel) {
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
    #[cold]
    fn free(&self) {
        if self.driver.is_run_by_waiters() && self.has_work() && !self.has_ended() {
            // Nobody will wait any more, so what was accepted is handled now; then it is closed, and this comes again.
            self.references.store(1, Ordering::Relaxed);
            let again = Self(self.0);
            if let Some(mut running) = again.enter() {
                running.run(usize::MAX, u64::MAX);
                running.end();
            }
            return;
        }
        // SAFETY: this was the last reference, so nobody else is here, and no node has handles.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let inside = self.inside.get_mut();
        let (cursor, scratch) = (&mut inside.cursor, &mut inside.scratch);
        let mut released = Vec::new();
        let mut drop_entry = |token: Token, value: *mut u8| match token.entry() {
            // SAFETY: nodes are freed after both queues were emptied; the value is dropped here and nowhere else.
            Entry::Emission(node) => unsafe { node::discard_value(node, value) },
            Entry::Release(node) => released.push(node),
            // SAFETY: the token owned the job.
            Entry::Job(job) => shielded(|| drop(unsafe { Box::from_raw(job) })),
            Entry::Close | Entry::Barrier => {}
        };
        inside.readers.refresh(&self.lanes);
        // SAFETY: this is the only thread that knows the machine.
        unsafe {
            while let Some((reader, count)) = inside.readers.before_barrier(&self.lanes) {
                for _ in 0..count {
                    let (token, value) = reader.next(value_words);
                    drop_entry(token, value);
                }
            }
            while let Some((token, value)) = inside.transit.pop(value_words) {
                drop_entry(token, value);
            }
            while let Some((token, value, slots)) = self.ingress.peek(cursor, scratch, value_bytes) {
                drop_entry(token, value);
                self.ingress.advance(cursor, slots);
            }
            if let Some(mut latest) = self.bounds.as_ref().and_then(|bounds| bounds.latest()) {
                while let Some(mut entry) = latest.pop() {
                    drop_entry(entry.token, entry.value());
                }
            }
        }
        for node in released {
            // SAFETY: as above.
            unsafe { node::free_node(node) };
        }
    }
}
