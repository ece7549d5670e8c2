//! Encoding of replies, navigation in them, and numbers in Redis's notation.

pub mod encoded;
pub(crate) mod long_double;
pub(crate) mod reply;
pub(crate) mod shared_bytes;
pub(crate) mod translated;
