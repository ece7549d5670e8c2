//! A pool in a log: what was answered is there again, whatever happens to the process, the machine or the disk.

mod damage;
mod faults;
mod processes;
mod recovery;
mod snapshots;
mod support;
