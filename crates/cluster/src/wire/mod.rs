//! What members send each other, as bytes.

pub mod frame;
pub mod message;
