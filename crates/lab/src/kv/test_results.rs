//! Sample results for tests.

use super::emission::Emissions;
use super::load::Outcome;
use super::options::KvOptions;
use super::report::{KvResults, Parts};
use crate::facts::ServerFacts;
use crate::latency::{Latencies, LatencySummary};
use crate::machine::Machine;
use crate::target::Target;
use crate::test_run;
use std::time::SystemTime;

/// Returns the results of 1500 successes of 1 ms with the given flags.
pub(super) fn results(flags: &[&str], change: impl FnOnce(&mut Outcome)) -> KvResults {
    results_with(flags, change, None)
}

pub(super) fn results_with(
    flags: &[&str],
    change: impl FnOnce(&mut Outcome),
    emitted: Option<Emissions>,
) -> KvResults {
    let options: KvOptions = test_run::options(&[&["--seed", "7"], flags].concat());
    let mut latencies = Latencies::default();
    for _ in 0..1500 {
        latencies.record_nanos(1_000_000);
    }
    let mut outcome = Outcome {
        succeeded: 1500,
        served: 1500,
        latencies,
        threads: 1,
        cpu_share: 0.5,
        ..Outcome::default()
    };
    change(&mut outcome);
    KvResults::new(Parts {
        options: &options,
        target: &Target::new("localhost", 7379),
        start_time: SystemTime::UNIX_EPOCH,
        measured: options.duration,
        is_interrupted: false,
        server: ServerFacts {
            version: Some("Tidemark 0.1.0".into()),
            durability: Some("durability=off".into()),
        },
        machine: Machine { cores: 2, processor: "Test".into(), kernel: "linux 6".into() },
        outcome,
        probed: LatencySummary { count: 300, p50: 0.25, p95: 0.85, p99: 1.5, p999: 2.0, max: 4.9 },
        emitted,
        server_micros_per_op: Some(2.5),
    })
}
