//! What several tests of laboratories have in common. Each of them uses a part of it.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod counters;
pub(crate) mod micro;
