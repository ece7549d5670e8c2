//! A subscription's position in a query's emissions, independent of the transport.
//!
//! The cursor takes emissions from the query while the query retains the next ones. Below retention
//! they are replayed from the log ([`crate::subscription::replay_queue`]) until the query retains
//! the next one. Numbers are dense and the same in both, so nothing is missed or repeated at the
//! switch.

use crate::subscription::replay_buffer::{self, End, Notifier, ReplayBuffer, Taken};
use crate::subscription::replay_queue::{ReplayQueue, ReplayReason, ReplayStart};
use crate::subscription::resume_error::ResumeError;
use tidemark_engine::watch::{Emission, Gone, Query, Resumed, SharedQuery};
use tidemark_engine::{Engine, Reply};
use tidemark_log::Lsn;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Cursor {
    query: SharedQuery,
    /// Number of the query's emission before the subscription's first. The subscription's sequence
    /// numbers are relative to it.
    base: u64,
    /// Number of the last emission that the subscriber has.
    seen: u64,
    /// LSN of that emission, or of the answer that the subscription began with.
    lsn: Lsn,
    /// Replayed emissions, while the next one is below retention.
    buffer: Option<ReplayBuffer>,
}

/// Source of emissions below retention, and the subscriber's notification.
pub(crate) struct Older<'a> {
    pub(crate) replays: &'a ReplayQueue,
    /// Makes the callback that notifies the subscriber's transport of replayed emissions of a
    /// query.
    pub(crate) notifier: &'a (dyn Fn(Lsn) -> Notifier + Sync),
}

impl Older<'_> {
    fn begin(
        &self,
        reason: ReplayReason,
        query: &SharedQuery,
        wanted: ReplayStart,
        gone: Gone,
    ) -> Result<ReplayBuffer, ResumeError> {
        self.replays.begin(reason, query, wanted, gone.floor, (self.notifier)(query.id()))
    }

    /// Returns a buffer that stays empty, because the server stops.
    fn begin_none(&self, query: &Query) -> ReplayBuffer {
        replay_buffer::channel((self.notifier)(query.id())).1
    }
}

/// Position where a subscription resumes: after the emission with this number.
#[derive(Debug)]
pub(crate) struct ResumePosition {
    pub(crate) query: SharedQuery,
    pub(crate) number: u64,
    buffer: Option<ReplayBuffer>,
}

impl ResumePosition {
    /// Creates a place without a replay.
    pub(crate) fn new(query: SharedQuery, number: u64) -> ResumePosition {
        ResumePosition { query, number, buffer: None }
    }

    /// The same place for another connection, without the replay, whose notifications go to the
    /// connection that requested it.
    pub(crate) fn for_another(self) -> ResumePosition {
        ResumePosition::new(self.query, self.number)
    }
}

/// Outcome of a request to resume.
#[derive(Debug)]
pub(crate) enum Resuming {
    /// The subscription resumes here.
    Found(ResumePosition),
    /// The place is being searched in the log.
    PendingResumption(Search),
}

/// The search for a place in the log.
#[derive(Debug)]
pub(crate) struct Search {
    query: SharedQuery,
    buffer: ReplayBuffer,
}

/// State of a search.
#[derive(Debug)]
pub(crate) enum Searched {
    /// Not finished; the subscriber is notified.
    NotYet(Search),
    /// Finished.
    Done(Result<ResumePosition, ResumeError>),
}

impl Search {
    /// Checks whether the place is known. If so, `listener` is notified of the query's emissions
    /// from now on.
    pub(crate) fn look(self, engine: &Engine, listener: usize) -> Searched {
        let Search { query, buffer } = self;
        match buffer.place() {
            None => Searched::NotYet(Search { query, buffer }),
            Some(Err(end)) => Searched::Done(Err(end.into())),
            Some(Ok(number)) => Searched::Done(match engine.listen(query.id(), listener) {
                // The query was removed, because it had no listener for too long.
                None => Err(ResumeError::NotFound),
                Some(_) => Ok(ResumePosition { query, number, buffer: Some(buffer) }),
            }),
        }
    }
}

impl Cursor {
    /// Creates a cursor after emission `number` of a query, with the answer as of `lsn`.
    pub(crate) fn new(query: SharedQuery, number: u64, lsn: Lsn) -> Cursor {
        Cursor::behind(query, number, number, lsn)
    }

    /// Creates a cursor whose sequence numbers begin after `base`, and whose subscriber has the
    /// emissions up to `seen`.
    pub(crate) fn behind(query: SharedQuery, base: u64, seen: u64, lsn: Lsn) -> Cursor {
        assert!(
            base <= seen,
            "a subscription whose numbers begin behind {base} would be behind emission {seen}"
        );
        Cursor { query, base, seen, lsn, buffer: None }
    }

    /// Resumes, at a place after `lsn`, a subscription whose sequence numbers begin after `base`.
    pub(crate) fn at(place: ResumePosition, base: u64, lsn: Lsn) -> Cursor {
        let ResumePosition { query, number, buffer } = place;
        let lsn = lsn.max(query.id());
        Cursor { buffer, ..Cursor::behind(query, base, number.max(base), lsn) }
    }

    pub(crate) fn query(&self) -> &SharedQuery {
        &self.query
    }

    /// The current position.
    pub(crate) fn place(&self) -> ResumePosition {
        ResumePosition::new(self.query.clone(), self.seen)
    }

    /// A copy at the same position, without the replay.
    pub(crate) fn here(&self) -> Cursor {
        Cursor::behind(self.query.clone(), self.base, self.seen, self.lsn)
    }

    /// Number of the query's emission before the subscription's first.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// The generated name of the subscription, for clients that chose none. Computed on each call.
    pub(crate) fn name(&self) -> Name {
        Name::new(self.query.id(), self.base)
    }

    /// Writes that name without building a [`Name`]. Hot: every emission contains it.
    pub(crate) fn write_name(&self, reply: &mut Reply) {
        let (mut first, mut second) = (itoa::Buffer::new(), itoa::Buffer::new());
        reply.bulk_of(name_parts(self.query.id(), self.base, &mut first, &mut second));
    }

    /// LSN of the last emission that the subscriber has.
    pub(crate) fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// Sequence number of the last emission that the subscriber has.
    pub(crate) fn sequence(&self) -> u64 {
        self.seen - self.base
    }

    /// Number of emissions that the subscriber does not have yet.
    pub(crate) fn lag(&self) -> u64 {
        self.query.count().saturating_sub(self.seen)
    }

    /// Moves to emission `number` at `lsn`, whose answer the subscriber has been given.
    pub(crate) fn skip_to(&mut self, number: u64, lsn: Lsn) {
        assert!(
            number >= self.base,
            "emission {number} is before the subscription, which begins behind {}",
            self.base
        );
        (self.seen, self.lsn) = (number, lsn);
        self.buffer = None;
    }

    /// Whether the next emissions are being replayed from the log.
    pub(crate) fn is_behind_retention(&self) -> bool {
        self.buffer.is_some()
    }

    /// Whether emissions come from a replay, now or soon, because the query does not retain or
    /// evaluate them.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind_retention() || self.query.is_dormant()
    }

    /// Appends the next emissions, at most `most`, to `into`. If none is available from a replay
    /// yet, the subscriber is notified later.
    pub(crate) fn next(
        &mut self,
        most: usize,
        into: &mut Vec<Emission>,
        older: &Older<'_>,
    ) -> Result<(), Gone> {
        self.check_goes_on()?;
        loop {
            match self.query.emissions_after(self.seen, most, into) {
                Ok(()) => {
                    self.buffer = None;
                    return Ok(());
                }
                Err(gone) => {
                    let next = |buffer: &ReplayBuffer, after, into: &mut _| buffer.take(after, most, into);
                    if self.take_older(next, into, gone, older)? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Returns the latest emission, if the subscriber does not have it. If it is a change, and others
    /// before it are left out, it has the whole answer.
    pub(crate) fn latest(&mut self, older: &Older<'_>, engine: &Engine) -> Result<Option<Emission>, Gone> {
        self.check_goes_on()?;
        if self.query.read().emits_changes() {
            return self.latest_change(older, engine);
        }
        loop {
            match self.query.latest_after(self.seen) {
                Ok(latest) => {
                    self.buffer = None;
                    return Ok(latest);
                }
                Err(gone) => {
                    let mut made = Vec::new();
                    let latest = |buffer: &ReplayBuffer, after, made: &mut _| buffer.latest(after, made);
                    if self.take_older(latest, &mut made, gone, older)? {
                        return Ok(made.pop());
                    }
                }
            }
        }
    }

    /// As [`Cursor::latest`], for a query that emits changes. While they are replayed from the log, none
    /// is left out: only the present answer can be read.
    fn latest_change(&mut self, older: &Older<'_>, engine: &Engine) -> Result<Option<Emission>, Gone> {
        if let Ok(latest) = self.query.latest_after(self.seen) {
            let Some(latest) = latest else { return Ok(None) };
            if latest.number == self.seen + 1 || !latest.is_change {
                return Ok(Some(latest));
            }
            if let Some(whole) = engine.latest_whole(&self.query) {
                self.buffer = None;
                return Ok(Some(whole));
            }
        }
        let mut next = Vec::new();
        self.next(1, &mut next, older)?;
        Ok(next.pop())
    }

    /// Fails if an operator has ended the query.
    fn check_goes_on(&self) -> Result<(), Gone> {
        if self.query.has_ended() { Err(Gone { floor: self.lsn }) } else { Ok(()) }
    }

    /// Takes replayed emissions. Returns `false` if the query may retain the next one.
    fn take_older(
        &mut self,
        take: impl FnOnce(&ReplayBuffer, u64, &mut Vec<Emission>) -> Taken,
        into: &mut Vec<Emission>,
        gone: Gone,
        older: &Older<'_>,
    ) -> Result<bool, Gone> {
        let Some(buffer) = &self.buffer else {
            let begun = match older.begin(
                ReplayReason::Slow,
                &self.query,
                ReplayStart::After(self.seen, self.lsn),
                gone,
            ) {
                Err(_) if older.replays.is_stopping() => older.begin_none(&self.query),
                begun => begun.map_err(|_| gone)?,
            };
            self.buffer = Some(begun);
            return Ok(true);
        };
        match take(buffer, self.seen, into) {
            Taken::Some | Taken::Later => Ok(true),
            Taken::End(End::Done) => {
                // The query retained the next emission when the replay ended. If it no longer does,
                // the next call begins another replay.
                self.buffer = None;
                Ok(false)
            }
            Taken::End(End::Stale(floor)) => Err(Gone { floor }),
            // Nothing is lost: the emissions are in the log after the restart.
            Taken::End(End::Stopping) if older.replays.is_stopping() => Ok(true),
            Taken::End(End::Stopping) => Err(gone),
        }
    }

    /// Advances to the next emission.
    ///
    /// # Panics
    /// If it is not the next one: the numbers of delivered emissions are dense.
    pub(crate) fn pass(&mut self, emission: &Emission) {
        assert!(
            emission.number == self.seen + 1,
            "emission {} of query {} would follow emission {}",
            emission.number,
            self.query.id(),
            self.seen
        );
        (self.seen, self.lsn) = (emission.number, emission.lsn);
    }

    /// Advances to the latest emission, for subscribers that take only that.
    pub(crate) fn pass_latest(&mut self, emission: &Emission) {
        assert!(
            emission.number > self.seen,
            "emission {} of query {} would come after emission {}",
            emission.number,
            self.query.id(),
            self.seen
        );
        (self.seen, self.lsn) = (emission.number, emission.lsn);
    }

    /// Whether the subscriber has the first `count` emissions of the query.
    pub(crate) fn has_all(&self, count: u64) -> bool {
        self.seen == count
    }
}

/// Finds where a subscription to query `id` resumes. From then on `listener` is notified of the
/// query's emissions.
pub(crate) fn resume(
    engine: &Engine,
    id: Lsn,
    wanted: ReplayStart,
    listener: usize,
    older: &Older<'_>,
) -> Result<Resuming, ResumeError> {
    let resumed = match wanted {
        ReplayStart::Behind(lsn) => engine.resume(id, lsn, listener),
        ReplayStart::After(number, _) => engine.resume_after(id, number, listener),
    };
    match resumed {
        Resumed::Unknown => Err(ResumeError::NotFound),
        Resumed::Beyond(head) => Err(ResumeError::Invalid(head)),
        Resumed::Behind { query, number } => Ok(Resuming::Found(ResumePosition::new(query, number))),
        Resumed::Gone(gone) if wanted.lsn() < id => Err(ResumeError::Stale(gone.floor)),
        Resumed::Gone(gone) => {
            let query = engine.query(id).ok_or(ResumeError::NotFound)?;
            let buffer = older.begin(ReplayReason::Resumption, &query, wanted, gone)?;
            Ok(Resuming::PendingResumption(Search { query, buffer }))
        }
    }
}

/// Generated name of a subscription: its query's id and its base. It contains all that the server
/// needs to resume, so the server stores nothing for a disconnected subscriber.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    bytes: [u8; NAME_BYTES],
    len: usize,
}

/// Longest name: two 64-bit numbers and the hyphen. Bytes.
const NAME_BYTES: usize = 20 + 1 + 20;

impl Name {
    fn new(id: Lsn, base: u64) -> Name {
        let mut name = Name { bytes: [0; NAME_BYTES], len: 0 };
        let (mut first, mut second) = (itoa::Buffer::new(), itoa::Buffer::new());
        for part in name_parts(id, base, &mut first, &mut second) {
            name.bytes[name.len..name.len + part.len()].copy_from_slice(part);
            name.len += part.len();
        }
        name
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// The name as text.
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("a name consists of digits and a hyphen")
    }
}

/// The parts of a name.
fn name_parts<'b>(
    id: Lsn,
    base: u64,
    first: &'b mut itoa::Buffer,
    second: &'b mut itoa::Buffer,
) -> [&'b [u8]; 3] {
    [first.format(id.0).as_bytes(), b"-", second.format(base).as_bytes()]
}

/// Parses a name into query id and base; `None` if it is not a generated name.
pub(crate) fn parse_name(name: &[u8]) -> Option<(Lsn, u64)> {
    let text = std::str::from_utf8(name).ok()?;
    let (id, base) = text.split_once('-')?;
    let (id, base) = (Lsn(id.parse().ok()?), base.parse().ok()?);
    // Only the canonical spelling: a subscription has one name.
    (Name::new(id, base).as_bytes() == name).then_some((id, base))
}

/// Finds the query of a name, and the base of its sequence numbers.
pub(crate) fn find(engine: &Engine, name: &[u8]) -> Option<(SharedQuery, u64)> {
    let (id, base) = parse_name(name)?;
    let query = engine.query(id)?;
    (base <= query.count()).then_some((query, base))
}

/// Returns the query of a subscription, by generated or chosen name.
pub(crate) fn query_of(engine: &Engine, name: &[u8]) -> Option<Lsn> {
    match parse_name(name) {
        Some((query, _)) => Some(query),
        None => engine.named(name).map(|named| named.query.id()),
    }
}

/// Whether a query reads `key`. A query without keys matches every key.
pub(crate) fn reads(query: &Query, key: &[u8]) -> bool {
    query.read().first_key().is_none_or(|first| first == key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tidemark_engine::watch::{Filter, Read, RetentionLimits, Subscribed};
    use tidemark_engine::{Call, Protocol, command};
    use tidemark_log::{Log, MemoryStorage, Options};

    /// Returns a watched `GET k` that has emitted `count` times since.
    fn emitted(count: u8) -> (Engine, Subscribed) {
        let options = Options { segment_bytes: Options::SEGMENT_BYTES_MIN, ..Options::default() };
        let (log, _) = Log::open(Arc::new(MemoryStorage::new()), options).expect("an empty log");
        let engine = Engine::new(Arc::new(log), 4, 1);
        engine.limit_retention(RetentionLimits { age_us: 1, ..RetentionLimits::default() });
        let words: [&[u8]; 2] = [b"GET", b"k"];
        let read = Read::new(0, Protocol::Resp3, &words, Filter::default()).expect("a read");
        let subscribed = engine.subscribe(read, 0, 1).expect("the log takes it");
        for value in 0..count {
            let args: [&[u8]; 3] = [b"SET", b"k", &[b'a' + value]];
            let command = command::resolve(&args).expect("a command");
            let call = Call { command, args: &args, db: 0, now_us: 1 };
            engine.execute(&call, &mut Reply::new(Protocol::Resp3));
        }
        (engine, subscribed)
    }

    /// Returns a watched `GET k` with one emission that is no longer retained.
    fn forgotten_emission() -> Subscribed {
        let (engine, subscribed) = emitted(1);
        engine.forget_watched(10);
        subscribed
    }

    /// Returns a cursor, and the second emission after it.
    fn second() -> (Cursor, Emission) {
        let (_engine, subscribed) = emitted(2);
        let mut emissions = Vec::new();
        subscribed.query.emissions_after(subscribed.number, 8, &mut emissions).expect("all are retained");
        assert_eq!(emissions.len(), 2);
        let cursor = Cursor::new(subscribed.query, subscribed.number, subscribed.lsn);
        (cursor, emissions.pop().expect("the second"))
    }

    #[test]
    #[should_panic(expected = "emission 2 of query 1 would follow emission 0")]
    fn a_gap_in_what_a_subscriber_is_given_stops_the_process() {
        let (mut cursor, second) = second();
        cursor.pass(&second);
    }

    #[test]
    #[should_panic(expected = "emission 2 of query 1 would come after emission 2")]
    fn an_emission_that_is_given_twice_stops_the_process() {
        let (mut cursor, second) = second();
        cursor.pass_latest(&second);
        assert_eq!(cursor.sequence(), 2, "a subscriber to the latest is given no others");
        cursor.pass_latest(&second);
    }

    #[test]
    fn a_stopping_server_sends_no_stale_notice() {
        let (subscribed, (engine, _)) = (forgotten_emission(), emitted(0));
        let cursor = || Cursor::new(subscribed.query.clone(), subscribed.number, subscribed.lsn);
        let (mut before, mut behind) = (cursor(), cursor());
        let (replays, notifier) = (ReplayQueue::new(1), |_| -> Notifier { Box::new(|| {}) });
        let older = Older { replays: &replays, notifier: &notifier };
        let next = |cursor: &mut Cursor| {
            let mut emissions = Vec::new();
            cursor.next(8, &mut emissions, &older).map(|()| emissions.len())
        };
        assert_eq!(next(&mut before), Ok(0), "it waits for its turn");
        replays.stop();
        for cursor in [&mut before, &mut behind] {
            assert_eq!((next(cursor), next(cursor)), (Ok(0), Ok(0)));
            assert!(cursor.is_behind_retention(), "it has not caught up");
            assert_eq!(cursor.latest(&older, &engine).map(|latest| latest.is_none()), Ok(true));
        }
    }

    #[test]
    fn a_slow_reader_waits_for_its_turn_however_many_do() {
        let subscribed = forgotten_emission();
        let (replays, gone) = (ReplayQueue::new(1), Gone { floor: subscribed.lsn });
        let begin = || {
            replays.begin(
                ReplayReason::Resumption,
                &subscribed.query,
                ReplayStart::Behind(subscribed.lsn),
                gone.floor,
                Box::new(|| {}),
            )
        };
        let fill = || -> Vec<ReplayBuffer> { std::iter::from_fn(|| begin().ok()).take(100_000).collect() };
        let mut waiting = fill();
        let most = waiting.len();
        assert!(most < 100_000 && begin().is_err(), "a resuming subscriber is asked to try again");
        waiting.truncate(1);
        let come = (0..most).filter_map(|_| begin().ok()).count();
        assert!(come > most / 2, "subscribers that leave make room without having had their turn: {come}");

        let notifier = |_| -> Notifier { Box::new(|| {}) };
        let older = Older { replays: &replays, notifier: &notifier };
        let slow = || {
            let mut slow = Cursor::new(subscribed.query.clone(), subscribed.number, subscribed.lsn);
            assert_eq!(slow.next(8, &mut Vec::new(), &older), Ok(()), "nothing is gone");
            assert!(slow.is_behind_retention());
            slow
        };
        let many: Vec<Cursor> = (0..2 * most).map(|_| slow()).collect();
        assert!((0..most).any(|_| begin().is_ok()), "slow subscribers prevent no resumption");
        assert!(replays.figures().1 > many.len());
    }

    #[test]
    fn resumed_and_slow_subscribers_alternate() {
        let subscribed = forgotten_emission();
        let (replays, wanted) = (ReplayQueue::new(1), ReplayStart::After(subscribed.number, subscribed.lsn));
        let back = ReplayStart::Behind(subscribed.lsn);
        let notifier = || -> Notifier { Box::new(|| {}) };
        let begin = || replays.begin(ReplayReason::Resumption, &subscribed.query, back, Lsn(1), notifier());
        let go_on = || replays.begin(ReplayReason::Slow, &subscribed.query, wanted, Lsn(1), notifier());
        let waiting = [begin(), begin(), go_on(), go_on(), go_on()];
        assert!(waiting.iter().all(Result::is_ok));
        let turns: Vec<ReplayStart> = (0..5).filter_map(|_| replays.next().map(|job| job.wanted)).collect();
        assert_eq!(turns, [back, wanted, back, wanted, wanted]);
    }

    #[test]
    fn a_name_says_the_query_and_where_its_numbers_begin() {
        assert_eq!(parse_name(Name::new(Lsn(17), 3).as_bytes()), Some((Lsn(17), 3)));
        for other in [
            "",
            "-",
            "17",
            "17-",
            "-3",
            "017-3",
            "17-03",
            "+17-3",
            "17-3-1",
            "17-3 ",
            "a-b",
            "99999999999999999999-0",
        ] {
            assert_eq!(parse_name(other.as_bytes()), None, "{other:?}");
        }
        assert_eq!(parse_name(b"1-\xff"), None);
    }
}
