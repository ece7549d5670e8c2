//! The loop: what is handled next, and how.
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
    /// Enters the context, unless somebody is in it.
    pub(crate) fn enter(&self) -> Option<Running<'_>> {
        // Writes nothing where it fails: who is in it leaves by an ordinary store.
        if self.running.compare_exchange(false, true, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return None;
        }
        let outer = context::replace(self.head());
        // SAFETY: we are in the context.
        unsafe { (*self.inside.get()).outer = outer };
        Some(Running { machine: self })
    }

    /// Drops what was accepted before the circuit ended and came into its queues only afterwards: nobody runs the circuit for that
    /// any more, and it may keep the circuit. Who brings something looks then whether the circuit has ended, and who leaves an ended
    /// circuit whether something has come, so one of them sees the other. Only for drivers that do not come any more by themselves.
    #[cold]
    pub(super) fn drop_late(&self) {
        while self.has_work() {
            let Some(mut running) = self.enter() else {
                barrier::heavy();
                if self.running.load(Ordering::SeqCst) {
                    // Who is in it comes here when leaving.
                    return;
                }
                continue;
            };
            // It is no run of the circuit that anybody is told of.
            let progress = running.run_in_span(Edge::Written, usize::MAX, u64::MAX);
            running.leave();
            mem::forget(running);
            if progress == Progress::Idle {
                // Perhaps somebody is between claiming a place and filling it.
                thread::yield_now();
            }
        }
    }

    /// The next entry of a bounded queue, which from then on is as good as gone from it.
    ///
    /// # Safety
    ///
    /// In the context, or alone. No reference into [`Inside`] is in use.
    #[cold]
    unsafe fn peek_bounded(&self, bounds: &Bounds) -> Option<(Token, *mut u8)> {
        if let Some(latest) = bounds.latest() {
            // SAFETY: the context, or who is alone, is the only consumer, and was done with an entry when it passed that.
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

    /// Passes the entry that was peeked.
    ///
    /// # Safety
    ///
    /// In the context, or alone; the entry was handled. No reference into [`Inside`] is in use.
    unsafe fn advance(&self) {
        // SAFETY: as the caller says. The context, or who is alone, is the only consumer.
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

/// Where the next input comes from.
enum Source {
    /// An entry of the shared queue.
    Shared(Token, *mut u8),
    /// So many entries of a lane.
    Lane(*mut Reader, usize),
    Nothing,
}

/// What became of the look at what is next.
enum Step {
    /// It was handled with all that it caused, or is looked for anew; so much is left of the budget.
    Done(usize),
    /// The budget was used up before.
    Unfinished,
    /// There is nothing.
    Nothing,
}

impl From<Option<usize>> for Step {
    #[inline]
    fn from(left: Option<usize>) -> Self {
        left.map_or(Self::Unfinished, Self::Done)
    }
}

/// The right to run a machine: whoever has it is in its context.
pub(crate) struct Running<'a> {
    pub(super) machine: &'a Machine,
}

impl Running<'_> {
    /// Handles entries until there are none, everything below the ticket `until` is done, or `budget` entries were handled.
    pub(crate) fn run(&mut self, budget: usize, until: u64) -> Progress {
        self.run_to(Edge::Written, budget, until)
    }

    /// As [`Running::run`], but may leave what lanes have not published yet once it has handled something: for a driver that
    /// looks again before it sleeps.
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
        // What was begun in the last run has ended only now.
        // SAFETY: we are in the context, and this borrow ends here.
        unsafe { (*inside).readers.iter().for_each(|readers| readers.consume()) };
        loop {
            if self.finish() {
                // Those whom it woke may have failed, of which the circuit is told as part of the input that they waited for.
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
                Step::Done(rest) => left = rest,
                Step::Unfinished => return Progress::More,
                Step::Nothing => {
                    self.publish();
                    return Progress::Idle;
                }
            }
        }
    }

    /// Handles what is next in a circuit of which no lane is known and whose queue is not bounded.
    #[inline]
    fn step(&self, left: usize) -> Step {
        // SAFETY: we are in the context, which has the machine's only cursor, and the borrow ends here.
        let next =
            unsafe { self.machine.ingress.peek(&mut (*self.machine.inside.get()).cursor, value_bytes) };
        let Some((token, value)) = next else { return Step::Nothing };
        // A lane may have been opened after the look at them, and be older than this token. Having seen the token, we see it.
        if token.is_behind_lanes() && !self.machine.lanes.is_empty() {
            return Step::Done(left);
        }
        // SAFETY: the queue gave a token with its value, which stays at its place until `advance`.
        unsafe {
            self.begin_input(token, value);
            self.handle(token, value);
            self.machine.ingress.advance(&mut (*self.machine.inside.get()).cursor);
        }
        self.drain_transit(left - 1).into()
    }

    /// As [`Running::step`], in any other circuit, of whose lanes it looks at what is written up to `edge`.
    ///
    /// Apart from the loop, so that what that does for most circuits stays in registers.
    #[inline(never)]
    fn step_with_care(&self, has_lanes: bool, edge: Edge, left: usize) -> Step {
        // SAFETY: we are in the context, and borrows end before code of users runs.
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
                Source::Nothing => Step::Nothing,
            }
        }
    }

    /// Handles what the circuit has sent itself, and tells what is left of the budget; nothing if that was used up before.
    #[inline]
    fn drain_transit(&self, mut left: usize) -> Option<usize> {
        let inside = self.machine.inside.get();
        // SAFETY: we are in the context, and these borrows end before code of users runs.
        while unsafe { !(*inside).transit.is_empty() } {
            left = left.checked_sub(1)?;
            // SAFETY: as above. The queue gives a token with its value, which is moved out first of all.
            unsafe {
                let (token, value) = (*inside).transit.take(value_words);
                self.handle(token, value);
            }
        }
        Some(left)
    }

    /// Handles up to `count` entries of a lane, each with all that it causes, and tells what is left of the budget; nothing if that
    /// was used up before.
    ///
    /// # Safety
    ///
    /// The reader is one of the context's, and knows of as many entries.
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

    /// The next entry of the shared queue.
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

    /// What is next where there are lanes, up to this edge of each.
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
                    // The whole turn is taken at once.
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

    /// What is to be done ahead of each input: the clock may be looked at anew.
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
            (*inside).has_told = false;
            if (*inside).attendance.is_some() {
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
                    self.machine.report("run", panic);
                }
            }
            Entry::Close if self.machine.has_ended() => {}
            Entry::Close => self.close(),
            Entry::Barrier => {}
        }
    }

    /// What was taken so far is done with all that it caused: who has waited for that is woken. Whether anybody was.
    #[inline]
    fn finish(&self) -> bool {
        let inside = self.machine.inside.get();
        // SAFETY: we are in the context.
        let ticket = unsafe { (*inside).cursor.ticket() };
        // The next entry may take long, so this is said after each. Said first, then looked: in one order with who registers
        // first and then looks.
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

    /// Shows everybody how far we are.
    fn publish(&self) {
        let ticket = self.machine.finished.load(Ordering::Relaxed);
        if self.machine.done.load(Ordering::Relaxed) != ticket {
            self.machine.done.store(ticket, Ordering::Release);
        }
    }

    /// Ends the circuit, once everything that is open in it has ended: one after the other, each with all that it causes, as if
    /// each had been closed by an input of its own.
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
            unsafe { (*inside).has_told = false };
            // SAFETY: as above.
            match unsafe { (*inside).endings.next() } {
                // SAFETY: we are in the context, between two entries. Its end may drop what it was the last to know.
                Some(open) => shielded(|| unsafe { open.end() }),
                None => return self.end(),
            }
        }
        // Comes again behind what is to be handled before.
        // SAFETY: as above.
        unsafe { (*inside).transit.push_token(Token::close()) };
    }

    /// Handles everything that there is, and ends the circuit.
    pub(super) fn run_to_end(&mut self) {
        self.run(usize::MAX, u64::MAX);
        self.machine.head.flags.fetch_or(CLOSED, Ordering::SeqCst);
        if !self.machine.has_ended() {
            self.close();
        }
        // The close is in there until the circuit has ended.
        while self.drain_transit(usize::MAX).is_none() {}
        assert!(self.machine.has_ended(), "{} is closed and has nothing left to do", self.machine.subject);
    }

    /// Ends a circuit that nobody can run any more: what it has accepted is dropped, and who has something open hears nothing.
    pub(super) fn end_unhandled(&mut self) {
        self.end();
        // SAFETY: we are in the context, and borrows end before code of users runs.
        while let Some(open) = unsafe { (*self.machine.inside.get()).endings.next() } {
            // SAFETY: as above.
            shielded(|| unsafe { open.forget() });
        }
        // All of it now: what is in there may keep the circuit. It is no run of the circuit that anybody is told of.
        self.run_in_span(Edge::Written, usize::MAX, u64::MAX);
    }

    /// Ends the circuit if nothing has to be handled, ended, dropped or told of before; false if something has.
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
            self.tell_of_end();
        }
        is_untouched
    }

    /// Drops all receptors. From now on whatever arrives is dropped.
    pub(super) fn end(&self) {
        self.machine.head.flags.fetch_or(CLOSED | CLOSED_INSIDE, Ordering::SeqCst);
        // SAFETY: we are in the context, and the borrow ends here.
        unsafe { (*self.machine.inside.get()).over = true };
        for node in self.machine.nodes.end() {
            // SAFETY: we are in the context, between two entries: no receptor is running. A node leaves the list only here.
            unsafe { node::end_node(node) };
        }
        self.tell_of_end();
    }

    /// Says that the circuit has ended. Only now: who waits may rely on the receptors being gone.
    fn tell_of_end(&self) {
        self.machine.head.flags.fetch_or(CLOSED | CLOSED_INSIDE | ENDED, Ordering::SeqCst);
        self.machine.followers.ended();
        self.machine.waiters.wake(u64::MAX);
    }

    /// Whether anything is left to be handled.
    pub(crate) fn has_more(&self) -> bool {
        // SAFETY: we are in the context, and the borrow ends here.
        self.machine.has_work() || unsafe { !(*self.machine.inside.get()).transit.is_empty() }
    }

    /// How many inputs were handled so far, about: good for the difference between two looks.
    pub(crate) fn handled(&self) -> u64 {
        let inside = self.machine.inside.get();
        // SAFETY: we are in the context.
        unsafe { (*inside).cursor.ticket() + u64::from((*inside).from_lanes) }
    }

    /// Leaves the context. The caller does nothing with this any more.
    #[inline]
    fn leave(&mut self) {
        // SAFETY: we are in the context.
        let outer = unsafe { (*self.machine.inside.get()).outer };
        context::replace(outer);
        // Left first, then looked: in one order with who says or brings something first and then looks whether somebody is in here,
        // behind a heavy barrier, see `is_left`, `put_off`, `poll_settled` and `drop_late`.
        self.machine.running.store(false, Ordering::Release);
        barrier::light();
    }

    /// Gives back memory that a backlog needed, if there is none any more.
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
        if flags & ENDED != 0 && !self.machine.driver.must_be_told() {
            // Of whoever has not seen that it has ended, we see what that one has brought.
            if !self.machine.lanes.is_empty() {
                barrier::heavy();
            }
            self.machine.drop_late();
        }
    }
}
