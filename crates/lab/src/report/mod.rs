//! Reports of scenarios.

mod verdict;

pub use verdict::Verdict;
