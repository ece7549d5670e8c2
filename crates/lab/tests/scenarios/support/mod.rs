//! Helpers of several labs' tests.

pub(crate) mod counters;
pub(crate) mod micro;

#[cfg(feature = "stores")]
pub(crate) use crate::counter_stores::store_at;
