//! Comparison of two servers: ratios of throughput and latency with their confidence.
//!
//! The rounds alternate (A B, then B A): a machine's speed drifts, and a fixed order would favour
//! one server.

use super::measurement;
use super::options::KvOptions;
use super::report::KvResults;
use crate::interrupt::Interrupt;
use crate::or_dash::OrDash;
use crate::report::Verdict;
use crate::scenario::Console;
use crate::statistics::{Ratio, Spread};
use crate::target::Target;
use anyhow::Context;
use serde::Serialize;
use std::fmt;

/// Results of one server.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Side {
    target: String,
    version: Option<String>,
    durability: Option<String>,
    throughput_ops_sec: Spread,
    latency_p50_ms: Spread,
    latency_p99_ms: Spread,
    server_cpu_micros_per_op: Option<Spread>,
    emit_by: Option<&'static str>,
    emit_p50_ms: Option<Spread>,
    emit_p99_ms: Option<Spread>,
    failed_ops: u64,
    /// Number of runs with wrong emissions.
    runs_with_wrong_emissions: usize,
    runs: Vec<KvResults>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Comparison {
    rounds: usize,
    interrupted: bool,
    a: Side,
    b: Side,
    throughput_ratio: Option<Ratio>,
    latency_p50_ratio: Option<Ratio>,
    latency_p99_ratio: Option<Ratio>,
    server_cpu_ratio: Option<Ratio>,
    emit_p50_ratio: Option<Ratio>,
    emit_p99_ratio: Option<Ratio>,
}

/// Measures both servers `--rounds` times.
pub(super) fn compare(
    options: &KvOptions,
    a: &Target,
    b: &Target,
    interrupt: &Interrupt,
    console: &mut Console<'_>,
) -> anyhow::Result<Comparison> {
    let (mut runs_a, mut runs_b) = (Vec::new(), Vec::new());
    for round in 0..options.rounds {
        // Both servers of a round get the same keys and commands; every round gets different ones.
        let seed = options.seed.map(|seed| seed.wrapping_add(round as u64));
        let options_a = KvOptions { seed, ..options.clone() };
        let options_b = KvOptions { emit_by: options.against_emit_by, ..options_a.clone() };
        let measure = |options: &KvOptions, target: &Target| {
            measurement::measure(options, target, interrupt).with_context(|| format!("{target}"))
        };
        let both = || {
            anyhow::Ok(if round % 2 == 0 {
                let first = measure(&options_a, a)?;
                (first, measure(&options_b, b)?)
            } else {
                let first = measure(&options_b, b)?;
                (measure(&options_a, a)?, first)
            })
        };
        let both = both();
        // An incomplete round would compare a whole run with a partial one.
        if interrupt.is_asked_for() {
            break;
        }
        let (report_a, report_b) = both?;
        console.note(format_args!(
            "round {}/{}: A {:.0} ops/s, B {:.0} ops/s",
            round + 1,
            options.rounds,
            report_a.throughput_ops_sec,
            report_b.throughput_ops_sec
        ));
        runs_a.push(report_a);
        runs_b.push(report_b);
    }
    anyhow::ensure!(!runs_a.is_empty(), "interrupted before both servers were measured");
    Ok(Comparison { interrupted: interrupt.is_asked_for(), ..Comparison::new(runs_a, runs_b) })
}

impl Comparison {
    fn new(runs_a: Vec<KvResults>, runs_b: Vec<KvResults>) -> Self {
        assert_eq!(runs_a.len(), runs_b.len(), "every round measures both servers");
        let ratio = |field: fn(&KvResults) -> f64| {
            let pairs: Vec<_> = runs_a.iter().zip(&runs_b).map(|(a, b)| (field(a), field(b))).collect();
            Ratio::of(&pairs)
        };
        Comparison {
            rounds: runs_a.len(),
            interrupted: false,
            throughput_ratio: ratio(|run| run.throughput_ops_sec),
            latency_p50_ratio: ratio(|run| run.latency_p50_ms),
            latency_p99_ratio: ratio(|run| run.latency_p99_ms),
            server_cpu_ratio: ratio(|run| run.server_cpu_micros_per_op.unwrap_or(f64::NAN)),
            emit_p50_ratio: ratio(|run| run.emit_p50_ms),
            emit_p99_ratio: ratio(|run| run.emit_p99_ms),
            a: Side::new(runs_a),
            b: Side::new(runs_b),
        }
    }

    /// Returns whether all operations and emissions of both servers were right.
    pub(super) fn verdict(&self) -> Verdict {
        Verdict::unless([self.a.faults("a"), self.b.faults("b")].concat())
    }
}

impl Side {
    fn new(runs: Vec<KvResults>) -> Self {
        let spread = |field: fn(&KvResults) -> f64| Spread::of(&runs.iter().map(field).collect::<Vec<_>>());
        let cpu: Vec<f64> = runs.iter().filter_map(|run| run.server_cpu_micros_per_op).collect();
        let first = runs.first();
        Side {
            target: first.map(|run| run.target.clone()).unwrap_or_default(),
            version: first.and_then(|run| run.server.version.clone()),
            durability: first.and_then(|run| run.server.durability.clone()),
            throughput_ops_sec: spread(|run| run.throughput_ops_sec),
            latency_p50_ms: spread(|run| run.latency_p50_ms),
            latency_p99_ms: spread(|run| run.latency_p99_ms),
            server_cpu_micros_per_op: (!cpu.is_empty()).then(|| Spread::of(&cpu)),
            emit_by: first.and_then(|run| run.emit_by),
            emit_p50_ms: first.and_then(|run| run.emit_by).map(|_| spread(|run| run.emit_p50_ms)),
            emit_p99_ms: first.and_then(|run| run.emit_by).map(|_| spread(|run| run.emit_p99_ms)),
            failed_ops: runs.iter().map(|run| run.failed_ops).sum(),
            runs_with_wrong_emissions: runs.iter().filter(|run| !run.emissions_are_clean).count(),
            runs,
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(run) = self.a.runs.first() {
            writeln!(
                out,
                "Tidemark benchmark — {}, {} rounds in turns, {} s each; conns={}, workers={}, pipeline={}, keyspace={}, \
                 valueSize={}B, mix={}",
                run.command,
                self.rounds,
                run.duration_seconds,
                run.conns,
                run.workers,
                run.pipeline,
                run.keyspace,
                run.value_size,
                run.mix
            )?;
            let machine = &run.machine;
            writeln!(out, "Machine: {} cores, {}, {}", machine.cores, machine.processor, machine.kernel)?;
        }
        for (name, side) in [("A", &self.a), ("B", &self.b)] {
            side.write(name, out)?;
        }
        write_ratio(out, "throughput", self.throughput_ratio)?;
        write_ratio(out, "p50 latency", self.latency_p50_ratio)?;
        write_ratio(out, "p99 latency", self.latency_p99_ratio)?;
        write_ratio(out, "server CPU per request", self.server_cpu_ratio)?;
        if self.a.emit_by.is_some() {
            write_ratio(out, "p50 emission latency", self.emit_p50_ratio)?;
            write_ratio(out, "p99 emission latency", self.emit_p99_ratio)?;
        }
        let mut notes: Vec<&String> =
            self.a.runs.iter().chain(&self.b.runs).flat_map(|run| &run.notes).collect();
        notes.sort();
        notes.dedup();
        if self.interrupted {
            writeln!(out, "Interrupted: the figures are those of the rounds until then.")?;
        }
        notes.iter().try_for_each(|note| writeln!(out, "{note}"))
    }
}

impl Side {
    /// Returns what went wrong on this server, which is called `name`.
    fn faults(&self, name: &str) -> Vec<String> {
        let mut faults = Vec::new();
        if self.failed_ops > 0 {
            faults.push(format!("{name}: {} operations failed", self.failed_ops));
        }
        if self.runs_with_wrong_emissions > 0 {
            let (wrong, runs) = (self.runs_with_wrong_emissions, self.runs.len());
            faults.push(format!("{name}: emissions were wrong in {wrong} of {runs} runs"));
        }
        faults
    }

    fn write(&self, name: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.version.as_deref().unwrap_or("does not say its version");
        let durability = self.durability.as_deref().unwrap_or("durability not stated");
        writeln!(out, "{name}: {} ({version}; {durability})", self.target)?;
        let [median, min, max] = figures(self.throughput_ops_sec);
        writeln!(out, "   throughput   median {median:.0} ops/s (min {min:.0}, max {max:.0})")?;
        for (label, spread) in [("p50 latency ", self.latency_p50_ms), ("p99 latency ", self.latency_p99_ms)]
        {
            let [median, min, max] = figures(spread);
            writeln!(out, "   {label} median {median:.3} ms (min {min:.3}, max {max:.3})")?;
        }
        if let Some([median, min, max]) = self.server_cpu_micros_per_op.map(figures) {
            writeln!(out, "   server CPU   median {median:.2} us per request (min {min:.2}, max {max:.2})")?;
        }
        if let (Some(command), Some(p50), Some(p99)) = (self.emit_by, self.emit_p50_ms, self.emit_p99_ms) {
            for (label, [median, min, max]) in
                [("p50 emission", figures(p50)), ("p99 emission", figures(p99))]
            {
                writeln!(out, "   {label} median {median:.3} ms (min {min:.3}, max {max:.3}) by {command}")?;
            }
            let (wrong, runs) = (self.runs_with_wrong_emissions, self.runs.len());
            writeln!(out, "   emissions    wrong in {wrong} of {runs} runs")?;
        }
        writeln!(out, "   failed       {}", self.failed_ops)
    }
}

fn figures(Spread { median, min, max }: Spread) -> [OrDash; 3] {
    [median, min, max].map(OrDash)
}

fn write_ratio(out: &mut fmt::Formatter<'_>, name: &str, ratio: Option<Ratio>) -> fmt::Result {
    match ratio {
        Some(Ratio { estimate, low, high, rounds }) => writeln!(
            out,
            "A / B, {name}: {estimate:.3} (95 % confidence {low:.3} to {high:.3}, {rounds} paired rounds)"
        ),
        None => writeln!(out, "A / B, {name}: not measured"),
    }
}

#[cfg(test)]
mod tests {
    use super::Comparison;
    use crate::kv::test_report::report;

    #[test]
    fn the_ratio_is_that_of_the_rounds() {
        let runs =
            |counts: [u64; 3]| counts.map(|count| report(&[], |outcome| outcome.succeeded = count)).to_vec();
        let comparison = Comparison::new(runs([3000, 3300, 3600]), runs([1500, 1650, 1800]));
        let ratio = comparison.throughput_ratio.unwrap();
        assert!((ratio.estimate - 2.0).abs() < 1e-9);
        assert!((ratio.high - ratio.low).abs() < 1e-9, "rounds that agree leave no doubt");
        let text = comparison.to_string();
        assert!(
            text.contains("A / B, throughput: 2.000 (95 % confidence 2.000 to 2.000, 3 paired rounds)"),
            "{text}"
        );
        assert!(text.contains("median 110 ops/s (min 100, max 120)"), "{text}");
    }
}
