//! What the log promises, a file for each part of it. One target, because each links the crate again.

mod faults;
mod fixtures;
mod formats;
mod gaps;
mod hanging;
mod log;
mod missing;
mod recovery;
mod retention;
mod tools;
