//! Why a subscription does not go on.

use crate::subscription::replay_buffer::End;
use tidemark_log::Lsn;

/// Why a subscription does not go on where it had got to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResumeError {
    /// Emissions at this LSN and before are gone, and not all of them had been seen.
    Stale(Lsn),
    /// What was seen last is beyond the end of the log, which is here.
    Invalid(Lsn),
    /// There is no such subscription.
    NotFound,
    /// So many subscriptions wait to go on from the log already, or the server stops.
    TryAgain,
}

impl From<End> for ResumeError {
    fn from(end: End) -> ResumeError {
        match end {
            End::Stale(floor) => ResumeError::Stale(floor),
            // Nothing is done before the place is known.
            End::Done | End::Stopping => ResumeError::TryAgain,
        }
    }
}

impl ResumeError {
    /// The word for it in every protocol.
    pub(crate) fn word(self) -> &'static str {
        match self {
            ResumeError::Stale(_) => "STALE_SEQUENCE",
            ResumeError::Invalid(_) => "INVALID_SEQUENCE",
            ResumeError::NotFound => "SUBSCRIPTION_NOT_FOUND",
            ResumeError::TryAgain => "TRYAGAIN",
        }
    }

    /// The LSN that goes with the word.
    pub(crate) fn lsn(self) -> Lsn {
        match self {
            ResumeError::Stale(floor) => floor,
            ResumeError::Invalid(head) => head,
            ResumeError::NotFound | ResumeError::TryAgain => Lsn::ZERO,
        }
    }
}
