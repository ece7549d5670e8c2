//! The machine that a run was made on.

use serde::{Deserialize, Serialize};
use std::fs;

/// The machine of the load generator, which is the server's too when the target is local.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Cores that this process may use.
    pub cores: usize,
    /// The processor's name.
    pub processor: String,
    /// The kernel's release.
    pub kernel: String,
}

impl Machine {
    /// Reads the system's own description.
    #[must_use]
    pub fn this() -> Self {
        let cpu_info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = cpu_info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Machine {
            cores: cores(),
            processor: processor.map_or(std::env::consts::ARCH, |(_, name)| name).trim().to_owned(),
            kernel: format!("{} {}", std::env::consts::OS, kernel.trim()).trim().to_owned(),
        }
    }
}

/// Cores that this process may use.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::Machine;

    #[test]
    fn this_machine_has_cores() {
        assert!(Machine::this().cores > 0);
    }
}
