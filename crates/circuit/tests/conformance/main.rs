//! The scenarios of the specification, one test each: a test's name starts with the id of its scenario.
//!
//! What makes no sense in Rust is listed as `NOT_APPLICABLE` in the module of its group, with the reason. The ledger proves
//! that nothing is missing.

mod attached;
mod circuit;
mod conduit;
mod cortex;
mod current;
mod extent;
mod extra;
mod fiber;
mod flow;
mod isolation;
mod ledger;
mod name;
mod on_close;
mod pipe;
mod pipe_map;
mod slot;
mod state;
mod subject;
mod subscriber;
mod support;
mod variance;
