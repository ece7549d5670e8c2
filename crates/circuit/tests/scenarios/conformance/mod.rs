//! The scenarios of the specification, one test each: a test's name starts with the id of its
//! scenario.
//!
//! Scenarios that do not apply to Rust are listed as `NOT_APPLICABLE` in the module of their group,
//! with the reasons. The ledger proves that none is missing.

mod attached;
mod bank;
mod basin;
mod capture;
mod cell;
mod circuit;
mod closed;
mod closure;
mod conduit;
mod cortex;
mod current;
mod extent;
mod extra;
mod fan_out;
mod fiber;
mod flow;
mod isolation;
mod journal;
mod ledger;
mod mirror;
mod name;
mod older;
mod on_close;
mod pin;
mod pipe;
mod pipe_map;
mod pool;
mod port;
mod pulse;
mod resource;
mod scope;
mod shape;
mod sink;
mod slot;
mod state;
mod subject;
mod subscriber;
pub(crate) mod support;
mod ticker;
mod variance;
