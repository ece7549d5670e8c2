//! The Redis serialization protocol, versions 2 and 3.
//!
//! [`request`] is the server's side. [`Value`], [`Decoder`] and [`encode_request`] are the client's
//! side, which the command line, the benchmarks and the tests use.

pub mod decode;
mod encode;
mod inline;
pub mod request;
mod value;

pub use decode::Decoder;
pub use encode::{encode_request, encode_value};
pub use value::Value;
