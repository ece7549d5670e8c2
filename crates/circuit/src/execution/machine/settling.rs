//! Waiting until a machine has handled what was admitted before.

use std::task::Waker;
use tidemark_barrier as barrier;

use super::stack::on_one_stack;
use super::state::{HELPED, Machine, PUT_OFF, Progress};
use super::waits::{Until, Waiting};
use crate::error::{ContextError, called_inside};
use crate::execution::context;
use crate::execution::driver::Driver;
use crate::execution::queue::token::Token;
use crate::execution::waiters::WaiterKey;
use crate::sync::{Ordering, hint};

/// A ticket that is reached only when the circuit ends.
const END: u64 = u64::MAX - 1;

impl Machine {
    /// Waits until everything admitted before is done with all that it caused, or the circuit has
    /// ended. Fails if the wait would never end.
    #[inline]
    pub(crate) fn settle(&self) -> Result<(), ContextError> {
        match self.settle_target(called_inside!("settle"))? {
            Some(target) => self.settle_to(target),
            None => Ok(()),
        }
    }

    /// As [`Machine::settle`], with something to wait for. Separate, so that a caller with nothing
    /// to wait for saves no registers.
    #[inline(never)]
    fn settle_to(&self, target: u64) -> Result<(), ContextError> {
        let _waiting = Waiting::begin(self, Until::Done(target))?;
        self.settle_at(target)
    }

    /// Waits until what the caller has closed has ended: the circuit, or a component. In a circuit
    /// that is being closed a component's close may have no place in the order; it ends with the
    /// circuit. The circuit's own close may not be in the order yet either, if another thread is
    /// closing it.
    pub(crate) fn settle_closed(&self) -> Result<(), ContextError> {
        if !self.is_closed() {
            return self.settle();
        }
        if self.has_ended() { Ok(()) } else { self.settle_to(END) }
    }

    /// Returns the ticket to wait for until everything admitted before is done; none if it is done.
    /// `inside` is the error message inside the context.
    #[inline]
    pub(crate) fn settle_target(&self, inside: &'static str) -> Result<Option<u64>, ContextError> {
        if self.is_entered_here() {
            return Err(ContextError::new(inside));
        }
        let target = self.ingress.tail();
        // Both in one condition: this is the whole cost of waiting for an idle circuit.
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
            // Entries of lanes have no place in the order yet; the barrier puts them before its
            // own.
            self.push_bare(Token::barrier());
            return Some(self.ingress.tail());
        }
        (!self.is_done(target)).then_some(target)
    }

    /// As [`Machine::settle_at`] for a task. Returns false if it has to wait; its waker is called
    /// later. `registered` is the task's previous registration, and is updated.
    pub(crate) fn poll_settled(
        &self,
        target: u64,
        waker: &Waker,
        registered: &mut Option<WaiterKey>,
    ) -> bool {
        if self.driver.is_run_by_waiters()
            && on_one_stack(|| self.run_for_caller(usize::MAX, target)).is_some()
        {
            self.waiters.wake(u64::MAX);
        }
        if !self.is_done(target) {
            // Registered first, then checked, as a waiting thread does.
            *registered = Some(self.waiters.wake_later(target, waker, registered.take()));
            // The thread that runs the machine wakes the task when it leaves, unless it left before
            // the registration.
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

    /// Number of entries ever admitted, and how many of them are done: all once the circuit has
    /// ended.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let has_ended = self.has_ended();
        let (written, consumed) = self.lanes.counts();
        // Done entries are counted first, so the number never exceeds that of the admitted.
        let done = self.done.load(Ordering::Acquire) + consumed;
        let admitted = self.ingress.tail() + written;
        assert!(done <= admitted, "{done} entries are done, of {admitted} admitted");
        (admitted, if has_ended { admitted } else { done })
    }

    /// Returns whether the target is known to be done. May be stale while another thread runs the
    /// circuit.
    fn is_done(&self, target: u64) -> bool {
        self.done.load(Ordering::Acquire) >= target || self.has_ended()
    }

    /// Returns whether the target is done. Polling this slows the circuit down.
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

    /// Runs the circuit up to this ticket for the caller, whose wait is recorded.
    fn run_for_caller_to(&self, target: u64) {
        while !self.is_finished(target) {
            match self.run_for_caller(usize::MAX, target) {
                Some(progress) => {
                    self.waiters.wake(u64::MAX);
                    if progress == Progress::Idle {
                        // A producer may be between claiming a ticket and filling its slot.
                        hint::spin_loop();
                    }
                }
                // The thread that runs it may stop short of this target, and wakes the caller when
                // it leaves.
                None => {
                    let is_seen = || self.is_done(target) || !self.running.load(Ordering::Relaxed);
                    self.waiters.wait(target, is_seen, || self.is_finished(target) || self.is_left());
                }
            }
        }
    }

    /// Returns whether the waiting caller has to run the circuit itself: the threads of a pool may
    /// never get to it, because all may be in receptors that wait.
    pub(super) fn is_run_by_caller(&self) -> bool {
        match self.driver {
            Driver::Waiters => true,
            Driver::Pool(_) | Driver::SharedPool(_) => context::is_within_any(),
            Driver::Owner(_) | Driver::Thread(_) => false,
        }
    }

    /// Runs the circuit for the caller, whose wait is recorded; none if another thread runs it.
    /// Called through [`on_one_stack`].
    pub(super) fn run_for_caller(&self, budget: usize, until: u64) -> Option<Progress> {
        self.enter().map(|mut running| running.run(budget, until))
    }

    /// Returns whether no thread runs the circuit. Otherwise the runner wakes the waiters when it
    /// leaves. For a caller about to sleep.
    pub(super) fn is_left(&self) -> bool {
        if !self.running.load(Ordering::Acquire) {
            return true;
        }
        // Set first, then checked; the runner leaves first, then checks the flag. So one sees the
        // other.
        if self.head.flags.load(Ordering::SeqCst) & HELPED == 0 {
            self.head.flags.fetch_or(HELPED, Ordering::SeqCst);
        }
        // Also where another waiter has set the flag, whose own barrier may be still to come.
        barrier::heavy();
        !self.running.load(Ordering::SeqCst)
    }

    /// For a driver that arrives while another thread runs the circuit. Returns true if that thread
    /// reschedules the driver, false if no thread runs the circuit any more and the caller has to.
    pub(crate) fn put_off(&self) -> bool {
        // Set first, then checked; the runner leaves first, then checks the flag. So one sees the
        // other.
        self.head.flags.fetch_or(PUT_OFF, Ordering::SeqCst);
        barrier::heavy();
        self.running.load(Ordering::SeqCst)
            || self.head.flags.fetch_and(!PUT_OFF, Ordering::SeqCst) & PUT_OFF == 0
    }

    /// Notifies the driver and the waiters that the circuit is free to be run by them.
    #[cold]
    pub(super) fn call_others(&self) {
        let before = self.head.flags.fetch_and(!(HELPED | PUT_OFF), Ordering::SeqCst);
        if before & PUT_OFF != 0 {
            self.wake_driver();
        }
        if before & HELPED == 0 {
            return;
        }
        // Wakers are outside code and come last: they may wait for a thread that is notified here.
        if let Some(bounds) = &self.bounds {
            bounds.wake();
        }
        self.waiters.wake(u64::MAX);
    }

    /// Refuses, before anything is done, a wait that could not end: inside the context, in a
    /// circle, and for a circuit that only a simulation runs.
    pub(crate) fn check_can_wait(&self, inside: &'static str) -> Result<(), ContextError> {
        if self.is_entered_here() {
            return Err(ContextError::new(inside));
        }
        self.check_not_simulated()?;
        Waiting::check(self)
    }

    /// As [`Machine::check_can_wait`], for components that end with the circuit.
    pub(crate) fn check_can_close_and_wait(&self) -> Result<(), ContextError> {
        self.check_can_wait(
            "Cannot wait for a circuit from within its own context: close it without waiting, or wait outside of it",
        )
    }

    /// Refuses to wait for a simulation, whose thread is the one that would wait.
    fn check_not_simulated(&self) -> Result<(), ContextError> {
        if self.driver.simulated_clock().is_some() {
            let message = "Cannot wait for a circuit of a simulation, which does nothing meanwhile: call Simulation::run";
            return Err(ContextError::new(message));
        }
        Ok(())
    }
}
