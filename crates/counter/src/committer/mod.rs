//! Who commits, and when: which counters are due, what is sent to the store at once, and what its answers mean.
//!
//! All of this is a state machine without threads, clocks and stores: [`Committer`] is told what has become dirty, what must be
//! committed now, what time it is and what the store has answered, and says which batch is to be sent, or until when nothing is.
//!
//! ```text
//!   note ──► waiting (schedule) ──┐ due by age, or by `low` at an interval
//! demand ─────────────────────────┴► ripe ──► sealed, in flight (one batch) ──► acknowledged
//!              ▲                                      │ no answer: the same batch again, after a while
//!              └── what has moved meanwhile ◄─────────┘ refused: what was refused is open again, the rest is sent again
//! ```
//!
//! # Why nothing starves
//! A counter that is dirty is in `waiting`, in `ripe` or in flight until it has been seen clean, whatever its traffic. It leaves
//! `waiting` at its age at the latest, which is measured from the first change that is not committed and not from the last one, and
//! the order of `ripe` is first come, first served. There is nothing that is armed and disarmed. The purpose of hysteresis, that a
//! counter which swings around a threshold is not written at each swing, has two other guarantees: what a commit writes is the net, and after one the
//! distance to the threshold is measured from what was committed, so another takes as many units of net change again.
//!
//! Who can move a counter only by a commit is moved by whoever commits ([`Errand`]), with the acknowledgement that makes room, before
//! those of the same counter who asked later. Otherwise whoever moves it by little, and needs no commit for that, would use the room up
//! before a thread that wants to move it by much has woken.

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
