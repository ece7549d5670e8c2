//! The key-value scenario: GET, SET and PING from many connections against any server of the Redis protocol.
//!
//! ```text
//! prepare ─► warm-up ─► measured window ─► drain ─► report
//!            └──────── load (closed or open loop), one thread per share of the connections
//!            └──────── probe: a PING at a fixed interval on its own connection
//!            └──────── watchers: emission latency from SET to push, on request
//! ```

mod clock;
mod cluster;
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
mod supervisor;
#[cfg(test)]
mod test_results;
mod workload;

pub use options::{KvOptions, OptionsError};

use crate::interrupt::Interrupt;
use crate::report::Verdict;
use crate::scenario::{Console, Scenario};
use crate::wall_time;
use std::time::SystemTime;

/// Throughput and latency of a key-value load on one server, on two in turns, or on a cluster beside
/// others.
pub struct KvScenario;

impl Scenario for KvScenario {
    const NAME: &'static str = "kv";
    type Options = KvOptions;

    fn run(options: &KvOptions, console: &mut Console<'_>) -> anyhow::Result<Verdict> {
        options.validate()?;
        // Chosen once: the report states the seed by which the run can be repeated.
        let options = &KvOptions {
            seed: options.seed.or_else(|| Some(wall_time::run_number(SystemTime::now()))),
            ..options.clone()
        };
        let interrupt = Interrupt::by_signal()?;
        if options.cluster {
            let comparison = cluster::compare(options, &interrupt, console)?;
            return console.print::<Self>(options, &comparison, options.report.json);
        }
        let target = options.server.target();
        if let Some(other) = &options.against {
            let comparison = comparison::compare(options, &target, other, &interrupt, console)?;
            return console.print::<Self>(options, &comparison, options.report.json);
        }
        let results = measurement::measure(options, &target, &interrupt)?;
        console.print::<Self>(options, &results, options.report.json)
    }
}

#[cfg(test)]
mod tests;
