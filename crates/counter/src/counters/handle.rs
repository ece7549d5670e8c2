//! A handle to one counter, for repeated use.

use super::key::KeyRef;
use super::settings::Settings;
use super::shared::Shared;
use crate::account::{Account, Refusal};
use crate::committer::{Error, Extent};
use crate::ledger::Move;
use crate::promise::Promise;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// A counter that has been looked up. It stays in memory as long as a handle to it exists.
///
/// A move costs some 2 ns more than one of a [`Counter`](crate::Counter). For errors, see
/// [`Counters`](super::Counters#errors).
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
    key: KeyRef,
}

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>, key: KeyRef) -> Self {
        Self { shared, key }
    }

    /// Returns the counter's name.
    pub fn name(&self) -> &[u8] {
        self.key.name()
    }

    /// Takes `amount` units: all, or none with [`Error::Exhausted`].
    #[inline]
    pub fn take(&self, amount: u64) -> Result<(), Error> {
        self.shared.apply_to(&self.key, Move::Take(amount)).map(|_| ())
    }

    /// Refunds up to `amount` units and returns how many: no more than were taken. A plain counter
    /// accepts all of them.
    #[inline]
    pub fn refund(&self, amount: u64) -> Result<u64, Error> {
        self.shared.apply_to(&self.key, Move::Refund(amount))
    }

    /// Moves by `delta` regardless of the limit.
    #[inline]
    pub fn add(&self, delta: i64) -> Result<(), Error> {
        self.shared.apply_to(&self.key, Move::Add(delta)).map(|_| ())
    }

    /// Returns the units admitted less those refunded.
    pub fn position(&self) -> i64 {
        self.key.counter().position()
    }

    /// Returns the most units that a take may request, `None` for a plain counter.
    pub fn available(&self) -> Option<i64> {
        self.key.counter().available()
    }

    /// Whether a [`take`](Self::take) of this many units would be admitted now, by a commit if
    /// necessary. Nothing changes and nothing is reserved. Costs as much as [`state`](Self::state).
    /// For a counter that many threads use, [`available`](Self::available) is cheaper, but may miss
    /// concurrent moves.
    pub fn peek(&self, amount: u64) -> Result<bool, Error> {
        peek(&self.state(), amount)
    }

    /// Returns a consistent snapshot of the counter's books.
    pub fn state(&self) -> Account {
        self.key.counter().books()
    }

    /// Commits the counter now, and waits until the store has it.
    pub fn commit(&self) -> Result<(), Error> {
        let began = Instant::now();
        self.shared.commit(&self.key, Extent::Net, began)?;
        // A commit that was already in flight may lack the last moves.
        match self.state().open() {
            0 => Ok(()),
            _ => self.shared.commit(&self.key, Extent::Net, began),
        }
    }

    /// Returns the open net, which a commit would add to the store now, if it is not 0 and at least
    /// `threshold` units. Of an exact counter it is the unused part of the reservation, below 0.
    ///
    /// The counter may move while the caller examines the result; use
    /// [`commit_up_to`](Self::commit_up_to) to commit no more than that.
    pub fn check_commit(&self, threshold: u64) -> Option<i64> {
        let open = self.state().open();
        (open != 0 && open.unsigned_abs() >= threshold).then_some(open)
    }

    /// Whether enough units are open that a commit has been requested: [`Settings::high`]. Two
    /// loads, in either form of the counter.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.key.counter().is_due()
    }

    /// Commits at most `units` of the open net, and waits until the store has it. `units` has the
    /// sign of the net, as [`check_commit`](Self::check_commit) returns it.
    ///
    /// Units that are not open any more are not committed: the store never gets what was not
    /// admitted, and nothing twice. A commit for another reason may include more.
    pub fn commit_up_to(&self, units: i64) -> Result<(), Error> {
        self.shared.commit(&self.key, Extent::UpTo(units), Instant::now())
    }

    /// Changes the counter's settings. They stay in force, and the counter in memory, until the
    /// counters are closed or [`Counters::refresh`](super::Counters::refresh) is called for it.
    /// Admitted units stay admitted.
    ///
    /// Returns when the new promise holds, which may take a commit.
    pub fn set_settings(&self, settings: Settings) -> Result<(), Error> {
        self.shared.change(&self.key, true, |_| settings)?;
        self.shared.settle(&self.key)
    }

    /// Changes the counter's limit. Otherwise as [`set_settings`](Self::set_settings).
    pub fn set_limit(&self, limit: i64) -> Result<(), Error> {
        let kind = crate::Kind::Quota { limit };
        self.shared.change(&self.key, true, |settings| Settings { kind, ..settings })
    }
}

/// Whether these books have that many units left.
pub(crate) fn peek(books: &Account, amount: u64) -> Result<bool, Error> {
    let mut books = books.clone();
    // The question is independent of whether a commit must come first.
    books.set_promise(Promise::Relaxed { cap: u64::MAX });
    match books.take(amount) {
        Ok(()) => Ok(true),
        Err(Refusal::Exhausted) => Ok(false),
        Err(Refusal::OutOfRange | Refusal::Unsettled) => Err(Error::OutOfRange),
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Handle")
            .field("name", &self.name().escape_ascii().to_string())
            .field("state", &self.state())
            .finish()
    }
}
