//! Where values wait: what comes from outside in [`ingress`] and [`lane`], what a circuit sends itself in [`fifo`].

pub(crate) mod fifo;
pub(crate) mod ingress;
pub(crate) mod lane;
pub(crate) mod latest;
pub(crate) mod token;
pub(crate) mod values;
pub(crate) mod words;

#[cfg(all(test, loom))]
mod models;
