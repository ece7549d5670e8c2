//! What a sink needs of the other side.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidemark_changes::Told;
use tidemark_log::Lsn;

/// The header of a message that says which record it is.
pub(crate) const LSN_HEADER: &str = "Tidemark-Lsn";
/// The header of a message without content that says up to where there was no change.
pub(crate) const PROGRESS_HEADER: &str = "Tidemark-Progress";
/// How long the other side may take for one thing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// What went wrong, for the operator. Everything is tried again.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Trouble(pub(crate) String);

impl Trouble {
    /// What was attempted, and how it went.
    pub(crate) fn while_(attempt: &str, error: impl std::fmt::Display) -> Trouble {
        Trouble(format!("{attempt}: {error}"))
    }
}

/// A message to be passed on.
pub(crate) struct Message {
    pub(crate) lsn: Lsn,
    /// In microseconds since 1970.
    pub(crate) time_us: u64,
    pub(crate) payload: Vec<u8>,
    pub(crate) is_progress: bool,
}

impl From<Told> for Message {
    fn from(told: Told) -> Message {
        Message { lsn: told.lsn, time_us: told.time_us, payload: told.payload, is_progress: false }
    }
}

impl Message {
    /// Says that there is nothing up to an LSN.
    pub(crate) fn progress(lsn: Lsn) -> Message {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let time_us = now.map_or(0, |time| time.as_micros() as u64);
        Message { lsn, time_us, payload: Vec::new(), is_progress: true }
    }
}

/// A connection to the other side, which is the only one that writes there.
pub(crate) trait Outlet: Sized {
    /// Where to connect.
    type Target;

    /// Connects, makes what messages are kept in if it is not there, and finds the last message.
    async fn open(target: &Self::Target) -> Result<Self, Trouble>;

    /// The LSN of the last message that is kept there.
    fn last(&self) -> Option<Lsn>;

    /// Appends messages in this order behind the last one. When this fails it is not known how many of them are there, and
    /// the connection is of no use any more.
    async fn append(&mut self, messages: Vec<Message>) -> Result<(), Trouble>;

    /// Waits until the connection is lost, as far as that can be known while nothing is sent.
    async fn lost(&self) -> Trouble;
}
