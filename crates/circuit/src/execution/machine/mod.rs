//! The state machine of a circuit: two queues, one context, one order. Drivers decide when and on
//! which thread it runs.
//!
//! `Running::run` is the loop: it empties the transit queue, then takes one entry of the ingress
//! queue, and so on. Any thread puts entries into the ingress queue; only the circuit's own
//! receptors put them into the transit queue.
//!
//! `state` has the fields of a machine, `head` the part by which others refer to it; each other
//! file has one part of its behaviour.
#![allow(
    unsafe_code,
    reason = "the context's state is accessed without a lock; `running` records the thread that owns it"
)]

mod admission;
mod attendance;
mod current;
mod entered;
mod failing;
mod head;
mod leftovers;
mod reference;
mod running;
mod settling;
mod stack;
mod state;
mod waits;

pub(crate) use entered::now_nanos;
pub(crate) use head::{HandedOver, Head};
pub(crate) use reference::MachineRef;
pub(crate) use state::{Machine, Progress};
