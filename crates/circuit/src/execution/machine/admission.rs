//! How values and other entries enter a machine, and how its driver is notified.
#![allow(unsafe_code, reason = "see the parent module")]

use super::stack::on_one_stack;
use super::state::{BOUNDED, CLOSED, CLOSED_INSIDE, ENDED, IDLE, Machine, Progress};
use super::waits::{Until, Waiting};
use crate::error::Refused;
use crate::execution::bounds::{Admission, Bounds};
use crate::execution::context;
use crate::execution::driver::Driver;
use crate::execution::event::Event;
use crate::execution::node::Header;
use crate::execution::queue::lane::Writer;
use crate::execution::queue::token::{Job, Token};
use crate::execution::queue::values::discarder;
use crate::observe::telemetry;
use crate::sync::{Ordering, hint};
use tidemark_barrier as barrier;

impl Machine {
    /// Emits a value to a node of this circuit: to the back of the transit queue from inside, of
    /// the ingress queue from outside. Drops it if the circuit is closed.
    ///
    /// # Safety
    ///
    /// The node belongs to this machine and takes an `E`, and the caller has a handle of it.
    #[inline]
    pub(crate) unsafe fn emit<E: Send>(&self, node: *mut Header, value: E) {
        if self.is_inside() {
            // SAFETY: in the context; the rest as the caller says.
            unsafe { self.emit_inside(node, value) };
        } else {
            // SAFETY: as the caller says.
            unsafe { self.admit(node, value) };
        }
    }

    /// Emits a value to a node from inside the context, where there is always room.
    ///
    /// # Safety
    ///
    /// As for [`Machine::emit`]; in the context.
    #[inline]
    unsafe fn emit_inside<E: Send>(&self, node: *mut Header, value: E) {
        // SAFETY: in the context, and nothing else holds a reference into `Inside` while user code runs; the node takes an `E`.
        unsafe { (*self.inside.get()).transit.push(Token::emission(node), value) };
    }

    /// Emits a value to a node from outside the context.
    ///
    /// # Safety
    ///
    /// As for [`Machine::emit`].
    #[inline]
    unsafe fn admit<E: Send>(&self, node: *mut Header, value: E) {
        let flags = self.head.flags.load(Ordering::Relaxed);
        if flags & (CLOSED | BOUNDED) != 0 {
            // SAFETY: as the caller says.
            let refused = unsafe { self.try_admit(node, value, true) };
            if let (Err(refused @ (Refused::Full(_) | Refused::Circle(_))), Some(bounds)) =
                (refused, &self.bounds)
            {
                bounds.count_dropped();
                telemetry::overflowed(&self.subject);
                if matches!(refused, Refused::Circle(_)) {
                    // SAFETY: the caller has a handle of the node.
                    let target = unsafe { (*node).subject() };
                    if let Some(machine) = Self::entered_here() {
                        context::step_in(|| machine.report("emit", Box::new(format!("{target}: {refused}"))));
                    }
                }
            }
            return;
        }
        // SAFETY: the node takes an `E`.
        unsafe { self.ingress.push(Token::emission(node), value) };
        self.notify_driver();
    }

    /// As [`Machine::emit`], but returns a value that is not accepted. A caller that may not wait
    /// for room is refused instead.
    ///
    /// An accepted value reaches its node, unless the bound drops and counts it or nothing can run
    /// the circuit any more.
    ///
    /// # Safety
    ///
    /// As for [`Machine::emit`].
    pub(crate) unsafe fn try_emit<E: Send>(
        &self,
        node: *mut Header,
        value: E,
        may_wait: bool,
    ) -> Result<(), Refused<E>> {
        if self.is_inside() {
            // The circuit drops its receptors, or has dropped them: none is left to handle the
            // value. SAFETY: in the context.
            if unsafe { (*self.inside.get()).over } {
                return Err(Refused::Closed(value));
            }
            // SAFETY: in the context; the rest as the caller says.
            unsafe { self.emit_inside(node, value) };
            return Ok(());
        }
        // SAFETY: as the caller says.
        unsafe { self.try_admit(node, value, may_wait) }
    }

    /// Puts a value into the ingress queue, unless the circuit is closed or the bound refuses the
    /// value.
    ///
    /// The caller takes the value's ticket first, then reads the `CLOSED` flag. A close sets the
    /// flag first, then takes its ticket from the same counter. So a caller whose ticket follows
    /// the close sees the flag; and a value whose caller does not see the flag precedes the close
    /// and is handled.
    ///
    /// # Safety
    ///
    /// As for [`Machine::emit`].
    #[cold]
    unsafe fn try_admit<E: Send>(
        &self,
        node: *mut Header,
        value: E,
        may_wait: bool,
    ) -> Result<(), Refused<E>> {
        // Checked before the ticket is taken too: each ticket costs an entry in the queue, even in
        // a circuit that has ended.
        if self.is_closed() {
            return Err(Refused::Closed(value));
        }
        let token = Token::emission(node);
        let Some(bounds) = &self.bounds else {
            // SAFETY: as the caller says.
            return unsafe { self.push_unless_closed(token, value) };
        };
        if let Some(latest) = bounds.latest() {
            let mut latest = latest.lock();
            // A close takes its ticket under this lock too.
            if self.is_closed() {
                return Err(Refused::Closed(value));
            }
            // SAFETY: the node takes an `E`. The ticket is taken under the lock, so entries are in
            // the order of their tickets.
            let oldest = unsafe { latest.push(self.ingress.claim(), token, value) };
            // Under the lock, because the release of the entry's node may be next in the queue.
            // SAFETY: the node exists: its release, if there is one, follows the entry.
            let oldest = oldest.map(|entry| (unsafe { discarder(entry.token) }, entry));
            drop(latest);
            self.notify_driver();
            if let Some((discard, mut entry)) = oldest {
                bounds.count_dropped();
                // SAFETY: the value is of its node's type, and only this thread has the entry.
                unsafe { discard(entry.value()) };
                telemetry::overflowed(&self.subject);
            }
            return Ok(());
        }
        match self.ask_for_room(bounds, may_wait) {
            Admission::Granted => {
                // SAFETY: as the caller says.
                let outcome = unsafe { self.push_unless_closed(token, value) };
                if outcome.is_err() {
                    // The consumer releases room only for emissions, and these slots now hold
                    // barriers.
                    bounds.release();
                }
                outcome
            }
            Admission::Dropped => {
                telemetry::overflowed(&self.subject);
                Ok(())
            }
            Admission::Circle => Err(Refused::Circle(value)),
            Admission::Refused if self.is_closed() => Err(Refused::Closed(value)),
            Admission::Refused => Err(Refused::Full(value)),
        }
    }

    /// Appends a value to the ingress queue, or returns it if the circuit is closed once the value
    /// has its ticket.
    ///
    /// # Safety
    ///
    /// The token is an emission to a node of this machine that takes an `E`, and the caller has a
    /// handle of the node.
    unsafe fn push_unless_closed<E: Send>(&self, token: Token, value: E) -> Result<(), Refused<E>> {
        // SAFETY: as the caller says.
        let outcome = unsafe { self.ingress.push_if(token, value, || !self.is_closed()) };
        self.notify_driver();
        outcome.map_err(Refused::Closed)
    }

    /// As [`Machine::emit`], through the caller's own lane.
    ///
    /// # Safety
    ///
    /// As for [`Machine::emit`]; the lane is one of this machine's.
    #[inline]
    pub(crate) unsafe fn emit_by<E: Send>(&self, lane: &mut Writer, node: *mut Header, value: E) {
        if self.is_inside() {
            // SAFETY: in the context; the rest as the caller says.
            return unsafe { self.emit_inside(node, value) };
        }
        let flags = self.head.flags.load(Ordering::Relaxed);
        if flags & (CLOSED | BOUNDED) != 0 {
            // SAFETY: as the caller says.
            return unsafe { self.admit(node, value) };
        }
        // SAFETY: the node takes an `E`.
        unsafe { lane.push(Token::emission(node), value) };
        barrier::light();
        self.notify_driver();
    }

    /// Opens a lane of this machine.
    pub(crate) fn open_lane(&self) -> Writer {
        self.lanes.open()
    }

    /// Notifies the circuit that a lane was closed. An ended circuit needs no notification: it
    /// keeps its lanes until it is freed.
    pub(crate) fn lane_closed(&self) {
        if !self.has_ended() {
            self.push_bare(Token::barrier());
        }
    }

    /// Puts an entry without a value into the ingress queue.
    pub(super) fn push_bare(&self, token: Token) {
        // SAFETY: a token that is no emission has no value.
        unsafe {
            match self.bounds.as_ref().and_then(|bounds| bounds.latest()) {
                Some(latest) => {
                    let mut latest = latest.lock();
                    drop(latest.push(self.ingress.claim(), token, ()));
                }
                None => self.ingress.push(token, ()),
            }
        }
        self.notify_driver();
    }

    /// Runs `work` in its place in the order: after what the caller emitted before. Dropped if the
    /// circuit is closed.
    pub(crate) fn submit(&self, event: Event, work: impl FnOnce() + Send + 'static) {
        let is_inside = self.is_inside();
        // A replay repeats what the circuit does itself, so that is not recorded.
        let event = if is_inside { Event::Other } else { event };
        let job = Job { event, work: Box::new(work) };
        if is_inside {
            // SAFETY: in the context, as in `emit`.
            unsafe { (*self.inside.get()).transit.push_token(Token::job(job)) };
        } else if !self.is_closed() {
            self.push_bare(Token::job(job));
        }
    }

    /// Releases a node that has no handles any more. It is freed in its place in the order:
    /// everything emitted to it before is handled first.
    pub(crate) fn release(&self, node: *mut Header) {
        self.push_bare(Token::release(node));
    }

    /// Ends the circuit after everything accepted so far. Does not wait.
    pub(crate) fn close(&self) {
        if self.is_inside() {
            self.head.flags.fetch_or(CLOSED_INSIDE, Ordering::AcqRel);
            // SAFETY: in the context.
            if unsafe { (*self.inside.get()).replayed } {
                // Values admitted before still come from the journal, and then the close.
                return;
            }
        }
        let before = self.head.flags.fetch_or(CLOSED, Ordering::AcqRel);
        if before & CLOSED != 0 {
            return;
        }
        if let Some(bounds) = &self.bounds {
            bounds.wake();
        }
        match if self.is_inside() { None } else { self.enter() } {
            // Nothing is left to handle, end, drop or notify, so the circuit ends here without its
            // driver.
            Some(running) if running.end_untouched() => {
                drop(running);
                self.driver.on_ended();
            }
            running => {
                // Before the context is left: leaving runs outside code, which may wait for the end
                // as soon as the flag is set.
                self.push_bare(Token::close());
                if let Some(running) = running {
                    drop(running);
                    // A waiter that found the machine running relies on this thread to wake it.
                    self.waiters.wake(u64::MAX);
                }
            }
        }
        telemetry::closed(&self.subject);
    }

    /// Requests room for one emission. Waits for it if the policy says so, and runs the circuit
    /// meanwhile where the caller has to. Refuses a wait that would never end.
    fn ask_for_room(&self, bounds: &Bounds, may_wait: bool) -> Admission {
        if !bounds.blocks() || !may_wait || !context::is_within_any() {
            return bounds.admit(may_wait, || self.is_closed(), || false);
        }
        if let admission @ Admission::Granted = bounds.admit(false, || false, || false) {
            return admission;
        }
        let Ok(waiting) = Waiting::begin(self, Until::Room) else { return Admission::Circle };
        let is_in_circle = || waiting.as_ref().is_some_and(Waiting::is_in_circle);
        if !self.is_run_by_caller() {
            return bounds.admit(true, || self.is_closed(), is_in_circle);
        }
        on_one_stack(|| self.run_for_room(bounds, is_in_circle))
    }

    /// Runs the circuit for the caller, which waits for room, until there is room.
    fn run_for_room(&self, bounds: &Bounds, is_in_circle: impl Fn() -> bool) -> Admission {
        loop {
            let admission = bounds.admit(true, || self.is_closed() || self.is_left(), &is_in_circle);
            if !matches!(admission, Admission::Refused) || self.is_closed() {
                return admission;
            }
            if self.run_for_caller(1, u64::MAX) == Some(Progress::Idle) {
                // Another thread may have claimed room that it has not filled yet.
                hint::spin_loop();
            }
        }
    }

    /// Notifies the driver that the queues have entries, if it went idle.
    #[inline]
    fn notify_driver(&self) {
        if self.head.flags.load(Ordering::SeqCst) & (IDLE | ENDED) != 0 {
            self.rouse();
        }
    }

    #[cold]
    fn rouse(&self) {
        if self.has_ended() && !self.driver.needs_notification() {
            return self.drop_late();
        }
        if self.head.flags.fetch_and(!IDLE, Ordering::SeqCst) & IDLE != 0 {
            self.wake_driver();
        }
    }

    /// Schedules the driver to run the machine, on another thread.
    pub(super) fn wake_driver(&self) {
        match &self.driver {
            Driver::Owner(_) | Driver::Waiters => {}
            Driver::Thread(parker) => parker.unpark(),
            Driver::Pool(pool) => pool.schedule(self.to_ref().hand_over()),
            Driver::SharedPool(pool) => pool.schedule(self.to_ref().hand_over()),
        }
    }

    /// Marks the driver idle, for a driver that found the queues empty: the next producer notifies
    /// it. Returns false if an entry has arrived meanwhile and no producer has notified the driver,
    /// which must then check the queues again itself.
    pub(crate) fn go_idle(&self) -> bool {
        self.head.flags.fetch_or(IDLE, Ordering::SeqCst);
        if !self.lanes.is_empty() {
            barrier::heavy();
        }
        if self.has_work() && self.head.flags.fetch_and(!IDLE, Ordering::SeqCst) & IDLE != 0 {
            return false;
        }
        true
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.head.flags.load(Ordering::SeqCst) & IDLE != 0
    }

    /// Returns whether any claimed entry is not done.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        self.done.load(Ordering::Acquire) != self.ingress.tail() || self.lanes.have_work()
    }
}
