//! Waiting until a machine has done what was admitted before.

use std::task::Waker;
use tidemark_barrier as barrier;

use super::stack::on_one_stack;
use super::state::{HELPED, Machine, PUT_OFF, Progress};
use super::waits::{Until, Waiting};
use crate::error::{ContextError, called_inside};
use crate::execution::context;
use crate::execution::driver::Driver;
use crate::execution::queue::token::Token;
use crate::execution::waiters::Place;
use crate::sync::{Ordering, hint};

/// A ticket that only the end of a circuit comes to.
const END: u64 = u64::MAX - 1;

impl Machine {
    /// Waits until everything that was admitted before is done with all that it caused, or the circuit has ended. Fails if it would
    /// for ever.
    #[inline]
    pub(crate) fn settle(&self) -> Result<(), ContextError> {
        match self.settle_target(called_inside!("settle"))? {
            Some(target) => self.settle_to(target),
            None => Ok(()),
        }
    }

    /// As [`Machine::settle`], where there is something to wait for. By itself, so that who finds nothing saves no registers for it.
    #[inline(never)]
    fn settle_to(&self, target: u64) -> Result<(), ContextError> {
        let _waiting = Waiting::begin(self, Until::Done(target))?;
        self.settle_at(target)
    }

    /// Waits until what the caller has closed has ended: the circuit, or something in it. In a circuit that is being closed that may
    /// have got no place in the order, and ends with the circuit, whose close may not be in the order yet if somebody else is at it.
    pub(crate) fn settle_closed(&self) -> Result<(), ContextError> {
        if !self.is_closed() {
            return self.settle();
        }
        if self.has_ended() { Ok(()) } else { self.settle_to(END) }
    }

    /// Where in the order one has to wait for, to have everything done that was admitted before; none if it is. Inside of the
    /// context this refusal is the answer.
    #[inline]
    pub(crate) fn settle_target(&self, inside: &'static str) -> Result<Option<u64>, ContextError> {
        if self.is_entered_here() {
            return Err(ContextError::new(inside));
        }
        let target = self.ingress.tail();
        // What is left and how many lanes there are in one condition: this is all that awaiting an idle circuit costs.
        let left = target.saturating_sub(self.done.load(Ordering::Acquire));
        let lanes = self.lanes.count() as u64;
        if left | lanes == 0 {
            return Ok(None);
        }
        Ok(if lanes == 0 && !self.has_ended() { Some(target) } else { self.target_behind_lanes(target) })
    }

    #[cold]
    fn target_behind_lanes(&self, target: u64) -> Option<u64> {
        if self.lanes.have_work() && !self.has_ended() {
            // What is in the lanes has no place in the order yet; it comes before this.
            self.push_bare(Token::barrier());
            return Some(self.ingress.tail());
        }
        (!self.is_done(target)).then_some(target)
    }

    /// As [`Machine::settle_at`] for a task: false if it has to wait, and then its waker will be called. `registered` is what
    /// the task was registered as before, and is changed.
    pub(crate) fn poll_settled(&self, target: u64, waker: &Waker, registered: &mut Option<Place>) -> bool {
        if self.driver.is_run_by_waiters()
            && on_one_stack(|| self.run_for_caller(usize::MAX, target)).is_some()
        {
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
        let is_done = self.is_finished(target);
        if is_done && let Some(place) = registered.take() {
            self.waiters.remove(place);
        }
        is_done
    }

    /// How many entries were ever admitted, and how many of them are done: all of them once the circuit has ended.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let has_ended = self.has_ended();
        let (written, consumed) = self.lanes.counts();
        // What is done first: it never overtakes what was admitted.
        let done = self.done.load(Ordering::Acquire) + consumed;
        let admitted = self.ingress.tail() + written;
        assert!(done <= admitted, "{done} entries are done, of {admitted} admitted");
        (admitted, if has_ended { admitted } else { done })
    }

    /// Whether it is known to be done. May be late to tell, where it is handled by another thread.
    fn is_done(&self, target: u64) -> bool {
        self.done.load(Ordering::Acquire) >= target || self.has_ended()
    }

    /// Whether it is done. Who asks often slows the circuit down.
    pub(super) fn is_finished(&self, target: u64) -> bool {
        self.finished.load(Ordering::Acquire) >= target || self.has_ended()
    }

    fn settle_at(&self, target: u64) -> Result<(), ContextError> {
        if !self.is_run_by_caller() {
            self.check_not_simulated()?;
            self.waiters.wait(target, || self.is_done(target), || self.is_finished(target));
            return Ok(());
        }
        if !self.is_finished(target) {
            on_one_stack(|| self.run_for_caller_to(target));
        }
        Ok(())
    }

    /// Runs the circuit up to this ticket for the caller, which waits for it and is noted as waiting.
    fn run_for_caller_to(&self, target: u64) {
        while !self.is_finished(target) {
            match self.run_for_caller(usize::MAX, target) {
                Some(progress) => {
                    self.waiters.wake(u64::MAX);
                    if progress == Progress::Idle {
                        // Perhaps somebody is between claiming a place and filling it.
                        hint::spin_loop();
                    }
                }
                // Whoever runs it may stop short of our target, and wakes us when it leaves.
                None => {
                    let is_seen = || self.is_done(target) || !self.running.load(Ordering::Relaxed);
                    self.waiters.wait(target, is_seen, || self.is_finished(target) || self.is_left());
                }
            }
        }
    }

    /// Whether the caller, which waits, has to run the circuit for itself: a thread of a pool may never come to it, because all of
    /// them may be in receptors that wait.
    pub(super) fn is_run_by_caller(&self) -> bool {
        match self.driver {
            Driver::Waiters => true,
            Driver::Pool(_) | Driver::SharedPool(_) => context::is_within_any(),
            Driver::Owner(_) | Driver::Thread(_) => false,
        }
    }

    /// Runs the circuit for the caller, which waits for it and is noted as waiting; none if somebody else does. By way of
    /// [`on_one_stack`].
    pub(super) fn run_for_caller(&self, budget: usize, until: u64) -> Option<Progress> {
        self.enter().map(|mut running| running.run(budget, until))
    }

    /// Whether nobody runs the circuit. If somebody does, who waits is woken when that one leaves. For who is about to sleep.
    pub(super) fn is_left(&self) -> bool {
        if !self.running.load(Ordering::Acquire) {
            return true;
        }
        // Said first, then looked: in one order with who leaves first and then looks.
        if self.head.flags.load(Ordering::SeqCst) & HELPED == 0 {
            self.head.flags.fetch_or(HELPED, Ordering::SeqCst);
        }
        // Also where somebody else has said it, whose barrier may be still to come.
        barrier::heavy();
        !self.running.load(Ordering::SeqCst)
    }

    /// For a driver that came while somebody else runs the circuit: true if that one has the driver come again, false if nobody
    /// runs it any more and it is still the caller who has to.
    pub(crate) fn put_off(&self) -> bool {
        // Said first, then looked: in one order with who leaves first and then looks.
        self.head.flags.fetch_or(PUT_OFF, Ordering::SeqCst);
        barrier::heavy();
        self.running.load(Ordering::SeqCst)
            || self.head.flags.fetch_and(!PUT_OFF, Ordering::SeqCst) & PUT_OFF == 0
    }

    /// Has those look again who run the circuit when nobody else does.
    #[cold]
    pub(super) fn call_others(&self) {
        let before = self.head.flags.fetch_and(!(HELPED | PUT_OFF), Ordering::SeqCst);
        if before & PUT_OFF != 0 {
            self.wake_driver();
        }
        if before & HELPED == 0 {
            return;
        }
        // Code of others comes last: it may wait for who is told here.
        if let Some(bounds) = &self.bounds {
            bounds.wake();
        }
        self.waiters.wake(u64::MAX);
    }

    /// Refuses, before it has done anything, what would wait for this machine and could not: inside of its context, in a circle, and
    /// where nothing runs it but a simulation.
    pub(crate) fn check_can_wait(&self, inside: &'static str) -> Result<(), ContextError> {
        if self.is_entered_here() {
            return Err(ContextError::new(inside));
        }
        self.check_not_simulated()?;
        Waiting::check(self)
    }

    /// As [`Machine::check_can_wait`], for what ends with the circuit.
    pub(crate) fn check_can_close_and_wait(&self) -> Result<(), ContextError> {
        self.check_can_wait(
            "Cannot wait for a circuit from within its own context: close it without waiting, or wait outside of it",
        )
    }

    /// Refuses what would wait for a simulation, whose thread is the one that waits.
    fn check_not_simulated(&self) -> Result<(), ContextError> {
        if self.driver.simulated_clock().is_some() {
            let message = "Cannot wait for a circuit of a simulation, which does nothing meanwhile: call Simulation::run";
            return Err(ContextError::new(message));
        }
        Ok(())
    }
}
