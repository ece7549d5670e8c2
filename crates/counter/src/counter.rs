//! A counter that threads share.

use crate::account::{Account, Kind, Refusal};
use crate::promise::Promise;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An [`Account`] that any number of threads move at once. Every method is linearizable.
///
/// ```
/// use tidemark_counter::{Counter, Kind, Promise, Refusal};
///
/// let counter = Counter::new(Kind::Quota { limit: 2 }, Promise::Relaxed { cap: 10 }, 0);
/// std::thread::scope(|threads| {
///     let taken: Vec<_> = (0..3).map(|_| threads.spawn(|| counter.take(1).is_ok())).collect();
///     let taken = taken.into_iter().map(|thread| thread.join().unwrap()).filter(|taken| *taken).count();
///     assert_eq!(taken, 2);
/// });
/// ```
#[derive(Debug)]
pub struct Counter {
    account: Mutex<Account>,
}

impl Counter {
    /// A counter of which the store has `durable`, and nothing else is known.
    pub fn new(kind: Kind, promise: Promise, durable: i64) -> Self {
        Self { account: Mutex::new(Account::new(kind, promise, durable)) }
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Account::take`].
    pub fn take(&self, amount: u64) -> Result<(), Refusal> {
        self.account().take(amount)
    }

    /// As [`Account::refund`].
    pub fn refund(&self, amount: u64) -> Result<u64, Refusal> {
        self.account().refund(amount)
    }

    /// As [`Account::add`].
    pub fn add(&self, delta: i64) -> Result<(), Refusal> {
        self.account().add(delta)
    }

    /// The books as they are at one moment.
    pub fn books(&self) -> Account {
        self.account().clone()
    }

    /// As [`Account::position`].
    pub fn position(&self) -> i64 {
        self.account().position()
    }

    /// As [`Account::available`].
    pub fn available(&self) -> Option<i64> {
        self.account().available()
    }

    /// As [`Account::seal`].
    pub fn seal(&self) -> Option<i64> {
        self.account().seal()
    }

    /// As [`Account::seal_for`].
    pub fn seal_for(&self, delta: i64) -> Option<i64> {
        self.account().seal_for(delta)
    }

    /// As [`Account::acknowledge`].
    pub fn acknowledge(&self) {
        self.account().acknowledge();
    }

    /// As [`Account::reject`].
    pub fn reject(&self) {
        self.account().reject();
    }

    /// As [`Account::set_kind`].
    pub fn set_kind(&self, kind: Kind) {
        self.account().set_kind(kind);
    }

    /// As [`Account::set_promise`].
    pub fn set_promise(&self, promise: Promise) {
        self.account().set_promise(promise);
    }
}
