//! Results of a run: text for people, a report for programs.

use super::options::{CrashKind, CrashOptions};
use super::watcher::Received;
use crate::facts::ServerFacts;
use crate::machine::Machine;
use crate::or_dash::OrDash;
use crate::report::{Contents, Figures, Results, Verdict};
use crate::statistics::Quantiles;
use crate::watch::delivery::Delivery;
use crate::watch::ledger::{Fate, Ledger, Number};
use crate::watch::sequence::SequenceFaults;
use std::fmt;
use std::time::{Duration, SystemTime};

/// The result of a run. Times are in milliseconds, rates in percent.
#[derive(Clone, Debug)]
pub(super) struct CrashResults {
    start: SystemTime,
    end: SystemTime,
    is_interrupted: bool,
    results: Vec<Iteration>,
    summary: Summary,
    scenario: CrashKind,
    target: String,
    server: ServerFacts,
    machine: Machine,
}

/// One crash.
#[derive(Clone, Debug)]
pub(super) struct Iteration {
    number: u32,
    total_produced: u64,
    total_received: u64,
    unique_received: u64,
    missed_sequences: Vec<Number>,
    dup_sequences: Vec<Number>,
    /// From the crash to the first emission after it; none if none came.
    recovery_time_ms: Option<f64>,
    last_received_seq: Option<Number>,
    exactly_once: bool,
    at_least_once: bool,
    at_most_once: bool,
    /// Writes that happened: they were acknowledged, or the restarted server had them.
    done: u64,
    /// Writes whose answer was lost, so their outcome is unknown.
    in_doubt: u64,
    /// Writes whose answer was lost, and which did not happen.
    not_done: u64,
    out_of_order_sequences: Vec<Number>,
    /// Writes that were emitted and did not happen.
    phantom_sequences: Vec<Number>,
    /// Emissions of values that no client has written.
    unknown_emissions: u64,
    /// What was wrong with the numbers of the emissions.
    sequence: SequenceFaults,
    /// Keys that did not hold their last acknowledged write, after the restart or at the end.
    lost_writes: u64,
    resumptions: u64,
    /// Answers to EMITRECONNECT other than the right one.
    wrong_answers: Vec<String>,
    ended_subscriptions: u64,
    /// From the start of the killed server until it answered.
    restart_time_ms: Option<f64>,
}

#[derive(Clone, Debug)]
struct Summary {
    iterations: usize,
    total_updates: u64,
    total_duplicates: u64,
    total_missed: u64,
    exactly_once_rate: f64,
    at_least_once_rate: f64,
    at_most_once_rate: f64,
    avg_recovery_ms: f64,
    p50_recovery_ms: f64,
    p95_recovery_ms: f64,
    p99_recovery_ms: f64,
    p50_restart_ms: f64,
    total_in_doubt: u64,
    total_not_done: u64,
    total_lost_writes: u64,
}

/// Everything that an iteration's result is made of.
pub(super) struct Parts {
    pub(super) number: u32,
    pub(super) ledger: Ledger,
    pub(super) delivery: Delivery,
    pub(super) received: Received,
    pub(super) lost_writes: u64,
    pub(super) restart: Option<Duration>,
}

impl Iteration {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts { ledger, delivery, received, lost_writes, .. } = parts;
        let at_least_once = delivery.is_at_least_once() && lost_writes == 0;
        // Without an emission after the crash nothing was shown.
        let has_recovered = received.recovery.is_some();
        let exactly_once = delivery.is_exactly_once()
            && lost_writes == 0
            && has_recovered
            && received.wrong_answers.is_empty()
            && received.ended == 0;
        Iteration {
            number: parts.number,
            total_produced: ledger.len(),
            total_received: delivery.received,
            unique_received: delivery.unique,
            last_received_seq: delivery.last_received,
            recovery_time_ms: received.recovery.map(millis),
            exactly_once,
            at_least_once,
            at_most_once: delivery.is_at_most_once(),
            missed_sequences: delivery.missed,
            dup_sequences: delivery.duplicates,
            done: ledger.count(Fate::Done),
            in_doubt: ledger.count(Fate::InDoubt),
            not_done: ledger.count(Fate::Lost),
            out_of_order_sequences: delivery.out_of_order,
            phantom_sequences: delivery.phantoms,
            unknown_emissions: delivery.unknown,
            sequence: delivery.sequence,
            lost_writes,
            resumptions: received.resumptions,
            wrong_answers: received.wrong_answers,
            ended_subscriptions: received.ended,
            restart_time_ms: parts.restart.map(millis),
        }
    }

    pub(super) fn is_exactly_once(&self) -> bool {
        self.exactly_once
    }

    /// Returns all that is wrong: one line, and one for each wrong answer.
    fn faults(&self) -> Vec<String> {
        let counts = format!(
            "Iteration {}: missed={} duplicates={} out-of-order={} phantoms={} unknown={} lost writes={} ended={}; \
             numbers: missing={} repeated={} out-of-order={}{}",
            self.number,
            self.missed_sequences.len(),
            self.dup_sequences.len(),
            self.out_of_order_sequences.len(),
            self.phantom_sequences.len(),
            self.unknown_emissions,
            self.lost_writes,
            self.ended_subscriptions,
            self.sequence.missing,
            self.sequence.duplicates,
            self.sequence.out_of_order,
            if self.recovery_time_ms.is_some() { "" } else { "; no emission after the crash" }
        );
        let answers = self.wrong_answers.iter().map(|answer| format!("  EMITRECONNECT {answer}"));
        std::iter::once(counts).chain(answers).collect()
    }
}

impl CrashResults {
    pub(super) fn new(
        options: &CrashOptions,
        target: String,
        server: ServerFacts,
        start: SystemTime,
        is_interrupted: bool,
        results: Vec<Iteration>,
    ) -> Self {
        CrashResults {
            start,
            end: SystemTime::now(),
            is_interrupted,
            summary: Summary::of(&results),
            results,
            scenario: options.scenario,
            target,
            server,
            machine: Machine::this(),
        }
    }

    /// Returns whether there were iterations, and every one was exactly once.
    pub(super) fn verdict(&self) -> Verdict {
        if self.results.is_empty() {
            return Verdict::unless(vec!["no iteration was run".to_owned()]);
        }
        let wrong = self.results.iter().filter(|result| !result.exactly_once);
        Verdict::unless(wrong.flat_map(Iteration::faults).collect())
    }
}

impl Results for CrashResults {
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

impl CrashResults {
    fn add_summary(&self, figures: &mut Figures) {
        let summary = &self.summary;
        figures.add("iterations", "count", summary.iterations);
        figures.add("exactly_once", "%", summary.exactly_once_rate);
        figures.add("at_least_once", "%", summary.at_least_once_rate);
        figures.add("at_most_once", "%", summary.at_most_once_rate);
        let times = |time: fn(&Iteration) -> Option<f64>| -> Vec<f64> {
            self.results.iter().filter_map(time).collect()
        };
        figures.add_quantiles("recovery_time", "ms", &times(|result| result.recovery_time_ms));
        figures.add_quantiles("restart_time", "ms", &times(|result| result.restart_time_ms));
        figures.add_counts([
            ("writes", summary.total_updates),
            ("writes_in_doubt", summary.total_in_doubt),
            ("writes_not_done", summary.total_not_done),
            ("writes_lost", summary.total_lost_writes),
            ("writes_missed", summary.total_missed),
            ("writes_repeated", summary.total_duplicates),
        ]);
    }
}

impl Iteration {
    fn add_figures(&self, figures: &mut Figures) {
        figures.add("recovery_time", "ms", self.recovery_time_ms);
        figures.add("restart_time", "ms", self.restart_time_ms);
        figures.add_counts([
            ("writes", self.total_produced),
            ("writes_done", self.done),
            ("writes_in_doubt", self.in_doubt),
            ("writes_not_done", self.not_done),
            ("writes_lost", self.lost_writes),
            ("writes_emitted", self.unique_received),
            ("emissions_received", self.total_received),
            ("emissions_unknown", self.unknown_emissions),
            ("resumptions", self.resumptions),
            ("subscriptions_ended", self.ended_subscriptions),
        ]);
        figures.add("wrong_answers", "count", self.wrong_answers.len());
        figures.add("last_write_received", "number", self.last_received_seq);
        figures.add_numbered("writes_missed", &self.missed_sequences);
        figures.add_numbered("writes_repeated", &self.dup_sequences);
        figures.add_numbered("writes_out_of_order", &self.out_of_order_sequences);
        figures.add_numbered("writes_phantom", &self.phantom_sequences);
        self.sequence.add_figures(figures);
    }
}

impl Summary {
    fn of(results: &[Iteration]) -> Self {
        let sum = |count: fn(&Iteration) -> u64| results.iter().map(count).sum();
        let rate = |holds: fn(&Iteration) -> bool| {
            results.iter().filter(|result| holds(result)).count() as f64 * 100.0 / results.len() as f64
        };
        let quantiles = |time: fn(&Iteration) -> Option<f64>| {
            Quantiles::of(&results.iter().filter_map(time).collect::<Vec<_>>())
        };
        let recovery = quantiles(|result| result.recovery_time_ms);
        Summary {
            iterations: results.len(),
            total_updates: sum(|result| result.total_produced),
            total_duplicates: sum(|result| result.dup_sequences.len() as u64),
            total_missed: sum(|result| result.missed_sequences.len() as u64),
            exactly_once_rate: rate(|result| result.exactly_once),
            at_least_once_rate: rate(|result| result.at_least_once),
            at_most_once_rate: rate(|result| result.at_most_once),
            avg_recovery_ms: recovery.mean,
            p50_recovery_ms: recovery.p50,
            p95_recovery_ms: recovery.p95,
            p99_recovery_ms: recovery.p99,
            p50_restart_ms: quantiles(|result| result.restart_time_ms).p50,
            total_in_doubt: sum(|result| result.in_doubt),
            total_not_done: sum(|result| result.not_done),
            total_lost_writes: sum(|result| result.lost_writes),
        }
    }
}

impl fmt::Display for Iteration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} writes done, {} received, {} missed, {} duplicates, ",
            self.done,
            self.total_received,
            self.missed_sequences.len(),
            self.dup_sequences.len()
        )?;
        match self.recovery_time_ms {
            Some(recovery) => write!(out, "recovered in {recovery:.2} ms")?,
            None => write!(out, "not recovered")?,
        }
        write!(out, "{}", if self.exactly_once { ", exactly once" } else { ", NOT exactly once" })
    }
}

impl fmt::Display for CrashResults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let summary = &self.summary;
        let all = summary.iterations;
        let count =
            |holds: fn(&Iteration) -> bool| self.results.iter().filter(|result| holds(result)).count();
        writeln!(out, "=== Crash Recovery Benchmark Summary ===")?;
        writeln!(out, "Scenario: {}", self.scenario.name())?;
        writeln!(out, "Target: {}", self.target)?;
        writeln!(out, "Iterations: {all}")?;
        writeln!(out, "Total updates: {}", summary.total_updates)?;
        writeln!(out, "\n--- Delivery Guarantees ---")?;
        for (name, rate, right, meaning) in [
            (
                "Exactly-once",
                summary.exactly_once_rate,
                count(|result| result.exactly_once),
                "no duplicates and no loss",
            ),
            ("At-least-once", summary.at_least_once_rate, count(|result| result.at_least_once), "no loss"),
            ("At-most-once", summary.at_most_once_rate, count(|result| result.at_most_once), "no duplicates"),
        ] {
            writeln!(out, "{name} rate: {rate:.1}% ({right}/{all} iterations with {meaning})")?;
        }
        writeln!(out, "\n--- Data Integrity ---")?;
        writeln!(out, "Total duplicates: {}", summary.total_duplicates)?;
        writeln!(out, "Total missed: {}", summary.total_missed)?;
        writeln!(out, "Total lost writes: {}", summary.total_lost_writes)?;
        writeln!(
            out,
            "Writes without an answer: {} did not happen, {} in doubt",
            summary.total_not_done, summary.total_in_doubt
        )?;
        for result in self.results.iter().filter(|result| !result.exactly_once) {
            result.faults().iter().try_for_each(|fault| writeln!(out, "  {fault}"))?;
        }
        writeln!(out, "\n--- Recovery Time (ms) ---")?;
        writeln!(
            out,
            "  p50={:.2} p95={:.2} p99={:.2} avg={:.2}",
            OrDash(summary.p50_recovery_ms),
            OrDash(summary.p95_recovery_ms),
            OrDash(summary.p99_recovery_ms),
            OrDash(summary.avg_recovery_ms)
        )?;
        if self.scenario != CrashKind::Client {
            writeln!(
                out,
                "  of it from the start of the server to its first answer: p50={:.2}",
                OrDash(summary.p50_restart_ms)
            )?;
        }
        let version = self.server.version.as_deref().unwrap_or("does not say its version");
        let durability = self.server.durability.as_deref().unwrap_or("not stated by the server");
        writeln!(out, "\nServer: {version}; durability: {durability}, every update with DURABLE")?;
        let Machine { cores, processor, kernel } = &self.machine;
        writeln!(out, "Machine: {cores} cores, {processor}, {kernel}")
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
