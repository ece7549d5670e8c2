//! What stores of commits and journals of pools do. One program: a second target would link the
//! crate and its clients again.

mod conformance;
mod pool;
