//! State of the request for a relief snapshot.
//!
//! ```text
//!             no space for the next segment,
//!             or it would leave none for a snapshot          finish_relief, or it could not be taken
//!   Offered ────────────────────────────────► Wanted ──────────────────────────────────────► Done
//!      ▲                                        ▲                                             │ still no space:
//!      └──────── a segment is prepared ─────────┴──── the log has changed since ──────────────┘ records are refused
//! ```

use std::time::Instant;

/// Whether a snapshot can help against a shortage of space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relief {
    /// The program takes no snapshots.
    None,
    /// The program takes one when requested.
    Offered,
    /// One is requested or being taken.
    Wanted,
    /// One was taken or could not be taken, when the log had written `written_bytes`.
    Done { at: Instant, written_bytes: u64 },
}
