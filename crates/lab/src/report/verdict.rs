//! Whether a run did everything right.

use serde::{Deserialize, Serialize};
use std::process::ExitCode;

/// Verdict on a run: passed, or the reasons why not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    passed: bool,
    reasons: Vec<String>,
}

impl Verdict {
    /// Returns the verdict on a run without a fault.
    #[must_use]
    pub fn passed() -> Self {
        Self::unless(Vec::new())
    }

    /// Returns the verdict on a run with these faults, each a sentence.
    #[must_use]
    pub fn unless(reasons: Vec<String>) -> Self {
        Verdict { passed: reasons.is_empty(), reasons }
    }

    /// Returns whether there was no fault.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        self.passed
    }

    /// Returns the faults.
    #[must_use]
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }

    /// Returns the exit code of a program that ends with this verdict.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        if self.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
