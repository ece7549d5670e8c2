#![doc = include_str!("../README.md")]
//!
//! # Map
//!
//! | to see | read |
//! |---|---|
//! | who is who | [`Name`], [`Subject`] |
//! | what is done to a value on its way | [`Recipe`], [`Receptor`] |
//! | what can go wrong | [`Error`], [`Fault`] |

mod context;
mod error;
mod name;
mod receptor;
mod recipe;
mod subject;

pub use error::{ArgumentError, ContextError, Error, Fault};
pub use name::Name;
pub use receptor::Receptor;
pub use recipe::{Recipe, Site};
pub use subject::{Id, Kind, Subject};
