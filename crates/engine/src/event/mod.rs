//! Keyspace events: what happened to a key, by the names that Redis gives it.
//!
//! ```text
//! handler ─► Keys::changed(key, "lpop") ─► Events: lpop, del ─► append ─► Engine::tell_events ─► EventAudience::tell
//! ```
//!
//! Handlers name an event wherever they say that a key has changed. It is gathered only if somebody wants its class, and told
//! of under the locks of the command once its record is in the log: so the events of a key come in the order of the log, and
//! a change that the log has refused has none. A replay tells nobody.

mod classes;
mod desk;
mod gathered;
mod misses;
mod telling;

pub use classes::{EVENTS, EventClasses};
pub use desk::{Cause, EventAudience};
pub use gathered::Event;

pub(crate) use classes::{DELETED, EXPIRED, NEW};
pub(crate) use desk::EventDesk;
pub(crate) use gathered::Events;
