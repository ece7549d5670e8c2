//! Behaviour of counters, their stores and limiters. One program: a target per file would link the
//! crate each time.

mod batches;
mod books;
mod concurrency;
mod counters;
mod limiters;
mod limits_together;
mod loads;
mod shared_limiters;
mod threads;
