//! What counters, their stores and limiters do, in one program: a target for each file would link the crate again.

mod batches;
mod books;
mod concurrency;
mod counters;
mod limiters;
mod limits_together;
mod loads;
mod pn_counter;
mod shared_limiters;
mod threads;
