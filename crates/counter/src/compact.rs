//! How the books of a counter that is not hot lie in four words.

use crate::account::{Account, Kind};
use crate::ledger::Ledger;
use crate::piece::Piece;
use crate::promise::Promise;

/// What is kept beside the counter's piece. The position is `base` and the piece's lower part; what is durable lies `ahead` of
/// `base`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compact {
    pub(crate) base: i64,
    /// `i64::MAX` if there is none.
    pub(crate) limit: i64,
    /// How far *D* is ahead of `base` in the upper half, *F* in the lower.
    pub(crate) progress: u64,
    /// From the top: one bit for exact, 31 for the promise's units, one for due, 31 for the alarm.
    pub(crate) settings: u64,
}

const IS_EXACT: u64 = 1 << 63;
const IS_DUE: u64 = 1 << 31;
const UNITS: u64 = (1 << 31) - 1;

impl Compact {
    /// Books as words, with the piece that is to be moved within. `None` if a number is too large for its place.
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
        if slack > UNITS || *alarm > UNITS {
            return None;
        }
        let limit = match account.kind() {
            Kind::Plain => i64::MAX,
            Kind::Quota { limit } => limit,
        };
        let compact = Self {
            base,
            limit,
            progress: u64::from(ahead.cast_unsigned()) << 32 | u64::from(sealed.cast_unsigned()),
            settings: is_exact | slack << 32 | if is_due { IS_DUE } else { 0 } | alarm,
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
            alarm: self.settings & UNITS,
        }
    }

    pub(crate) fn kind(self) -> Kind {
        match self.limit {
            i64::MAX => Kind::Plain,
            limit => Kind::Quota { limit },
        }
    }

    pub(crate) fn promise(settings: u64) -> Promise {
        let slack = settings >> 32 & UNITS;
        match settings & IS_EXACT {
            0 => Promise::Relaxed { cap: slack },
            _ => Promise::Exact { block: slack },
        }
    }

    pub(crate) fn is_due(settings: u64) -> bool {
        settings & IS_DUE != 0
    }
}
