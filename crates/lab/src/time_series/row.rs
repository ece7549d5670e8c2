//! A scenario of the original, or one of ours beside it, and how its iterations are measured.

use super::fault_tally::FaultTally;
use super::options::TimeSeriesOptions;
use super::usage::Resources;
use crate::interrupt::Interrupt;
use anyhow::Context;
use std::time::{Duration, Instant};

/// One scenario.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) measures: String,
    /// One operation, such as `point`.
    pub(super) operation: &'static str,
    /// Operations of an iteration.
    pub(super) operations: u64,
    pub(super) iterations: u32,
    pub(super) start: Start,
}

/// Creates the work of a scenario.
pub(super) type Start = Box<dyn Fn() -> anyhow::Result<Box<dyn Work>>>;

/// The work of a scenario. An iteration calls the four functions in this order.
pub(super) trait Work {
    /// Sets up what the iteration needs. Measured with `--like-tau` only.
    fn prepare(&mut self, iteration: u64) -> anyhow::Result<()>;
    /// The measured part.
    fn run(&mut self) -> anyhow::Result<()>;
    /// Fails unless everything was done right. Never measured.
    fn check(&mut self) -> anyhow::Result<Findings>;
    /// Frees what the next iteration makes again. Measured with `--like-tau` only.
    fn release(&mut self) {}
}

/// Further findings of an iteration.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Findings {
    pub(super) faults: Option<FaultTally>,
    /// Bytes of a point, in memory or in the log.
    pub(super) bytes_per_point: Option<f64>,
    /// Processor time of the server, for an operation. Nanoseconds.
    pub(super) server_ns: Option<f64>,
}

/// What a scenario was measured to cost.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) name: String,
    pub(super) operation: &'static str,
    /// Operations of an iteration.
    pub(super) operations: u64,
    /// Time of each iteration, rising.
    pub(super) times_ns: Vec<u64>,
    pub(super) resources: Resources,
    pub(super) findings: Findings,
}

impl Row {
    /// Runs one iteration that does not count and the iterations that do. `None` if an interrupt came
    /// before the first of them ended.
    pub(super) fn measure(
        &self,
        options: &TimeSeriesOptions,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Option<Measured>> {
        let mut work = (self.start)()?;
        let mut measured = Measured {
            name: self.name.clone(),
            operation: self.operation,
            operations: self.operations,
            times_ns: Vec::with_capacity(self.iterations as usize),
            resources: Resources::default(),
            findings: Findings::default(),
        };
        for iteration in 0..=u64::from(self.iterations) {
            if interrupt.is_asked_for() {
                break;
            }
            let mut resources = Resources::default();
            let (took, findings) = iterate(&mut *work, iteration, options.like_tau, &mut resources)
                .with_context(|| format!("{}: iteration {iteration}", self.name))?;
            if iteration > 0 {
                measured.times_ns.push(u64::try_from(took.as_nanos())?);
                measured.resources.add_between(&Resources::default(), &resources);
                measured.findings.add(findings);
            }
        }
        measured.times_ns.sort_unstable();
        Ok((!measured.times_ns.is_empty()).then_some(measured))
    }
}

/// Runs one iteration and returns the time of its measured parts.
fn iterate(
    work: &mut dyn Work,
    iteration: u64,
    all_counts: bool,
    resources: &mut Resources,
) -> anyhow::Result<(Duration, Findings)> {
    let mut took = Duration::ZERO;
    let mut measure = |counts: bool, part: &mut dyn FnMut() -> anyhow::Result<()>| {
        let before = Resources::now()?;
        let clock = Instant::now();
        part()?;
        let part_took = clock.elapsed();
        if counts {
            took += part_took;
            resources.add_between(&before, &Resources::now()?);
        }
        anyhow::Ok(())
    };
    measure(all_counts, &mut || work.prepare(iteration))?;
    measure(true, &mut || work.run())?;
    let findings = work.check()?;
    measure(all_counts, &mut || {
        work.release();
        Ok(())
    })?;
    Ok((took, findings))
}

impl Findings {
    fn add(&mut self, other: Self) {
        if let Some(more) = other.faults {
            self.faults.get_or_insert_default().add(more);
        }
        self.bytes_per_point = other.bytes_per_point.or(self.bytes_per_point);
        // The lowest: what else the machine does adds to it.
        self.server_ns = match (self.server_ns, other.server_ns) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
}

impl Measured {
    pub(super) fn mean_ns(&self) -> f64 {
        self.times_ns.iter().sum::<u64>() as f64 / self.times_ns.len() as f64
    }

    /// Returns the time that `percent` of 100 iterations need at most: one that was measured.
    pub(super) fn percentile_ns(&self, percent: usize) -> u64 {
        let rank = (self.times_ns.len() * percent).div_ceil(100);
        self.times_ns[rank.saturating_sub(1)]
    }

    pub(super) fn min_ns(&self) -> u64 {
        self.times_ns[0]
    }

    pub(super) fn max_ns(&self) -> u64 {
        self.times_ns[self.times_ns.len() - 1]
    }
}
