//! What a counter knows of itself, without threads: the sequential form of everything that this crate promises.

use crate::promise::Promise;

/// Positions, limits and amounts lie within ±`MAX`, so that no sum of two of them overflows. Units.
pub const MAX: i64 = 1 << 62;

/// The books of one counter: its limit *L*, and what was admitted less what was refunded, in three parts: *D* is durable, *F* is
/// sealed and on its way to the store, and *A* is open.
///
/// A commit *seals*: it fixes the amount *F* that the store is to add, once, and moves it to *D* when the store has acknowledged it.
/// Until then the same amount is sent again, under the same number. So what the store has is *D* or *D + F*, never anything else, and
///
/// > *D* + *F* + *A* = admitted − refunded, and *L* − (*D* + *F* + *A*) is available
///
/// holds at all times. A [`Promise`] bounds how far the truth may be from what the store has; a move that would go further is answered
/// [`Refusal::Unsettled`], and is possible once [`seal_for`](Self::seal_for) has been stored and acknowledged.
///
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
    /// No bounds: likes, presence. Its position may be negative.
    Plain,
    /// At most `limit` units are admitted, and none are refunded that were not.
    Quota {
        /// Units, 0 to [`MAX`].
        limit: i64,
    },
}

/// Why a move is not possible now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// The quota has not that much left.
    #[error("not enough is left of the quota")]
    Exhausted,
    /// The promise wants a commit first: [`Account::seal_for`], store, [`Account::acknowledge`], and try again.
    #[error("a commit must come first")]
    Unsettled,
    /// The amount is negative, or the position would leave ±[`MAX`].
    #[error("the amount is out of range")]
    OutOfRange,
}

impl Account {
    /// A counter of which the store has `durable`, and nothing else is known. Both are brought into ±[`MAX`], as is a limit.
    pub fn new(kind: Kind, promise: Promise, durable: i64) -> Self {
        Self { kind: kind.bounded(), promise, durable: durable.clamp(-MAX, MAX), sealed: 0, open: 0 }
    }

    /// Books as they were read from the methods below.
    pub(crate) fn from_parts(kind: Kind, promise: Promise, durable: i64, sealed: i64, open: i64) -> Self {
        Self { kind, promise, durable, sealed, open }
    }

    /// A counter whose books are kept elsewhere in between: of which the store has `durable`, and `open` units come on top of that.
    /// Both, and their sum, are brought into ±[`MAX`].
    pub fn resume(kind: Kind, promise: Promise, durable: i64, open: i64) -> Self {
        let account = Self::new(kind, promise, durable);
        let position = account.durable.saturating_add(open).clamp(-MAX, MAX);
        Self { open: position - account.durable, ..account }
    }

    /// Bounds, if it has any.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What a crash may do to it.
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

    /// *A*: the net of what the store has not been told of. With [`Promise::Exact`] it is what has been reserved and is not
    /// used, negative.
    pub fn open(&self) -> i64 {
        self.open
    }

    /// *D* + *F* + *A*: what was admitted less what was refunded.
    pub fn position(&self) -> i64 {
        self.durable + self.sealed + self.open
    }

    /// What a take may ask for at most: 0 if the limit has been lowered below what was admitted, and never more than [`MAX`]. `None`
    /// for a plain counter.
    pub fn available(&self) -> Option<i64> {
        match self.kind {
            Kind::Plain => None,
            // From one end of the range to the other is one unit more than a number can say.
            Kind::Quota { limit } => Some(limit.saturating_sub(self.position()).clamp(0, MAX)),
        }
    }

    /// How far the truth may be from what the store has, whether or not what is sealed has arrived. Units.
    pub fn uncommitted(&self) -> u64 {
        self.open.unsigned_abs().max((self.sealed + self.open).unsigned_abs())
    }

    /// The positions between which the promise lets it move without a commit. Its own may be outside after the promise was changed.
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

    /// Gives back up to `amount` units and says how many: no more than were admitted, committed ones included. A plain counter
    /// takes all of them back.
    pub fn refund(&mut self, amount: u64) -> Result<u64, Refusal> {
        let amount = i64::try_from(amount).ok().filter(|amount| *amount <= MAX).ok_or(Refusal::OutOfRange)?;
        let amount = match self.kind {
            Kind::Plain => amount,
            Kind::Quota { .. } => amount.min(self.position().max(0)),
        };
        self.add(-amount)?;
        Ok(amount.unsigned_abs())
    }

    /// Moves by `delta` whatever the limit says: what has happened is counted, what is granted beyond the limit is granted.
    ///
    /// An exact counter that has nothing reserved may go down by more than its block at once. Then it is not
    /// [settled](Self::is_settled), and is to be committed before anybody is told.
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

    /// Where a move by `delta` ends.
    fn moved_by(&self, delta: i64) -> Result<i64, Refusal> {
        let to = self.position().checked_add(delta).filter(|to| (-MAX..=MAX).contains(to));
        to.ok_or(Refusal::OutOfRange)
    }

    /// Goes down by `amount` whatever an exact promise says. If it is not [settled](Self::is_settled) then, it is to be committed before
    /// anybody is told. What was given back can be taken at once, because the store has it reserved.
    pub(crate) fn go_down(&mut self, amount: u64) -> Result<(), Refusal> {
        assert!(matches!(self.promise, Promise::Exact { .. }), "{self:?} promises to go down by no more");
        let delta = 0_i64.checked_sub_unsigned(amount).ok_or(Refusal::OutOfRange)?;
        self.moved_by(delta)?;
        self.open += delta;
        self.check();
        Ok(())
    }

    /// Whether what is sealed, once the store has it, brings the store to where the promise wants it to be.
    #[cfg_attr(loom, allow(dead_code, reason = "who commits uses it"))]
    pub(crate) fn settles(&self) -> bool {
        let mut after = self.clone();
        after.acknowledge();
        after.is_settled()
    }

    /// Whether it is exact, and the store has the position itself. Then no commit can make room for going further down than a
    /// block: nothing less than the position may be reserved.
    fn has_nothing_reserved(&self) -> bool {
        matches!(self.promise, Promise::Exact { .. }) && self.open == 0 && self.sealed == 0
    }

    /// Seals what brings the store to the position: the open net, or what of a reservation is unused. `None` if there is
    /// nothing, or if something is sealed already.
    ///
    /// The amount is to be stored exactly once, whatever happens on the way, and then acknowledged.
    pub fn seal(&mut self) -> Option<i64> {
        self.seal_at(self.position())
    }

    /// Seals no more of the open net than `units`, which has the sign of what it was when somebody looked. `None` if nothing of that is open
    /// any more, or if something is sealed already.
    pub fn seal_up_to(&mut self, units: i64) -> Option<i64> {
        if self.sealed != 0 {
            return None;
        }
        let part = if units < 0 { self.open.clamp(units, 0) } else { self.open.clamp(0, units) };
        self.seal_at(self.durable + part)
    }

    /// Seals what makes a move by `delta` possible that was [`Refusal::Unsettled`], and the moves that are likely to follow it.
    /// `None` if something is sealed already: its acknowledgement must come first.
    pub fn seal_for(&mut self, delta: i64) -> Option<i64> {
        let position = self.position();
        let to = position.saturating_add(delta).clamp(-MAX, MAX);
        // With that much more, there is room for the move also behind all that others can do until the store has it: the distance from
        // there to the position is then what it is from what the store has now. A move that has found room since it was refused needs no
        // more than others: it may not be made behind this at all.
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
                // Half of a block ahead, so that what goes up and down around it costs nothing either way.
                let ahead = to.saturating_add(bounded(block) / 2).min(furthest);
                // Not more than a block ahead once the move is made.
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
        // From one end of the range to the other is one unit more than a commit, or what is open beside one, can say.
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

    /// The store has what was sealed.
    pub fn acknowledge(&mut self) {
        self.durable += self.sealed;
        self.sealed = 0;
        self.check();
    }

    /// The store has refused what was sealed for good, and will never have it: it is open again.
    pub fn reject(&mut self) {
        self.open += self.sealed;
        self.sealed = 0;
        self.check();
    }

    /// Changes the bounds. What was admitted stays admitted: with a limit below it nothing more is, until enough was refunded.
    pub fn set_kind(&mut self, kind: Kind) {
        self.kind = kind.bounded();
    }

    /// Changes the promise. Whether it holds already, [`is_settled`](Self::is_settled) says; if not, `seal_for(0)` makes it
    /// hold.
    pub fn set_promise(&mut self, promise: Promise) {
        self.promise = promise;
    }

    /// Whether the position is where the promise wants it to be.
    pub fn is_settled(&self) -> bool {
        let (low, high) = self.window();
        (low..=high).contains(&self.position())
    }

    /// Panics if the books have left their range: no move and no commit does that.
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
