//! All watched-read subscriptions of one client.

use crate::context::Context;
use crate::net::outbox::Outbox;
use crate::subscription::cursor::Older;
use crate::subscription::read_subscription::{Claim, ReadSubscription};
use std::collections::BTreeSet;
use std::time::Instant;
use tidemark_engine::watch::{ById, Emission};
use tidemark_log::Lsn;

/// A client's subscriptions, at most one per query.
#[derive(Debug, Default)]
pub(crate) struct ReadSubscriptions {
    by_query: ById<(Lsn, ReadSubscription)>,
    /// Queries that may have emissions to write, which had to wait for room.
    behind: BTreeSet<Lsn>,
    /// Subscriptions with a deadline, each once, ordered by a lower bound of it.
    times: BTreeSet<(Instant, Lsn)>,
}

impl ReadSubscriptions {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_query.is_empty()
    }

    /// Lower bound of the earliest deadline.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        self.times.first().map(|(at, _)| *at)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_query.len()
    }

    pub(crate) fn contains(&self, query: Lsn) -> bool {
        self.by_query.get(query).is_some()
    }

    pub(crate) fn get_mut(&mut self, query: Lsn) -> Option<&mut ReadSubscription> {
        self.by_query.get_mut(query).map(|(_, subscription)| subscription)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ReadSubscription> {
        self.by_query.iter().map(|(_, subscription)| subscription)
    }

    /// Whether there may be emissions to write, and the outbox has room for them.
    pub(crate) fn may_catch_up(&self, outbox: &Outbox) -> bool {
        !self.behind.is_empty() && outbox.has_room()
    }

    /// Adds a subscription. Returns the one to the same query that it replaces.
    pub(crate) fn insert(&mut self, mut subscription: ReadSubscription) -> Option<ReadSubscription> {
        let query = subscription.cursor.query().id();
        if let Some((_, replaced)) = self.by_query.get_mut(query) {
            unschedule(&mut self.times, query, replaced);
        }
        schedule(&mut self.times, query, &mut subscription);
        self.by_query.insert((query, subscription)).map(|(_, replaced)| replaced)
    }

    /// Removes a subscription.
    pub(crate) fn remove(&mut self, query: Lsn) -> Option<ReadSubscription> {
        let (_, mut subscription) = self.by_query.remove(query)?;
        self.behind.remove(&query);
        unschedule(&mut self.times, query, &mut subscription);
        Some(subscription)
    }

    /// Schedules a subscription to catch up after the client's answer is written.
    pub(crate) fn catch_up_soon(&mut self, query: Lsn) {
        if let Some((_, subscription)) = self.by_query.get_mut(query) {
            if let Some(more) = &mut subscription.more {
                more.is_returning = more.delivery.mark;
            }
            self.behind.insert(query);
        }
    }

    /// Takes the queries that may have emissions to write, which had to wait for room.
    pub(crate) fn take_behind(&mut self) -> BTreeSet<Lsn> {
        std::mem::take(&mut self.behind)
    }

    /// Returns the queries whose emissions wait for the end of `CLIENT PAUSE`, and ends their wait.
    pub(crate) fn end_pause(&mut self) -> Vec<Lsn> {
        let waits = |subscription: &&ReadSubscription| {
            subscription.claimed().is_some()
                && subscription.more.as_ref().is_some_and(|more| more.is_held_back)
        };
        let waited: Vec<Lsn> =
            self.iter().filter(waits).map(|subscription| subscription.cursor.query().id()).collect();
        for query in &waited {
            if let Some(more) = self.get_mut(*query).and_then(|subscription| subscription.more.as_mut()) {
                more.quiet_until = None;
            }
        }
        waited
    }

    /// Takes the subscriptions whose deadline has passed. The caller must call
    /// [`ReadSubscriptions::write_progress`] for each.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<Lsn> {
        let mut due = Vec::new();
        while let Some((_, query)) = self.times.first().copied().filter(|(at, _)| *at <= now) {
            self.times.pop_first();
            let due_one = self.by_query.get_mut(query);
            let (_, subscription) = due_one.expect("a subscription's time leaves with it");
            subscription.more_mut().scheduled = None;
            if subscription.next_time().is_some_and(|at| at <= now) {
                due.push(query);
            } else {
                schedule(&mut self.times, query, subscription);
            }
        }
        due
    }

    /// Sends a subscription's progress frame if it is due, and reschedules the subscription.
    pub(crate) fn write_progress(&mut self, query: Lsn, now: Instant, outbox: &mut Outbox, cx: &Context<'_>) {
        if let Some((_, subscription)) = self.by_query.get_mut(query) {
            subscription.write_progress(now, outbox, cx);
            schedule(&mut self.times, query, subscription);
        }
    }

    /// Writes a query's emissions until the client's outbox is full. Writes nothing while
    /// `awaits_delivery`: the answer of a served blocking command goes first.
    pub(crate) fn emit(
        &mut self,
        query: Lsn,
        outbox: &mut Outbox,
        older: &Older<'_>,
        awaits_delivery: &dyn Fn() -> bool,
        cx: &Context<'_>,
    ) -> Emitted {
        let ReadSubscriptions { by_query, behind, times } = self;
        let Some((_, subscription)) = by_query.get_mut(query) else { return Emitted::Waits };
        let mut batch = Vec::new();
        loop {
            if awaits_delivery() {
                behind.insert(query);
                return Emitted::Waits;
            }
            if subscription.claimed().is_some()
                && let Some(rest) = cx.shared.pause.rest(cx.now_us)
            {
                // A claim would append to the log, which a pause forbids.
                subscription.more_mut().quiet_until = cx.shared.clock.now().checked_add(rest);
            }
            if subscription.is_quiet(&cx.shared.clock) {
                // The latest emission is sent when the pause is over.
                schedule(times, query, subscription);
                return Emitted::Waits;
            }
            let mut has_more = match subscription.take(&mut batch, older, &cx.shared.engine) {
                Ok(has_more) => has_more,
                Err(gone) => {
                    subscription.write_stale(gone, outbox, cx);
                    return Emitted::Ended;
                }
            };
            // Checked again after the emissions were taken: if the client has not been served yet,
            // none of them results from serving it. Emissions replayed from the log are older than
            // that.
            if awaits_delivery() && !subscription.cursor.is_behind_retention() {
                behind.insert(query);
                return Emitted::Waits;
            }
            let claimed = subscription.claimed();
            if let Some(claimed) = claimed {
                if !outbox.has_room() {
                    behind.insert(query);
                    return Emitted::Waits;
                }
                // Claim only what fits: a claimed emission that is not sent would reach no
                // subscriber.
                let fitting = fitting(&batch, outbox.outbox_room());
                has_more |= fitting < batch.len();
                batch.truncate(fitting);
                match subscription.claim(claimed, &batch, cx) {
                    Claim::Given(None) => {}
                    Claim::Given(Some(until)) => outbox.hold(outbox.reply.len(), until),
                    Claim::Skip(position) => {
                        for emission in batch.drain(..).filter(|emission| emission.lsn <= position) {
                            subscription.pass(&emission);
                        }
                        continue;
                    }
                    Claim::Ended(reason) => {
                        subscription.write_ended(&reason, outbox);
                        return Emitted::Ended;
                    }
                }
            }
            for emission in &batch {
                if !outbox.has_room() && claimed.is_none() {
                    behind.insert(query);
                    return Emitted::Waits;
                }
                subscription.write(emission, outbox, cx);
            }
            if !has_more {
                behind.remove(&query);
                if subscription.has_returned() {
                    subscription.write_place(b"caught-up", subscription.cursor.lsn(), outbox, cx);
                }
                return Emitted::Waits;
            }
            batch.clear();
        }
    }
}

/// State of a subscription after an attempt to write its emissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Emitted {
    /// Waits for emissions, for room, or for the end of a pause.
    Waits,
    /// Has ended; the client has been notified of the reason.
    Ended,
}

/// Schedules a subscription's deadline. An earlier entry is kept, and rescheduled when it fires: a
/// deadline that each emission postpones costs nothing.
fn schedule(times: &mut BTreeSet<(Instant, Lsn)>, query: Lsn, subscription: &mut ReadSubscription) {
    let Some(next) = subscription.next_time() else { return };
    let scheduled = &mut subscription.more_mut().scheduled;
    if scheduled.is_some_and(|at| at <= next) {
        return;
    }
    if let Some(at) = scheduled.replace(next) {
        times.remove(&(at, query));
    }
    times.insert((next, query));
}

/// Removes a subscription's deadline.
fn unschedule(times: &mut BTreeSet<(Instant, Lsn)>, query: Lsn, subscription: &mut ReadSubscription) {
    if let Some(at) = subscription.more.as_mut().and_then(|more| more.scheduled.take()) {
        times.remove(&(at, query));
    }
}

/// Number of emissions whose answers fit into `room` bytes of output; at least one.
fn fitting(batch: &[Emission], room: usize) -> usize {
    let mut taken = 0_usize;
    let behind = batch.iter().position(|emission| {
        taken += emission.answer.len();
        taken > room
    });
    behind.unwrap_or(batch.len()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscription::cursor::Cursor;
    use crate::subscription::delivery::Delivery;
    use std::sync::Arc;
    use std::time::Duration;
    use tidemark_engine::watch::{Filter, Read};
    use tidemark_engine::{Engine, Protocol};
    use tidemark_log::{Clock, Log, ManualClock, MemoryStorage, Options};

    const HOUR: Duration = Duration::from_hours(1);

    fn subscription(engine: &Engine, key: &[u8], progress: Option<Duration>) -> ReadSubscription {
        let words: [&[u8]; 2] = [b"GET", key];
        let read = Read::new(0, Protocol::Resp3, &words, Filter::default()).expect("a read");
        let subscribed = engine.subscribe(read, 0, 1).expect("the log takes it");
        let cursor = Cursor::new(subscribed.query, subscribed.number, subscribed.lsn);
        ReadSubscription::new(cursor, Delivery { progress, ..Delivery::default() }, engine.log().clock())
    }

    #[test]
    fn each_subscription_to_which_time_matters_is_due_once_and_in_time() {
        let manual = ManualClock::new();
        let clock = Clock::from(&manual);
        let options =
            Options { segment_bytes: Options::SEGMENT_BYTES_MIN, clock: clock.clone(), ..Options::default() };
        let (log, _) = Log::open(Arc::new(MemoryStorage::new()), options).expect("an empty log");
        let engine = Engine::new(Arc::new(log), 4, 1);
        let mut reads = ReadSubscriptions::default();
        reads.insert(subscription(&engine, b"never", None));
        assert_eq!(reads.next_time(), None);

        let began = clock.now();
        reads.insert(subscription(&engine, b"late", Some(2 * HOUR)));
        let soon = subscription(&engine, b"soon", Some(HOUR));
        let id = soon.cursor.query().id();
        reads.insert(soon);
        assert_eq!(reads.next_time(), Some(began + HOUR));
        assert_eq!(reads.take_due(clock.now()), []);
        manual.advance(HOUR);
        assert_eq!(reads.take_due(clock.now()), [id]);
        assert_eq!(reads.take_due(clock.now()), [], "it is in good hands");
        assert_eq!(reads.next_time(), Some(began + 2 * HOUR));

        // A replaced subscription has no deadline; one that is inserted again has.
        reads.insert(subscription(&engine, b"late", Some(3 * HOUR)));
        assert_eq!(reads.next_time(), Some(began + 4 * HOUR));
        for _ in 0..2 {
            let soon = reads.remove(id).expect("it is there");
            assert_eq!(reads.next_time(), Some(began + 4 * HOUR));
            reads.insert(soon);
            assert_eq!(reads.next_time(), Some(began + HOUR));
        }
        for query in reads.iter().map(|subscription| subscription.cursor.query().id()).collect::<Vec<_>>() {
            reads.remove(query);
        }
        assert_eq!(reads.next_time(), None);
    }
}
