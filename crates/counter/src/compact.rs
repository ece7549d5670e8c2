//! Packing of a cold counter's books into four words.

use crate::account::{Account, Kind};
use crate::ledger::Ledger;
use crate::piece::Piece;
use crate::promise::Promise;

/// The words beside the counter's piece. The position is `base` plus the piece's `down`; *D* is
/// stored relative to `base`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compact {
    pub(crate) base: i64,
    /// `i64::MAX` if there is no limit.
    pub(crate) limit: i64,
    /// *D* − `base` in the upper half, *F* in the lower.
    pub(crate) progress: u64,
    /// From the top: one bit for exact, 31 for the promise's [`Units`], one for due, 31 for the
    /// alarm's.
    pub(crate) settings: u64,
}

const IS_EXACT: u64 = 1 << 63;
const IS_DUE: u64 = 1 << 31;

/// A number of units in 31 bits: 27 bits of mantissa, and a shift in steps of four bits. Numbers
/// that are neither small nor round cannot be represented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Units(u64);

impl Units {
    const MASK: u64 = (1 << 31) - 1;
    const DIGITS: u32 = 27;
    /// Represents `u64::MAX`.
    const ALL: Self = Self(Self::MASK);

    #[inline]
    fn of(number: u64) -> Option<Self> {
        if number == u64::MAX {
            return Some(Self::ALL);
        }
        let superfluous = (u64::BITS - number.leading_zeros()).saturating_sub(Self::DIGITS).div_ceil(4);
        let digits = number >> (4 * superfluous);
        (digits << (4 * superfluous) == number)
            .then_some(Self(u64::from(superfluous) << Self::DIGITS | digits))
    }

    #[inline]
    fn number(self) -> u64 {
        if self == Self::ALL {
            return u64::MAX;
        }
        let (superfluous, digits) = (self.0 >> Self::DIGITS, self.0 & ((1 << Self::DIGITS) - 1));
        digits << (4 * superfluous)
    }
}

impl Compact {
    /// Packs the books into words and the piece of the window to move within. `None` if a number
    /// does not fit.
    #[inline]
    pub(crate) fn pack(
        Ledger { account, alarm }: &Ledger,
        room: (i64, i64),
        is_due: bool,
    ) -> Option<(Self, Piece)> {
        let piece = Piece::cut(room.0, room.1);
        let base = account.position() - i64::from(piece.down);
        let ahead = i32::try_from(account.durable().checked_sub(base)?).ok()?;
        let sealed = i32::try_from(account.sealed()).ok()?;
        let (is_exact, slack) = match account.promise() {
            Promise::Relaxed { cap } => (0, cap),
            Promise::Exact { block } => (IS_EXACT, block),
        };
        let (slack, alarm) = (Units::of(slack)?, Units::of(*alarm)?);
        let limit = match account.kind() {
            Kind::Plain => i64::MAX,
            Kind::Quota { limit } => limit,
        };
        let compact = Self {
            base,
            limit,
            progress: u64::from(ahead.cast_unsigned()) << 32 | u64::from(sealed.cast_unsigned()),
            settings: is_exact | slack.0 << 32 | if is_due { IS_DUE } else { 0 } | alarm.0,
        };
        Some((compact, piece))
    }

    #[inline]
    pub(crate) fn unpack(self, piece: Piece) -> Ledger {
        let durable = self.base + i64::from((self.progress >> 32) as i32);
        let sealed = i64::from(self.progress as i32);
        let open = self.base + i64::from(piece.down) - durable - sealed;
        Ledger {
            account: Account::from_parts(self.kind(), Self::promise(self.settings), durable, sealed, open),
            alarm: Units(self.settings & Units::MASK).number(),
        }
    }

    pub(crate) fn kind(self) -> Kind {
        match self.limit {
            i64::MAX => Kind::Plain,
            limit => Kind::Quota { limit },
        }
    }

    pub(crate) fn promise(settings: u64) -> Promise {
        let slack = Units(settings >> 32 & Units::MASK).number();
        match settings & IS_EXACT {
            0 => Promise::Relaxed { cap: slack },
            _ => Promise::Exact { block: slack },
        }
    }

    pub(crate) fn is_due(settings: u64) -> bool {
        settings & IS_DUE != 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn units_are_kept_to_the_last_or_not_at_all(digits in any::<u64>(), shift in 0..64u32) {
            let number = digits >> shift;
            let is_short = number >> (number.trailing_zeros().min(60) / 4 * 4) < 1 << 27;
            prop_assert_eq!(Units::of(number).is_some(), is_short || number == u64::MAX);
            if let Some(units) = Units::of(number) {
                prop_assert!(units.0 <= Units::MASK);
                prop_assert_eq!(units.number(), number);
            }
        }
    }

    #[test]
    fn what_people_write_down_has_a_form() {
        for number in [0, 1, 999, (1 << 27) - 1, 1 << 30, 10_000_000_000, 1 << 40, 1 << 62, 1 << 63, u64::MAX]
        {
            assert_eq!(Units::of(number).map(Units::number), Some(number));
        }
        assert_eq!(Units::of((1 << 40) + 1), None);
    }
}
