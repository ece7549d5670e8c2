#![doc = include_str!("../README.md")]
//!
//! # Map
//!
//! | to see | read |
//! |---|---|
//! | who is who | [`Name`], [`Subject`], [`Extent`], [`Current`] |
//! | what is said about someone | [`State`], [`Slot`], [`Value`] |
//! | what is done to a value on its way | [`Recipe`], [`Receptor`] |
//! | what can go wrong | [`Error`], [`Fault`] |

mod context;
mod current;
mod error;
mod extent;
mod interner;
mod name;
mod receptor;
mod recipe;
mod slot;
mod state;
mod subject;

pub use current::Current;
pub use error::{ArgumentError, ContextError, Error, Fault};
pub use extent::{Enclosures, Extent};
pub use name::Name;
pub use receptor::Receptor;
pub use recipe::{Recipe, Site};
pub use slot::{Slot, Value, ValueKind, Valued};
pub use state::{Slots, State};
pub use subject::{Id, Kind, Subject};
