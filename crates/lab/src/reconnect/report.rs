//! Results of a run: text for people, a report for programs.

use super::options::ReconnectOptions;
use crate::facts::ServerFacts;
use crate::machine::Machine;
use crate::or_dash::OrDash;
use crate::report::{Contents, Figures, Results, Verdict};
use crate::statistics::Quantiles;
use crate::target::Target;
use crate::watch::answer::Resumed;
use crate::watch::delivery::Delivery;
use crate::watch::sequence::SequenceFaults;
use std::fmt;
use std::time::{Duration, SystemTime};

/// The result of a run. Times are in milliseconds.
#[derive(Clone, Debug)]
pub(super) struct ReconnectResults {
    start: SystemTime,
    end: SystemTime,
    is_interrupted: bool,
    results: Vec<Iteration>,
    summary: Summary,
    target: String,
    warmup_emissions: u32,
    updates_while_away: u32,
    server: ServerFacts,
    machine: Machine,
}

/// One reconnection.
#[derive(Clone, Debug)]
pub(super) struct Iteration {
    number: u32,
    reconnect_time_ms: f64,
    resume_time_ms: f64,
    total_time_ms: f64,
    /// From the start of the reconnection; none if nothing was missed, or nothing came.
    first_missed_time_ms: Option<f64>,
    /// The same of the last one that was missed.
    all_missed_time_ms: Option<f64>,
    /// How many of the missed came in a second, from the start of the reconnection to the last of them.
    missed_per_second: Option<f64>,
    last_commit_before: u64,
    first_commit_after: Option<u64>,
    missed_emissions: u64,
    duplicate_emissions: u64,
    emissions_received: u64,
    out_of_order_emissions: u64,
    /// Emissions of what the publisher has not written.
    unknown_emissions: u64,
    /// What was wrong with the numbers of the emissions.
    sequence: SequenceFaults,
    resume_answer: &'static str,
    /// Whether the server promised the number that was due next.
    next_seq_was_right: bool,
    exactly_once: bool,
}

#[derive(Clone, Debug)]
struct Summary {
    iterations: usize,
    reconnect_p50_ms: f64,
    reconnect_p95_ms: f64,
    reconnect_p99_ms: f64,
    resume_p50_ms: f64,
    resume_p95_ms: f64,
    resume_p99_ms: f64,
    total_p50_ms: f64,
    total_p95_ms: f64,
    total_p99_ms: f64,
    first_missed_p50_ms: f64,
    first_missed_p95_ms: f64,
    first_missed_p99_ms: f64,
    total_missed: u64,
    total_duplicates: u64,
    avg_reconnect_ms: f64,
    avg_resume_ms: f64,
    avg_first_missed_ms: f64,
    missed_per_second_p50: f64,
    exactly_once_iterations: usize,
}

/// Everything that an iteration's result is made of.
pub(super) struct Parts {
    pub(super) number: u32,
    pub(super) reconnect: Duration,
    pub(super) resume: Duration,
    pub(super) total: Duration,
    pub(super) first_missed: Option<Duration>,
    pub(super) all_missed: Option<Duration>,
    pub(super) updates_while_away: u32,
    pub(super) last_lsn_before: u64,
    pub(super) first_lsn_after: Option<u64>,
    pub(super) answer: Resumed,
    pub(super) expected_next: u64,
    pub(super) delivery: Delivery,
}

impl Iteration {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts { delivery, answer, .. } = &parts;
        let next_seq_was_right = *answer == Resumed::Ok { next: parts.expected_next };
        Iteration {
            number: parts.number,
            reconnect_time_ms: millis(parts.reconnect),
            resume_time_ms: millis(parts.resume),
            total_time_ms: millis(parts.total),
            first_missed_time_ms: parts.first_missed.map(millis),
            all_missed_time_ms: parts.all_missed.map(millis),
            missed_per_second: parts
                .all_missed
                .map(|time| f64::from(parts.updates_while_away) / time.as_secs_f64()),
            last_commit_before: parts.last_lsn_before,
            first_commit_after: parts.first_lsn_after,
            missed_emissions: delivery.missed.len() as u64,
            duplicate_emissions: delivery.duplicates.len() as u64,
            emissions_received: delivery.received,
            out_of_order_emissions: delivery.out_of_order.len() as u64,
            unknown_emissions: delivery.unknown,
            sequence: delivery.sequence,
            resume_answer: answer.name(),
            next_seq_was_right,
            exactly_once: delivery.is_exactly_once() && next_seq_was_right,
        }
    }
}

impl ReconnectResults {
    pub(super) fn new(
        options: &ReconnectOptions,
        target: &Target,
        server: ServerFacts,
        start: SystemTime,
        is_interrupted: bool,
        results: Vec<Iteration>,
    ) -> Self {
        ReconnectResults {
            start,
            end: SystemTime::now(),
            is_interrupted,
            summary: Summary::of(&results),
            results,
            target: target.to_string(),
            warmup_emissions: options.warmup_emissions,
            updates_while_away: options.updates_while_away,
            server,
            machine: Machine::this(),
        }
    }

    /// Returns whether every update of every iteration was emitted once and in order.
    pub(super) fn verdict(&self) -> Verdict {
        if self.results.is_empty() {
            return Verdict::unless(vec!["no iteration was run".to_owned()]);
        }
        let wrong = self.results.iter().filter(|result| !result.exactly_once);
        Verdict::unless(wrong.map(Iteration::faults).collect())
    }
}

impl Results for ReconnectResults {
    fn contents(&self) -> Contents {
        let mut figures = Figures::default();
        self.add_summary(&mut figures);
        for result in &self.results {
            figures.add_round(result.number, |figures| result.add_figures(figures));
        }
        Contents {
            start: self.start,
            end: self.end,
            interrupted: self.is_interrupted,
            machine: self.machine.clone(),
            servers: vec![self.server.entry(None, &self.target)],
            figures,
            notes: Vec::new(),
            verdict: self.verdict(),
        }
    }
}

impl ReconnectResults {
    fn add_summary(&self, figures: &mut Figures) {
        let summary = &self.summary;
        figures.add("iterations", "count", summary.iterations);
        figures.add("exactly_once_iterations", "count", summary.exactly_once_iterations);
        let mut add = |name, unit, value: fn(&Iteration) -> Option<f64>| {
            let values: Vec<f64> = self.results.iter().filter_map(value).collect();
            figures.add_quantiles(name, unit, &values);
        };
        add("reconnect_time", "ms", |result| Some(result.reconnect_time_ms));
        add("resume_time", "ms", |result| Some(result.resume_time_ms));
        add("total_time", "ms", |result| Some(result.total_time_ms));
        add("first_missed_time", "ms", |result| result.first_missed_time_ms);
        add("all_missed_time", "ms", |result| result.all_missed_time_ms);
        add("missed_rate", "count/s", |result| result.missed_per_second);
        figures.add_counts([
            ("emissions_missed", summary.total_missed),
            ("emissions_repeated", summary.total_duplicates),
        ]);
    }
}

impl Iteration {
    fn add_figures(&self, figures: &mut Figures) {
        figures.add("reconnect_time", "ms", self.reconnect_time_ms);
        figures.add("resume_time", "ms", self.resume_time_ms);
        figures.add("total_time", "ms", self.total_time_ms);
        figures.add("first_missed_time", "ms", self.first_missed_time_ms);
        figures.add("all_missed_time", "ms", self.all_missed_time_ms);
        figures.add("missed_rate", "count/s", self.missed_per_second);
        figures.add("last_lsn_before", "lsn", self.last_commit_before);
        figures.add("first_lsn_after", "lsn", self.first_commit_after);
        figures.add_counts([
            ("emissions_received", self.emissions_received),
            ("emissions_missed", self.missed_emissions),
            ("emissions_repeated", self.duplicate_emissions),
            ("emissions_out_of_order", self.out_of_order_emissions),
            ("emissions_unknown", self.unknown_emissions),
        ]);
        self.sequence.add_figures(figures);
    }
}

impl Summary {
    fn of(results: &[Iteration]) -> Self {
        let quantiles =
            |time: fn(&Iteration) -> f64| Quantiles::of(&results.iter().map(time).collect::<Vec<_>>());
        let reconnect = quantiles(|result| result.reconnect_time_ms);
        let resume = quantiles(|result| result.resume_time_ms);
        let total = quantiles(|result| result.total_time_ms);
        let first_missed: Vec<f64> =
            results.iter().filter_map(|result| result.first_missed_time_ms).collect();
        let first_missed = Quantiles::of(&first_missed);
        let missed_per_second: Vec<f64> =
            results.iter().filter_map(|result| result.missed_per_second).collect();
        Summary {
            iterations: results.len(),
            reconnect_p50_ms: reconnect.p50,
            reconnect_p95_ms: reconnect.p95,
            reconnect_p99_ms: reconnect.p99,
            resume_p50_ms: resume.p50,
            resume_p95_ms: resume.p95,
            resume_p99_ms: resume.p99,
            total_p50_ms: total.p50,
            total_p95_ms: total.p95,
            total_p99_ms: total.p99,
            first_missed_p50_ms: first_missed.p50,
            first_missed_p95_ms: first_missed.p95,
            first_missed_p99_ms: first_missed.p99,
            total_missed: results.iter().map(|result| result.missed_emissions).sum(),
            total_duplicates: results.iter().map(|result| result.duplicate_emissions).sum(),
            avg_reconnect_ms: reconnect.mean,
            avg_resume_ms: resume.mean,
            avg_first_missed_ms: first_missed.mean,
            missed_per_second_p50: Quantiles::of(&missed_per_second).p50,
            exactly_once_iterations: results.iter().filter(|result| result.exactly_once).count(),
        }
    }
}

impl fmt::Display for Iteration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "connected in {:.3} ms, resumed ({}) in {:.3} ms, {} received, {} missed, {} duplicates",
            self.reconnect_time_ms,
            self.resume_answer,
            self.resume_time_ms,
            self.emissions_received,
            self.missed_emissions,
            self.duplicate_emissions
        )
    }
}

impl fmt::Display for ReconnectResults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let summary = &self.summary;
        writeln!(out, "=== Subscription Reconnection Benchmark Summary ===")?;
        writeln!(out, "Target: {}", self.target)?;
        writeln!(out, "Iterations: {}", summary.iterations)?;
        writeln!(out, "Warmup emissions per iteration: {}", self.warmup_emissions)?;
        writeln!(out, "Updates while away per iteration: {}", self.updates_while_away)?;
        writeln!(out, "\nReconnection Time (TCP connect, ms):")?;
        writeln!(
            out,
            "  p50={:.3} p95={:.3} p99={:.3} avg={:.3}",
            OrDash(summary.reconnect_p50_ms),
            OrDash(summary.reconnect_p95_ms),
            OrDash(summary.reconnect_p99_ms),
            OrDash(summary.avg_reconnect_ms)
        )?;
        writeln!(out, "\nResume Time (EMITRECONNECT, ms):")?;
        writeln!(
            out,
            "  p50={:.3} p95={:.3} p99={:.3} avg={:.3}",
            OrDash(summary.resume_p50_ms),
            OrDash(summary.resume_p95_ms),
            OrDash(summary.resume_p99_ms),
            OrDash(summary.avg_resume_ms)
        )?;
        writeln!(out, "\nTotal Reconnect+Resume Time (ms):")?;
        writeln!(
            out,
            "  p50={:.3} p95={:.3} p99={:.3}",
            OrDash(summary.total_p50_ms),
            OrDash(summary.total_p95_ms),
            OrDash(summary.total_p99_ms)
        )?;
        writeln!(out, "\nFirst Missed Emission (since the start of the reconnection, ms):")?;
        writeln!(
            out,
            "  p50={:.3} p95={:.3} p99={:.3} avg={:.3}",
            OrDash(summary.first_missed_p50_ms),
            OrDash(summary.first_missed_p95_ms),
            OrDash(summary.first_missed_p99_ms),
            OrDash(summary.avg_first_missed_ms)
        )?;
        writeln!(out, "\nMissed Emissions per Second (until the last of them has come):")?;
        writeln!(out, "  p50={:.0}", OrDash(summary.missed_per_second_p50))?;
        writeln!(out, "\nData Integrity:")?;
        writeln!(out, "  Total missed emissions: {}", summary.total_missed)?;
        writeln!(out, "  Total duplicate emissions: {}", summary.total_duplicates)?;
        let (right, all) = (summary.exactly_once_iterations, summary.iterations);
        writeln!(out, "  Every update once and in order: {right}/{all} iterations")?;
        for result in self.results.iter().filter(|result| !result.exactly_once) {
            writeln!(out, "  {}", result.faults())?;
        }
        let version = self.server.version.as_deref().unwrap_or("does not say its version");
        let durability = self.server.durability.as_deref().unwrap_or("not stated by the server");
        writeln!(out, "\nServer: {version}; durability: {durability}")?;
        let Machine { cores, processor, kernel } = &self.machine;
        writeln!(out, "Machine: {cores} cores, {processor}, {kernel}")
    }
}

impl Iteration {
    /// Returns all that is wrong, in one line.
    fn faults(&self) -> String {
        format!(
            "Iteration {}: EMITRECONNECT answered {}{}; missed={} duplicates={} out-of-order={} unknown={}; numbers: \
             missing={} repeated={} out-of-order={}",
            self.number,
            self.resume_answer,
            if self.next_seq_was_right { "" } else { " and not the number that was due" },
            self.missed_emissions,
            self.duplicate_emissions,
            self.out_of_order_emissions,
            self.unknown_emissions,
            self.sequence.missing,
            self.sequence.duplicates,
            self.sequence.out_of_order
        )
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
