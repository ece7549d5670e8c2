//! Queues: [`ingress`] and [`lane`] for entries from outside, [`fifo`] for what a circuit emits to
//! itself.

pub(crate) mod fifo;
pub(crate) mod ingress;
pub(crate) mod lane;
pub(crate) mod latest;
pub(crate) mod token;
pub(crate) mod values;
pub(crate) mod words;

#[cfg(all(test, loom))]
mod models;
