//! Failures of user code: caught where they would spread, counted, and acted upon.

pub(crate) mod account;
pub(crate) mod care;
pub(crate) mod dead_letters;
pub(crate) mod failure_report;
pub(crate) mod faults;
pub(crate) mod supervision;
pub(crate) mod thrown;
