//! Benchmark scenarios and the instruments that they measure with.
//!
//! A scenario states what it measured and on which machine. A failure never counts as work.
//!
//! - [`circuit`]: costs of circuits, under the names of the original's benchmarks, next to peers.
//! - [`counter`]: costs of counters and limiters under churn, how much stays uncommitted, and
//!   peers.
//! - [`counter_cost`]: costs of counters for their callers, under the original's benchmark names.
//! - [`pool`]: costs of draws, reservations, images and replays, under the original's benchmark
//!   names.
//! - [`series_cost`]: costs of time series for their callers.
//! - [`time_series`]: the original's scenarios of time series, by their names, in its lines.
//! - [`micro`]: the microbenchmark harness of `circuit`, `pool`, `counter_cost` and `series_cost`.
//! - [`kv`]: throughput, latency and emission latency of a key-value load; closed or open loop; one
//!   server, two, or a cluster beside one server and etcd.
//! - [`reconnect`]: how soon a resumed subscriber has what it missed, and whether each emission
//!   arrives exactly once.
//! - [`crash`]: whether every acknowledged write is emitted exactly once when a client, the server
//!   or both are killed.
//! - [`failover`]: how long a cluster takes no writes when its leader is killed, stopped or cut off,
//!   and whether an acknowledged write is missing then.
//! - [`fan_out`]: delay until the last of many subscribers of one key has its new value, next to
//!   the system's floor.
//! - [`null_server`]: the ceiling: a server that only parses and answers.
//! - [`cluster`]: a cluster of three members on this machine, for `failover`.
//! - [`scenario`]: the trait of all of these. [`report`]: what a run has found.
//! - [`options`]: flags that several scenarios share.
//! - [`interrupt`]: Ctrl-C, which ends a run early and keeps what was measured.
//! - [`output`]: printing to a reader that may have closed its end.
//! - [`client`] and [`target`]: a blocking client for any server of the Redis protocol; the command
//!   line uses it too.
//!
//! No two files use each other. Instruments (clocks, statistics, clients) come first, then `watch`,
//! then the scenarios. Within a scenario the order is options, workers, report, and last its own
//! `mod.rs`.
//!
//! The feature `wire` enables what needs a server. `stores` enables what commits to the log and to
//! third-party servers. Both are on by default. Pools with a log need only `log`, a part of
//! `stores`. `peers` adds third-party channels, actors, limiters and selectors.

pub mod allocations;
pub mod baseline;
pub mod circuit;
#[cfg(feature = "wire")]
pub mod client;
#[cfg(feature = "wire")]
pub mod cluster;
pub mod counter;
pub mod counter_cost;
#[cfg(feature = "wire")]
pub mod crash;
pub mod duration;
#[cfg(feature = "wire")]
pub mod facts;
#[cfg(feature = "wire")]
pub mod failover;
#[cfg(feature = "wire")]
pub mod fan_out;
#[cfg(any(feature = "log", feature = "wire"))]
mod folder;
pub mod interrupt;
#[cfg(feature = "wire")]
pub mod kv;
pub mod latency;
pub mod machine;
pub mod micro;
#[cfg(feature = "wire")]
mod namespace;
#[cfg(feature = "wire")]
pub mod null_server;
#[cfg(feature = "wire")]
pub mod options;
#[cfg(feature = "wire")]
mod or_dash;
pub mod output;
pub mod pool;
mod progress;
mod random;
#[cfg(feature = "wire")]
pub mod reconnect;
pub mod report;
pub mod scenario;
pub mod series_cost;
#[cfg(feature = "wire")]
mod server_process;
pub mod single_dash;
pub mod statistics;
#[cfg(feature = "wire")]
pub mod target;
#[cfg(test)]
mod test_run;
#[cfg(all(test, feature = "wire"))]
mod test_server;
#[cfg(all(feature = "log", feature = "wire"))]
pub mod time_series;
pub mod wall_time;
#[cfg(feature = "wire")]
mod watch;
