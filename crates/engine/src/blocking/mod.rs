//! Clients that block until a key has an element to take.

pub(crate) mod blocked;
pub(crate) mod wait_queue;
pub(crate) mod waiter;

pub use blocked::Blocked;
pub use waiter::{Block, Delivery, Waiter};
