//! Nodes: the receptor behind a pipe, as one pointer for all types.
//!
//! Queues and machines use nodes through their headers. The typed part, and the handles that keep a
//! node and its machine, are above the machine.
#![allow(
    unsafe_code,
    reason = "one pointer stands for nodes of any type; the table of each node knows which"
)]

mod handle;
mod header;
mod list;
mod typed;

pub(crate) use handle::{NodeRef, WeakNodeRef};
pub(crate) use header::{
    Header, deliver, discard_value, discarder, empty_node, end_node, free_node, renew_node, value_bytes,
    value_words,
};
pub(crate) use list::Nodes;
