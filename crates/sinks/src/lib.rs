//! Sinks: the log's changes passed on to NATS `JetStream` and Kafka.
//!
//! ```text
//! Feed ─► Follower ─► Supply: a batch ─► Outlet: JetStream or Kafka ─► Status: INFO and metrics
//! ```
//!
//! - [`Address`]: where a sink passes changes on, and which ones, from a URL.
//! - [`Sinks`]: all sinks of a server, on one thread of their own.
//! - [`Status`]: how one of them is doing.
//!
//! How far a sink has got is kept in the sink itself: each message carries its record's LSN, and whoever connects asks for
//! the last one. So nothing is kept here, and neither side's restart loses or repeats anything.

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
