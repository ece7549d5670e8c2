//! What stores of commits and journals of pools do, in one program: a target for each would link the crate and its clients again.

mod conformance;
mod pool;
