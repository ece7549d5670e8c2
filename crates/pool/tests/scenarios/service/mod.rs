//! What a service around a pool does: every call is answered once, in order, and nobody is told of what is not in the log.

mod failures;
mod scenarios;
mod snapshots;
mod support;
mod threads;
