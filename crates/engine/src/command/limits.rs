//! Limiters: how many units somebody may have in some time.
//!
//! ```text
//! rows ──► throttle, rates, policies ──► answer, options ──► value/limit
//! ```
//!
//! Every command asks first and changes something only if it is allowed, so a refusal is never logged. What is logged is the
//! command as it was sent: with the record's time for a clock it does the same again.

mod answer;
mod options;
mod policies;
mod rates;
pub(super) mod rows;
mod throttle;
