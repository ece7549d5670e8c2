//! Replies as bytes: encoding them, finding one's way in them, and numbers in Redis's notation.

pub mod encoded;
pub(crate) mod long_double;
pub(crate) mod reply;
pub(crate) mod shared_bytes;
