//! The scenarios of the specification, one test each: a test's name starts with the id of its scenario.
//!
//! What makes no sense in Rust is listed as `NOT_APPLICABLE` in the module of its group, with the reason.

mod attached;
mod current;
mod extent;
mod extra;
mod fiber;
mod flow;
mod name;
mod slot;
mod state;
mod subject;
mod support;
