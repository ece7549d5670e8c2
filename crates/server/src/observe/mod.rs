//! What operators see: metrics, their counters, and lines on standard error.

pub(crate) mod counters;
pub(crate) mod metrics;
pub(crate) mod operator_line;
