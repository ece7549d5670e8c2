//! A client's wait.

use super::copies::Copies;
use crate::subscription::pending_resumption::PendingResumption;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemark_engine::Waiter;
use tidemark_log::{Clock, Lsn};

/// Longer timeouts count as for ever, and would overflow the clock. A century.
const LONGEST: Duration = Duration::from_hours(100 * 366 * 24);

/// A client's wait.
pub(crate) struct Wait {
    pub(crate) what: WaitFor,
    /// When it times out; `None` is never.
    pub(crate) deadline: Option<Instant>,
    /// Whether the reply must wait for the commit in every durability mode: `DURABLE BLPOP …`.
    pub(crate) durable: bool,
    /// Whether `CLIENT REPLY` suppresses the reply.
    pub(crate) is_silent: bool,
}

/// What a client waits for.
pub(crate) enum WaitFor {
    /// An element at a key.
    Keys(Arc<Waiter>),
    /// Durability of a record on this node.
    Sync(Lsn),
    /// Replicas, which a node alone does not have: only the deadline ends it.
    Replicas,
    /// Copies of a record on members of the group.
    Copies(Box<Copies>),
    /// Time to pass.
    Sleep,
    /// The end of `CLIENT PAUSE`; then the command runs.
    Unpaused,
    /// Room in the log for a record of so many bytes; then the command runs.
    Room(usize),
    /// The reply to an offloaded command.
    Long,
    /// Completion of a snapshot, reported by the snapshot thread.
    Snapshot,
    /// The place where a subscription resumes.
    Resumption(Box<PendingResumption>),
}

impl Wait {
    /// Creates a wait that times out after `timeout`, if given.
    pub(crate) fn new(what: WaitFor, timeout: Option<Duration>, durable: bool, clock: &Clock) -> Wait {
        Wait {
            what,
            deadline: timeout.and_then(|timeout| deadline_in(timeout, clock)),
            durable,
            is_silent: false,
        }
    }

    /// Whether a blocking command has been served and its reply is on its way.
    pub(crate) fn awaits_delivery(&self) -> bool {
        matches!(&self.what, WaitFor::Keys(waiter) if waiter.is_served())
    }
}

fn deadline_in(timeout: Duration, clock: &Clock) -> Option<Instant> {
    if timeout > LONGEST { None } else { clock.now().checked_add(timeout) }
}
