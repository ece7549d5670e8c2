//! Sockets and the threads that serve them: accept, read, run commands, write.
//!
//! ```text
//! listener ─► event_loop ─► connection ─► command::dispatch ─► outbox ─► event_loop
//!  (accept)     (read)       (parse)         (run)             (reply)     (write)
//! ```

pub(crate) mod client;
pub(crate) mod client_eviction;
pub(crate) mod connection;
pub(crate) mod connection_id;
pub(crate) mod event_loop;
pub(crate) mod event_loop_threads;
pub(crate) mod file_descriptors;
pub(crate) mod inbox;
pub(crate) mod listener;
pub(crate) mod offload;
pub(crate) mod offload_queue;
pub(crate) mod outbox;
pub(crate) mod pause;
pub(crate) mod pipelined_run;
pub(crate) mod socket;
pub(crate) mod time_slice;
pub(crate) mod timers;
