//! Scenarios of the commit stores and of the pools' journals. One test binary: a second target
//! would link the crate and its clients again.

mod conformance;
mod pool;
