//! What a client waits for.

use crate::subscription::pending_resumption::PendingResumption;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemark_engine::Waiter;
use tidemark_log::Lsn;

/// Timeouts beyond this are as good as for ever, and would overflow the clock. A century.
const LONGEST: Duration = Duration::from_hours(100 * 366 * 24);

/// A client's wait.
pub(crate) struct Wait {
    pub(crate) what: WaitFor,
    /// When it ends by itself; `None` is never.
    pub(crate) deadline: Option<Instant>,
    /// Whether the answer must wait for the disk, whatever the server's setting: `DURABLE BLPOP …`.
    pub(crate) durable: bool,
    /// Whether `CLIENT REPLY` asked that there be no answer.
    pub(crate) is_silent: bool,
}

/// What a client waits for.
pub(crate) enum WaitFor {
    /// That a key gets something to take.
    Keys(Arc<Waiter>),
    /// That a record is durable.
    Sync(Lsn),
    /// For replicas, of which there are none: only the deadline ends it.
    Replicas,
    /// For time to pass.
    Sleep,
    /// That `CLIENT PAUSE` is over; the command that waits is still to be run.
    Unpaused,
    /// That the log has room for a record of so many bytes; the command that waits is still to be run.
    Room(usize),
    /// For the answer to a long command, which a thread beside the event loops runs.
    Long,
    /// That a snapshot is complete, which the snapshot's thread tells.
    Snapshot,
    /// That the place is found where a subscription goes on.
    Place(Box<PendingResumption>),
}

impl Wait {
    /// A wait that ends by itself after `timeout`, if there is one.
    pub(crate) fn new(what: WaitFor, timeout: Option<Duration>, durable: bool) -> Wait {
        Wait { what, deadline: timeout.and_then(deadline_in), durable, is_silent: false }
    }

    /// Whether a blocking command has been served, and its answer is on its way.
    pub(crate) fn awaits_delivery(&self) -> bool {
        matches!(&self.what, WaitFor::Keys(waiter) if waiter.is_served())
    }
}

fn deadline_in(timeout: Duration) -> Option<Instant> {
    if timeout > LONGEST { None } else { Instant::now().checked_add(timeout) }
}
