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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Move {
    /// So many units are taken: all, or none. As [`Account::take`].
    Take(u64),
    /// So many units are given back, or as many of them as were taken. As [`Account::refund`].
    Refund(u64),
    /// It moves by so many units whatever the limit says. As [`Account::add`].
    Add(i64),
}

#[cfg_attr(loom, allow(dead_code, reason = "who commits uses it"))]
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

    /// Whether it moves down, or not at all.
    #[inline]
    pub(crate) fn is_down(self) -> bool {
        match self {
            Self::Take(amount) => amount == 0,
            Self::Refund(_) => true,
            Self::Add(delta) => delta <= 0,
        }
    }

    /// By how much it would move the books.
    pub(crate) fn net(self, books: &Account) -> i64 {
        let delta = self.delta().expect("a move beyond 64 bits is out of range before its net is asked for");
        match (self, books.kind()) {
            // No more is given back than was taken.
            (Self::Refund(_), Kind::Quota { .. }) => delta.max(-books.position().max(0)),
            _ => delta,
        }
    }

    /// As [`carry_out`](Self::carry_out) of a move down, further than an exact counter promises: to be stored before it is told.
    pub(crate) fn carry_out_ahead(self, account: &mut Account) -> Result<u64, Refusal> {
        assert!(self.is_down(), "{self:?} does not move down");
        let net = self.net(account);
        account.go_down(net.unsigned_abs())?;
        Ok(net.unsigned_abs())
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
    /// long as it is not due, no further than that. Nowhere if it is outside of them, as it is with a limit below what was
    /// admitted: on its way back each move is looked at, or what was given back could be taken again.
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
        if (low..=high).contains(&position) {
            (position.saturating_sub(low), high.saturating_sub(position))
        } else {
            (0, 0)
        }
    }
}
