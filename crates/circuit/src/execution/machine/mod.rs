//! The state machine of a circuit: two queues, one context, one order. Drivers decide when and on which thread it runs.
//!
//! `Running::run` is the whole of it: the transit queue is emptied, then one entry of the ingress queue is taken, and so on.
//! What is in the ingress queue was put there by anybody; what is in the transit queue by the circuit's own receptors.
//!
//! What a machine consists of is in `state`, `head` is what it is known by, and each of the other files has one part of what it does.
#![allow(
    unsafe_code,
    reason = "what the one context owns is reached without a lock; `running` says who has it"
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
