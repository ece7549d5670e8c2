//! Counters: positions that move in memory, of which only net changes are logged.
//!
//! The log has a counter's terms, its limit and *D*, its last committed position. *A*, the distance
//! to the true position, is volatile: it is in no snapshot, digest or copy.
//!
//! For an exact counter, the log also bounds *A*. Its position may be below *D* by at most its
//! *allowance*. A crash turns the allowance into *doubt*: units that *D* counts as used and that
//! may never have been granted. Every record contains the sum of both, so the doubt of all crashes
//! is known. An allowance is at most the block minus the doubt, so all crashes together leave at
//! most one block in doubt.

use super::{InParts, Value};
use crate::persist::record::{Cursor, put_varint};
use std::cell::RefCell;
use std::sync::Arc;
use tidemark_counter::{Account, Kind, MAX, Promise};
use tidemark_log::Lsn;
use xxhash_rust::xxh3::xxh3_64;

/// Stands for no limit.
const NO_LIMIT: i64 = -1;

const RELAXED: u8 = 0;
const EXACT: u8 = 1;
/// Flag in the promise's code: the counter is deleted when it is idle.
const LEAVES: u8 = 2;
/// Flag in the promise's code: units in doubt are given back after a time.
const SETTLES: u8 = 4;
/// Flag in the promise's code: units are in doubt.
const DOUBTED: u8 = 8;

/// How a counter is committed. Counters with equal terms share them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// What a crash may do to the counter.
    pub promise: Promise,
    /// Uncommitted units at which the command that reaches them commits. Units, 1 to the promise's
    /// bound; unused for exact promises.
    pub high: u64,
    /// Uncommitted units that are committed at the next interval. Units, 1 to `high`; unused for
    /// exact promises.
    pub low: u64,
    /// Longest time that fewer units stay uncommitted, or that reserved units stay unused.
    /// Milliseconds, at least 1.
    pub max_age_ms: u64,
    /// Time without a command after which the counter is deleted. Milliseconds; 0: never.
    pub idle_ms: u64,
    /// Time after start when units in doubt are given back. Milliseconds; 0: they stay counted as
    /// used. Only for exact promises.
    pub settle_ms: u64,
}

impl Terms {
    /// Whether all numbers are in their ranges.
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

    /// Returns shared terms: this thread's previous ones if they are equal.
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

/// A counter's state. One of the smallest variants of `Object`; its size is asserted below.
#[derive(Debug)]
pub struct Counter {
    /// *D*. Within ±[`MAX`].
    durable: i64,
    /// *A*. The sum of both is within ±[`MAX`].
    open: i64,
    /// 0 to [`MAX`], or [`NO_LIMIT`].
    limit: i64,
    terms: Arc<Terms>,
    /// Its next commit, its lease and its doubt, while there are any.
    listing: Option<Box<Listing>>,
}

const _: () = assert!(size_of::<Counter>() <= 40, "a counter must not make all objects larger");

/// Commit schedule, lease and doubt of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listing {
    /// When the first uncommitted change was made; for an exact counter, its last move.
    /// Milliseconds since 1970.
    pub(crate) since_ms: u64,
    /// Its key in the database's list of pending commits; 0: not listed. Milliseconds since 1970.
    pub(crate) due_ms: u64,
    /// Record of the last commit, if replies must wait for it; otherwise [`Lsn::ZERO`].
    pub(crate) lease: Lsn,
    /// Units by which commits of an exact counter have advanced in this process; see
    /// [`Counter::earned_block`].
    pub(crate) reserved: u64,
    /// How far the position of an exact counter may be below *D*. Units.
    pub(crate) allowance: u64,
    /// Units that crashes left in doubt. The log has the sum with `allowance`.
    pub(crate) doubt: u64,
    /// When this process first checked the doubt; 0: not yet. Milliseconds since 1970.
    pub(crate) doubted_ms: u64,
}

impl Listing {
    /// Creates an empty listing.
    fn begun(since_ms: u64) -> Self {
        let (due_ms, lease) = (0, Lsn::ZERO);
        Self { since_ms, due_ms, lease, reserved: 0, allowance: 0, doubt: 0, doubted_ms: 0 }
    }

    /// Returns the units that are in doubt if the process dies now, as the log has them.
    pub(crate) fn logged_doubt(&self) -> u64 {
        self.doubt.saturating_add(self.allowance)
    }
}

/// Divisor for the block of an exact counter: it reserves at most its grants in this process
/// divided by this. Half of a block is ahead of the position, so a crash costs a quota at most a
/// 16th of those grants.
const EARNED_DIVISOR: u64 = 8;

impl Counter {
    /// Creates a counter at 0.
    pub fn new(kind: Kind, terms: Terms) -> Self {
        assert!(terms.are_sound(), "the terms of a counter are out of range: {terms:?}");
        Self { durable: 0, open: 0, limit: limit_of(kind), terms: terms.shared(), listing: None }
    }

    /// Returns whether it has a limit, and which.
    #[inline]
    pub fn kind(&self) -> Kind {
        if self.limit == NO_LIMIT { Kind::Plain } else { Kind::Quota { limit: self.limit } }
    }

    /// Changes the limit. Admitted units stay admitted.
    pub(crate) fn set_kind(&mut self, kind: Kind) {
        self.limit = limit_of(kind);
    }

    /// Returns how it is committed.
    #[inline]
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Changes how it is committed. Everything must be committed, so that any promise holds.
    pub(crate) fn set_terms(&mut self, terms: Terms) {
        assert!(self.is_committed() && terms.are_sound(), "{terms:?} are to be the terms of {self:?}");
        self.terms = terms.shared();
        if let Promise::Relaxed { .. } = self.terms.promise {
            self.apply_doubt(0);
        }
    }

    /// Returns the block that an exact counter reserves now; 0 for a relaxed one. It grows with the
    /// grants of this process, so a crash soon after start costs little. Its limit is the block of
    /// the terms minus the doubt.
    pub(crate) fn earned_block(&self) -> u64 {
        let Promise::Exact { block } = self.terms.promise else { return 0 };
        let (reserved, doubt) =
            self.listing.as_ref().map_or((0, 0), |listing| (listing.reserved, listing.doubt));
        (reserved / EARNED_DIVISOR).min(block.saturating_sub(doubt))
    }

    /// Returns how far the position of an exact counter may be below *D*. Units.
    #[inline]
    pub(crate) fn allowance(&self) -> u64 {
        self.listing.as_ref().map_or(0, |listing| listing.allowance)
    }

    /// Returns the units in doubt: those of earlier processes, or with `is_logged` the log's.
    pub(crate) fn doubt(&self, is_logged: bool) -> u64 {
        let doubt = |listing: &Listing| if is_logged { listing.logged_doubt() } else { listing.doubt };
        self.listing.as_deref().map_or(0, doubt)
    }

    /// Sets doubt and allowance after a commit. The doubt of a quota is at most its position.
    /// Returns whether the log must be updated.
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

    /// Applies the doubt in the log. Returns whether it has changed.
    pub(crate) fn apply_doubt(&mut self, doubt: u64) -> bool {
        let before = self.doubt(true);
        if doubt > 0 || self.listing.is_some() {
            let listing = self.listing.get_or_insert_with(|| Box::new(Listing::begun(0)));
            (listing.doubt, listing.allowance) = (doubt, 0);
        }
        before != doubt
    }

    /// Whether units are in doubt that will be given back after a time.
    pub(crate) fn settles(&self) -> bool {
        self.terms.settle_ms > 0 && self.doubt(false) > 0
    }

    /// Returns when the doubt will be given back, if ever. Starts the period if necessary.
    pub(crate) fn settle_at(&mut self, now_ms: u64) -> Option<u64> {
        let settle_ms = self.terms.settle_ms;
        let listing = self.listing.as_mut().filter(|listing| settle_ms > 0 && listing.doubt > 0)?;
        if listing.doubted_ms == 0 {
            listing.doubted_ms = now_ms.max(1);
        }
        Some(listing.doubted_ms.saturating_add(settle_ms))
    }

    /// Whether the log is complete: nothing is open or may become open before the next record.
    pub(crate) fn is_committed(&self) -> bool {
        self.open == 0 && self.allowance() == 0
    }

    /// Returns the account as it is.
    #[inline]
    pub fn account(&self) -> Account {
        let promise = match self.terms.promise {
            Promise::Exact { .. } => Promise::Exact { block: self.allowance() },
            relaxed @ Promise::Relaxed { .. } => relaxed,
        };
        Account::resume(self.kind(), promise, self.durable, self.open)
    }

    /// Returns the account as the log has it, with everything committed.
    pub fn logged_account(&self) -> Account {
        Account::resume(self.kind(), self.terms.promise, self.durable, 0)
    }

    /// Stores the state of the account.
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

    /// *D*: the committed position.
    #[inline]
    pub fn durable(&self) -> i64 {
        self.durable
    }

    /// *A*: the uncommitted change; for an exact counter the unused reservation, negative.
    #[inline]
    pub fn open(&self) -> i64 {
        self.open
    }

    /// Whether the uncommitted units are to be committed at the next interval.
    #[inline]
    pub(crate) fn is_ripe(&self) -> bool {
        matches!(self.terms.promise, Promise::Relaxed { .. }) && self.open.unsigned_abs() >= self.terms.low
    }

    /// Returns its listing, if it has one.
    #[inline]
    pub(crate) fn listing(&self) -> Option<&Listing> {
        self.listing.as_deref()
    }

    /// Like [`Counter::listing`], mutable.
    #[inline]
    pub(crate) fn listing_mut(&mut self) -> Option<&mut Listing> {
        self.listing.as_deref_mut()
    }

    /// Like [`Counter::listing_mut`]; starts a listing at `now_ms` if there is none.
    #[inline]
    pub(crate) fn begin_listing(&mut self, now_ms: u64) -> &mut Listing {
        self.listing.get_or_insert_with(|| Box::new(Listing::begun(now_ms)))
    }

    /// Removes its listing, unless a lease or doubt must be kept.
    pub(crate) fn end_listing(&mut self) {
        self.listing.take_if(|listing| listing.lease == Lsn::ZERO && listing.logged_doubt() == 0);
        if let Some(listing) = &mut self.listing {
            listing.due_ms = 0;
        }
    }
}

impl Value for Counter {
    fn is_empty(&self) -> bool {
        false
    }

    fn elements(&self) -> usize {
        1
    }

    /// Returns the type's name; Redis has no such type.
    fn encoding(&self) -> &'static str {
        "counter"
    }

    fn in_parts(&self) -> Option<&dyn InParts> {
        None
    }

    fn in_parts_mut(&mut self) -> Option<&mut dyn InParts> {
        None
    }

    fn encode(&self, into: &mut Vec<u8>) {
        let (code, slack) = match self.terms.promise {
            Promise::Relaxed { cap } => (RELAXED, cap),
            Promise::Exact { block } => (EXACT, block),
        };
        let terms = &self.terms;
        // Zeros are omitted.
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

    fn decode(bytes: &mut Cursor<'_>) -> Option<Self> {
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

    fn digest(&self) -> u64 {
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
