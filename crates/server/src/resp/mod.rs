//! The Redis serialization protocol, version 2 and 3.
//!
//! [`request`] is the server's side. [`Value`], [`Decoder`] and [`encode_request`] are the client's: what the
//! command line, the benchmarks and the tests use to talk to any server of the protocol.

pub mod decode;
mod encode;
mod inline;
pub mod request;
mod value;

pub use decode::Decoder;
pub use encode::{encode_request, encode_value};
pub use value::Value;
