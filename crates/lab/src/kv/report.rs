//! Results of a run: text for people, a report for programs.

use super::emission::Emissions;
use super::load::Outcome;
use super::options::KvOptions;
use crate::duration;
use crate::facts::ServerFacts;
use crate::latency::LatencySummary;
use crate::machine::Machine;
use crate::or_dash::OrDash;
use crate::report::{Contents, Figures, Results, Verdict};
use crate::target::Target;
use std::fmt;
use std::time::{Duration, SystemTime};

/// Writes what servers that take turns are asked to do, for how many rounds of what time, and where.
pub(super) fn write_heading(
    out: &mut fmt::Formatter<'_>,
    options: &KvOptions,
    (rounds, time): (usize, Duration),
    machine: Option<&Machine>,
) -> fmt::Result {
    writeln!(
        out,
        "Tidemark benchmark — {}, {rounds} rounds in turns, {} s each; conns={}, workers={}, pipeline={}, keyspace={}, \
         valueSize={}B, mix={}",
        options.command_name(),
        time.as_secs_f64(),
        options.conns,
        options.workers,
        options.pipeline,
        options.keyspace,
        options.value_size,
        options.mix
    )?;
    let Some(machine) = machine else { return Ok(()) };
    writeln!(out, "Machine: {} cores, {}, {}", machine.cores, machine.processor, machine.kernel)
}

/// Results of one run against one server.
#[derive(Clone, Debug)]
pub(super) struct KvResults {
    pub(super) start_time: SystemTime,
    /// Length of the measured window.
    pub(super) measured: Duration,
    pub(super) is_interrupted: bool,
    pub(super) total_ops: u64,
    pub(super) success_ops: u64,
    pub(super) failed_ops: u64,
    pub(super) throughput_ops_sec: f64,
    pub(super) latency: LatencySummary,
    /// Latency that a bystander sees.
    pub(super) probed: LatencySummary,
    /// Emissions, if they were measured.
    pub(super) emitted: Option<Emissions>,
    get_misses: u64,
    unsent_ops: u64,
    lost_connections: u64,
    first_failure: Option<String>,
    pub(super) server_cpu_micros_per_op: Option<f64>,
    client_cpu_share: f64,
    client_threads: usize,
    pub(super) target: String,
    pub(super) options: KvOptions,
    pub(super) server: ServerFacts,
    pub(super) machine: Machine,
    pub(super) notes: Vec<String>,
}

/// The inputs of a report.
pub(super) struct Parts<'a> {
    pub(super) options: &'a KvOptions,
    pub(super) target: &'a Target,
    pub(super) start_time: SystemTime,
    /// Length of the measured window.
    pub(super) measured: Duration,
    /// Whether the window ended early.
    pub(super) is_interrupted: bool,
    pub(super) server: ServerFacts,
    pub(super) machine: Machine,
    pub(super) outcome: Outcome,
    pub(super) probed: LatencySummary,
    /// Emissions, if they were measured.
    pub(super) emitted: Option<Emissions>,
    pub(super) server_micros_per_op: Option<f64>,
}

const WRONG_EMISSIONS: &str = "not every SET was emitted where it belongs, once and in order";

/// Share of a core above which a driving thread is considered the bottleneck.
const BUSY_SHARE: f64 = 0.9;

impl KvResults {
    pub(super) fn new(parts: Parts<'_>) -> Self {
        let Parts { options, outcome, .. } = parts;
        let mut results = KvResults {
            start_time: parts.start_time,
            measured: parts.measured,
            is_interrupted: parts.is_interrupted,
            total_ops: outcome.succeeded + outcome.failed,
            success_ops: outcome.succeeded,
            failed_ops: outcome.failed,
            throughput_ops_sec: outcome.succeeded as f64 / parts.measured.as_secs_f64(),
            latency: outcome.latencies.summary(),
            probed: parts.probed,
            emitted: parts.emitted,
            get_misses: outcome.misses,
            unsent_ops: outcome.unsent,
            lost_connections: outcome.lost_connections,
            first_failure: outcome.first_failure,
            server_cpu_micros_per_op: parts.server_micros_per_op,
            client_cpu_share: outcome.cpu_share,
            client_threads: outcome.threads,
            target: parts.target.to_string(),
            options: options.clone(),
            server: parts.server,
            machine: parts.machine,
            notes: Vec::new(),
        };
        results.notes = notes(&results);
        results
    }

    /// Returns the name of the command that brings emissions, if they were measured.
    pub(super) fn emit_by(&self) -> Option<&'static str> {
        self.emitted.map(|_| self.options.emit_by.command())
    }

    /// Returns the latency of emissions; nothing if they were not measured.
    pub(super) fn emission_latency(&self) -> LatencySummary {
        self.emitted.map_or_else(LatencySummary::default, |emitted| emitted.latency)
    }

    /// Returns whether all measured emissions were correct.
    pub(super) fn emissions_are_clean(&self) -> bool {
        self.emitted.is_none_or(|emitted| emitted.is_clean())
    }
}

impl fmt::Display for KvResults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.options;
        let durable = if options.durable_set { " (DURABLE)" } else { "" };
        writeln!(out, "Tidemark benchmark — {}{durable}", options.command_name())?;
        writeln!(
            out,
            "Target: {}, conns={}, workers={}, keyspace={}, valueSize={}B, mix={}",
            self.target, options.conns, options.workers, options.keyspace, options.value_size, options.mix
        )?;
        let (warmup, measured) = (duration::format(options.warmup), duration::format(self.measured));
        writeln!(out, "Warmup: {warmup}, Duration: {measured}")?;
        let (total, success, failed) = (self.total_ops, self.success_ops, self.failed_ops);
        writeln!(out, "Ops: total={total} success={success} failed={failed}")?;
        writeln!(out, "Throughput: {:.0} ops/s", OrDash(self.throughput_ops_sec))?;
        writeln!(out, "Latency (ms): {}", quantiles(&self.latency))?;
        if options.reactive {
            let interval = duration::format(options.reactive_interval);
            writeln!(out, "Reactive latency (ms): {} (interval={interval})", quantiles(&self.probed))?;
        }
        if let Some(emitted) = &self.emitted {
            writeln!(
                out,
                "Emission latency (ms): {} (SET to push by {}, watchers={}, keys={})",
                quantiles(&emitted.latency),
                options.emit_by.command(),
                options.reactive_watchers,
                options.reactive_keyspace
            )?;
            writeln!(
                out,
                "Emissions: count={} undelivered={} missing={} duplicates={} out-of-order={} misdelivered={}",
                emitted.latency.count,
                emitted.undelivered,
                emitted.faults.missing,
                emitted.faults.duplicates,
                emitted.faults.out_of_order,
                emitted.misdelivered
            )?;
        }
        self.write_facts(out)?;
        self.notes.iter().try_for_each(|note| writeln!(out, "{note}"))
    }
}

impl Results for KvResults {
    fn contents(&self) -> Contents {
        let mut figures = Figures::default();
        self.add_figures(&mut figures);
        Contents {
            start: self.start_time,
            end: self.end_time(),
            interrupted: self.is_interrupted,
            machine: self.machine.clone(),
            servers: vec![self.server.entry(None, &self.target)],
            figures,
            notes: self.notes.clone(),
            verdict: self.verdict(),
        }
    }
}

impl KvResults {
    /// Returns whether there were operations, all succeeded, and every awaited emission arrived
    /// once and in order.
    pub(super) fn verdict(&self) -> Verdict {
        let mut reasons = Vec::new();
        if self.success_ops == 0 {
            reasons.push("no operation succeeded in the measured window".to_owned());
        }
        if self.failed_ops > 0 {
            let first = self.first_failure.as_ref().map(|failure| format!("; the first: {failure}"));
            reasons.push(format!("{} operations failed{}", self.failed_ops, first.unwrap_or_default()));
        }
        if !self.emissions_are_clean() {
            reasons.push(WRONG_EMISSIONS.to_owned());
        }
        Verdict::unless(reasons)
    }

    pub(super) fn end_time(&self) -> SystemTime {
        self.start_time + self.measured
    }

    pub(super) fn add_figures(&self, figures: &mut Figures) {
        figures.add("duration", "s", self.measured.as_secs_f64());
        figures.add("throughput", "count/s", self.throughput_ops_sec);
        figures.add_latency("latency", &self.latency);
        figures.add_latency("probe_latency", &self.probed);
        figures.add_counts([
            ("operations", self.total_ops),
            ("successful_operations", self.success_ops),
            ("failed_operations", self.failed_ops),
            ("unsent_operations", self.unsent_ops),
            ("get_misses", self.get_misses),
            ("lost_connections", self.lost_connections),
        ]);
        figures.add("server_cpu_per_operation", "us", self.server_cpu_micros_per_op);
        figures.add("client_threads", "count", self.client_threads);
        figures.add("client_cpu", "%", self.client_cpu_share * 100.0);
        let Some(emitted) = &self.emitted else { return };
        figures.add_latency("emission_latency", &emitted.latency);
        figures.add_counts([
            ("emissions", emitted.latency.count),
            ("emissions_undelivered", emitted.undelivered),
            ("emissions_missing", emitted.faults.missing),
            ("emissions_repeated", emitted.faults.duplicates),
            ("emissions_out_of_order", emitted.faults.out_of_order),
            ("emissions_misdelivered", emitted.misdelivered),
            ("subscriptions_ended", emitted.ended),
        ]);
    }

    /// Writes the conditions under which the figures were measured.
    fn write_facts(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.server.version.as_deref().unwrap_or("does not say its version");
        let durability = self.server.durability.as_deref().unwrap_or("not stated by the server");
        writeln!(out, "Server: {version}; durability: {durability}")?;
        if let Some(micros) = self.server_cpu_micros_per_op {
            writeln!(out, "Server CPU: {micros:.2} us per request (user + system, warm-up included)")?;
        }
        let Machine { cores, processor, kernel } = &self.machine;
        writeln!(out, "Machine: {cores} cores, {processor}, {kernel}")?;
        let loop_kind = match self.options.rate {
            Some(rate) => {
                format!("open loop at {rate} requests/s, latency from the time when a request was due")
            }
            None => format!("closed loop, {} in flight per worker", self.options.pipeline),
        };
        writeln!(
            out,
            "Client: {} thread(s), the busiest at {:.0} % of a core; {loop_kind}; seed {}",
            self.client_threads,
            self.client_cpu_share * 100.0,
            self.options.seed.expect("a run without --seed is given one before it begins")
        )?;
        writeln!(
            out,
            "Samples: {} latencies, {} probes; {} of the GETs found no key; p99.9={:.3} ms",
            self.latency.count,
            self.probed.count,
            self.get_misses,
            OrDash(self.latency.p999)
        )
    }
}

fn notes(results: &KvResults) -> Vec<String> {
    let mut notes = Vec::new();
    if results.is_interrupted {
        notes.push("Interrupted: the figures are those of the time until then.".to_owned());
    }
    if results.options.durable_set {
        notes.push(
            "Note: SET operations were issued with DURABLE for synchronous WAL flush+fsync.".to_owned(),
        );
    }
    if let Some(failure) = &results.first_failure {
        notes.push(format!("Warning: {} operations failed; the first: {failure}", results.failed_ops));
    }
    if results.total_ops == 0 {
        notes.push(
            "Warning: no operation ended in the measured window, so nothing was measured; raise --duration"
                .to_owned(),
        );
    }
    if results.unsent_ops > 0 {
        notes.push(format!(
            "Warning: {} requests were due and not sent before the end: the server (or this client) cannot keep \
             --rate; their waiting is part of the latencies",
            results.unsent_ops
        ));
    }
    if !results.emissions_are_clean() {
        notes.push(format!("Warning: {WRONG_EMISSIONS}: see the counts of emissions"));
    }
    if let Some(Emissions { ended, .. }) = results.emitted.filter(|emitted| emitted.ended > 0) {
        notes.push(format!(
            "Warning: the server has ended {ended} subscriptions because their watchers fell behind"
        ));
    }
    if results.client_cpu_share > BUSY_SHARE {
        notes.push(
            "Warning: a client thread was busy all the time, so the figures may show the client's limit and not the \
             server's; raise --threads or use another machine for the client"
                .to_owned(),
        );
    }
    if results.latency.count < 1000 {
        notes.push("Warning: fewer than 1000 samples; p99 says little. Raise --duration".to_owned());
    }
    notes
}

fn quantiles(latency: &LatencySummary) -> String {
    let [p50, p95, p99, max] = [latency.p50, latency.p95, latency.p99, latency.max].map(OrDash);
    format!("p50={p50:.3} p95={p95:.3} p99={p99:.3} max={max:.3}")
}

#[cfg(test)]
mod tests {
    use crate::kv::emission::Emissions;
    use crate::kv::test_results::{results, results_with};
    use crate::latency::{Latencies, LatencySummary};
    use crate::test_run::{figure, report_of, value};
    use crate::watch::sequence::SequenceFaults;

    const LATENCY: LatencySummary =
        LatencySummary { count: 900, p50: 1.12, p95: 3.87, p99: 6.54, p999: 9.0, max: 18.31 };

    #[test]
    fn the_text_is_the_documented_one() {
        let text = results(&["--durable-set"], |_| {}).to_string();
        let expected = "\
Tidemark benchmark — GETSET (DURABLE)
Target: localhost:7379, conns=16, workers=16, keyspace=100000, valueSize=16B, mix=GET:50/SET:50
Warmup: 5s, Duration: 30s
Ops: total=1500 success=1500 failed=0
Throughput: 50 ops/s
Latency (ms): p50=1.000 p95=1.000 p99=1.000 max=1.000
Reactive latency (ms): p50=0.250 p95=0.850 p99=1.500 max=4.900 (interval=100ms)
Server: Tidemark 0.1.0; durability: durability=off
Server CPU: 2.50 us per request (user + system, warm-up included)
Machine: 2 cores, Test, linux 6
Client: 1 thread(s), the busiest at 50 % of a core; closed loop, 1 in flight per worker; seed 7
Samples: 1500 latencies, 300 probes; 0 of the GETs found no key; p99.9=1.000 ms
Note: SET operations were issued with DURABLE for synchronous WAL flush+fsync.
";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_report_has_every_figure_with_its_unit() {
        let emitted = Emissions { latency: LATENCY, ..Emissions::default() };
        let report = report_of(&results_with(&["--reactive-bench"], |_| {}, Some(emitted)));
        for (name, unit) in [
            ("duration", "s"),
            ("throughput", "count/s"),
            ("latency", "ms"),
            ("probe_latency", "ms"),
            ("operations", "count"),
            ("successful_operations", "count"),
            ("failed_operations", "count"),
            ("emission_latency", "ms"),
            ("emissions", "count"),
        ] {
            assert_eq!(figure(&report, name)["unit"], unit, "{report}");
        }
        for key in ["value", "count", "p95", "p99", "p999", "max"] {
            assert!(figure(&report, "latency")[key].is_number(), "{key}: {report}");
        }
        assert_eq!(report["start_time"], "1970-01-01T00:00:00Z");
        assert_eq!(report["end_time"], "1970-01-01T00:00:30Z");
        assert_eq!(value(&report, "duration"), 30.0);
        assert_eq!(value(&report, "throughput"), 50.0);
    }

    #[test]
    fn a_run_that_measured_nothing_fails_and_states_no_figures() {
        let results = results(&[], |outcome| {
            outcome.succeeded = 0;
            outcome.latencies = Latencies::default();
        });
        assert!(!results.verdict().has_passed());
        let text = results.to_string();
        assert!(text.contains("\nLatency (ms): p50=- p95=- p99=- max=-\n"), "{text}");
        assert!(text.contains("no operation ended in the measured window"), "{text}");
        let report = report_of(&results);
        assert_eq!(value(&report, "operations"), 0);
        for name in ["latency", "emission_latency"] {
            assert!(figure(&report, name).is_null(), "{name}: {report}");
        }
    }

    #[test]
    fn emissions_are_in_the_text_and_one_fault_fails_the_run() {
        let clean = Emissions { latency: LATENCY, ..Emissions::default() };
        let results = results_with(&["--reactive-bench"], |_| {}, Some(clean));
        assert!(results.verdict().has_passed());
        let text = results.to_string();
        assert!(
            text.contains(
                "\
Emission latency (ms): p50=1.120 p95=3.870 p99=6.540 max=18.310 (SET to push by GET.WATCH, watchers=1, keys=10000)
Emissions: count=900 undelivered=0 missing=0 duplicates=0 out-of-order=0 misdelivered=0
"
            ),
            "{text}"
        );
        let fault = |missing, duplicates, out_of_order| Emissions {
            faults: SequenceFaults { missing, duplicates, out_of_order },
            ..clean
        };
        for broken in [
            fault(1, 0, 0),
            fault(0, 1, 0),
            fault(0, 0, 1),
            Emissions { undelivered: 1, ..clean },
            Emissions { misdelivered: 1, ..clean },
            Emissions { ended: 1, ..clean },
        ] {
            let results = results_with(&["--reactive-bench"], |_| {}, Some(broken));
            assert!(!results.verdict().has_passed(), "{broken:?}");
            assert!(results.to_string().contains("Warning: not every SET was emitted"));
        }
    }

    #[test]
    fn failures_and_a_busy_client_are_reported() {
        let text = results(&[], |outcome| {
            outcome.failed = 3;
            outcome.first_failure = Some("Set was answered \"ERR full\"".into());
            outcome.cpu_share = 0.99;
        })
        .to_string();
        assert!(text.contains("Ops: total=1503 success=1500 failed=3"));
        assert!(text.contains("3 operations failed; the first: Set was answered \"ERR full\""));
        assert!(text.contains("a client thread was busy all the time"));
    }

    #[test]
    fn the_samples_are_the_latencies_and_not_the_successes() {
        let text = results(&["--rate", "100"], |outcome| {
            outcome.failed = 20;
            (0..20).for_each(|_| outcome.latencies.record_nanos(10_000_000_000));
        })
        .to_string();
        assert!(text.contains("Samples: 1520 latencies"), "{text}");
    }
}
