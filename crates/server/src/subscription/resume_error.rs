//! Why a subscription does not resume.

use crate::subscription::replay_buffer::End;
use tidemark_log::Lsn;

/// Why a subscription does not resume at its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResumeError {
    /// Emissions up to this LSN are gone, and the subscriber has not seen all of them.
    Stale(Lsn),
    /// The subscriber's position is after the end of the log, which is here.
    Invalid(Lsn),
    /// There is no such subscription.
    NotFound,
    /// Too many subscriptions wait for a replay, or the server stops.
    TryAgain,
}

impl From<End> for ResumeError {
    fn from(end: End) -> ResumeError {
        match end {
            End::Stale(floor) => ResumeError::Stale(floor),
            // A replay does not end as done before the place is known.
            End::Done | End::Stopping => ResumeError::TryAgain,
        }
    }
}

impl ResumeError {
    /// Error code, the same in every protocol.
    pub(crate) fn word(self) -> &'static str {
        match self {
            ResumeError::Stale(_) => "STALE_SEQUENCE",
            ResumeError::Invalid(_) => "INVALID_SEQUENCE",
            ResumeError::NotFound => "SUBSCRIPTION_NOT_FOUND",
            ResumeError::TryAgain => "TRYAGAIN",
        }
    }

    /// LSN that accompanies the code.
    pub(crate) fn lsn(self) -> Lsn {
        match self {
            ResumeError::Stale(floor) => floor,
            ResumeError::Invalid(head) => head,
            ResumeError::NotFound | ResumeError::TryAgain => Lsn::ZERO,
        }
    }
}
