//! Interface of a sink's target.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidemark_changes::EncodedRecord;
use tidemark_log::Lsn;

/// Message header with the record's LSN.
pub(crate) const LSN_HEADER: &str = "Tidemark-Lsn";
/// Header of a progress message, which has no content: there was no change up to its LSN.
pub(crate) const PROGRESS_HEADER: &str = "Tidemark-Progress";
/// Timeout of one operation.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// An error, for the operator. Every operation is retried.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Trouble(pub(crate) String);

impl Trouble {
    pub(crate) fn while_(attempt: &str, error: impl std::fmt::Display) -> Trouble {
        Trouble(format!("{attempt}: {error}"))
    }
}

/// A message to deliver.
pub(crate) struct Message {
    pub(crate) lsn: Lsn,
    /// Time in microseconds since 1970.
    pub(crate) time_us: u64,
    pub(crate) payload: Vec<u8>,
    pub(crate) is_progress: bool,
}

impl From<EncodedRecord> for Message {
    fn from(record: EncodedRecord) -> Message {
        Message { lsn: record.lsn, time_us: record.time_us, payload: record.payload, is_progress: false }
    }
}

impl Message {
    /// Creates a progress message: there is no further change up to `lsn`.
    pub(crate) fn progress(lsn: Lsn) -> Message {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let time_us = now.map_or(0, |time| time.as_micros() as u64);
        Message { lsn, time_us, payload: Vec::new(), is_progress: true }
    }
}

/// A connection to the target. It is the only writer there.
pub(crate) trait Outlet: Sized {
    /// Configuration of the target.
    type Target;

    /// Connects, creates the stream or topic if it is missing, and finds the last message.
    async fn open(target: &Self::Target) -> Result<Self, Trouble>;

    /// Returns the LSN of the last message in the target at the time of the connection.
    fn last(&self) -> Option<Lsn>;

    /// Appends messages in order. If this fails, the number of appended ones is unknown, and the
    /// connection must not be used further.
    async fn append(&mut self, messages: Vec<Message>) -> Result<(), Trouble>;

    /// Waits until the connection is lost, if the implementation can detect that without sending.
    async fn lost(&self) -> Trouble;
}
