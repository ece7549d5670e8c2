//! openraft, and all that knows its types.

mod apply;
mod change;
mod config;
mod keeping;
mod network;
mod node;
mod snapshots;
mod staleness;
mod storage;
mod suspect;
mod types;

pub(crate) use node::{Node, NodeParts};
pub use suspect::Heal;
pub(crate) use types::Real;
#[cfg(test)]
pub(crate) use types::Simulated;
