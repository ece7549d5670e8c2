//! The loop of a machine: what is handled next, and how.
#![allow(unsafe_code, reason = "see the parent module")]

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tidemark_barrier as barrier;

use super::state::{CLOSED, CLOSED_INSIDE, ENDED, HELPED, Machine, PUBLISH_EVERY, PUT_OFF, Progress};
use crate::execution::bounds::Bounds;
use crate::execution::context;
use crate::execution::event::Event;
use crate::execution::node;
use crate::execution::queue::lane::{Edge, Reader};
use crate::execution::queue::token::{Entry, Token};
use crate::execution::queue::values::{value_bytes, value_words};
use crate::failure::thrown::shielded;
use crate::observe::telemetry;
use crate::sync::{Ordering, thread};

impl Machine {
    /// Enters the context, unless another thread is in it.
    pub(crate) fn enter(&self) -> Option<Running<'_>> {
        // A failed exchange writes nothing, so it cannot disturb the runner, which leaves with a
        // plain store.
        if self.running.compare_exchange(false, true, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return None;
        }
        let outer = context::replace(self.head());
        // SAFETY: we are in the context.
        unsafe { (*self.inside.get()).outer = outer };
        Some(Running { machine: self })
    }

    /// Drops entries that were accepted before the circuit ended but reached its queues only
    /// afterwards: no thread runs the circuit for them any more, and they may keep it alive. A
    /// producer pushes first, then checks whether the circuit has ended; a runner of an ended
    /// circuit leaves first, then checks for entries. So one of them sees the other. Only for
    /// drivers that no longer run a circuit after its end.
    #[cold]
    pub(super) fn drop_late(&self) {
        while self.has_work() {
            let Some(mut running) = self.enter() else {
                barrier::heavy();
                if self.running.load(Ordering::SeqCst) {
                    // The runner drops the entries when it leaves.
                    return;
                }
                continue;
            };
            // Without a span: this is no run of the circuit that is reported.
            let progress = running.run_in_span(Edge::Written, usize::MAX, u64::MAX);
            running.leave();
            mem::forget(running);
            if progress == Progress::Idle {
                // A producer may be between claiming a ticket and filling its slot.
                thread::yield_now();
            }
        }
    }

    /// Returns the next entry of a bounded queue, whose room is free from then on.
    ///
    /// # Safety
    ///
    /// In the context, or without any other thread. No reference into [`Inside`] is in use.
    #[cold]
    unsafe fn peek_bounded(&self, bounds: &Bounds) -> Option<(Token, *mut u8)> {
        if let Some(latest) = bounds.latest() {
            // SAFETY: this is the only consumer, and it was done with an entry when it advanced
            // past that.
            return unsafe { latest.take() };
        }
        // Not through a reference to all of `Inside`: the caller may have one to its readers.
        // SAFETY: the machine's only cursor.
        let next = unsafe { self.ingress.peek(&mut (*self.inside.get()).cursor, value_bytes) }?;
        if next.0.as_emission().is_some() {
            bounds.release();
        }
        Some(next)
    }

    /// Advances past the entry that was peeked.
    ///
    /// # Safety
    ///
    /// In the context, or without any other thread; the entry was handled. No reference into
    /// [`Inside`] is in use.
    unsafe fn advance(&self) {
        // SAFETY: as the caller says. This is the only consumer.
        unsafe {
            let cursor = &raw mut (*self.inside.get()).cursor;
            match self.bounds.as_ref().and_then(|bounds| bounds.latest()) {
                None => self.ingress.advance(&mut *cursor),
                Some(latest) => {
                    if let Some(ticket) = latest.drop_taken() {
                        (*cursor).skip_to(ticket + 1);
                    }
                }
            }
        }
    }
}

/// Source of the next input.
enum Source {
    /// An entry of the shared queue.
    Shared(Token, *mut u8),
    /// This many entries of a lane.
    Lane(*mut Reader, usize),
    Nothing,
}

/// Outcome of one step.
enum RunStep {
    /// An input was handled with everything it caused, or the check must be repeated; this much of
    /// the budget is left.
    Done(usize),
    /// The budget was used up before.
    Unfinished,
    /// There was no input.
    Nothing,
}

impl From<Option<usize>> for RunStep {
    #[inline]
    fn from(left: Option<usize>) -> Self {
        left.map_or(Self::Unfinished, Self::Done)
    }
}

/// The right to run a machine: its holder is in the context.
pub(crate) struct Running<'a> {
    pub(super) machine: &'a Machine,
}

impl Running<'_> {
    /// Handles entries until there are none, everything below the ticket `until` is done, or
    /// `budget` entries were handled.
    pub(crate) fn run(&mut self, budget: usize, until: u64) -> Progress {
        self.run_to(Edge::Written, budget, until)
    }

    /// As [`Running::run`], but once it has handled something it may leave entries that lanes have
    /// not published yet: for a driver that checks again before it sleeps.
    pub(crate) fn run_published(&mut self, budget: usize) -> Progress {
        self.run_to(Edge::Published, budget, u64::MAX)
    }

    #[inline]
    fn run_to(&mut self, edge: Edge, budget: usize, until: u64) -> Progress {
        let _span = telemetry::run(self.machine.subject(), || self.machine.has_work());
        self.run_in_span(edge, budget, until)
    }

    fn run_in_span(&mut self, edge: Edge, budget: usize, until: u64) -> Progress {
        assert!(budget > 0, "a run without a budget would never be done");
        let inside = self.machine.inside.get();
        let mut next_edge = Edge::Written;
        let Some(mut left) = self.drain_transit(budget) else { return Progress::More };
        // Entries that the last run began are done only now. SAFETY: in the context, and this
        // borrow ends here.
        unsafe { (*inside).readers.iter().for_each(|readers| readers.consume()) };
        loop {
            if self.finish() {
                // Woken tasks may have failed, which the circuit handles as part of the input that
                // they waited for.
                let Some(rest) = self.drain_transit(left) else { return Progress::More };
                left = rest;
            }
            // SAFETY: we are in the context, and these borrows end here.
            let (ticket, has_lanes) = unsafe {
                ((*inside).cursor.ticket(), !(*inside).knows_no_lane() || !self.machine.lanes.is_empty())
            };
            if ticket >= until {
                self.publish();
                return Progress::Reached;
            }
            if left == 0 {
                self.publish();
                return Progress::More;
            }
            let step = if has_lanes || self.machine.bounds.is_some() {
                let step = self.step_with_care(has_lanes, next_edge, left);
                next_edge = edge;
                step
            } else {
                self.step(left)
            };
            match step {
                RunStep::Done(rest) => left = rest,
                RunStep::Unfinished => return Progress::More,
                RunStep::Nothing => {
                    self.publish();
                    return Progress::Idle;
                }
            }
        }
    }

    /// Handles the next entry of a circuit without known lanes and without a bound.
    #[inline]
    fn step(&self, left: usize) -> RunStep {
        // SAFETY: we are in the context, which has the machine's only cursor, and the borrow ends here.
        let next =
            unsafe { self.machine.ingress.peek(&mut (*self.machine.inside.get()).cursor, value_bytes) };
        let Some((token, value)) = next else { return RunStep::Nothing };
        // A lane may have been opened since the check, and may be older than this token. A lane
        // opened before the token was pushed is visible now that the token is.
        if token.is_behind_lanes() && !self.machine.lanes.is_empty() {
            return RunStep::Done(left);
        }
        // SAFETY: the queue returned a token with its value, which stays in place until `advance`.
        unsafe {
            self.begin_input(token, value);
            self.handle(token, value);
            self.machine.ingress.advance(&mut (*self.machine.inside.get()).cursor);
        }
        self.drain_transit(left - 1).into()
    }

    /// As [`Running::step`], for any other circuit. Reads its lanes up to `edge`.
    ///
    /// Separate from the loop, so that the loop's state stays in registers for most circuits.
    #[inline(never)]
    fn step_with_care(&self, has_lanes: bool, edge: Edge, left: usize) -> RunStep {
        // SAFETY: we are in the context, and borrows end before user code runs.
        unsafe {
            let next = if has_lanes {
                self.next_source(edge)
            } else {
                self.peek().map_or(Source::Nothing, |(token, value)| Source::Shared(token, value))
            };
            match next {
                Source::Shared(token, value) => {
                    self.begin_input(token, value);
                    self.handle(token, value);
                    self.machine.advance();
                    self.drain_transit(left - 1).into()
                }
                Source::Lane(reader, count) => self.handle_lane(reader, count, left).into(),
                Source::Nothing => RunStep::Nothing,
            }
        }
    }

    /// Handles what the circuit has emitted to itself. Returns what is left of the budget; none if
    /// it was used up before.
    #[inline]
    fn drain_transit(&self, mut left: usize) -> Option<usize> {
        let inside = self.machine.inside.get();
        // SAFETY: we are in the context, and these borrows end before user code runs.
        while unsafe { !(*inside).transit.is_empty() } {
            left = left.checked_sub(1)?;
            // SAFETY: as above. The queue returns a token with its value, which is moved out first.
            unsafe {
                let (token, value) = (*inside).transit.take(value_words);
                self.handle(token, value);
            }
        }
        Some(left)
    }

    /// Handles up to `count` entries of a lane, each with everything it causes. Returns what is
    /// left of the budget; none if it was used up before.
    ///
    /// # Safety
    ///
    /// The reader is one of the context's, and has at least `count` known entries.
    unsafe fn handle_lane(&self, reader: *mut Reader, count: usize, mut left: usize) -> Option<usize> {
        // SAFETY: we are in the context, and this borrow ends here.
        let from_lanes = unsafe { &mut (*self.machine.inside.get()).from_lanes };
        *from_lanes = from_lanes.wrapping_add(count as u32);
        for _ in 0..count {
            left = left.checked_sub(1)?;
            // SAFETY: as the caller says; borrows end before user code runs.
            unsafe {
                let (token, value) = (*reader).next(value_words);
                self.begin_input(token, value);
                self.handle(token, value);
            }
            left = self.drain_transit(left)?;
        }
        // SAFETY: as the caller says.
        unsafe { (*reader).consume() };
        Some(left)
    }

    /// Returns the next entry of the shared queue.
    ///
    /// # Safety
    ///
    /// No reference to the cursor is in use.
    #[inline]
    unsafe fn peek(&self) -> Option<(Token, *mut u8)> {
        // SAFETY: we are in the context, which has the machine's only cursor.
        unsafe {
            // Not through a reference to all of `Inside`: the caller may have one to its readers.
            let cursor = &raw mut (*self.machine.inside.get()).cursor;
            match &self.machine.bounds {
                None => self.machine.ingress.peek(&mut *cursor, value_bytes),
                Some(bounds) => self.machine.peek_bounded(bounds),
            }
        }
    }

    /// Chooses the next source where there are lanes, reading each up to `edge`.
    ///
    /// # Safety
    ///
    /// No reference into [`Inside`] is in use.
    unsafe fn next_source(&self, edge: Edge) -> Source {
        // SAFETY: we are in the context.
        let readers = unsafe { (*self.machine.inside.get()).readers.get_or_insert_default() };
        readers.notice(&self.machine.lanes);
        for look in [Edge::Published, Edge::Written] {
            for _ in 0..=readers.len() {
                if readers.is_shared_turn() {
                    // SAFETY: `peek` touches other parts of `Inside`.
                    if let Some((token, value)) = unsafe { self.peek() } {
                        if token.is_behind_lanes()
                            && let Some((reader, count)) = readers.before_barrier(&self.machine.lanes)
                        {
                            return Source::Lane(reader, count);
                        }
                        readers.count_shared();
                        return Source::Shared(token, value);
                    }
                    readers.pass();
                } else {
                    // A turn is taken as a whole.
                    let turn = readers.take_turn(look);
                    readers.pass();
                    if let Some((index, count)) = turn {
                        return Source::Lane(readers.at(index), count);
                    }
                }
            }
            if look == edge {
                break;
            }
            readers.refresh(&self.machine.lanes);
        }
        Source::Nothing
    }

    /// Prepares for the next input: its time is read again when needed.
    ///
    /// # Safety
    ///
    /// The value belongs to the token. No reference into [`Inside`] is in use.
    #[inline]
    unsafe fn begin_input(&self, token: Token, value: *mut u8) {
        // SAFETY: we are in the context.
        unsafe {
            let inside = self.machine.inside.get();
            (*inside).has_time = false;
            (*inside).has_reported = false;
            if (*inside).attendance.is_some() {
                self.begin_attended(token, value);
            }
        }
    }

    /// Sets the time of a replayed input, and records the input.
    ///
    /// # Safety
    ///
    /// As for `begin_input`.
    #[cold]
    unsafe fn begin_attended(&self, token: Token, value: *mut u8) {
        // SAFETY: we are in the context.
        unsafe {
            let inside = self.machine.inside.get();
            if let Some(time) = (*inside).attendance.as_ref().and_then(|attendance| attendance.given_time) {
                ((*inside).time, (*inside).has_time) = (time, true);
            }
        }
        if let Some(node) = token.as_emission() {
            // SAFETY: the node exists, and the value is of its type.
            self.machine
                .record(|recorder, time| unsafe { recorder.emission(time, (*node).subject(), value) });
        }
    }

    #[cold]
    fn record_event(&self, event: Event) {
        self.machine.record(|recorder, time| recorder.event(time, event));
    }

    /// # Safety
    ///
    /// The value belongs to the token, and the caller does not use it again.
    #[inline]
    unsafe fn handle(&self, token: Token, value: *mut u8) {
        match token.as_emission() {
            // SAFETY: a node exists until its release is handled, which follows everything emitted
            // to it.
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
                // SAFETY: the node has no handles, and everything emitted to it has been handled.
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
                    self.machine.report("run", panic);
                }
            }
            Entry::Close if self.machine.has_ended() => {}
            Entry::Close => self.close(),
            Entry::Barrier => {}
        }
    }

    /// Marks everything taken so far as done, with all that it caused, and wakes its waiters.
    /// Returns whether any were due.
    #[inline]
    fn finish(&self) -> bool {
        let inside = self.machine.inside.get();
        // SAFETY: we are in the context.
        let ticket = unsafe { (*inside).cursor.ticket() };
        // After each entry, because the next may take long. Stored first, then checked for waiters;
        // a waiter registers first, then checks `finished`. The asymmetric barrier on both sides
        // orders these, so one sees the other.
        self.machine.finished.store(ticket, Ordering::Release);
        barrier::light();
        let is_due = self.machine.waiters.is_due(ticket);
        if is_due {
            self.publish();
            self.machine.waiters.wake(ticket);
        } else if ticket - self.machine.done.load(Ordering::Relaxed) > PUBLISH_EVERY {
            self.publish();
        }
        is_due
    }

    /// Publishes the progress in `done`.
    fn publish(&self) {
        let ticket = self.machine.finished.load(Ordering::Relaxed);
        if self.machine.done.load(Ordering::Relaxed) != ticket {
            self.machine.done.store(ticket, Ordering::Release);
        }
    }

    /// Ends the circuit after everything that is open in it: one after the other, each with all
    /// that it causes, as if each had been closed by its own input.
    fn close(&self) {
        let inside = self.machine.inside.get();
        // SAFETY: we are in the context, and borrows end before code of users runs.
        let (begins, is_busy) =
            unsafe { (!std::mem::replace(&mut (*inside).closing, true), !(*inside).transit.is_empty()) };
        if begins {
            self.machine.head.flags.fetch_or(CLOSED_INSIDE, Ordering::AcqRel);
            self.record_event(Event::CloseCircuit);
        }
        if !is_busy {
            // SAFETY: as above.
            unsafe { (*inside).has_reported = false };
            // SAFETY: as above.
            match unsafe { (*inside).endings.next() } {
                // SAFETY: in the context, between two entries. The end may drop what only this
                // held.
                Some(open) => shielded(|| unsafe { open.end() }),
                None => return self.end(),
            }
        }
        // Repeated after what must be handled before. SAFETY: as above.
        unsafe { (*inside).transit.push_token(Token::close()) };
    }

    /// Handles all entries and ends the circuit.
    pub(super) fn run_to_end(&mut self) {
        self.run(usize::MAX, u64::MAX);
        self.machine.head.flags.fetch_or(CLOSED, Ordering::SeqCst);
        if !self.machine.has_ended() {
            self.close();
        }
        // The transit queue holds a close entry until the circuit has ended.
        while self.drain_transit(usize::MAX).is_none() {}
        assert!(self.machine.has_ended(), "{} is closed and has nothing left to do", self.machine.subject);
    }

    /// Ends a circuit that no caller can run any more: drops what it has accepted, and does not
    /// notify what is open in it.
    pub(super) fn end_unhandled(&mut self) {
        self.end();
        // SAFETY: we are in the context, and borrows end before user code runs.
        while let Some(open) = unsafe { (*self.machine.inside.get()).endings.next() } {
            // SAFETY: as above.
            shielded(|| unsafe { open.forget() });
        }
        // Drops all entries now, because they may keep the circuit alive. Without a span: this is
        // no run that is reported.
        self.run_in_span(Edge::Written, usize::MAX, u64::MAX);
    }

    /// Ends the circuit if nothing has to be handled, ended, dropped or notified before. Returns
    /// false otherwise.
    pub(super) fn end_untouched(&self) -> bool {
        let Machine { ingress, nodes, lanes, inside, .. } = self.machine;
        // SAFETY: we are in the context, and borrows end here.
        let is_at_rest = unsafe {
            let inside = inside.get();
            (*inside).cursor.ticket() == ingress.tail()
                && (*inside).transit.is_empty()
                && (*inside).endings.is_empty()
                && (*inside).attendance.as_ref().is_none_or(|attendance| attendance.recorder.is_none())
        };
        let is_untouched = is_at_rest && lanes.is_empty() && nodes.end_none();
        if is_untouched {
            // SAFETY: we are in the context, and the borrow ends here.
            unsafe { (*inside.get()).over = true };
            self.announce_end();
        }
        is_untouched
    }

    /// Drops all receptors. Whatever arrives later is dropped.
    pub(super) fn end(&self) {
        self.machine.head.flags.fetch_or(CLOSED | CLOSED_INSIDE, Ordering::SeqCst);
        // SAFETY: we are in the context, and the borrow ends here.
        unsafe { (*self.machine.inside.get()).over = true };
        for node in self.machine.nodes.end() {
            // SAFETY: in the context, between two entries: no receptor is running. A node leaves
            // the list only here.
            unsafe { node::end_node(node) };
        }
        self.announce_end();
    }

    /// Announces the end. Done last: waiters may rely on the receptors being gone.
    fn announce_end(&self) {
        self.machine.head.flags.fetch_or(CLOSED | CLOSED_INSIDE | ENDED, Ordering::SeqCst);
        self.machine.followers.ended();
        self.machine.waiters.wake(u64::MAX);
    }

    /// Returns whether anything is left to handle.
    pub(crate) fn has_more(&self) -> bool {
        // SAFETY: we are in the context, and the borrow ends here.
        self.machine.has_work() || unsafe { !(*self.machine.inside.get()).transit.is_empty() }
    }

    /// Approximate number of inputs handled so far; meant for differences.
    pub(crate) fn handled(&self) -> u64 {
        let inside = self.machine.inside.get();
        // SAFETY: we are in the context.
        unsafe { (*inside).cursor.ticket() + u64::from((*inside).from_lanes) }
    }

    /// Leaves the context. The caller must not use this any more.
    #[inline]
    fn leave(&mut self) {
        // SAFETY: we are in the context.
        let outer = unsafe { (*self.machine.inside.get()).outer };
        context::replace(outer);
        // Released first, then checked by the caller. Another thread announces itself first (a
        // flag, a registration or an entry), then checks `running` behind a heavy barrier: see
        // `is_left`, `put_off`, `poll_settled` and `drop_late`. So one sees the other.
        self.machine.running.store(false, Ordering::Release);
        barrier::light();
    }

    /// Frees memory that a backlog needed, if the backlog is gone.
    pub(crate) fn shrink(&mut self) {
        // SAFETY: we are in the context.
        unsafe {
            let inside = &mut *self.machine.inside.get();
            inside.transit.shrink();
            inside.readers.take_if(|readers| readers.is_empty());
            self.machine.ingress.settle(&mut inside.cursor);
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.leave();
        let flags = self.machine.head.flags.load(Ordering::SeqCst);
        if flags & (HELPED | PUT_OFF) != 0 {
            self.machine.call_others();
        }
        if flags & ENDED != 0 && !self.machine.driver.needs_notification() {
            // A producer that has not seen `ENDED` has pushed before this check, so its entry is
            // seen here. Lanes need the barrier for that.
            if !self.machine.lanes.is_empty() {
                barrier::heavy();
            }
            self.machine.drop_late();
        }
    }
}
