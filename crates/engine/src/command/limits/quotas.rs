//! Counters, asked like limiters: a quota is a limiter that does not refill with time.

use super::verdict::Verdict;
use crate::context::{Keys, out_of_range};
use crate::error::CommandError;
use crate::value::Type;
use tidemark_counter::{Account, Kind, MAX, Promise, Refusal};

pub(super) fn is_counter(keys: &Keys<'_>, key: &[u8]) -> bool {
    keys.type_of(key) == Some(Type::Counter)
}

/// Asks a counter, without a change.
pub(super) fn ask(account: &Account, amount: u64) -> Result<Verdict, CommandError> {
    // Ignore the promise: what must be committed first can be.
    let anywhere = Promise::Relaxed { cap: MAX.unsigned_abs() };
    let mut tried = Account::resume(account.kind(), anywhere, account.position(), 0);
    let taken = tried.take(amount);
    if tried.position().checked_sub(account.durable()).is_none() {
        // No commit could record it.
        return Err(out_of_range());
    }
    let is_allowed = match (taken, account.kind()) {
        (Ok(()), _) => true,
        (Err(_), Kind::Quota { .. }) => false,
        (Err(_), Kind::Plain) => return Err(out_of_range()),
    };
    Ok(verdict(is_allowed, account))
}

/// Takes what [`ask`] has allowed.
pub(super) fn take_allowed(keys: &mut Keys<'_>, key: &[u8], amount: u64) -> Result<Verdict, CommandError> {
    let moved = keys.move_counter(key, |account| account.take(amount))?.ok_or_else(out_of_range)?;
    debug_assert!(moved.outcome.is_ok(), "it was asked before");
    match moved.outcome {
        Err(Refusal::OutOfRange) => Err(out_of_range()),
        outcome => Ok(verdict(outcome.is_ok(), &moved.account)),
    }
}

/// Returns units to a counter. Returns the number accepted.
pub(super) fn refund(keys: &mut Keys<'_>, key: &[u8], amount: u64) -> Result<u64, CommandError> {
    match keys.move_counter(key, |account| account.refund(amount.min(MAX.unsigned_abs())))? {
        Some(moved) => moved.outcome.map_err(|_| out_of_range()),
        None => Ok(0),
    }
}

fn verdict(is_allowed: bool, account: &Account) -> Verdict {
    let limit = match account.kind() {
        Kind::Plain => None,
        Kind::Quota { limit } => Some(limit),
    };
    Verdict::Counter { is_allowed, limit, available: account.available() }
}
