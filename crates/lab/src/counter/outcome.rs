//! Results of a run.

use super::meter::Asked;
use super::sample::Latencies;
use super::settings::Settings;
use super::subject::Exposure;
use crate::machine::Machine;
use std::time::{Duration, SystemTime};

/// All results of a run.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) start: SystemTime,
    /// Settings of the run.
    pub(super) settings: Settings,
    /// Whether the run was interrupted.
    pub(super) is_interrupted: bool,
    /// Whether an operation may be refused because of a limit.
    pub(super) is_gated: bool,
    /// From the first operation until everything is stored.
    pub(super) duration: Duration,
    /// The part of it after the last operation.
    pub(super) final_flush: Duration,
    pub(super) operations: u64,
    /// Units.
    pub(super) admitted: u64,
    /// Units.
    pub(super) given_back: u64,
    /// Operations.
    pub(super) refused: u64,
    /// Units beyond the limit.
    pub(super) over_admitted: Option<u64>,
    pub(super) latencies: Latencies,
    /// Nanoseconds subtracted from each latency.
    pub(super) timer_ns: u64,
    pub(super) asked: Asked,
    pub(super) exposures: Option<Exposures>,
    /// Distance between the store's final content and the answers: units, summed over the keys
    /// without signs.
    pub(super) durable_minus_truth: Option<u128>,
    /// Distance between memory and the answers at the end. Units.
    pub(super) memory_minus_truth: Option<u128>,
    pub(super) memory: Memory,
    /// Processor time of the whole process during the run, per operation.
    pub(super) cpu_ns_per_operation: f64,
    pub(super) machine: Machine,
}

/// Uncommitted units, sampled during the run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Exposures {
    /// Maximum of each figure.
    pub(super) most: Exposure,
    /// Mean of all keys' units together.
    pub(super) mean_units: f64,
    /// After the last operation and before the final flush.
    pub(super) at_end: u64,
    /// After the final flush.
    pub(super) at_last: u64,
    /// Number of samples.
    pub(super) looks: u64,
    /// Units of one key that the promise permits.
    pub(super) promised_of_key: u64,
    /// Intervals between calls to the store.
    pub(super) commits: Intervals,
}

/// Times between calls to the store, as resolved by the samples, in nanoseconds; `None` if there
/// were none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Intervals {
    pub(super) count: u64,
    pub(super) min_ns: Option<u64>,
    pub(super) mean_ns: Option<u64>,
    pub(super) max_ns: Option<u64>,
}

/// Memory that a run allocated; `None` if the program's allocator does not count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    /// Bytes still allocated at its end.
    pub(super) kept_bytes: Option<i64>,
    /// Total bytes.
    pub(super) total_bytes: Option<u64>,
    /// Number of allocations.
    pub(super) allocations: Option<u64>,
    /// Resident memory of the process at the end.
    pub(super) resident_bytes: Option<u64>,
    /// Bytes of one more key, without its name.
    pub(super) bytes_per_key: Option<f64>,
}

impl Outcome {
    /// Returns operations per second of the whole run.
    pub(super) fn rate(&self) -> f64 {
        self.per_second(self.operations)
    }

    /// Returns `count` per second of the run.
    pub(super) fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.duration.as_secs_f64().max(1e-9)
    }

    /// Returns the ways in which a counter broke its promise.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.operations == 0 {
            faults.push("no operation was done, so nothing was measured".to_owned());
        }
        if let Some(units) = self.over_admitted.filter(|units| *units > 0) {
            faults.push(format!("{units} units were admitted beyond the limit"));
        }
        if let Some(units) = self.durable_minus_truth.filter(|units| *units > 0) {
            faults.push(format!("what the store has is off by {units} units"));
        }
        if let Some(units) = self.memory_minus_truth.filter(|units| *units > 0) {
            faults.push(format!("what is in memory is off by {units} units"));
        }
        if let Some(exposures) = &self.exposures {
            let (most, promised) = (exposures.most.largest, exposures.promised_of_key);
            if most > promised {
                faults.push(format!("{most} units of a key were uncommitted, and {promised} are promised"));
            }
            if exposures.at_last > 0 {
                faults.push(format!("{} units are uncommitted behind the final flush", exposures.at_last));
            }
        }
        faults
    }
}
