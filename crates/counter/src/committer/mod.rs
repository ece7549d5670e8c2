//! Scheduling of commits: which counters are due, what goes into a batch, and how the store's
//! answers are applied.
//!
//! This is a state machine without threads, clocks or stores. [`Committer`] receives dirty
//! counters, urgent demands, the time and the store's answers; it returns the batch to send next,
//! or the time until which there is nothing to do.
//!
//! ```text
//!   note ──► waiting (schedule) ──┐ due by age, or by `low` at an interval
//! demand ─────────────────────────┴► ripe ──► sealed, in flight (one batch) ──► acknowledged
//!              ▲                                      │ no answer: the same batch again, after a while
//! # Why nothing starves
//! ```
//!
//! # Why nothing starves
//! A dirty counter is in `waiting`, in `ripe` or in flight until it has been seen clean, whatever
//! its traffic. It leaves `waiting` at its age at the latest, measured from the first uncommitted
//! change and not from the last. `ripe` is first come, first served. Nothing is armed and disarmed.
//! Hysteresis, which avoids a write whenever a counter swings around a threshold, is not needed: a
//! commit writes the net, and afterwards the distance to the threshold is measured from what was
//! committed.
//!
//! A move that needs a commit is made by the committer ([`Errand`]), atomically with the
//! acknowledgement that makes room, in the order of the requests for one counter. Otherwise small
//! moves that need no commit would use up the room before the thread that waits for a large one has
//! woken.

mod backoff;
mod demand;
mod errand;
mod error;
mod extent;
mod flight;
mod keys;
mod schedule;
mod state;
#[cfg(test)]
mod tests;
mod ticket;

pub(crate) use backoff::Backoff;
pub(crate) use errand::Errand;
pub use error::Error;
pub(crate) use extent::Extent;
pub(crate) use keys::{Keys, Timing};
pub(crate) use state::{Committer, Counts, Limits, Step};
pub(crate) use ticket::Ticket;
