//! Comparison of two servers: ratios of throughput and latency with their confidence.
//!
//! The rounds alternate (A B, then B A): a machine's speed drifts, and a fixed order would favour
//! one server.

use super::measurement;
use super::options::KvOptions;
use super::report::{KvResults, write_heading};
use crate::facts::ServerFacts;
use crate::interrupt::Interrupt;
use crate::or_dash::OrDash;
use crate::report::{Contents, Figures, Results, Verdict};
use crate::scenario::Console;
use crate::statistics::{Ratio, Spread};
use crate::target::Target;
use anyhow::Context;
use std::fmt;

/// Names of the two servers in a report.
const A: &str = "a";
const B: &str = "b";

/// Results of one server.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) target: String,
    pub(super) server: ServerFacts,
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
    pub(super) runs: Vec<KvResults>,
}

#[derive(Debug)]
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
            latency_p50_ratio: ratio(|run| run.latency.p50),
            latency_p99_ratio: ratio(|run| run.latency.p99),
            server_cpu_ratio: ratio(|run| run.server_cpu_micros_per_op.unwrap_or(f64::NAN)),
            emit_p50_ratio: ratio(|run| run.emission_latency().p50),
            emit_p99_ratio: ratio(|run| run.emission_latency().p99),
            a: Side::new(runs_a),
            b: Side::new(runs_b),
        }
    }

    /// Returns the first run.
    fn first(&self) -> &KvResults {
        self.a.runs.first().expect("a comparison has at least one round")
    }

    /// Returns the notes of all runs, each once.
    fn notes(&self) -> Vec<String> {
        let runs = self.a.runs.iter().chain(&self.b.runs);
        let mut notes: Vec<String> = runs.flat_map(|run| run.notes.clone()).collect();
        notes.sort();
        notes.dedup();
        notes
    }

    /// Returns whether all operations and emissions of both servers were right.
    pub(super) fn verdict(&self) -> Verdict {
        Verdict::unless([self.a.faults(A), self.b.faults(B)].concat())
    }
}

impl Side {
    pub(super) fn new(runs: Vec<KvResults>) -> Self {
        let spread = |field: fn(&KvResults) -> f64| Spread::of(&runs.iter().map(field).collect::<Vec<_>>());
        let cpu: Vec<f64> = runs.iter().filter_map(|run| run.server_cpu_micros_per_op).collect();
        let first = runs.first().expect("each server was measured");
        Side {
            target: first.target.clone(),
            server: first.server.clone(),
            throughput_ops_sec: spread(|run| run.throughput_ops_sec),
            latency_p50_ms: spread(|run| run.latency.p50),
            latency_p99_ms: spread(|run| run.latency.p99),
            server_cpu_micros_per_op: (!cpu.is_empty()).then(|| Spread::of(&cpu)),
            emit_by: first.emit_by(),
            emit_p50_ms: first.emit_by().map(|_| spread(|run| run.emission_latency().p50)),
            emit_p99_ms: first.emit_by().map(|_| spread(|run| run.emission_latency().p99)),
            failed_ops: runs.iter().map(|run| run.failed_ops).sum(),
            runs_with_wrong_emissions: runs.iter().filter(|run| !run.emissions_are_clean()).count(),
            runs,
        }
    }
}

impl Results for Comparison {
    fn contents(&self) -> Contents {
        let mut figures = Figures::default();
        for (name, ratio) in [
            ("throughput_ratio", self.throughput_ratio),
            ("latency_median_ratio", self.latency_p50_ratio),
            ("latency_p99_ratio", self.latency_p99_ratio),
            ("server_cpu_ratio", self.server_cpu_ratio),
            ("emission_latency_median_ratio", self.emit_p50_ratio),
            ("emission_latency_p99_ratio", self.emit_p99_ratio),
        ] {
            figures.add_ratio(name, ratio);
        }
        figures.add_of(A, |figures| self.a.add_figures(figures));
        figures.add_of(B, |figures| self.b.add_figures(figures));
        let ends = self.a.runs.iter().chain(&self.b.runs).map(KvResults::end_time);
        let starts = self.a.runs.iter().chain(&self.b.runs).map(|run| run.start_time);
        Contents {
            start: starts.min().expect("a comparison has runs"),
            end: ends.max().expect("a comparison has runs"),
            interrupted: self.interrupted,
            machine: self.first().machine.clone(),
            servers: vec![
                self.a.server.entry(Some(A), &self.a.target),
                self.b.server.entry(Some(B), &self.b.target),
            ],
            figures,
            notes: self.notes(),
            verdict: self.verdict(),
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run = self.first();
        let options = &run.options;
        write_heading(out, options, (self.rounds, run.measured), Some(&run.machine))?;
        for (name, side) in [("A", &self.a), ("B", &self.b)] {
            side.write(name, out)?;
        }
        write_ratio(out, "A / B", "throughput", self.throughput_ratio)?;
        write_ratio(out, "A / B", "p50 latency", self.latency_p50_ratio)?;
        write_ratio(out, "A / B", "p99 latency", self.latency_p99_ratio)?;
        write_ratio(out, "A / B", "server CPU per request", self.server_cpu_ratio)?;
        if self.a.emit_by.is_some() {
            write_ratio(out, "A / B", "p50 emission latency", self.emit_p50_ratio)?;
            write_ratio(out, "A / B", "p99 emission latency", self.emit_p99_ratio)?;
        }
        if self.interrupted {
            writeln!(out, "Interrupted: the figures are those of the rounds until then.")?;
        }
        self.notes().iter().try_for_each(|note| writeln!(out, "{note}"))
    }
}

impl Side {
    /// Returns what went wrong on this server, which is called `name`.
    pub(super) fn faults(&self, name: &str) -> Vec<String> {
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

    pub(super) fn add_figures(&self, figures: &mut Figures) {
        let rounds = self.runs.len();
        figures.add_spread("throughput", "count/s", self.throughput_ops_sec, rounds);
        figures.add_spread("latency_median", "ms", self.latency_p50_ms, rounds);
        figures.add_spread("latency_p99", "ms", self.latency_p99_ms, rounds);
        if let Some(spread) = self.server_cpu_micros_per_op {
            let measured = self.runs.iter().filter(|run| run.server_cpu_micros_per_op.is_some()).count();
            figures.add_spread("server_cpu_per_operation", "us", spread, measured);
        }
        figures.add_counts([("failed_operations", self.failed_ops)]);
        if let Some((p50, p99)) = self.emit_p50_ms.zip(self.emit_p99_ms) {
            figures.add_spread("emission_latency_median", "ms", p50, rounds);
            figures.add_spread("emission_latency_p99", "ms", p99, rounds);
            figures.add("runs_with_wrong_emissions", "count", self.runs_with_wrong_emissions);
        }
        for (round, run) in (1..).zip(&self.runs) {
            figures.add_round(round, |figures| run.add_figures(figures));
        }
    }

    pub(super) fn write(&self, name: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.server.version.as_deref().unwrap_or("does not say its version");
        let durability = self.server.durability.as_deref().unwrap_or("durability not stated");
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

pub(super) fn figures(Spread { median, min, max }: Spread) -> [OrDash; 3] {
    [median, min, max].map(OrDash)
}

/// Writes how many times more of something one of `pair` has than the other.
pub(super) fn write_ratio(
    out: &mut fmt::Formatter<'_>,
    pair: &str,
    name: &str,
    ratio: Option<Ratio>,
) -> fmt::Result {
    match ratio {
        Some(Ratio { estimate, low, high, rounds }) => writeln!(
            out,
            "{pair}, {name}: {estimate:.3} (95 % confidence {low:.3} to {high:.3}, {rounds} paired rounds)"
        ),
        None => writeln!(out, "{pair}, {name}: not measured"),
    }
}

#[cfg(test)]
mod tests {
    use super::Comparison;
    use crate::kv::test_results::results;

    #[test]
    fn the_ratio_is_that_of_the_rounds() {
        let runs =
            |counts: [u64; 3]| counts.map(|count| results(&[], |outcome| outcome.succeeded = count)).to_vec();
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
