//! What the log promises, one file per topic. One test target, because each links the crate again.

mod block_files;
mod faults;
mod fixtures;
mod formats;
mod gaps;
mod hanging;
mod log;
mod member;
mod missing;
mod recovery;
mod repair;
mod retention;
mod tools;
