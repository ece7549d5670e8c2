//! Watches reads of a Tidemark server: delivers the answer, and then every change of it exactly
//! once and in order, over connections that may break and servers that may restart.
//!
//! ```no_run
//! use tidemark_client::{Client, Event, redis};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect("redis://127.0.0.1:7379").await?;
//! let mut watch = client.watch(["GET", "temperature"]);
//! while let Some(event) = watch.next().await {
//!     match event? {
//!         // First of all, and again wherever emissions may be missing.
//!         Event::Snapshot(snapshot) => {
//!             let value: Option<f64> = redis::from_redis_value(snapshot.value)?;
//!             println!("{value:?}, because: {}", snapshot.reason);
//!         }
//!         Event::Emission(emission) => {
//!             let value: Option<f64> = redis::from_redis_value(emission.value)?;
//!             println!("{value:?} since {}", emission.lsn);
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Any command that reads keys can be watched: `["ZRANGE", "board", "0", "9", "REV", "WITHSCORES"]`
//! is the top ten of a ranking.
//!
//! # Guarantees
//!
//! - Emissions come in the order of their LSNs, each exactly once: their numbers are consecutive,
//!   and the client checks that.
//! - The client replaces a lost connection, after a wait that grows with each failure ([`Retry`]),
//!   and asks the server for the emissions after the last one.
//! - If emissions may be missing, [`Event::Snapshot`] comes again, with a [`Reason`]: the server
//!   keeps emissions for a limited time, and a server that loses its disk has no subscriptions.
//! - The client holds a bounded number of events for a slow caller. The rest waits in the server.
//!
//! To continue after a restart, a program stores the [`Position`] after the last event that it has
//! processed, as text:
//!
//! ```no_run
//! # use tidemark_client::{Client, Position};
//! # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
//! let mut watch = match std::fs::read_to_string("position") {
//!     Ok(text) => client.resume(text.parse::<Position>()?),
//!     Err(_) => client.watch(["GET", "temperature"]),
//! };
//! while let Some(event) = watch.next().await {
//!     println!("{:?}", event?);
//!     if let Some(position) = watch.position() {
//!         std::fs::write("position", position.to_string())?;
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What a crash of the server can lose
//!
//! With durability `interval` or `off` a killed server may lose changes that it has already
//! emitted, and give their LSNs to other changes. The client notices if the log has become shorter
//! than what it has seen, or if the numbers are not consecutive, and reports that with a snapshot.
//! It cannot notice if the same number of other changes has replaced the lost ones. Changes that
//! were written `DURABLE`, and all changes with durability `always`, are emitted after they are on
//! disk, so none of this happens to them.

mod backoff;
mod client;
mod error;
mod event;
mod follower;
mod link;
mod position;
mod subscription;
mod watch;

pub use backoff::Retry;
pub use client::Client;
pub use error::Error;
pub use event::{Emission, Event, Reason, Snapshot};
pub use position::{Position, PositionError};
/// The crate whose [`Value`](redis::Value) events carry.
pub use redis;
pub use watch::Watch;
