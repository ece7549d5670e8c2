//! What counters, their stores and limiters do. One program: a target per file would link the crate
//! each time.

mod batches;
mod books;
mod concurrency;
mod counters;
mod limiters;
mod limits_together;
mod loads;
mod shared_limiters;
mod threads;
