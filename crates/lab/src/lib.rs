//! The laboratory: benchmark scenarios and what they measure with.
//!
//! A scenario runs against a server over the wire, states what it measured and on what, and never counts a failure as
//! work.

pub mod null_server;
