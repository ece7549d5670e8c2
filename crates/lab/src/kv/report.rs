//! The report of a run: text for people, JSON for programs.

use super::emission::Emissions;
use super::load::Outcome;
use super::options::KvOptions;
use crate::duration;
use crate::facts::ServerFacts;
use crate::latency::LatencySummary;
use crate::machine::Machine;
use crate::or_dash::OrDash;
use crate::report::Verdict;
use crate::target::Target;
use crate::wall_time::rfc3339;
use serde::Serialize;
use std::fmt;
use std::time::{Duration, SystemTime};

/// Result of one run. Latencies are in milliseconds; a figure that was not measured is null in
/// JSON.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)] // The names say it, with their unit; they are part of the output's format.
pub struct KvResults {
    pub start_time: String,
    pub end_time: String,
    pub duration_seconds: f64,
    pub interrupted: bool,
    pub total_ops: u64,
    pub success_ops: u64,
    pub failed_ops: u64,
    pub throughput_ops_sec: f64,
    pub latency_p50_ms: f64,
    pub latency_p95_ms: f64,
    pub latency_p99_ms: f64,
    pub latency_max_ms: f64,
    pub reactive_p50_ms: f64,
    pub reactive_p95_ms: f64,
    pub reactive_p99_ms: f64,
    pub reactive_max_ms: f64,
    pub emit_count: u64,
    pub emit_p50_ms: f64,
    pub emit_p95_ms: f64,
    pub emit_p99_ms: f64,
    pub emit_max_ms: f64,
    pub durable_set: bool,
    pub latency_p999_ms: f64,
    pub latency_count: u64,
    pub reactive_count: u64,
    pub emit_undelivered: u64,
    pub emit_out_of_order: u64,
    pub emit_missing: u64,
    pub emit_duplicates: u64,
    pub emit_misdelivered: u64,
    pub emit_ended_subscriptions: u64,
    pub emit_by: Option<&'static str>,
    pub get_misses: u64,
    pub unsent_ops: u64,
    pub lost_connections: u64,
    pub first_failure: Option<String>,
    pub server_cpu_micros_per_op: Option<f64>,
    pub client_cpu_share: f64,
    pub client_threads: usize,
    pub target: String,
    pub command: &'static str,
    pub mix: String,
    pub conns: usize,
    pub workers: usize,
    pub pipeline: usize,
    pub rate: Option<f64>,
    pub keyspace: u64,
    pub value_size: usize,
    pub warmup_seconds: f64,
    pub reactive_interval_ms: Option<f64>,
    pub reactive_bench: bool,
    pub reactive_watchers: usize,
    pub reactive_keyspace: u64,
    pub seed: u64,
    pub server: ServerFacts,
    pub machine: Machine,
    pub notes: Vec<String>,
    /// Whether all measured emissions were correct; true if none were measured.
    #[serde(skip)]
    pub(super) emissions_are_clean: bool,
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
    pub(super) emitted: Emissions,
    pub(super) server_micros_per_op: Option<f64>,
}

const WRONG_EMISSIONS: &str = "not every SET was emitted where it belongs, once and in order";

/// Share of a core above which a driving thread is considered the bottleneck.
const BUSY_SHARE: f64 = 0.9;

impl KvResults {
    pub(super) fn new(parts: Parts<'_>) -> Self {
        let Parts { options, outcome, probed, emitted, .. } = &parts;
        let latency = outcome.latencies.summary();
        let seconds = parts.measured.as_secs_f64();
        let mut report = KvResults {
            start_time: rfc3339(parts.start_time),
            end_time: rfc3339(parts.start_time + parts.measured),
            duration_seconds: seconds,
            interrupted: parts.is_interrupted,
            total_ops: outcome.succeeded + outcome.failed,
            success_ops: outcome.succeeded,
            failed_ops: outcome.failed,
            throughput_ops_sec: outcome.succeeded as f64 / seconds,
            latency_p50_ms: latency.p50,
            latency_p95_ms: latency.p95,
            latency_p99_ms: latency.p99,
            latency_max_ms: latency.max,
            reactive_p50_ms: probed.p50,
            reactive_p95_ms: probed.p95,
            reactive_p99_ms: probed.p99,
            reactive_max_ms: probed.max,
            emit_count: emitted.latency.count,
            emit_p50_ms: emitted.latency.p50,
            emit_p95_ms: emitted.latency.p95,
            emit_p99_ms: emitted.latency.p99,
            emit_max_ms: emitted.latency.max,
            durable_set: options.durable_set,
            latency_p999_ms: latency.p999,
            latency_count: latency.count,
            reactive_count: probed.count,
            emit_undelivered: emitted.undelivered,
            emit_out_of_order: emitted.faults.out_of_order,
            emit_missing: emitted.faults.missing,
            emit_duplicates: emitted.faults.duplicates,
            emit_misdelivered: emitted.misdelivered,
            emit_ended_subscriptions: emitted.ended,
            emit_by: options.reactive_bench.then(|| options.emit_by.command()),
            get_misses: outcome.misses,
            unsent_ops: outcome.unsent,
            lost_connections: outcome.lost_connections,
            first_failure: outcome.first_failure.clone(),
            server_cpu_micros_per_op: parts.server_micros_per_op,
            client_cpu_share: outcome.cpu_share,
            client_threads: outcome.threads,
            target: parts.target.to_string(),
            command: options.command_name(),
            mix: options.mix.to_string(),
            conns: options.conns,
            workers: options.workers,
            pipeline: options.pipeline,
            rate: options.rate,
            keyspace: options.keyspace,
            value_size: options.value_size,
            warmup_seconds: options.warmup.as_secs_f64(),
            reactive_interval_ms: options.reactive.then_some(options.reactive_interval.as_secs_f64() * 1e3),
            reactive_bench: options.reactive_bench,
            reactive_watchers: options.reactive_watchers,
            reactive_keyspace: options.reactive_keyspace,
            seed: options.seed.expect("a run without --seed is given one before it begins"),
            server: parts.server,
            machine: parts.machine,
            notes: Vec::new(),
            emissions_are_clean: parts.emitted.is_clean(),
        };
        report.notes = notes(&report);
        report
    }
}

impl fmt::Display for KvResults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let durable = if self.durable_set { " (DURABLE)" } else { "" };
        writeln!(out, "Tidemark benchmark — {}{durable}", self.command)?;
        writeln!(
            out,
            "Target: {}, conns={}, workers={}, keyspace={}, valueSize={}B, mix={}",
            self.target, self.conns, self.workers, self.keyspace, self.value_size, self.mix
        )?;
        let (warmup, measured) = (seconds(self.warmup_seconds), seconds(self.duration_seconds));
        writeln!(out, "Warmup: {warmup}, Duration: {measured}")?;
        let (total, success, failed) = (self.total_ops, self.success_ops, self.failed_ops);
        writeln!(out, "Ops: total={total} success={success} failed={failed}")?;
        writeln!(out, "Throughput: {:.0} ops/s", OrDash(self.throughput_ops_sec))?;
        let latency = [self.latency_p50_ms, self.latency_p95_ms, self.latency_p99_ms, self.latency_max_ms];
        writeln!(out, "Latency (ms): {}", quantiles(latency))?;
        if let Some(interval) = self.reactive_interval_ms {
            let probe =
                [self.reactive_p50_ms, self.reactive_p95_ms, self.reactive_p99_ms, self.reactive_max_ms];
            writeln!(
                out,
                "Reactive latency (ms): {} (interval={})",
                quantiles(probe),
                seconds(interval / 1e3)
            )?;
        }
        if let Some(command) = self.emit_by {
            let emission = [self.emit_p50_ms, self.emit_p95_ms, self.emit_p99_ms, self.emit_max_ms];
            writeln!(
                out,
                "Emission latency (ms): {} (SET to push by {command}, watchers={}, keys={})",
                quantiles(emission),
                self.reactive_watchers,
                self.reactive_keyspace
            )?;
            writeln!(
                out,
                "Emissions: count={} undelivered={} missing={} duplicates={} out-of-order={} misdelivered={}",
                self.emit_count,
                self.emit_undelivered,
                self.emit_missing,
                self.emit_duplicates,
                self.emit_out_of_order,
                self.emit_misdelivered
            )?;
        }
        self.write_facts(out)?;
        self.notes.iter().try_for_each(|note| writeln!(out, "{note}"))
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
        if !self.emissions_are_clean {
            reasons.push(WRONG_EMISSIONS.to_owned());
        }
        Verdict::unless(reasons)
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
        let loop_kind = match self.rate {
            Some(rate) => {
                format!("open loop at {rate} requests/s, latency from the time when a request was due")
            }
            None => format!("closed loop, {} in flight per worker", self.pipeline),
        };
        writeln!(
            out,
            "Client: {} thread(s), the busiest at {:.0} % of a core; {loop_kind}; seed {}",
            self.client_threads,
            self.client_cpu_share * 100.0,
            self.seed
        )?;
        writeln!(
            out,
            "Samples: {} latencies, {} probes; {} of the GETs found no key; p99.9={:.3} ms",
            self.latency_count,
            self.reactive_count,
            self.get_misses,
            OrDash(self.latency_p999_ms)
        )
    }
}

fn notes(report: &KvResults) -> Vec<String> {
    let mut notes = Vec::new();
    if report.interrupted {
        notes.push("Interrupted: the figures are those of the time until then.".to_owned());
    }
    if report.durable_set {
        notes.push(
            "Note: SET operations were issued with DURABLE for synchronous WAL flush+fsync.".to_owned(),
        );
    }
    if let Some(failure) = &report.first_failure {
        notes.push(format!("Warning: {} operations failed; the first: {failure}", report.failed_ops));
    }
    if report.total_ops == 0 {
        notes.push(
            "Warning: no operation ended in the measured window, so nothing was measured; raise --duration"
                .to_owned(),
        );
    }
    if report.unsent_ops > 0 {
        notes.push(format!(
            "Warning: {} requests were due and not sent before the end: the server (or this client) cannot keep \
             --rate; their waiting is part of the latencies",
            report.unsent_ops
        ));
    }
    if !report.emissions_are_clean {
        notes.push(format!("Warning: {WRONG_EMISSIONS}: see the counts of emissions"));
    }
    if report.emit_ended_subscriptions > 0 {
        notes.push(format!(
            "Warning: the server has ended {} subscriptions because their watchers fell behind",
            report.emit_ended_subscriptions
        ));
    }
    if report.client_cpu_share > BUSY_SHARE {
        notes.push(
            "Warning: a client thread was busy all the time, so the figures may show the client's limit and not the \
             server's; raise --threads or use another machine for the client"
                .to_owned(),
        );
    }
    if report.latency_count < 1000 {
        notes.push("Warning: fewer than 1000 samples; p99 says little. Raise --duration".to_owned());
    }
    notes
}

fn quantiles(figures: [f64; 4]) -> String {
    let [p50, p95, p99, max] = figures.map(OrDash);
    format!("p50={p50:.3} p95={p95:.3} p99={p99:.3} max={max:.3}")
}

fn seconds(seconds: f64) -> String {
    duration::format(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use crate::kv::emission::Emissions;
    use crate::kv::test_report::{report, report_with};
    use crate::latency::{Latencies, LatencySummary};
    use crate::watch::sequence::SequenceFaults;

    #[test]
    fn the_text_is_the_documented_one() {
        let text = report(&["--durable-set"], |_| {}).to_string();
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
    fn the_json_has_the_documented_fields() {
        let json = serde_json::to_value(report(&[], |_| {})).unwrap();
        for field in [
            "startTime",
            "endTime",
            "durationSeconds",
            "totalOps",
            "successOps",
            "failedOps",
            "throughputOpsSec",
            "latencyP50Ms",
            "latencyP95Ms",
            "latencyP99Ms",
            "latencyMaxMs",
            "reactiveP50Ms",
            "reactiveP95Ms",
            "reactiveP99Ms",
            "reactiveMaxMs",
            "emitCount",
            "emitP50Ms",
            "emitP95Ms",
            "emitP99Ms",
            "emitMaxMs",
            "durableSet",
        ] {
            assert!(json.get(field).is_some(), "{field} is missing");
        }
        assert_eq!(json["startTime"], "1970-01-01T00:00:00Z");
        assert_eq!(json["endTime"], "1970-01-01T00:00:30Z");
        assert_eq!(json["throughputOpsSec"], 50.0);
    }

    #[test]
    fn a_run_that_measured_nothing_fails_and_states_no_figures() {
        let report = report(&[], |outcome| {
            outcome.succeeded = 0;
            outcome.latencies = Latencies::default();
        });
        assert!(!report.verdict().has_passed());
        let text = report.to_string();
        assert!(text.contains("\nLatency (ms): p50=- p95=- p99=- max=-\n"), "{text}");
        assert!(text.contains("no operation ended in the measured window"), "{text}");
        let json = serde_json::to_value(report).unwrap();
        assert_eq!(json["latencyP50Ms"], serde_json::Value::Null);
        assert_eq!((&json["latencyCount"], &json["emitP50Ms"]), (&0.into(), &serde_json::Value::Null));
    }

    #[test]
    fn emissions_are_in_the_text_and_one_fault_fails_the_run() {
        let latency = LatencySummary { count: 900, p50: 1.12, p95: 3.87, p99: 6.54, p999: 9.0, max: 18.31 };
        let clean = Emissions { latency, ..Emissions::default() };
        let report = report_with(&["--reactive-bench"], |_| {}, clean);
        assert!(report.verdict().has_passed());
        let text = report.to_string();
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
            let report = report_with(&["--reactive-bench"], |_| {}, broken);
            assert!(!report.verdict().has_passed(), "{broken:?}");
            assert!(report.to_string().contains("Warning: not every SET was emitted"));
        }
    }

    #[test]
    fn failures_and_a_busy_client_are_told() {
        let text = report(&[], |outcome| {
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
        let text = report(&["--rate", "100"], |outcome| {
            outcome.failed = 20;
            (0..20).for_each(|_| outcome.latencies.record_nanos(10_000_000_000));
        })
        .to_string();
        assert!(text.contains("Samples: 1520 latencies"), "{text}");
    }
}
