//! One command, from admission to the release of its locks.
//!
//! ```text
//! execution ─► admission ─► locking ─► running (the handler)
//!           ─► logging ─► watch::evaluation ─► serving ─► unlock
//! ```
//!
//! `transaction` runs several commands atomically; `watched_keys` decides whether it may still run, and
//! `once` whether it has run already.

pub(crate) mod admission;
pub(crate) mod call;
pub(crate) mod effort;
pub(crate) mod execution;
pub(crate) mod leading;
pub(crate) mod locking;
pub(crate) mod logging;
pub(crate) mod moment;
pub(crate) mod noted;
pub(crate) mod once;
pub(crate) mod pausing;
pub(crate) mod run_together;
pub(crate) mod running;
pub(crate) mod serving;
pub(crate) mod transaction;
pub(crate) mod watched_keys;
