//! One counter, for those who use it again and again.

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

/// A counter that has been looked up. It stays in memory as long as there is a handle to it.
///
/// Moves cost what those of a [`Counter`](crate::Counter) do, and some 2 ns. What errors they have,
/// [`Counters`](super::Counters#errors) says.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
    key: KeyRef,
}

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>, key: KeyRef) -> Self {
        Self { shared, key }
    }

    /// The counter's name.
    pub fn name(&self) -> &[u8] {
        self.key.name()
    }

    /// Takes `amount` units: all, or none and [`Error::Exhausted`].
    #[inline]
    pub fn take(&self, amount: u64) -> Result<(), Error> {
        self.shared.apply_to(&self.key, Move::Take(amount)).map(|_| ())
    }

    /// Gives back up to `amount` units and says how many: no more than were taken. Of a plain counter, all.
    #[inline]
    pub fn refund(&self, amount: u64) -> Result<u64, Error> {
        self.shared.apply_to(&self.key, Move::Refund(amount))
    }

    /// Moves by `delta` whatever the limit says.
    #[inline]
    pub fn add(&self, delta: i64) -> Result<(), Error> {
        self.shared.apply_to(&self.key, Move::Add(delta)).map(|_| ())
    }

    /// What was admitted less what was refunded.
    pub fn position(&self) -> i64 {
        self.key.counter().position()
    }

    /// What a take may ask for at most, `None` for a plain counter.
    pub fn available(&self) -> Option<i64> {
        self.key.counter().available()
    }

    /// Whether a [`take`](Self::take) of so many units would be admitted now, by a commit if it takes one. Nothing changes, and nothing is
    /// kept for who asks: others may be quicker. As [`state`](Self::state) in cost; [`available`](Self::available) is cheaper of a counter
    /// that many threads use, and may have missed what they are doing.
    pub fn peek(&self, amount: u64) -> Result<bool, Error> {
        peek(&self.state(), amount)
    }

    /// All that is known of the counter, as it is at one moment.
    pub fn state(&self) -> Account {
        self.key.counter().books()
    }

    /// Commits the counter now, and waits until the store has it.
    pub fn commit(&self) -> Result<(), Error> {
        let began = Instant::now();
        self.shared.commit(&self.key, Extent::Net, began)?;
        // A commit that was on its way may have been without the last moves.
        match self.state().open() {
            0 => Ok(()),
            _ => self.shared.commit(&self.key, Extent::Net, began),
        }
    }

    /// What a commit would add to the store now, if that is `threshold` units or more and not nothing: the net that is open. Of an exact
    /// counter it is what is reserved and not used, below 0.
    ///
    /// The net goes on while the caller looks at the answer: what is done with it is a commit [up to](Self::commit_up_to) it.
    pub fn check_commit(&self, threshold: u64) -> Option<i64> {
        let open = self.state().open();
        (open != 0 && open.unsigned_abs() >= threshold).then_some(open)
    }

    /// Whether so many units are open that a commit has been asked for: [`Settings::high`]. Two loads, whatever form the counter has.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.key.counter().is_due()
    }

    /// Commits no more than `units` of what is open, and waits until the store has it. `units` has the sign of what it is to commit, as
    /// [`check_commit`](Self::check_commit) says it.
    ///
    /// What was read before and is not open any more is not committed: whatever was moved or committed meanwhile, the store gets nothing
    /// that was not admitted, and nothing twice. A commit that has another reason may take more with it.
    pub fn commit_up_to(&self, units: i64) -> Result<(), Error> {
        self.shared.commit(&self.key, Extent::UpTo(units), Instant::now())
    }

    /// Changes what the counter is. It stays so, and in memory, until the counters are closed or
    /// [`Counters::refresh`](super::Counters::refresh) is called for it. What was admitted stays admitted.
    ///
    /// Returns when the new promise holds, which may take a commit.
    pub fn set_settings(&self, settings: Settings) -> Result<(), Error> {
        self.shared.change(&self.key, true, |_| settings)?;
        self.shared.settle(&self.key)
    }

    /// Changes the counter's limit. As [`set_settings`](Self::set_settings) in all else.
    pub fn set_limit(&self, limit: i64) -> Result<(), Error> {
        let kind = crate::Kind::Quota { limit };
        self.shared.change(&self.key, true, |settings| Settings { kind, ..settings })
    }
}

/// Whether these books have so many units left.
pub(crate) fn peek(books: &Account, amount: u64) -> Result<bool, Error> {
    let mut books = books.clone();
    // Whether a commit must come first is not what is asked.
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
