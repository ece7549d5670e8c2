//! Connections between members.

pub mod transport;
