//! A pool in a log: every acknowledged call is recovered, whatever happens to the process, the
//! machine or the disk.

mod damage;
mod faults;
mod processes;
mod recovery;
mod snapshots;
mod support;
