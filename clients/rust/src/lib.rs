//! Watches reads of a Tidemark server: the answer, and from then on every change of it, exactly once and in order, over
//! connections that may break and servers that may be restarted.
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
//! Whatever reads keys can be watched: `["ZRANGE", "board", "0", "9", "REV", "WITHSCORES"]` is the top ten of a ranking.
//!
//! # What holds
//!
//! - Emissions come in the order of their LSNs, none twice, none left out: their numbers are dense, and the client checks it.
//! - A connection that ends is replaced, after a while that grows with each failure ([`Retry`]), and the server is asked for
//!   what came behind the last emission.
//! - Where it cannot be known that nothing is missing, [`Event::Snapshot`] comes again, with a [`Reason`]: the server keeps
//!   emissions for some time only, and a server that loses its disk has no subscriptions.
//! - What the client holds for a caller that is slow is bounded. The rest waits in the server.
//!
//! A program that wants to go on where it stopped keeps the [`Position`] behind the last event that it has processed, as
//! text:
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
//! # What a crash of the server can take
//!
//! With durability `interval` or `off` a server that is killed may lose changes that it has told, and give their LSNs to other
//! changes. The client notices if the log has become shorter than what it has seen, or if the numbers do not fit, and says
//! so by a snapshot; it cannot notice if as many others have taken the lost ones' places. Changes that were written
//! `DURABLE`, and all changes with durability `always`, are told after they are on disk: there nothing of this happens.

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
