//! The ends of a circuit that tasks use: `Sink` and `Stream` of the futures crates.

pub(crate) mod inlet;
pub(crate) mod stream;
