//! The laboratory: benchmark scenarios and what they measure with.
//!
//! A scenario runs against a server over the wire, states what it measured and on what, and never counts a failure as
//! work.
//!
//! - [`kv`]: throughput, latency and emission latency of a key-value load, closed or open loop, one server or two.
//! - [`null_server`]: the ceiling: a server that only parses and answers.
//! - [`client`] and [`target`]: a blocking client for any server of the Redis protocol, used by the command line too.

pub mod client;
pub mod duration;
pub mod facts;
pub mod kv;
pub mod latency;
pub mod null_server;
pub mod single_dash;
pub mod statistics;
pub mod target;
pub mod wall_time;
