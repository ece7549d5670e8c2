//! openraft, and all that knows its types.

mod apply;
mod config;
mod network;
mod node;
mod storage;
mod types;

pub(crate) use node::{Node, NodeParts};
#[cfg(test)]
pub(crate) use types::Simulated;
pub(crate) use types::Real;
