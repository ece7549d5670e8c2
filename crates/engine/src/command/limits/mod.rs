//! Limiters: how many units a client may use in a period.
//!
//! ```text
//! rows ──► throttle, leases ──► rates ──► quotas ──► verdict ──► answer, options ──► value/limit
//!      └─► policies ───────────────────────────────────────────┘
//! ```
//!
//! Every command asks first and changes state only if that is allowed, so a refusal is never
//! logged. A change is logged as the command was sent; with the record's time as clock it has the
//! same effect. Counters are asked like limiters, and log like counters. A replay does not check
//! the limit on leases, which is a setting of the process: what was granted stays granted
//! (`Keys::leases_max`).

mod answer;
mod leases;
mod options;
mod policies;
mod quotas;
mod rates;
pub(super) mod rows;
mod throttle;
mod verdict;
