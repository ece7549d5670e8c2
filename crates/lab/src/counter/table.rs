//! Runs as lines of a table: the columns of the original's script, then ours.

use super::outcome::{Exposures, Outcome};
use crate::duration;

/// Returns the column names, separated by tabs. The first fourteen are the original's.
#[must_use]
pub fn header() -> String {
    COLUMNS.map(|(name, _)| name).join("\t")
}

/// Returns a run's line.
pub(super) fn line(outcome: &Outcome) -> String {
    COLUMNS.map(|(_, cell)| cell(outcome)).join("\t")
}

type Cell = fn(&Outcome) -> String;

const COLUMNS: [(&str, Cell); 28] = [
    ("Variant", |run| run.settings.variant.to_string()),
    ("Ops", |run| run.operations.to_string()),
    ("Duration", |run| duration::format(run.duration)),
    ("Ops/sec", |run| format!("{:.0}", run.rate())),
    ("P50(us)", |run| known(run.latencies.p50_ns.map(micros))),
    ("P95(us)", |run| known(run.latencies.p95_ns.map(micros))),
    ("P99(us)", |run| known(run.latencies.p99_ns.map(micros))),
    ("LogicalWrites", |run| run.asked.writes.to_string()),
    ("DBCalls", |run| run.asked.calls.to_string()),
    ("OpsPerDBCall", |run| match run.asked.calls {
        0 => unknown(),
        calls => format!("{:.3}", run.operations as f64 / calls as f64),
    }),
    ("Ops/sec(calc)", |run| format!("{:.3}", run.rate())),
    ("Ops/sec/key", |run| format!("{:.3}", run.rate() / run.settings.keys as f64)),
    ("DBCalls/sec", |run| format!("{:.3}", run.per_second(run.asked.calls))),
    ("LogicalWrites/sec", |run| format!("{:.3}", run.per_second(run.asked.writes))),
    ("WriteDelay", |run| duration::format(run.settings.write_delay)),
    ("CommitInterval", |run| duration::format(run.settings.commit_interval)),
    ("Threshold", |run| run.settings.threshold.to_string()),
    ("Gated", |run| if run.is_gated { "yes" } else { "no" }.to_owned()),
    ("MaxUncommitted", |run| of_exposures(run, |all| all.most.units)),
    ("MaxUncommitted/key", |run| of_exposures(run, |all| all.most.largest)),
    ("Promised/key", |run| of_exposures(run, |all| all.promised_of_key)),
    ("OldestUncommitted(us)", |run| of_exposures(run, |all| all.most.oldest_ns / 1_000)),
    ("OverAdmitted", |run| known(run.over_admitted)),
    ("DurableMinusTruth", |run| known(run.durable_minus_truth)),
    ("CPU(ns/op)", |run| format!("{:.1}", run.cpu_ns_per_operation)),
    ("Allocs/op", |run| known(run.allocations_per_operation().map(|count| format!("{count:.6}")))),
    ("Bytes/key", |run| known(run.memory.bytes_per_key.map(|bytes| format!("{bytes:.1}")))),
    ("Call(us)", |run| known(run.asked.mean_nanos().map(micros))),
];

fn micros(nanos: u64) -> String {
    format!("{:.3}", nanos as f64 / 1e3)
}

fn of_exposures(run: &Outcome, pick: fn(&Exposures) -> u64) -> String {
    known(run.exposures.as_ref().map(pick))
}

fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(unknown, |value| value.to_string())
}

fn unknown() -> String {
    "-".to_owned()
}
