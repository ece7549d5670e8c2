//! All that a counter knows while nobody moves it: its books, and from where on somebody wants to know that it has moved.

use crate::account::{Account, Kind, Refusal};

/// What is locked, changed and given back in pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ledger {
    pub(crate) account: Account,
    /// A net that is open of so many units or more is due to be committed, 0 if none is. Units.
    pub(crate) alarm: u64,
}

/// What moves a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Move {
    Take(u64),
    Refund(u64),
    Add(i64),
}

impl Move {
    /// What it moves by where there is room for all of it; where there is not, or this is beyond 64 bits, the books decide.
    #[inline]
    pub(crate) fn delta(self) -> Option<i64> {
        match self {
            Self::Take(amount) => i64::try_from(amount).ok(),
            Self::Refund(amount) => i64::try_from(amount).ok().map(|amount| -amount),
            Self::Add(delta) => Some(delta),
        }
    }

    /// The units that were moved.
    pub(crate) fn carry_out(self, account: &mut Account) -> Result<u64, Refusal> {
        match self {
            Self::Take(amount) => account.take(amount).map(|()| amount),
            Self::Refund(amount) => account.refund(amount),
            Self::Add(delta) => account.add(delta).map(|()| delta.unsigned_abs()),
        }
    }
}

impl Ledger {
    /// Whether the open net is to be committed now.
    pub(crate) fn is_due(&self) -> bool {
        self.alarm > 0 && self.account.open().unsigned_abs() >= self.alarm
    }

    /// How far the counter may move (down, up) without anybody looking into the books: within its bounds and its promise, and as
    /// long as it is not due, no further than that.
    pub(crate) fn room(&self) -> (i64, i64) {
        let position = self.account.position();
        let (mut low, mut high) = self.account.window();
        if let Kind::Quota { limit } = self.account.kind() {
            (low, high) = (low.max(0), high.min(limit));
        }
        if self.alarm > 0 && !self.is_due() {
            let committed = position - self.account.open();
            let quiet = i64::try_from(self.alarm - 1).unwrap_or(i64::MAX);
            low = low.max(committed.saturating_sub(quiet));
            high = high.min(committed.saturating_add(quiet));
        }
        (position.saturating_sub(low).max(0), high.saturating_sub(position).max(0))
    }
}
