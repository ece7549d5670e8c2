//! openraft, and all that knows its types.

mod apply;
mod asking;
mod change;
mod config;
mod keeping;
mod levels;
mod network;
mod node;
mod serving;
mod snapshots;
mod staleness;
mod standing;
mod starting;
mod storage;
mod suspect;
mod types;

pub(crate) use node::Node;
pub use standing::{Heal, Regained};
pub(crate) use starting::NodeParts;
pub(crate) use types::Real;
#[cfg(test)]
pub(crate) use types::Simulated;
