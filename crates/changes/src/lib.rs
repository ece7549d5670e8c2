//! The log as a stream of changes: what connections, HTTP and sinks are told of it.
//!
//! ```text
//! Log ──► Feed: one thread, a place in the log for each follower
//!            record ─► engine's Changes ─► Selection ─► Format ─► Follower: a bounded queue
//! ```
//!
//! - [`Selection`]: which changes a follower is told of.
//! - [`Format`]: how a record is told, as JSON or as an array of the Redis protocol.
//! - [`Feed`] and [`Follower`]: who reads the log, and who is told.
//! - [`query_string`]: selections and formats as the query of a URL.
//!
//! Only what is durable is told, so nothing has to be taken back.

mod bell;
mod feed;
mod follower;
mod format;
mod pools;
pub mod query_string;
mod selection;
mod text;

pub use feed::{Feed, NotFollowed};
pub use follower::{End, Follower, Told, Waker};
pub use format::{Format, NotTold, UnknownFormat};
pub use selection::{NotSelected, Selection};
pub use text::serialize_bytes;
