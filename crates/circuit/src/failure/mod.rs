//! Failures of user code: caught before they spread, counted, and remedied.

pub(crate) mod account;
pub(crate) mod care;
pub(crate) mod dead_letters;
pub(crate) mod failure_report;
pub(crate) mod faults;
pub(crate) mod supervision;
pub(crate) mod thrown;
