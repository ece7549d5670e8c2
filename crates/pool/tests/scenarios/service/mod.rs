//! The service of a pool: it answers every call once, in order, and never answers with what is not
//! in the log.

mod failures;
mod scenarios;
mod snapshots;
mod support;
mod threads;
