//! The change stream: the log's changes, for connections, HTTP and sinks.
//!
//! ```text
//! Log ──► Feed: one thread, a position in the log for each follower
//!            record ─► engine's Changes ─► Selection ─► Format ─► Follower: a bounded queue
//! ```
//!
//! - [`Selection`]: which changes a follower gets.
//! - [`Format`]: JSON, or arrays of the Redis protocol.
//! - [`Feed`] and [`Follower`]: the reader of the log, and its consumers.
//! - [`query_string`]: parses selections and formats from the query of a URL.
//!
//! Only durable records are delivered, so no change is ever revoked.

mod bell;
mod feed;
mod follower;
mod format;
mod pools;
pub mod query_string;
mod selection;
mod text;

pub use feed::{Feed, NotFollowed};
pub use follower::{EncodedRecord, End, Follower, Waker};
pub use format::{EncodeError, Format, UnknownFormat};
pub use selection::{NotSelected, Selection};
pub use text::serialize_bytes;
