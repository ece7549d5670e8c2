//! A subscription to a watched read, whoever serves it: a place in the sequence of a query's emissions.

use std::sync::Arc;
use tidemark_engine::Engine;
use tidemark_engine::query::{Emission, Gone, Query, Resumed};
use tidemark_log::Lsn;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Cursor {
    query: Arc<Query>,
    /// How the subscriber names it.
    name: Box<str>,
    /// The number of the query's emission that the subscription's own numbers begin behind.
    base: u64,
    /// The number of the last emission that the subscriber was given, or that it had when it began.
    seen: u64,
    /// That emission's LSN, or that of the answer.
    lsn: Lsn,
}

/// Why a subscription does not go on where it had got to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotResumed {
    /// Emissions at this LSN and before are gone, and not all of them had been seen.
    Stale(Lsn),
    /// What was seen last is beyond the end of the log, which is here.
    Invalid(Lsn),
    /// There is no such subscription.
    NotFound,
}

impl NotResumed {
    /// The word for it in every protocol.
    pub(crate) fn word(self) -> &'static str {
        match self {
            NotResumed::Stale(_) => "STALE_SEQUENCE",
            NotResumed::Invalid(_) => "INVALID_SEQUENCE",
            NotResumed::NotFound => "SUBSCRIPTION_NOT_FOUND",
        }
    }

    /// The LSN that goes with the word.
    pub(crate) fn lsn(self) -> Lsn {
        match self {
            NotResumed::Stale(floor) => floor,
            NotResumed::Invalid(head) => head,
            NotResumed::NotFound => Lsn::ZERO,
        }
    }
}

impl Cursor {
    /// A subscription that begins behind emission `number` of a query, with the answer as it was at `lsn`.
    pub(crate) fn new(query: Arc<Query>, number: u64, lsn: Lsn) -> Cursor {
        Cursor::behind(query, number, number, lsn)
    }

    /// A subscription whose first number is that behind `base`, and whose subscriber has the emissions up to `seen`.
    pub(crate) fn behind(query: Arc<Query>, base: u64, seen: u64, lsn: Lsn) -> Cursor {
        debug_assert!(base <= seen);
        let name = name(query.id(), base).into();
        Cursor { query, name, base, seen, lsn }
    }

    /// The subscription to `query` whose numbers begin behind `base`, as it goes on behind `lsn`; from now on `listener` is
    /// told of the query's emissions.
    pub(crate) fn resume(
        engine: &Engine,
        (query, base): (&Query, u64),
        lsn: Lsn,
        listener: usize,
    ) -> Result<Cursor, NotResumed> {
        let lsn = lsn.max(query.id());
        let (query, number) = resume_behind(engine, query.id(), lsn, listener)?;
        Ok(Cursor::behind(query, base, number.max(base), lsn))
    }

    /// The same under a name that the subscriber has given it.
    #[must_use]
    pub(crate) fn named(mut self, name: &str) -> Cursor {
        self.name = name.into();
        self
    }

    pub(crate) fn query(&self) -> &Arc<Query> {
        &self.query
    }

    /// The number that the subscription's own begin behind.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The LSN of the last emission that was given.
    pub(crate) fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// Its number among the subscription's own.
    pub(crate) fn sequence(&self) -> u64 {
        self.seen - self.base
    }

    /// How many emissions have not been given yet.
    pub(crate) fn lag(&self) -> u64 {
        self.query.count().saturating_sub(self.seen)
    }

    /// Notes that the subscriber has been given the answer that contains the emissions up to `number`.
    pub(crate) fn skip_to(&mut self, number: u64, lsn: Lsn) {
        (self.seen, self.lsn) = (number, lsn);
    }

    /// The next emissions, at most `most`, into `into`.
    pub(crate) fn next(&self, most: usize, into: &mut Vec<Emission>) -> Result<(), Gone> {
        self.query.emissions_after(self.seen, most, into)
    }

    /// The latest emission, if the subscriber has not got it.
    pub(crate) fn latest(&self) -> Result<Option<Emission>, Gone> {
        self.query.latest_after(self.seen)
    }

    /// Notes that the subscriber is given an emission: the next one, unless it wants the latest only.
    pub(crate) fn pass(&mut self, emission: &Emission) {
        debug_assert!(emission.number > self.seen, "emissions are given in order");
        (self.seen, self.lsn) = (emission.number, emission.lsn);
    }

    /// Whether the subscriber has been given the first `count` emissions of the query.
    pub(crate) fn has_all(&self, count: u64) -> bool {
        self.seen == count
    }
}

/// Query `id`, with the number of its last emission at `lsn` or before; from now on `listener` is told of the next ones.
pub(crate) fn resume_behind(
    engine: &Engine,
    id: Lsn,
    lsn: Lsn,
    listener: usize,
) -> Result<(Arc<Query>, u64), NotResumed> {
    match engine.resume(id, lsn, listener) {
        Resumed::Unknown => Err(NotResumed::NotFound),
        Resumed::Beyond(head) => Err(NotResumed::Invalid(head)),
        Resumed::Gone(gone) => Err(NotResumed::Stale(gone.floor)),
        Resumed::Behind { query, number } => Ok((query, number)),
    }
}

/// The name of a subscription to query `id` whose first number is that behind `base`. It says all that the server needs
/// to go on with it, so nothing is kept for a subscriber that is away.
fn name(id: Lsn, base: u64) -> String {
    format!("{id}-{base}")
}

/// What a name says; `None` if it is not one.
pub(crate) fn parse_name(name: &[u8]) -> Option<(Lsn, u64)> {
    let text = std::str::from_utf8(name).ok()?;
    let (id, base) = text.split_once('-')?;
    let (id, base) = (Lsn(id.parse().ok()?), base.parse().ok()?);
    // A number may be written in several ways; a subscription has one name.
    (self::name(id, base) == text).then_some((id, base))
}

/// The query of a name, and the number that the subscription's own begin behind.
pub(crate) fn find(engine: &Engine, name: &[u8]) -> Option<(Arc<Query>, u64)> {
    let (id, base) = parse_name(name)?;
    let query = engine.query(id)?;
    (base <= query.count()).then_some((query, base))
}

/// The query of a subscription of whatever name.
pub(crate) fn query_of(engine: &Engine, name: &[u8]) -> Option<Lsn> {
    match parse_name(name) {
        Some((query, _)) => Some(query),
        None => engine.named(name).map(|named| named.query.id()),
    }
}

/// Whether a query is that of a key, as its clients name it. One that names no key is that of any.
pub(crate) fn reads(query: &Query, key: &[u8]) -> bool {
    query.read().first_key().is_none_or(|first| first == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_the_query_and_where_its_numbers_begin() {
        assert_eq!(parse_name(name(Lsn(17), 3).as_bytes()), Some((Lsn(17), 3)));
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
