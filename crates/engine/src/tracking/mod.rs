//! Client-side caching: notifies clients when values that they have read are stale.
//!
//! A [`Tracker`] is one such client. Either the shards record what it reads, or it subscribes to
//! prefixes and is notified of every change of keys with them.
//!
//! ```text
//! read ──► Engine::remember ──► Tracked: the readers of each key (one table per shard)
//!                                  │
//! write ─► Keys::changed ─► Interest::note: taken out ─► append ─► Engine::emit ┬► Tracker::add
//!                                  │                                            └► Broadcast::add
//!                                  └── Prefixes: those of the key
//!
//! Tracker::add ───► the connection takes it
//! Broadcast::add ─► Audience::broadcast ─► pass_on
//! ```
//!
//! # Why no client keeps a stale value
//!
//! *A read and a change cannot miss each other.* A read is recorded under the locks under which it
//! was answered, and a change takes the readers out under the same lock. Either the read has seen
//! the change, or the change finds the read.
//!
//! *The invalidation follows the value.* A change may be made, and its readers notified, while the
//! reply to the read is still being written. The message waits in the tracker, and the thread of
//! the reader's connection takes it only between commands: after the reply, in the same stream of
//! bytes. A client that redirects messages to another connection has two streams and must expect
//! either order, as with Redis.
//!
//! *An invalidation is sent when a read would show the change, neither earlier nor later.* It
//! carries the LSN of its record. In `always` mode, no client sees a change before it is durable;
//! until then a read would return the cached value, and the invalidation is held back like replies
//! to reads. In the other modes, reads show a change immediately, and the invalidation is sent
//! immediately. It names no position in the log: a crash that loses the change also ends the
//! connection, and with it the client's cache.
//!
//! *Lost messages become "everything".* The messages that wait for a client and the changes
//! collected per prefix are bounded. Above the bound, the client is instructed to drop its whole
//! cache. The tables are bounded by keys and by bytes; above that, a random key is evicted and its
//! readers are notified as if it had changed. If the log refuses a change that was made, the
//! readers are notified all the same, because they were taken out of the table.
//!
//! None of this reaches the log or a snapshot: it belongs to connections, which do not survive a
//! restart.
//!
//! # Locks
//!
//! Lock order: the registration lock; then shards, in order; then the prefixes; then one prefix's
//! batch, or the trackers; then one tracker. No further shard is locked while one of the locks
//! after the shards is held.

mod broadcast;
mod changed;
mod notifying;
mod table;
mod totals;
mod tracker;
mod trackers;

pub use broadcast::Broadcast;
pub use notifying::TrackingFigures;
pub use totals::TrackingLimits;
pub use tracker::{Invalidation, Notifier, Stale, Tracker};

pub(crate) use changed::Changed;
pub(crate) use table::Tracked;
pub(crate) use trackers::Tracking;
