//! Subscriptions to watched reads: a client asks for a read once, and is sent its answer each time that it changes.
//!
//! ```text
//! engine emits ─► registry ─► event_loop ─► read_subscription ─► outbox
//!                (who listens)                 │ cursor: what comes next
//!                                              └ below what is retained: replay_queue ─► replay ─► replay_buffer
//! ```
//!
//! `lifecycle` begins and ends them, `resumption` lets them go on behind an LSN, `ownership` gives a named one to one
//! connection at a time. Transports have a registry each: workers, HTTP, channels.

pub(crate) mod channel_flow;
pub(crate) mod channel_message;
pub(crate) mod channel_publisher;
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
