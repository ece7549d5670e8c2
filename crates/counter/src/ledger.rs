//! The books of a counter while it is locked, with its alarm threshold.

use crate::account::{Account, Kind, Refusal};

/// What is locked, changed and written back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ledger {
    pub(crate) account: Account,
    /// Number of open units from which the counter is due to be committed, 0 for never.
    pub(crate) alarm: u64,
}

/// A change of a counter's position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Move {
    /// Takes that many units: all or none. As [`Account::take`].
    Take(u64),
    /// Refunds up to that many units. As [`Account::refund`].
    Refund(u64),
    /// Moves by that many units regardless of the limit. As [`Account::add`].
    Add(i64),
}

#[cfg_attr(loom, allow(dead_code, reason = "the committer uses it"))]
impl Move {
    /// Returns the change in position if there is room for all of it. Otherwise, and for `None`
    /// (beyond 64 bits), the books decide.
    #[inline]
    pub(crate) fn delta(self) -> Option<i64> {
        match self {
            Self::Take(amount) => i64::try_from(amount).ok(),
            Self::Refund(amount) => i64::try_from(amount).ok().map(|amount| -amount),
            Self::Add(delta) => Some(delta),
        }
    }

    /// Whether the move goes down, or not at all.
    #[inline]
    pub(crate) fn is_down(self) -> bool {
        match self {
            Self::Take(amount) => amount == 0,
            Self::Refund(_) => true,
            Self::Add(delta) => delta <= 0,
        }
    }

    /// Returns by how much the move would change the books.
    pub(crate) fn net(self, books: &Account) -> i64 {
        let delta = self.delta().expect("a move beyond 64 bits is out of range before its net is asked for");
        match (self, books.kind()) {
            // A quota refunds no more than was taken.
            (Self::Refund(_), Kind::Quota { .. }) => delta.max(-books.position().max(0)),
            _ => delta,
        }
    }

    /// As [`carry_out`](Self::carry_out), for a move down beyond an exact promise. It must be
    /// stored before it is acknowledged.
    pub(crate) fn carry_out_ahead(self, account: &mut Account) -> Result<u64, Refusal> {
        assert!(self.is_down(), "{self:?} does not move down");
        let net = self.net(account);
        account.go_down(net.unsigned_abs())?;
        Ok(net.unsigned_abs())
    }

    /// Applies the move and returns the units moved.
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

    /// Returns how far (down, up) the counter may move without access to the books: within its
    /// bounds and its promise, and below the alarm until it is due. (0, 0) if the position is
    /// outside, for example above a lowered limit: each move on the way back must go through the
    /// books, or refunded units could be taken again.
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
