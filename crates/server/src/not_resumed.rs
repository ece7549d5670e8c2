//! Why a subscription does not go on.

use crate::backlog::End;
use tidemark_log::Lsn;

/// Why a subscription does not go on where it had got to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotResumed {
    /// Emissions at this LSN and before are gone, and not all of them had been seen.
    Stale(Lsn),
    /// What was seen last is beyond the end of the log, which is here.
    Invalid(Lsn),
    /// There is no such subscription.
    NotFound,
    /// So many subscriptions wait to go on from the log already, or the server stops.
    TryAgain,
}

impl From<End> for NotResumed {
    fn from(end: End) -> NotResumed {
        match end {
            End::Stale(floor) => NotResumed::Stale(floor),
            // Nothing is done before the place is known.
            End::Done | End::Stopping => NotResumed::TryAgain,
        }
    }
}

impl NotResumed {
    /// The word for it in every protocol.
    pub(crate) fn word(self) -> &'static str {
        match self {
            NotResumed::Stale(_) => "STALE_SEQUENCE",
            NotResumed::Invalid(_) => "INVALID_SEQUENCE",
            NotResumed::NotFound => "SUBSCRIPTION_NOT_FOUND",
            NotResumed::TryAgain => "TRYAGAIN",
        }
    }

    /// The LSN that goes with the word.
    pub(crate) fn lsn(self) -> Lsn {
        match self {
            NotResumed::Stale(floor) => floor,
            NotResumed::Invalid(head) => head,
            NotResumed::NotFound | NotResumed::TryAgain => Lsn::ZERO,
        }
    }
}
