//! openraft, and all that knows its types.

mod apply;
mod change;
mod config;
mod network;
mod node;
mod storage;
mod types;

pub(crate) use node::{Node, NodeParts};
pub(crate) use types::Real;
#[cfg(test)]
pub(crate) use types::Simulated;
