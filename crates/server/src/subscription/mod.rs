//! Subscriptions to watched reads: a client requests a read once, and is sent its new answer
//! whenever a write changes it.
//!
//! ```text
//! engine emits ─► registry ─► event_loop ─► read_subscription ─► outbox
//!               (subscribers)                │ cursor: the next emissions
//!                                            └ below retention: replay_queue ─► replay
//!                                                                  ─► replay_buffer
//! ```
//!
//! `lifecycle` begins and ends subscriptions. `resumption` resumes them after an LSN. `ownership`
//! gives the name of a named subscription to one connection at a time. Each transport has its own
//! registry: workers, HTTP, channels.

pub(crate) mod channel_flow;
pub(crate) mod channel_message;
pub(crate) mod channel_publisher;
pub(crate) mod channel_registry;
pub(crate) mod channel_watch;
pub(crate) mod cursor;
pub(crate) mod delivery;
pub(crate) mod http_registry;
pub(crate) mod json_cache;
pub(crate) mod lifecycle;
pub(crate) mod ownership;
pub(crate) mod pending_resumption;
pub(crate) mod read_subscription;
pub(crate) mod registry;
pub(crate) mod replay;
pub(crate) mod replay_buffer;
pub(crate) mod replay_queue;
pub(crate) mod reply;
pub(crate) mod resume_error;
pub(crate) mod resumption;
pub(crate) mod subscriber;
