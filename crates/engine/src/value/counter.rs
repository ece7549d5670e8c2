//! Counters: positions that move in memory, and of whose ups and downs only the net reaches the log.
//!
//! What the log has of a counter is its terms, its limit and *D*, the position that was committed last. *A*, which lies between that
//! and the true position, is volatile: neither a snapshot nor a digest nor a copy has it.
//!
//! Of an exact counter the log has a bound of *A* too. The counter may lie below *D* by at most its *allowance*; a crash turns the
//! allowance into *doubt*: units that *D* counts as used, and that may never have been granted. Every record says what both come to
//! together, so the doubt of all crashes is known, and an allowance is at most what is left of the block beside it: all crashes together
//! leave at most one block in doubt.

use crate::persist::record::{Cursor, put_varint};
use std::cell::RefCell;
use std::sync::Arc;
use tidemark_counter::{Account, Kind, MAX, Promise};
use tidemark_log::Lsn;
use xxhash_rust::xxh3::xxh3_64;

/// Says that there is no limit.
const NO_LIMIT: i64 = -1;

const RELAXED: u8 = 0;
const EXACT: u8 = 1;
/// Added to the code of the promise if the counter leaves when it is idle.
const LEAVES: u8 = 2;
/// Added to the code of the promise if units in doubt are given back after a time.
const SETTLES: u8 = 4;
/// Added to the code of the promise if units are in doubt.
const DOUBTED: u8 = 8;

/// How a counter is committed. Most counters of a server have the same terms, and share them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// What a crash may do to it.
    pub promise: Promise,
    /// So many uncommitted units the command commits itself that made them so many. Units, 1 to the promise's; without meaning where
    /// the promise is exact.
    pub high: u64,
    /// So many uncommitted units are committed at the next interval. Units, 1 to `high`; without meaning where the promise is exact.
    pub low: u64,
    /// How long less than that may stay uncommitted, and how long what is reserved may stay unused. Milliseconds, at least 1.
    pub max_age_ms: u64,
    /// The counter is deleted when no command has used it for so long. Milliseconds; 0: it stays.
    pub idle_ms: u64,
    /// Units that a crash left in doubt are given back so long after the start. Milliseconds; 0: they stay counted as used, as they
    /// do where the promise is not exact.
    pub settle_ms: u64,
}

impl Terms {
    /// Whether the numbers are in their ranges.
    pub(crate) fn are_sound(&self) -> bool {
        let max = MAX.unsigned_abs();
        let slack = match self.promise {
            Promise::Relaxed { cap } => cap,
            Promise::Exact { block } => block,
        };
        (1..=max).contains(&slack)
            && (1..=slack).contains(&self.high)
            && (1..=self.high).contains(&self.low)
            && (1..=max).contains(&self.max_age_ms)
            && self.idle_ms <= max
            && self.settle_ms <= max
    }

    /// The same terms in one place, if this thread has made equal ones last.
    fn shared(self) -> Arc<Self> {
        thread_local! {
            static LAST: RefCell<Option<Arc<Terms>>> = const { RefCell::new(None) };
        }
        LAST.with_borrow_mut(|last| match last {
            Some(last) if **last == self => Arc::clone(last),
            _ => Arc::clone(last.insert(Arc::new(self))),
        })
    }
}

/// A counter's books between two commands. One of `Object`'s smallest values: see the size that is asserted below.
#[derive(Debug)]
pub struct Counter {
    /// *D*. Within ±[`MAX`].
    durable: i64,
    /// *A*. The sum of both is within ±[`MAX`].
    open: i64,
    /// 0 to [`MAX`], or [`NO_LIMIT`].
    limit: i64,
    terms: Arc<Terms>,
    /// What is known of its next commit, while it is listed for one, and of its lease.
    listing: Option<Box<Listing>>,
}

const _: () = assert!(size_of::<Counter>() <= 40, "a counter must not make all objects larger");

/// When a counter is to be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listing {
    /// When the first change came that is not committed; of an exact counter, when it moved last. Milliseconds since 1970.
    pub(crate) since_ms: u64,
    /// Where it stands in its database's list of those that are to be looked at; 0: not in the list. Milliseconds since 1970.
    pub(crate) due_ms: u64,
    /// The record that committed it last, if what it does may be told only when that is durable; [`Lsn::ZERO`] otherwise.
    pub(crate) lease: Lsn,
    /// Of an exact counter, by how many units its commits have gone up since this process began with it: see
    /// [`Counter::earned_block`].
    pub(crate) reserved: u64,
    /// Of an exact counter, how far below *D* its position may lie. Units.
    pub(crate) allowance: u64,
    /// Units that crashes left in doubt. With `allowance`, what the log has.
    pub(crate) doubt: u64,
    /// When this process first looked at what is in doubt; 0: not yet. Milliseconds since 1970.
    pub(crate) doubted_ms: u64,
}

impl Listing {
    /// One that says nothing yet.
    fn begun(since_ms: u64) -> Self {
        let (due_ms, lease) = (0, Lsn::ZERO);
        Self { since_ms, due_ms, lease, reserved: 0, allowance: 0, doubt: 0, doubted_ms: 0 }
    }

    /// Units that are in doubt if the process dies now, which is what the log has.
    pub(crate) fn logged_doubt(&self) -> u64 {
        self.doubt.saturating_add(self.allowance)
    }
}

/// An exact counter reserves by a block of at most its grants since the process began, divided by this. Half of a block lies ahead of
/// the position, so a crash takes at most a 16th of those grants from a quota.
const EARNED_DIVISOR: u64 = 8;

impl Counter {
    /// A counter at 0.
    pub fn new(kind: Kind, terms: Terms) -> Self {
        assert!(terms.are_sound(), "the terms of a counter are out of range: {terms:?}");
        Self { durable: 0, open: 0, limit: limit_of(kind), terms: terms.shared(), listing: None }
    }

    /// Whether it has a limit.
    #[inline]
    pub fn kind(&self) -> Kind {
        if self.limit == NO_LIMIT { Kind::Plain } else { Kind::Quota { limit: self.limit } }
    }

    /// Changes the limit. What was admitted stays admitted.
    pub(crate) fn set_kind(&mut self, kind: Kind) {
        self.limit = limit_of(kind);
    }

    /// How it is committed.
    #[inline]
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Changes how it is committed. Nothing may be open, so that any promise holds.
    pub(crate) fn set_terms(&mut self, terms: Terms) {
        assert!(self.is_committed() && terms.are_sound(), "{terms:?} are to be the terms of {self:?}");
        self.terms = terms.shared();
        if let Promise::Relaxed { .. } = self.terms.promise {
            self.apply_doubt(0);
        }
    }

    /// The block by which an exact counter reserves now. It grows with the grants since the process began, so a crash soon after a start
    /// costs nothing; and it is never more than what crashes have left of the block of its terms. 0 to that; 0 for a relaxed counter.
    pub(crate) fn earned_block(&self) -> u64 {
        let Promise::Exact { block } = self.terms.promise else { return 0 };
        let (reserved, doubt) =
            self.listing.as_ref().map_or((0, 0), |listing| (listing.reserved, listing.doubt));
        (reserved / EARNED_DIVISOR).min(block.saturating_sub(doubt))
    }

    /// How far below *D* an exact counter's position may lie. Units.
    #[inline]
    pub(crate) fn allowance(&self) -> u64 {
        self.listing.as_ref().map_or(0, |listing| listing.allowance)
    }

    /// Units that crashes have left in doubt: a client sees those of earlier processes, a watched read what the log has.
    pub(crate) fn doubt(&self, is_logged: bool) -> u64 {
        let doubt = |listing: &Listing| if is_logged { listing.logged_doubt() } else { listing.doubt };
        self.listing.as_deref().map_or(0, doubt)
    }

    /// Notes what is in doubt after a commit, and how far below *D* the position may lie until the next. Of a quota no more can be in doubt
    /// than it stands at. Whether the log has to be told.
    pub(crate) fn set_doubt(&mut self, doubt: u64, allowance: u64) -> bool {
        if doubt == 0 && allowance == 0 && self.doubt(true) == 0 {
            return false;
        }
        let Promise::Exact { block } = self.terms.promise else {
            panic!("{doubt} and {allowance} units are to be in doubt of {self:?}, which is not exact");
        };
        let most =
            if self.limit == NO_LIMIT { u64::MAX } else { (self.durable + self.open).max(0).unsigned_abs() };
        let listing = self.listing.get_or_insert_with(|| Box::new(Listing::begun(0)));
        let before = listing.logged_doubt();
        (listing.doubt, listing.allowance) = (doubt.min(most), allowance);
        if listing.doubt == 0 {
            listing.doubted_ms = 0;
        }
        let after = listing.logged_doubt();
        assert!(
            allowance == 0 || after <= block,
            "{doubt} units are in doubt, and {allowance} more may be, of a block of {block}"
        );
        before != after
    }

    /// Takes what the log says to be in doubt; whether that is another number than before.
    pub(crate) fn apply_doubt(&mut self, doubt: u64) -> bool {
        let before = self.doubt(true);
        if doubt > 0 || self.listing.is_some() {
            let listing = self.listing.get_or_insert_with(|| Box::new(Listing::begun(0)));
            (listing.doubt, listing.allowance) = (doubt, 0);
        }
        before != doubt
    }

    /// Whether units are in doubt that are to be given back after a time.
    pub(crate) fn settles(&self) -> bool {
        self.terms.settle_ms > 0 && self.doubt(false) > 0
    }

    /// When what is in doubt is to be given back, if it ever is; from `now_ms` on if nobody has looked at it yet.
    pub(crate) fn settle_at(&mut self, now_ms: u64) -> Option<u64> {
        let settle_ms = self.terms.settle_ms;
        let listing = self.listing.as_mut().filter(|listing| settle_ms > 0 && listing.doubt > 0)?;
        if listing.doubted_ms == 0 {
            listing.doubted_ms = now_ms.max(1);
        }
        Some(listing.doubted_ms.saturating_add(settle_ms))
    }

    /// Whether the log has all there is to say: nothing is open, and nothing may become open before the next record.
    pub(crate) fn is_committed(&self) -> bool {
        self.open == 0 && self.allowance() == 0
    }

    /// The books as they are.
    #[inline]
    pub fn account(&self) -> Account {
        let promise = match self.terms.promise {
            Promise::Exact { .. } => Promise::Exact { block: self.allowance() },
            relaxed @ Promise::Relaxed { .. } => relaxed,
        };
        Account::resume(self.kind(), promise, self.durable, self.open)
    }

    /// The books as the log has them: everything is committed.
    pub fn logged_account(&self) -> Account {
        Account::resume(self.kind(), self.terms.promise, self.durable, 0)
    }

    /// Writes down what the books have become.
    #[inline]
    pub(crate) fn set_books(&mut self, durable: i64, open: i64) {
        let is_in_range = |at: i64| (-MAX..=MAX).contains(&at);
        assert!(
            is_in_range(durable) && durable.checked_add(open).is_some_and(is_in_range),
            "a counter is to be at {durable} in the log and {open} further, which is beyond {MAX}"
        );
        self.durable = durable;
        self.open = open;
    }

    /// *D*: the position as the log has it.
    #[inline]
    pub fn durable(&self) -> i64 {
        self.durable
    }

    /// *A*: what the log has not been told of; of an exact counter what is reserved and unused, negative.
    #[inline]
    pub fn open(&self) -> i64 {
        self.open
    }

    /// Whether what is uncommitted is to be committed at the next interval.
    #[inline]
    pub(crate) fn is_ripe(&self) -> bool {
        matches!(self.terms.promise, Promise::Relaxed { .. }) && self.open.unsigned_abs() >= self.terms.low
    }

    /// When it is to be committed, if it is known.
    #[inline]
    pub(crate) fn listing(&self) -> Option<&Listing> {
        self.listing.as_deref()
    }

    /// As [`Counter::listing`], to change it.
    #[inline]
    pub(crate) fn listing_mut(&mut self) -> Option<&mut Listing> {
        self.listing.as_deref_mut()
    }

    /// As [`Counter::listing_mut`]; begun at `now_ms` if nothing is known.
    #[inline]
    pub(crate) fn begin_listing(&mut self, now_ms: u64) -> &mut Listing {
        self.listing.get_or_insert_with(|| Box::new(Listing::begun(now_ms)))
    }

    /// Forgets when it is to be committed, unless a lease or what is in doubt has to be remembered.
    pub(crate) fn end_listing(&mut self) {
        self.listing.take_if(|listing| listing.lease == Lsn::ZERO && listing.logged_doubt() == 0);
        if let Some(listing) = &mut self.listing {
            listing.due_ms = 0;
        }
    }

    /// Appends the snapshot form.
    pub(crate) fn encode(&self, into: &mut Vec<u8>) {
        let (code, slack) = match self.terms.promise {
            Promise::Relaxed { cap } => (RELAXED, cap),
            Promise::Exact { block } => (EXACT, block),
        };
        let terms = &self.terms;
        // What is 0 is left out.
        let optional = [(LEAVES, terms.idle_ms), (SETTLES, terms.settle_ms), (DOUBTED, self.doubt(true))];
        let optional = optional.iter().filter(|(_, number)| *number > 0);
        into.push(optional.clone().fold(code, |code, (bit, _)| code | bit));
        for number in [slack, terms.high, terms.low, terms.max_age_ms] {
            put_varint(into, number);
        }
        for (_, number) in optional {
            put_varint(into, *number);
        }
        into.extend_from_slice(&self.limit.to_le_bytes());
        into.extend_from_slice(&self.durable.to_le_bytes());
    }

    /// Reads the snapshot form; `None` if the bytes are not one.
    pub(crate) fn decode(bytes: &mut Cursor<'_>) -> Option<Self> {
        let code = bytes.u8()?;
        let slack = bytes.varint()?;
        let promise = match code & !(LEAVES | SETTLES | DOUBTED) {
            RELAXED => Promise::Relaxed { cap: slack },
            EXACT => Promise::Exact { block: slack },
            _ => return None,
        };
        let (high, low, max_age_ms) = (bytes.varint()?, bytes.varint()?, bytes.varint()?);
        let mut optional = |bit: u8| {
            if code & bit == 0 { Some(0) } else { bytes.varint().filter(|number| *number > 0) }
        };
        let (idle_ms, settle_ms, doubt) = (optional(LEAVES)?, optional(SETTLES)?, optional(DOUBTED)?);
        let terms = Terms { promise, high, low, max_age_ms, idle_ms, settle_ms };
        let (limit, durable) = (bytes.u64()?.cast_signed(), bytes.u64()?.cast_signed());
        let is_sound = terms.are_sound()
            && (NO_LIMIT..=MAX).contains(&limit)
            && (-MAX..=MAX).contains(&durable)
            && doubt <= if matches!(promise, Promise::Exact { .. }) { MAX.unsigned_abs() } else { 0 };
        is_sound.then(|| {
            let mut counter = Self { durable, open: 0, limit, terms: terms.shared(), listing: None };
            counter.apply_doubt(doubt);
            counter
        })
    }

    /// A digest of what the log has of it.
    pub(crate) fn digest(&self) -> u64 {
        let mut form = Vec::new();
        self.encode(&mut form);
        xxh3_64(&form)
    }
}

fn limit_of(kind: Kind) -> i64 {
    match kind {
        Kind::Plain => NO_LIMIT,
        Kind::Quota { limit } => limit.clamp(0, MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn some_terms() -> impl Strategy<Value = Terms> {
        (any::<bool>(), 1..1000_u64, 1..1000_u64, 1..1000_u64, 1..1_000_000_u64, 0..3_u64, 0..3_u64).prop_map(
            |(is_exact, low, more, most, max_age_ms, idle_ms, settle_ms)| {
                let (high, slack) = (low + more, low + more + most);
                let promise =
                    if is_exact { Promise::Exact { block: slack } } else { Promise::Relaxed { cap: slack } };
                Terms { promise, high, low, max_age_ms, idle_ms, settle_ms }
            },
        )
    }

    #[test]
    fn equal_terms_are_kept_once() {
        let terms = Terms {
            promise: Promise::Relaxed { cap: 9 },
            high: 5,
            low: 2,
            max_age_ms: 1000,
            idle_ms: 0,
            settle_ms: 0,
        };
        let (one, other) = (Counter::new(Kind::Plain, terms.clone()), Counter::new(Kind::Plain, terms));
        assert!(Arc::ptr_eq(&one.terms, &other.terms));
    }

    #[test]
    fn a_listing_that_knows_of_a_lease_stays() {
        let terms = Terms {
            promise: Promise::Exact { block: 9 },
            high: 5,
            low: 2,
            max_age_ms: 1000,
            idle_ms: 0,
            settle_ms: 0,
        };
        let mut counter = Counter::new(Kind::Plain, terms);
        counter.begin_listing(7).due_ms = 9;
        counter.end_listing();
        assert_eq!(counter.listing(), None);
        counter.begin_listing(7).lease = Lsn(3);
        counter.end_listing();
        assert_eq!(counter.listing(), Some(&Listing { lease: Lsn(3), ..Listing::begun(7) }));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_snapshot_has_what_the_log_has(
            terms in some_terms(),
            limit in proptest::option::of(0..MAX),
            durable in -MAX..=MAX,
            open in -1000..1000_i64,
            doubt in 0..1000_u64,
        ) {
            let kind = limit.map_or(Kind::Plain, |limit| Kind::Quota { limit });
            let mut counter = Counter::new(kind, terms.clone());
            counter.set_books(durable, open.clamp(-MAX - durable, MAX - durable));
            let doubt = if matches!(terms.promise, Promise::Exact { .. }) { doubt } else { 0 };
            counter.apply_doubt(doubt);
            let mut form = Vec::new();
            counter.encode(&mut form);
            let mut cursor = Cursor::new(&form);
            let read = Counter::decode(&mut cursor).expect("what was encoded decodes");
            prop_assert!(cursor.is_empty());
            prop_assert_eq!((read.kind(), read.terms(), read.durable(), read.open()), (kind, &terms, durable, 0));
            prop_assert_eq!((read.doubt(false), read.doubt(true)), (doubt, doubt));
            prop_assert_eq!(read.digest(), counter.digest());
            for end in 0..form.len() {
                prop_assert!(Counter::decode(&mut Cursor::new(&form[..end])).is_none());
            }
        }

        #[test]
        fn any_bytes_decode_or_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Some(counter) = Counter::decode(&mut Cursor::new(&bytes)) {
                prop_assert!(counter.terms().are_sound());
            }
        }
    }
}
