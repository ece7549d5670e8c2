//! Draws: the urn, its stock, its selectors, and the numbers and secrets that decide.

pub(crate) mod numbers;
pub(crate) mod secret;
pub mod selector;
pub(crate) mod stocks;
pub(crate) mod urn;
