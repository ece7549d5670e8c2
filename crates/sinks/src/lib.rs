//! Sinks: deliver the log's changes to NATS `JetStream` and Kafka.
//!
//! ```text
//! Feed ─► Follower ─► Supply: a batch ─► Outlet: JetStream or Kafka ─► Status: INFO and metrics
//! ```
//!
//! - [`Address`]: target and selection of a sink, from a URL.
//! - [`Sinks`]: all sinks of a server, on one thread.
//! - [`Status`]: the state of one sink.
//!
//! The position of a sink is stored in its target: each message carries its record's LSN, and the
//! sink reads the last one when it connects. The server stores nothing, and a restart of either
//! side neither loses nor repeats a message.

mod address;
mod jetstream;
mod kafka;
mod outlet;
mod relay;
mod sinks;
mod status;
mod supply;

pub use address::{Address, NotAnAddress};
pub use sinks::Sinks;
pub use status::{Report, State, Status};
