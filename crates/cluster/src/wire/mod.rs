//! What members send each other, as bytes.

pub mod message;
