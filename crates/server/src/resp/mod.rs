//! The Redis serialization protocol, version 2 and 3.

mod inline;
pub mod request;
