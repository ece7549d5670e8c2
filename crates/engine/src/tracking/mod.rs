//! Clients that keep what they have read, and are told when it is no longer so.
//!
//! A [`Tracker`] is such a client. Either the shards remember what it reads, or it names prefixes and is told of every
//! change of keys that begin so.
//!
//! ```text
//! read ──► Engine::remember ──► Tracked: who has read which key (one table in each shard)
//!                                  │
//! write ─► Keys::changed ─► Interest::note: taken out ─► append ─► Engine::emit ─► Tracker::add ─► its connection takes it
//!                                  │                                    │
//!                                  └─ Prefixes: how the key begins      └─► Broadcast::add ─► Audience::broadcast ─► pass_on
//! ```
//!
//! # Why nobody keeps what is no longer so
//!
//! *A read and a change cannot miss each other.* A read is remembered under the locks under which it was answered, and a
//! change takes the readers out under the same lock. So either the read has seen the change, or the change finds the read.
//!
//! *The word that a value is stale comes behind the value.* A change may be made, and its readers told, while the answer to
//! the read is still being written. But what a tracker is told waits in the tracker, and the thread that serves the reader's
//! connection takes it from there only between commands: behind the answer, in one stream of bytes. Whoever lets another
//! connection take it has two streams, and has to reckon with either order, as with Redis.
//!
//! *It comes neither before a read would show the change, nor later.* An invalidation has the LSN of its record. With
//! `always` nobody is shown a change before it is durable, so the kept value is what a read would answer until then, and
//! the invalidation is held back like the answers to reads. In the other modes reads show a change at once, and the
//! invalidation leaves at once: it names no position in the log, so there is nothing to come back with after a crash that
//! takes the change back, which ends the connection and with it everything that the client may rely on.
//!
//! *What is lost is told as everything.* What waits for a client is bounded, as is what is gathered for a prefix. Beyond it
//! the client is told to forget whatever it has. The tables are bounded by keys and by bytes: beyond
//! that a key at random is forgotten and its readers told as if it had changed. If the log refuses a change that has been
//! made, the readers are told all the same: they were taken out of the table.
//!
//! Nothing of this reaches the log or a snapshot: it belongs to connections, which no restart survives.
//!
//! # Locks
//!
//! Whoever changes who is tracked; then shards, in order; then the prefixes; then one prefix's batch, or the trackers; then
//! one tracker. None of the latter is held while a shard is locked that was not before.

mod broadcast;
mod changed;
mod table;
mod telling;
mod totals;
mod tracker;
mod trackers;

pub use broadcast::Broadcast;
pub use telling::TrackingFigures;
pub use totals::TrackingLimits;
pub use tracker::{Invalidation, Stale, Tell, Tracker};

pub(crate) use changed::Changed;
pub(crate) use table::Tracked;
pub(crate) use trackers::Tracking;
