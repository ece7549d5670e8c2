//! Connections between members.

mod transport;

pub use transport::{Lane, Service, Transport};
