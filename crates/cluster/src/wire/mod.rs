//! What members send each other, as bytes.

pub(crate) mod codec;
pub mod message;
