//! Limiters: how many units somebody may have in some time.
//!
//! ```text
//! rows ──► throttle, leases ──► rates ──► quotas ──► verdict ──► answer, options ──► value/limit
//!      └─► policies ───────────────────────────────────────────┘
//! ```
//!
//! Every command asks first and changes something only if it is allowed, so a refusal is never logged. What is logged is the
//! command as it was sent: with the record's time for a clock it does the same again. Counters are asked as limiters are, and log what
//! counters log. The one thing that a replay does not ask is how many leases there may be, which the process's setting says: what was
//! granted is granted (`Keys::leases_max`).

mod answer;
mod leases;
mod options;
mod policies;
mod quotas;
mod rates;
pub(super) mod rows;
mod throttle;
mod verdict;
