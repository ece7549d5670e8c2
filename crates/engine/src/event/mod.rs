//! Keyspace events: changes and misses of keys, under the names that Redis uses.
//!
//! ```text
//! handler ─► Keys::changed(key, "lpop") ─► Events: lpop, del ─► append
//!         ─► Engine::publish_events ─► EventAudience::publish
//! ```
//!
//! Handlers name an event when they report a change of a key. The event is collected only if its
//! class is wanted. It is published under the command's locks after the command's record is in the
//! log: the events of a key are in log order, and a refused change has none. A replay publishes
//! nothing.

mod classes;
mod desk;
mod gathered;
mod misses;
mod publishing;

pub use classes::{EVENTS, EventClasses};
pub use desk::{Cause, EventAudience};
pub use gathered::Event;

pub(crate) use classes::{DELETED, EXPIRED, NEW};
pub(crate) use desk::EventDesk;
pub(crate) use gathered::Events;
