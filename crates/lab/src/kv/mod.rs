//! The key-value scenario: GET, SET and PING from many connections against any server of the Redis protocol.
//!
//! ```text
//! prepare ─► warm-up ─► measured window ─► drain ─► report
//!            └──────── load (closed or open loop), one thread per share of the connections
//!            └──────── probe: a PING at a fixed interval on its own connection
//!            └──────── watchers: emission latency from SET to push, on request
//! ```

mod clock;
mod comparison;
mod connection;
mod emission;
mod load;
mod measurement;
mod mix;
mod options;
mod probe;
mod reply;
mod report;
#[cfg(test)]
mod test_report;
mod workload;

pub use options::{KvOptions, OptionsError};
pub use report::Report;

use crate::output;
use std::io::Write;

/// Runs the scenario and writes its report to `out`. Returns false if any operation failed, or an emission.
pub fn run(options: &KvOptions, out: &mut impl Write) -> anyhow::Result<bool> {
    options.validate()?;
    let target = options.server.target();
    if let Some(other) = &options.against {
        return comparison::run(options, &target, other, out);
    }
    let report = measurement::measure(options, &target)?;
    output::write_report(&report, options.report.json, out)?;
    Ok(report.succeeded())
}

#[cfg(test)]
mod tests;
