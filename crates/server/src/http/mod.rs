//! Watched reads, the change stream, metrics and health over HTTP.
//!
//! ```text
//! listener ─► service ─┬► watching ─► watch: notices ─► stream (events) or socket (a WebSocket)
//!  (places)   (routes) └► changes ─► stream or web_socket
//! ```

mod access;
mod changes;
mod listener;
mod service;
mod socket;
mod stream;
mod watch;
mod watching;
mod web_socket;

pub(crate) use service::Http;
