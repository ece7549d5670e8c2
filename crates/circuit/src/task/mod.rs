//! The ends of a circuit for async tasks: `Sink` and `Stream` of the futures crates.

pub(crate) mod inlet;
pub(crate) mod stream;
