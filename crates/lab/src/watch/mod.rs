//! What the programs that watch a server share: the contract's answers, a subscriber, and the judge of what it was sent.
//!
//! ```text
//! writer ─► ledger      every write: its number, its key, and what became of it
//!                 ╲
//!                  verdict ─► missed, duplicate, out of order, in nobody's ledger
//!                 ╱
//! subscriber ─► receipts   every emission that was processed: subscription, seq, lsn, value
//! ```

pub(crate) mod answer;
#[cfg(test)]
pub(crate) mod fake_server;
pub(crate) mod ledger;
pub(crate) mod sequence;
pub(crate) mod subscriber;
pub(crate) mod verdict;
