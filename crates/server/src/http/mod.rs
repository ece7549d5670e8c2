//! Watched reads, the change stream, limits, metrics and health over HTTP.
//!
//! ```text
//! listener ─► service ─┬► watching ─► watch: notices ─► stream (events) or socket (a WebSocket)
//!  (places)   (routes) ├► changes ─► stream or web_socket
//!                      └► limiting (JSON), api_key (as VSA) ─► running: commands ─► verdict
//! ```

pub(crate) mod access;
mod api_key;
mod body;
mod changes;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod limiting;
mod listener;
pub(crate) mod refusal;
pub(crate) mod running;
mod service;
mod socket;
mod stream;
mod verdict;
mod watch;
mod watching;
mod web_socket;
mod wish;
mod word;

pub(crate) use listener::SPARE_PLACES;
pub(crate) use service::Http;
