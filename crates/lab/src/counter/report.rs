//! Results of a run: text for people, one line for programs, and a report.

use super::outcome::{Exposures, Outcome};
use super::sample::BOUNDS;
use super::text::{bytes_text, grouped, time};
use crate::report::{Bucket, Contents, Figures, Measured, Results, Verdict};
use std::fmt::{self, Display, Formatter};
use std::time::{Duration, SystemTime};

impl Display for Outcome {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let settings = &self.settings;
        writeln!(
            formatter,
            "Variant: {}  Ops: {}  Goroutines: {}  Keys: {}  Churn: {}%",
            settings.variant, self.operations, settings.workers, settings.keys, settings.churn
        )?;
        writeln!(
            formatter,
            "Duration: {}  Ops/sec: {}  (final flush {} of it)",
            time(self.duration),
            grouped(self.rate() as u128),
            time(self.final_flush)
        )?;
        self.write_latencies(formatter)?;
        let asked = &self.asked;
        writeln!(
            formatter,
            "Writes: logical={} ({}/sec), dbCalls={} ({}/sec)",
            grouped(asked.writes.into()),
            grouped(self.per_second(asked.writes) as u128),
            grouped(asked.calls.into()),
            grouped(self.per_second(asked.calls) as u128)
        )?;
        self.write_memory(formatter)?;
        writeln!(
            formatter,
            "Contention (long ops >5\u{d7} median): {}",
            grouped(self.latencies.long as u128)
        )?;
        if let Some(exposures) = &self.exposures {
            write_exposures(exposures, asked.calls, settings.keys, formatter)?;
        }
        self.write_truth(formatter)?;
        writeln!(
            formatter,
            "Cost: CPU={:.1}ns/op (of all threads)  allocations/op={}  bytes/key={} (beside its name)",
            self.cpu_ns_per_operation,
            self.allocations_per_operation().map_or(unknown(), |count| format!("{count:.6}")),
            self.memory.bytes_per_key.map_or(unknown(), |bytes| format!("{bytes:.1}"))
        )?;
        if self.is_interrupted {
            writeln!(formatter, "Interrupted: the figures are those of the time until then.")?;
        }
        for fault in self.faults() {
            writeln!(formatter, "WRONG: {fault}")?;
        }
        writeln!(formatter, "{}", self.summary())
    }
}

impl Results for Outcome {
    fn contents(&self) -> Contents {
        let mut figures = Figures::default();
        self.add_figures(&mut figures);
        Contents {
            start: self.start,
            end: self.end(),
            interrupted: self.is_interrupted,
            machine: self.machine.clone(),
            servers: Vec::new(),
            figures,
            notes: Vec::new(),
            verdict: Verdict::unless(self.faults()),
        }
    }
}

impl Outcome {
    fn end(&self) -> SystemTime {
        self.start + self.duration
    }

    pub(super) fn add_figures(&self, figures: &mut Figures) {
        figures.add("duration", "ns", self.duration.as_nanos());
        figures.add("final_flush", "ns", self.final_flush.as_nanos());
        figures.add("throughput", "count/s", self.rate());
        self.add_latencies(figures);
        figures.add_counts([
            ("operations", self.operations),
            ("admitted", self.admitted),
            ("given_back", self.given_back),
            ("refused", self.refused),
            ("store_calls", self.asked.calls),
            ("store_writes", self.asked.writes),
        ]);
        figures.add("mean_store_call_time", "ns", self.asked.mean_nanos());
        figures.add("over_admitted", "count", self.over_admitted);
        figures.add("durable_minus_truth", "count", self.durable_minus_truth);
        figures.add("memory_minus_truth", "count", self.memory_minus_truth);
        if let Some(exposures) = &self.exposures {
            add_exposures(exposures, figures);
        }
        let memory = &self.memory;
        figures.add("allocations", "count", memory.allocations);
        figures.add("memory_allocated", "B", memory.total_bytes);
        figures.add("memory_kept", "B", memory.kept_bytes);
        figures.add("memory_resident", "B", memory.resident_bytes);
        figures.add("memory_per_key", "B", memory.bytes_per_key);
        figures.add("allocations_per_operation", "count", self.allocations_per_operation());
        figures.add("cpu_per_operation", "ns", self.cpu_ns_per_operation);
    }

    fn add_latencies(&self, figures: &mut Figures) {
        let latencies = &self.latencies;
        let Some(figure) = figures.add("latency", "ns", latencies.p50_ns) else { return };
        figure.count = Some(latencies.samples as u64);
        figure.p95 = latencies.p95_ns.number();
        figure.p99 = latencies.p99_ns.number();
        figure.max = latencies.max_ns.number();
        let bounds = BOUNDS.into_iter().map(Some).chain([None]);
        let buckets = bounds.zip(&latencies.histogram);
        figure.histogram = buckets.map(|(below, count)| Bucket { below, count: *count as u64 }).collect();
        figures.add("long_operations", "count", latencies.long);
        figures.add("latency_correction", "ns", self.timer_ns);
    }

    fn write_latencies(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let latencies = &self.latencies;
        if latencies.samples == 0 {
            return writeln!(formatter, "Latency: not taken");
        }
        let nanos = |nanos| time(Duration::from_nanos(nanos));
        let quantile = |quantile: Option<u64>| quantile.map_or(unknown(), nanos);
        writeln!(
            formatter,
            "Latency p50: {}  p95: {}  p99: {}  max: {}",
            quantile(latencies.p50_ns),
            quantile(latencies.p95_ns),
            quantile(latencies.p99_ns),
            quantile(latencies.max_ns)
        )?;
        writeln!(
            formatter,
            "Latency histogram ({} samples; the clock's {}ns are taken off):",
            grouped(latencies.samples as u128),
            self.timer_ns
        )?;
        let last = BOUNDS[BOUNDS.len() - 1];
        let bounds = BOUNDS.iter().map(|bound| format!("<{}", nanos(*bound)));
        let bounds = bounds.chain([format!(">={}", nanos(last))]);
        for (bound, count) in bounds.zip(&latencies.histogram).filter(|(_, count)| **count > 0) {
            let share = *count as f64 * 100.0 / latencies.samples as f64;
            writeln!(formatter, "  {bound:>8}  {:>12}  {share:>6.2}%", grouped(*count as u128))?;
        }
        Ok(())
    }

    fn write_memory(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let memory = &self.memory;
        let kept = memory.kept_bytes.map_or(unknown(), |bytes| bytes_text(bytes.max(0).unsigned_abs()));
        writeln!(
            formatter,
            "Memory: Alloc={kept}  TotalAlloc={}  Sys={}  NumGC=0",
            memory.total_bytes.map_or(unknown(), bytes_text),
            memory.resident_bytes.map_or(unknown(), bytes_text)
        )
    }

    fn write_truth(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let units = |units: Option<u128>| units.map_or(unknown(), grouped);
        writeln!(
            formatter,
            "Gated: {}  admitted={}  given back={}  refused={}  over-admitted={}",
            if self.is_gated { "yes" } else { "no" },
            grouped(self.admitted.into()),
            grouped(self.given_back.into()),
            grouped(self.refused.into()),
            units(self.over_admitted.map(u128::from))
        )?;
        writeln!(
            formatter,
            "Truth: durable minus truth={}  memory minus truth={} (units, after the final flush)",
            units(self.durable_minus_truth),
            units(self.memory_minus_truth)
        )
    }

    pub(super) fn allocations_per_operation(&self) -> Option<f64> {
        self.memory.allocations.map(|count| count as f64 / self.operations.max(1) as f64)
    }

    /// Returns one line for programs: the original's fields in their order, then ours. `-` marks an
    /// unknown value.
    pub(super) fn summary(&self) -> String {
        let settings = &self.settings;
        let latencies = &self.latencies;
        let known = |value: Option<String>| value.unwrap_or_else(unknown);
        let most =
            |pick: fn(&Exposures) -> u64| known(self.exposures.as_ref().map(|one| pick(one).to_string()));
        let fields = [
            ("variant", settings.variant.to_string()),
            ("ops", self.operations.to_string()),
            ("duration_ns", self.duration.as_nanos().to_string()),
            ("goroutines", settings.workers.to_string()),
            ("keys", settings.keys.to_string()),
            ("churn_pct", settings.churn.to_string()),
            ("p50_ns", known(latencies.p50_ns.map(|nanos| nanos.to_string()))),
            ("p95_ns", known(latencies.p95_ns.map(|nanos| nanos.to_string()))),
            ("p99_ns", known(latencies.p99_ns.map(|nanos| nanos.to_string()))),
            ("logical_writes", self.asked.writes.to_string()),
            ("db_calls", self.asked.calls.to_string()),
            ("write_delay_ns", settings.write_delay.as_nanos().to_string()),
            ("gated", if self.is_gated { "yes" } else { "no" }.to_owned()),
            ("store", settings.store.to_string()),
            ("lookup", settings.lookup.to_string()),
            ("admitted", self.admitted.to_string()),
            ("given_back", self.given_back.to_string()),
            ("refused", self.refused.to_string()),
            ("max_uncommitted", most(|all| all.most.units)),
            ("max_uncommitted_key", most(|all| all.most.largest)),
            ("promised_uncommitted_key", most(|all| all.promised_of_key)),
            ("oldest_uncommitted_ns", most(|all| all.most.oldest_ns)),
            ("over_admitted", known(self.over_admitted.map(|units| units.to_string()))),
            ("durable_minus_truth", known(self.durable_minus_truth.map(|units| units.to_string()))),
            ("cpu_ns_per_op", format!("{:.1}", self.cpu_ns_per_operation)),
            ("allocs_per_op", known(self.allocations_per_operation().map(|count| format!("{count:.6}")))),
            ("bytes_per_key", known(self.memory.bytes_per_key.map(|bytes| format!("{bytes:.1}")))),
            ("call_ns", known(self.asked.mean_nanos().map(|nanos| nanos.to_string()))),
            ("timer_ns", self.timer_ns.to_string()),
        ];
        let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("Summary: {}", fields.join(" "))
    }
}

fn add_exposures(exposures: &Exposures, figures: &mut Figures) {
    let Exposures { most, mean_units, at_end, at_last, looks, promised_of_key, commits } = exposures;
    figures.add("mean_uncommitted", "count", *mean_units);
    figures.add_counts([
        ("max_uncommitted", most.units),
        ("max_uncommitted_key", most.largest),
        ("promised_uncommitted_key", *promised_of_key),
        ("uncommitted_before_final_flush", *at_end),
        ("uncommitted_after_final_flush", *at_last),
        ("uncommitted_samples", *looks),
    ]);
    figures.add("oldest_uncommitted", "ns", most.oldest_ns);
    if let Some(figure) = figures.add("mean_commit_interval", "ns", commits.mean_ns) {
        figure.count = Some(commits.count);
        figure.min = commits.min_ns.number();
        figure.max = commits.max_ns.number();
    }
}

fn write_exposures(
    exposures: &Exposures,
    calls: u64,
    keys: usize,
    formatter: &mut Formatter<'_>,
) -> fmt::Result {
    writeln!(
        formatter,
        "VSA |A_net| total: max={} avg={} final={} (units; {} before the final flush)",
        grouped(exposures.most.units.into()),
        grouped(exposures.mean_units as u128),
        grouped(exposures.at_last.into()),
        grouped(exposures.at_end.into())
    )?;
    let nanos = |nanos| time(Duration::from_nanos(nanos));
    let intervals = &exposures.commits;
    if let (Some(min), Some(mean), Some(max)) = (intervals.min_ns, intervals.mean_ns, intervals.max_ns) {
        writeln!(
            formatter,
            "VSA commits: total={} | intervals min={} avg={} max={} (between looks)",
            grouped(calls.into()),
            nanos(min),
            nanos(mean),
            nanos(max)
        )?;
    } else {
        writeln!(formatter, "VSA commits: total={}", grouped(calls.into()))?;
    }
    writeln!(
        formatter,
        "Uncommitted: at most {} units of one key, of {} promised ({} of all {} keys); the oldest for {}",
        grouped(exposures.most.largest.into()),
        grouped(exposures.promised_of_key.into()),
        grouped(u128::from(exposures.promised_of_key) * keys as u128),
        grouped(keys as u128),
        nanos(exposures.most.oldest_ns)
    )
}

fn unknown() -> String {
    "-".to_owned()
}
