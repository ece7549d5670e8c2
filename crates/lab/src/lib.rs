//! The laboratory: benchmark scenarios and what they measure with.
//!
//! A scenario states what it measured and on what, and never counts a failure as work.
//!
//! - [`circuit`]: what circuits cost, each under the name that the original's benchmarks gave it, and beside their peers.
//! - [`counter`]: what churning counters and limiters cost, and what of them is uncommitted, beside what others do.
//! - [`counter_cost`]: what counters cost their callers, under the names of the original's benchmarks.
//! - [`pool`]: what draws, reservations, images and replays of prize pools cost, under the names of the original's benchmarks.
//! - [`micro`]: how the rows of circuits, of pools and of what counters cost are measured.
//! - [`kv`]: throughput, latency and emission latency of a key-value load, closed or open loop, one server or two.
//! - [`reconnect`]: how soon a subscriber that comes back has what it missed, and whether it has all of it, once.
//! - [`crash`]: whether every acknowledged write is emitted exactly once when a client, the server or both are killed.
//! - [`fan_out`]: how soon the last of many subscribers of one key has its new value, beside what the system takes to send it.
//! - [`null_server`]: the ceiling: a server that only parses and answers.
//! - [`options`]: the flags that several of these have.
//! - [`interrupt`]: Ctrl-C, which ends a run early and loses nothing that was measured.
//! - [`output`]: printing to who may have stopped reading.
//! - [`client`] and [`target`]: a blocking client for any server of the Redis protocol, used by the command line too.
//!
//! No two files use each other: what measures (clocks, statistics, clients) stands before what is watched (`watch`), that before the
//! scenarios; in each of these come options, then who works, then the report, and the scenario's own file last.
//!
//! What needs a server is behind the feature `wire`, and what commits to the log and to other people's servers behind `stores`; both are on
//! unless they are turned off. Pools with a log need `log` alone, which is a part of `stores`. With `peers` the laboratories measure other
//! people's channels, actors, limiters and selectors as well.

pub mod allocations;
pub mod baseline;
pub mod circuit;
#[cfg(feature = "wire")]
pub mod client;
pub mod counter;
pub mod counter_cost;
#[cfg(feature = "wire")]
pub mod crash;
pub mod duration;
#[cfg(feature = "wire")]
pub mod facts;
#[cfg(feature = "wire")]
pub mod fan_out;
#[cfg(feature = "wire")]
mod figure;
pub mod interrupt;
#[cfg(feature = "wire")]
pub mod kv;
pub mod latency;
pub mod machine;
pub mod micro;
#[cfg(feature = "wire")]
pub mod null_server;
#[cfg(feature = "wire")]
pub mod options;
pub mod output;
pub mod pool;
mod progress;
mod random;
#[cfg(feature = "wire")]
pub mod reconnect;
pub mod single_dash;
pub mod statistics;
#[cfg(feature = "wire")]
pub mod target;
#[cfg(test)]
mod test_run;
#[cfg(all(test, feature = "wire"))]
mod test_server;
pub mod wall_time;
#[cfg(feature = "wire")]
mod watch;
