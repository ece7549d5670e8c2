//! The books of one counter: the sequential, thread-free model of everything that this crate
//! promises.

use crate::promise::Promise;

/// Bound of positions, limits and amounts: all lie within ±`MAX` units, so no sum of two of them
/// overflows.
pub const MAX: i64 = 1 << 62;

/// The books of one counter: its limit *L* and its position (admitted − refunded) in three parts.
/// *D* is durable, *F* is sealed and on its way to the store, and *A* is open.
/// A commit *seals*: it fixes the amount *F* that the store is to add, and moves it to *D* when the
/// store acknowledges it. Until then the same amount is resent under the same sequence number. The
/// store therefore has *D* or *D + F*, never anything else, and
///
/// > *D* + *F* + *A* = admitted − refunded, and *L* − (*D* + *F* + *A*) is available
///
/// holds at all times. A [`Promise`] bounds how far the position may be from what the store has. A
/// move beyond that bound fails with [`Refusal::Unsettled`]; it becomes possible once
/// [`seal_for`](Self::seal_for) has been stored and acknowledged.
/// ```
/// use tidemark_counter::{Account, Kind, Promise, Refusal};
///
/// let mut account = Account::new(Kind::Quota { limit: 100 }, Promise::Relaxed { cap: 50 }, 0);
/// account.take(30).unwrap();
/// assert_eq!(account.refund(10), Ok(10));
/// assert_eq!(account.available(), Some(80));
///
/// let sealed = account.seal().unwrap();
/// assert_eq!(sealed, 20); // the net, which is all that a store hears of
/// account.acknowledge();
/// assert_eq!((account.durable(), account.open()), (20, 0));
/// assert_eq!(account.take(81), Err(Refusal::Exhausted));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    kind: Kind,
    promise: Promise,
    durable: i64,
    sealed: i64,
    open: i64,
}

/// Whether a counter has bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// No bounds: likes, presence. The position may be negative.
    Plain,
    /// Admits at most `limit` units, and refunds no more than were admitted.
    Quota {
        /// Units, 0 to [`MAX`].
        limit: i64,
    },
}

/// Why a move is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// The quota has fewer units left.
    #[error("not enough is left of the quota")]
    Exhausted,
    /// The promise requires a commit first: [`Account::seal_for`], store, [`Account::acknowledge`],
    /// then retry.
    #[error("a commit must come first")]
    Unsettled,
    /// The amount is negative, or the position would leave ±[`MAX`].
    #[error("the amount is out of range")]
    OutOfRange,
}

impl Account {
    /// Creates a counter of which the store has `durable`. Clamps `durable` and the limit to
    /// ±[`MAX`].
    pub fn new(kind: Kind, promise: Promise, durable: i64) -> Self {
        Self { kind: kind.bounded(), promise, durable: durable.clamp(-MAX, MAX), sealed: 0, open: 0 }
    }

    /// Assembles books from the values that the accessors below return.
    pub(crate) fn from_parts(kind: Kind, promise: Promise, durable: i64, sealed: i64, open: i64) -> Self {
        Self { kind, promise, durable, sealed, open }
    }

    /// Resumes a counter whose books are kept elsewhere: the store has `durable`, and `open` units
    /// are uncommitted. Clamps both, and their sum, to ±[`MAX`].
    pub fn resume(kind: Kind, promise: Promise, durable: i64, open: i64) -> Self {
        let account = Self::new(kind, promise, durable);
        let position = account.durable.saturating_add(open).clamp(-MAX, MAX);
        Self { open: position - account.durable, ..account }
    }

    /// Returns the bounds.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns what a crash may do to the counter.
    pub fn promise(&self) -> Promise {
        self.promise
    }

    /// *D*: what the store is known to have.
    pub fn durable(&self) -> i64 {
        self.durable
    }

    /// *F*: what is on its way to the store, 0 if nothing is.
    pub fn sealed(&self) -> i64 {
        self.sealed
    }

    /// *A*: the net that has not been sent to the store. With [`Promise::Exact`] it is the unused
    /// part of the reservation, as a negative number.
    pub fn open(&self) -> i64 {
        self.open
    }

    /// *D* + *F* + *A*: what was admitted less what was refunded.
    pub fn position(&self) -> i64 {
        self.durable + self.sealed + self.open
    }

    /// Returns the most units that a take may request: 0 if the limit is below the position, and at
    /// most [`MAX`]. `None` for a plain counter.
    pub fn available(&self) -> Option<i64> {
        match self.kind {
            Kind::Plain => None,
            // The distance between the ends of the range exceeds `i64::MAX` by one.
            Kind::Quota { limit } => Some(limit.saturating_sub(self.position()).clamp(0, MAX)),
        }
    }

    /// Returns how far the position may be from what the store has, whether or not the sealed part
    /// has arrived. Units.
    pub fn uncommitted(&self) -> u64 {
        self.open.unsigned_abs().max((self.sealed + self.open).unsigned_abs())
    }

    /// Returns the positions between which the promise allows moves without a commit. After a
    /// change of the promise, the current position may be outside.
    pub fn window(&self) -> (i64, i64) {
        let (ahead, behind) = self.promise.slack();
        let (ahead, behind) = (bounded(ahead), bounded(behind));
        let other = self.durable + self.sealed;
        let low = self.durable.max(other).saturating_sub(ahead).max(-MAX);
        let high = self.durable.min(other).saturating_add(behind).min(MAX);
        (low, high)
    }

    /// Takes `amount` units if the quota has them: all or none.
    pub fn take(&mut self, amount: u64) -> Result<(), Refusal> {
        let amount = i64::try_from(amount).ok().filter(|amount| *amount <= MAX).ok_or(Refusal::OutOfRange)?;
        if let Kind::Quota { limit } = self.kind
            && amount > 0
            && self.position() > limit - amount
        {
            return Err(Refusal::Exhausted);
        }
        self.add(amount)
    }

    /// Refunds up to `amount` units and returns how many: no more than were admitted, committed
    /// ones included. A plain counter accepts all of them.
    pub fn refund(&mut self, amount: u64) -> Result<u64, Refusal> {
        let amount = i64::try_from(amount).ok().filter(|amount| *amount <= MAX).ok_or(Refusal::OutOfRange)?;
        let amount = match self.kind {
            Kind::Plain => amount,
            Kind::Quota { .. } => amount.min(self.position().max(0)),
        };
        self.add(-amount)?;
        Ok(amount.unsigned_abs())
    }

    /// Moves by `delta` regardless of the limit: what has happened is counted, even beyond the
    /// limit.
    ///
    /// An exact counter without a reservation may go down by more than its block in one move. It is
    /// then not [settled](Self::is_settled), and must be committed before the move is acknowledged.
    pub fn add(&mut self, delta: i64) -> Result<(), Refusal> {
        let to = self.moved_by(delta)?;
        let (low, high) = self.window();
        if (delta > 0 && to > high) || (delta < 0 && to < low && !self.has_nothing_reserved()) {
            return Err(Refusal::Unsettled);
        }
        self.open += delta;
        self.check();
        Ok(())
    }

    /// Returns the position after a move by `delta`.
    fn moved_by(&self, delta: i64) -> Result<i64, Refusal> {
        let to = self.position().checked_add(delta).filter(|to| (-MAX..=MAX).contains(to));
        to.ok_or(Refusal::OutOfRange)
    }

    /// Goes down by `amount` regardless of an exact promise. If the counter is then not
    /// [settled](Self::is_settled), it must be committed before the move is acknowledged. The
    /// refunded units can be taken immediately, because the store still has them reserved.
    pub(crate) fn go_down(&mut self, amount: u64) -> Result<(), Refusal> {
        assert!(matches!(self.promise, Promise::Exact { .. }), "{self:?} promises to go down by no more");
        let delta = 0_i64.checked_sub_unsigned(amount).ok_or(Refusal::OutOfRange)?;
        self.moved_by(delta)?;
        self.open += delta;
        self.check();
        Ok(())
    }

    /// Whether the promise holds once the store has the sealed amount.
    #[cfg_attr(loom, allow(dead_code, reason = "the committer uses it"))]
    pub(crate) fn settles(&self) -> bool {
        let mut after = self.clone();
        after.acknowledge();
        after.is_settled()
    }

    /// Whether the counter is exact and the store has exactly the position. A commit cannot make
    /// room for going down by more than a block then: no less than the position may be reserved.
    fn has_nothing_reserved(&self) -> bool {
        matches!(self.promise, Promise::Exact { .. }) && self.open == 0 && self.sealed == 0
    }

    /// Seals the amount that brings the store to the position: the open net, or the unused part of
    /// a reservation. `None` if there is nothing to seal, or if something is sealed already.
    ///
    /// The amount must be stored exactly once, including across failures, and then acknowledged.
    pub fn seal(&mut self) -> Option<i64> {
        self.seal_at(self.position())
    }

    /// Seals at most `units` of the open net; `units` has the sign of the net that the caller read
    /// before. `None` if none of that is open any more, or if something is sealed already.
    pub fn seal_up_to(&mut self, units: i64) -> Option<i64> {
        if self.sealed != 0 {
            return None;
        }
        let part = if units < 0 { self.open.clamp(units, 0) } else { self.open.clamp(0, units) };
        self.seal_at(self.durable + part)
    }

    /// Seals what makes room for a move by `delta` that was [`Refusal::Unsettled`], and for the
    /// moves that are likely to follow it. `None` if something is sealed already: that must be
    /// acknowledged first.
    pub fn seal_for(&mut self, delta: i64) -> Option<i64> {
        let position = self.position();
        let to = position.saturating_add(delta).clamp(-MAX, MAX);
        // `beyond` makes room for the move even after all moves that other callers can make until
        // the store has it: the distance from there to the position is then the distance from what
        // the store has now. A move that fits by now needs no extra room: it may not be made after
        // this commit at all.
        let (low, high) = self.window();
        let beyond = if (low..=high).contains(&to) { position } else { self.durable.saturating_add(delta) };
        let at = match self.promise {
            Promise::Relaxed { cap } => {
                let cap = bounded(cap);
                let at = match delta.signum() {
                    1 => position.max(beyond),
                    -1 => position.min(beyond),
                    _ => position,
                };
                at.clamp(to.saturating_sub(cap), to.saturating_add(cap))
            }
            Promise::Exact { block } => {
                let furthest = position.saturating_add(bounded(block));
                // Half of a block ahead, so that moves up and down around the position cost no
                // commits.
                let ahead = to.saturating_add(bounded(block) / 2).min(furthest);
                // At most a block ahead once the move is made.
                let beyond = if delta > 0 { beyond.min(to.saturating_add(bounded(block))) } else { to };
                let reserved = to.max(position).max(ahead).max(beyond);
                match self.kind {
                    Kind::Plain => reserved,
                    Kind::Quota { limit } => reserved.min(limit.max(to).max(position)),
                }
            }
        };
        self.seal_at(at.clamp(-MAX, MAX))
    }

    fn seal_at(&mut self, target: i64) -> Option<i64> {
        // The distance between the ends of the range exceeds `i64::MAX` by one, which neither a
        // commit nor the open part can hold.
        let furthest = self.durable.max(self.position()).saturating_sub(i64::MAX);
        let target = target.min(self.durable.saturating_add(i64::MAX)).max(furthest);
        if self.sealed != 0 || target == self.durable {
            return None;
        }
        let position = self.position();
        self.sealed = target - self.durable;
        self.open = position - target;
        self.check();
        Some(self.sealed)
    }

    /// Records that the store has the sealed amount.
    pub fn acknowledge(&mut self) {
        self.durable += self.sealed;
        self.sealed = 0;
        self.check();
    }

    /// Reopens the sealed amount after the store has refused it for good.
    pub fn reject(&mut self) {
        self.open += self.sealed;
        self.sealed = 0;
        self.check();
    }

    /// Changes the bounds. Admitted units stay admitted: with a limit below the position, takes
    /// fail until enough is refunded.
    pub fn set_kind(&mut self, kind: Kind) {
        self.kind = kind.bounded();
    }

    /// Changes the promise. If [`is_settled`](Self::is_settled) is false afterwards, a commit of
    /// `seal_for(0)` makes the promise hold.
    pub fn set_promise(&mut self, promise: Promise) {
        self.promise = promise;
    }

    /// Whether the position is within the window of the promise.
    pub fn is_settled(&self) -> bool {
        let (low, high) = self.window();
        (low..=high).contains(&self.position())
    }

    /// Panics if the books are out of range; no move or commit causes that.
    fn check(&self) {
        let stored = self.durable.checked_add(self.sealed);
        let position = stored.and_then(|stored| stored.checked_add(self.open));
        let is_within = |number: Option<i64>| number.is_some_and(|number| (-MAX..=MAX).contains(&number));
        assert!(
            is_within(Some(self.durable)) && is_within(stored) && is_within(position),
            "the books have left \u{b1}{MAX}: {self:?}"
        );
    }
}

impl Kind {
    fn bounded(self) -> Self {
        match self {
            Self::Plain => Self::Plain,
            Self::Quota { limit } => Self::Quota { limit: limit.clamp(0, MAX) },
        }
    }
}

fn bounded(units: u64) -> i64 {
    units.min(MAX.unsigned_abs()) as i64
}
