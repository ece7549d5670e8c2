//! Evaluation: answers the queries that a record may have changed, and emits.

use crate::watch::budget::Spending;
use crate::watch::difference::difference;
use crate::watch::emission::Emission;
use crate::watch::following::{Beyond, NotedPoints, Outcome};
use crate::watch::reach::Reach;
use crate::watch::read::Read;
use crate::watch::state::{Answered, State};
use crate::watch::watched_read::{Query, SharedQuery};
use tidemark_fault::{Fault, is_planted};

use crate::context::{Keys, Locked};
use crate::engine::Engine;
use crate::execute::locking::Access;
use crate::execute::moment::Moment;
use crate::execute::noted::Noted;
use crate::wire::reply::Reply;
use crate::wire::shared_bytes::SharedBytes;
use std::cell::RefCell;
use tidemark_series::UnreadableBlock;

/// Largest buffer that is kept for reuse. Bytes.
const KEPT_BYTES: usize = 64 * 1024;

thread_local! {
    /// Buffer for answers: most are compared, found unchanged, and discarded.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What has changed for a query.
#[derive(Clone, Copy)]
enum Change<'a> {
    /// Points of its series, as they were before; and anything else, unless `points_alone`.
    Noted { points: &'a NotedPoints, points_alone: bool },
    /// The time as of which it is answered: the new one, in microseconds since 1970.
    Time(u64),
}

impl Engine {
    /// Emits for the queries, and invalidates the client caches, that the commands under these
    /// locks have noted. Without a `moment`, when nothing was logged, queries emit nothing.
    #[cold]
    pub(crate) fn emit(&self, keys: &mut Keys<'_>, noted: Vec<Noted>, moment: Option<Moment>) {
        self.each_query(noted, moment, |query, change, is_heard, spending| {
            if let Some(moment) = moment {
                self.emit_within(keys, query, change, moment, is_heard, spending);
            }
        });
    }

    /// Emits for a query whose time moves to `as_of_us`. The caller has locked everything that it reads.
    pub(super) fn emit_at(&self, keys: &mut Keys<'_>, query: &SharedQuery, as_of_us: u64, moment: Moment) {
        let mut spending = Spending::begin(&self.registry().budget);
        self.emit_within(keys, query, Change::Time(as_of_us), moment, query.is_heard(), &mut spending);
    }

    /// Evaluates queries, those with listeners first, and notifies the clients that are noted. `emit`
    /// gets what has changed.
    fn each_query(
        &self,
        noted: Vec<Noted>,
        moment: Option<Moment>,
        mut emit: impl FnMut(&SharedQuery, Change<'_>, bool, &mut Spending<'_>),
    ) {
        let (mut is_everything, mut broadcasts) = (false, Vec::new());
        let (mut spending, mut unheard) = (Spending::begin(&self.registry().budget), Vec::new());
        let (noted, points) = split_points(noted);
        for noted in noted {
            match noted {
                Noted::Query(query) => {
                    let change = Change::Noted { points: &points, points_alone: query.leave_noted() };
                    if query.is_heard() {
                        emit(&query, change, true, &mut spending);
                    } else {
                        unheard.push((query, change));
                    }
                }
                Noted::Points { .. } => unreachable!("points are split off"),
                Noted::Key(changed) => self.invalidate(&changed, moment, &mut broadcasts),
                Noted::Everything => is_everything = true,
            }
        }
        unheard.iter().for_each(|(query, change)| emit(query, *change, false, &mut spending));
        if is_everything {
            self.invalidate_everything(moment);
        }
        // After all keys of the command or transaction, to send them together.
        broadcasts.iter().for_each(|broadcast| self.registry().broadcast(broadcast));
    }

    /// Locks all shards that a query reads.
    pub(super) fn keys_of(&self, reach: &Reach, read: &Read, now_us: u64) -> Keys<'_> {
        self.keys_for(reach, read, Access::Read, now_us)
    }

    /// Does the same as [`Engine::keys_of`], with the further locks that removing expired keys may
    /// need.
    pub(super) fn keys_to_expire(&self, reach: &Reach, read: &Read, now_us: u64) -> Keys<'_> {
        self.keys_for(reach, read, Access::Write, now_us)
    }

    fn keys_for(&self, reach: &Reach, read: &Read, access: Access, now_us: u64) -> Keys<'_> {
        let locked = match reach {
            Reach::One(index) => Locked::One(*index, self.keyspace().lock(*index)),
            Reach::Several(shards) => self.lock_shards(shards.iter().copied()),
            Reach::All => Locked::All(self.keyspace().lock_all()),
        };
        let locked = self.lock_reachable(locked, access, || read.keys().into_iter(), |_| false);
        self.keys(locked, read.db(), now_us)
    }

    /// Evaluates a query unless the budget is spent; makes it dormant if it is, or if the answer
    /// alone exceeds it.
    fn emit_within(
        &self,
        keys: &mut Keys<'_>,
        query: &SharedQuery,
        change: Change<'_>,
        moment: Moment,
        is_heard: bool,
        spending: &mut Spending<'_>,
    ) {
        if !spending.affords(is_heard) {
            return self.make_dormant(keys, query);
        }
        let beyond = Query::select(query, keys);
        if let Change::Time(as_of_us) = change {
            let mut state = query.lock();
            self.registry().saving.before_change(query, &state);
            state.set_as_of(as_of_us);
        }
        if query.read.emits_changes() {
            self.emit_change(keys, query, change, beyond.as_deref(), moment);
        } else {
            self.emit_one(keys, query, moment);
        }
        if spending.note(&query.cost, is_heard) {
            self.make_dormant(keys, query);
        }
    }

    fn emit_one(&self, keys: &mut Keys<'_>, query: &SharedQuery, moment: Moment) {
        let Moment { lsn, time_us, durable, spared: _ } = moment;
        self.registry().count_evaluated();
        let present = with_present_answer(keys, query, |state, answer| {
            if *state.answer == *answer {
                return None;
            }
            self.registry().saving.before_change(query, state);
            let answer = SharedBytes::from(answer);
            let before = Some(state.shown().clone());
            let replaced = std::mem::replace(&mut state.answer, answer.clone());
            let passed = match state.more.as_mut().and_then(|more| more.filtered.as_mut()) {
                None => Some(answer),
                Some(filtered) => filtered.filtering.apply(&answer, time_us).map(|shown| {
                    filtered.shown = SharedBytes::from(&shown[..]);
                    filtered.shown.clone()
                }),
            };
            self.registry().count(state, replaced.heap_bytes());
            let number = state.emissions.count() + 1 + u64::from(is_planted(Fault::EmissionNumber));
            let (is_change, answer) = (false, passed?);
            let emission = Emission { number, lsn, time_us, durable, before, is_change, answer };
            Some(self.add_emission(query, state, emission))
        });
        match present {
            Ok(None) => {}
            Ok(Some(bytes)) => self.registry().retention.add(query, time_us, bytes),
            // What it emits follows from the log, so a replay from the log can serve it.
            Err(_) => self.make_dormant(keys, query),
        }
    }

    /// Emits for a read that emits changes. If its rows are followed, those that the change concerns are
    /// read; otherwise, all of it is, and compared. `beyond` has the keys of series that it selects of which
    /// more than points may have changed, if it is known which.
    fn emit_change(
        &self,
        keys: &mut Keys<'_>,
        query: &SharedQuery,
        change: Change<'_>,
        beyond: Option<&[Beyond]>,
        moment: Moment,
    ) {
        let Moment { lsn, time_us, durable, spared: _ } = moment;
        self.registry().count_evaluated();
        let mut state = query.lock();
        self.registry().saving.before_change(query, &state);
        let as_of_us = state.as_of_us();
        let outcome = match (change, state.followed_mut(), beyond) {
            (Change::Noted { points, points_alone }, Some(followed), Some(beyond))
                if points_alone || query.selection().is_some() =>
            {
                query.read.follow(keys, followed.as_mut(), points, beyond)
            }
            (Change::Time(as_of_us), Some(followed), Some([])) => {
                query.read.slide(keys, followed.as_mut(), as_of_us)
            }
            _ => Ok(Outcome::Lost),
        };
        if query.selection().is_some() {
            let answer = state.answer.heap_bytes();
            self.registry().count(&mut state, answer);
        }
        let content = match outcome {
            Err(unreadable) => Err(unreadable),
            Ok(Outcome::Same) => Ok(None),
            Ok(Outcome::Changed(rows)) => Ok(Some((SharedBytes::from(&rows[..]), true))),
            Ok(Outcome::Lost) => {
                drop(state);
                let present = answered(keys, &query.read, as_of_us);
                state = query.lock();
                present.map(|present| self.replace(query, &mut state, present))
            }
        };
        let Ok(content) = content else {
            drop(state);
            // What it emits follows from the log, so a replay from the log can serve it.
            return self.make_dormant(keys, query);
        };
        let Some((answer, is_change)) = content else { return };
        let number = state.emissions.count() + 1 + u64::from(is_planted(Fault::EmissionNumber));
        let emission = Emission { number, lsn, time_us, durable, before: None, is_change, answer };
        let bytes = self.add_emission(query, &mut state, emission);
        drop(state);
        self.registry().retention.add(query, time_us, bytes);
    }

    /// Replaces what a query that emits changes keeps of its answer. Returns what to emit, and whether
    /// that is a change; `None` if the answer is the same.
    fn replace(&self, query: &Query, state: &mut State, present: Answered) -> Option<(SharedBytes, bool)> {
        let is_same = match (state.followed(), present.followed.as_deref()) {
            (Some(before), Some(after)) => before.digest() == after.digest(),
            (None, None) => *state.answer == *present.answer,
            _ => false,
        };
        if is_same {
            return None;
        }
        let compared = state.followed().is_none() && present.followed.is_none();
        let how = query.read.changing().filter(|_| compared);
        let change = how.and_then(|how| difference(&state.answer, &present.answer, query.read.protocol, how));
        let (answer, before) = (present.answer.clone(), state.answer.heap_bytes());
        state.keep(present);
        self.registry().count(state, before);
        Some(change.map_or((answer, false), |change| (SharedBytes::from(&change[..]), true)))
    }

    /// Adds an emission, and notifies the listeners. Returns the bytes that it takes.
    fn add_emission(&self, query: &SharedQuery, state: &mut State, emission: Emission) -> usize {
        let bytes = state.emissions.add(emission);
        if let Some(audience) = self.registry().audience.get() {
            state.listeners.notify(|listener| audience.notify(listener, query));
        }
        bytes
    }
}

/// Separates the points from what else is noted. Of several values before, the first is from before the
/// record.
fn split_points(noted: Vec<Noted>) -> (Vec<Noted>, NotedPoints) {
    let mut points = NotedPoints::new();
    if !noted.iter().any(|noted| matches!(noted, Noted::Points { .. })) {
        return (noted, points);
    }
    let mut rest = Vec::with_capacity(noted.len());
    for noted in noted {
        match noted {
            Noted::Points { db, key, before } => {
                let undo = points.entry((db, key)).or_default();
                for (time, value) in before {
                    undo.entry(time).or_insert(value);
                }
            }
            noted => rest.push(noted),
        }
    }
    (rest, points)
}

/// Answers a read, as of a time if it depends on one, and begins to follow its rows if they can be. The
/// caller has locked all shards within its reach.
///
/// # Errors
/// A block of a series cannot be read.
pub(super) fn answered(
    keys: &mut Keys<'_>,
    read: &Read,
    as_of_us: Option<u64>,
) -> Result<Answered, UnreadableBlock> {
    let answer = with_answer(keys, read, as_of_us, |answer| SharedBytes::from(answer))?;
    let is_error = answer.first() == Some(&b'-');
    let followed = if is_error { None } else { read.begin_following(keys, as_of_us)? };
    Ok(Answered { answer, followed, as_of_us })
}

impl Engine {
    /// Returns the latest emission of a query that emits changes, with the whole answer: for a
    /// subscriber that does not get all changes before it. `None` if there was no emission, the query is
    /// dormant, or a block of a series cannot be read. Costs the read itself.
    pub fn latest_whole(&self, query: &Query) -> Option<Emission> {
        let mut keys = self.keys_of(&query.reach(self.keyspace()), query.read(), 0);
        let (number, lsn, retained, as_of_us) = {
            let state = query.lock();
            let number = state.emissions.count();
            if query.is_dormant() || number == 0 {
                return None;
            }
            let retained = state.emissions.latest_after(number - 1).ok().flatten();
            (number, state.emissions.last(), retained, state.as_of_us())
        };
        let answer =
            with_answer(&mut keys, query.read(), as_of_us, |answer| SharedBytes::from(answer)).ok()?;
        // What is no longer retained was durable long ago, or waits like any other.
        let (time_us, durable) = retained.map_or((0, true), |latest| (latest.time_us, latest.durable));
        Some(Emission { number, lsn, time_us, durable, before: None, is_change: false, answer })
    }
}

/// Answers a query, from its key listing if it has one, and passes the answer to `look`. The caller
/// has locked all shards within its reach.
fn with_present_answer<R>(
    keys: &mut Keys<'_>,
    query: &Query,
    look: impl FnOnce(&mut State, &[u8]) -> Option<R>,
) -> Result<Option<R>, UnreadableBlock> {
    let mut state = query.lock();
    let Some(listing) = state.listing() else {
        let as_of_us = state.as_of_us();
        drop(state);
        return with_answer(keys, query.read(), as_of_us, |answer| look(&mut query.lock(), answer));
    };
    let db = keys.db();
    keys.select(query.read.db());
    let is_changed = listing.update(keys);
    keys.select(db);
    if !is_changed {
        return Ok(None);
    }
    let mut answer = Vec::new();
    listing.answer(query.read.protocol(), &mut answer);
    Ok(look(&mut state, &answer))
}

/// Executes a read, as of a time if it depends on one, and passes the answer to `look`. The caller has
/// locked all shards within its reach.
///
/// # Errors
/// A block of a series cannot be read.
pub(super) fn with_answer<R>(
    keys: &mut Keys<'_>,
    read: &Read,
    as_of_us: Option<u64>,
    look: impl FnOnce(&[u8]) -> R,
) -> Result<R, UnreadableBlock> {
    let mut buffer = SCRATCH.take();
    buffer.clear();
    let mut reply = Reply::with_buffer(buffer, read.protocol());
    let result = read.answer(keys, as_of_us, &mut reply).map(|()| look(reply.bytes()));
    let buffer = reply.take();
    if buffer.capacity() <= KEPT_BYTES {
        SCRATCH.set(buffer);
    }
    result
}
