//! Shared parts of the programs that watch a server: answers, subscriber, ledger and delivery.
//!
//! ```text
//! writer ─► ledger      every write: its number, its key and its fate
//!                 ╲
//!                  delivery ─► missed, duplicate, out of order, in no ledger
//!                 ╱
//! subscriber ─► receipts   every emission that was processed: subscription, seq, lsn, value
//! ```

pub(crate) mod answer;
pub(crate) mod delivery;
#[cfg(test)]
pub(crate) mod fake_server;
pub(crate) mod ledger;
pub(crate) mod sequence;
pub(crate) mod subscriber;
