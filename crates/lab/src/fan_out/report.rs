//! Results of a run: text for people, a report for programs.

use super::options::FanOutOptions;
use super::receiver::{Faults, Times};
use crate::facts::ServerFacts;
use crate::machine::Machine;
use crate::or_dash::OrDash;
use crate::report::{Contents, Figures, Results, Verdict};
use crate::statistics::{Quantiles, Ratio};
use std::fmt;
use std::time::SystemTime;

/// The result of a run. Times are in milliseconds.
#[derive(Clone, Debug)]
pub(super) struct FanOutResults {
    parts: Parts,
    summary: Summary,
    subscribers: u32,
    /// Rounds that were asked for.
    rounds: u32,
    value_bytes: u32,
}

/// One round; `None` where something was wrong, or not measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    number: u32,
    median_ms: Option<f64>,
    last_ms: Option<f64>,
    floor_median_ms: Option<f64>,
    floor_last_ms: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Summary {
    /// Rounds in which every subscriber was sent the value once.
    measured_rounds: usize,
    last_p50_ms: f64,
    last_p95_ms: f64,
    median_p50_ms: f64,
    median_p95_ms: f64,
    /// The last one's median time, shared out among the subscribers.
    per_subscriber_us: f64,
    floor: Option<FloorSummary>,
}

#[derive(Clone, Copy, Debug)]
struct FloorSummary {
    last_p50_ms: f64,
    last_p95_ms: f64,
    median_p50_ms: f64,
    median_p95_ms: f64,
    per_subscriber_us: f64,
    /// The server over the floor, of the same rounds.
    last_ratio: Option<Ratio>,
    median_ratio: Option<Ratio>,
}

/// Names of figures.
const LAST_TIME: &str = "last_subscriber_time";
const MEDIAN_TIME: &str = "median_subscriber_time";
const TIME_PER_SUBSCRIBER: &str = "time_per_subscriber";
/// The part of a report that is about the floor.
const FLOOR: &str = "floor";

const INCOMPLETE_ROUND: &str = "not every subscriber was sent the value once";

/// The server's memory, as it says itself; the peak only of one on this machine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    /// Resident bytes before the first subscription.
    pub(super) before: Option<u64>,
    /// Before the first round.
    pub(super) subscribed: Option<u64>,
    /// After the last round.
    pub(super) after: Option<u64>,
    /// The most since the server was started.
    pub(super) peak: Option<u64>,
    /// Output that waited for clients after the last round.
    pub(super) waiting_output: Option<u64>,
}

/// What was measured.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub(super) start: SystemTime,
    pub(super) end: SystemTime,
    pub(super) is_interrupted: bool,
    pub(super) target: String,
    pub(super) rounds: Vec<Round>,
    pub(super) memory: Memory,
    /// What was wrong, also in rounds before the measured ones.
    pub(super) faults: Faults,
    pub(super) received: u64,
    pub(super) bytes_per_emission: f64,
    pub(super) server: ServerFacts,
    pub(super) machine: Machine,
}

impl Round {
    pub(super) fn new(number: u32, server: Option<Times>, floor: Option<Times>) -> Self {
        let median = |times: Times| times.median_nanos as f64 / 1e6;
        let last = |times: Times| times.last_nanos as f64 / 1e6;
        Round {
            number,
            median_ms: server.map(median),
            last_ms: server.map(last),
            floor_median_ms: floor.map(median),
            floor_last_ms: floor.map(last),
        }
    }
}

impl FanOutResults {
    pub(super) fn new(options: &FanOutOptions, parts: Parts) -> Self {
        FanOutResults {
            summary: Summary::of(&parts.rounds, options.subscribers),
            parts,
            subscribers: options.subscribers,
            rounds: options.rounds,
            value_bytes: options.value_bytes,
        }
    }

    /// Returns whether every subscriber was sent every value once and in order.
    pub(super) fn verdict(&self) -> Verdict {
        let incomplete = self.parts.rounds.iter().filter(|round| round.last_ms.is_none());
        let mut reasons: Vec<String> =
            incomplete.map(|round| format!("Round {}: {INCOMPLETE_ROUND}", round.number)).collect();
        if !self.parts.faults.is_clean() {
            reasons.push(self.parts.faults.to_string());
        }
        Verdict::unless(reasons)
    }
}

impl Results for FanOutResults {
    fn contents(&self) -> Contents {
        let parts = &self.parts;
        let mut figures = Figures::default();
        self.add_summary(&mut figures);
        for round in &parts.rounds {
            figures.add_round(round.number, |figures| round.add_figures(figures));
        }
        Contents {
            start: parts.start,
            end: parts.end,
            interrupted: parts.is_interrupted,
            machine: parts.machine.clone(),
            servers: vec![parts.server.entry(None, &parts.target)],
            figures,
            notes: Vec::new(),
            verdict: self.verdict(),
        }
    }
}

impl FanOutResults {
    fn add_summary(&self, figures: &mut Figures) {
        let Parts { rounds, memory, faults, received, bytes_per_emission, .. } = &self.parts;
        let summary = &self.summary;
        figures.add("rounds", "count", summary.measured_rounds);
        let times = |time: fn(&Round) -> Option<f64>| rounds.iter().filter_map(time).collect::<Vec<_>>();
        figures.add_quantiles(LAST_TIME, "ms", &times(|round| round.last_ms));
        figures.add_quantiles(MEDIAN_TIME, "ms", &times(|round| round.median_ms));
        figures.add(TIME_PER_SUBSCRIBER, "us", summary.per_subscriber_us);
        if let Some(floor) = &summary.floor {
            figures.add_of(FLOOR, |figures| {
                figures.add_quantiles(LAST_TIME, "ms", &times(|round| round.floor_last_ms));
                figures.add_quantiles(MEDIAN_TIME, "ms", &times(|round| round.floor_median_ms));
                figures.add(TIME_PER_SUBSCRIBER, "us", floor.per_subscriber_us);
            });
            figures.add_ratio("last_subscriber_ratio", floor.last_ratio);
            figures.add_ratio("median_subscriber_ratio", floor.median_ratio);
        }
        figures.add("memory_before", "B", memory.before);
        figures.add("memory_subscribed", "B", memory.subscribed);
        figures.add("memory_after", "B", memory.after);
        figures.add("memory_peak", "B", memory.peak);
        figures.add("output_waiting", "B", memory.waiting_output);
        figures.add("emission_size", "B", *bytes_per_emission);
        figures.add_counts([
            ("emissions_received", *received),
            ("emissions_missed", faults.missed),
            ("emissions_repeated", faults.duplicates),
            ("emissions_late", faults.late),
            ("emissions_unknown", faults.unknown),
            ("subscribers_ended", faults.ended),
        ]);
        faults.sequence.add_figures(figures);
    }
}

impl Round {
    fn add_figures(&self, figures: &mut Figures) {
        figures.add(LAST_TIME, "ms", self.last_ms);
        figures.add(MEDIAN_TIME, "ms", self.median_ms);
        figures.add_of(FLOOR, |figures| {
            figures.add(LAST_TIME, "ms", self.floor_last_ms);
            figures.add(MEDIAN_TIME, "ms", self.floor_median_ms);
        });
    }
}

impl Summary {
    fn of(rounds: &[Round], subscribers: u32) -> Self {
        let all = |time: fn(&Round) -> Option<f64>| rounds.iter().filter_map(time).collect::<Vec<f64>>();
        let pairs = |server: fn(&Round) -> Option<f64>, floor: fn(&Round) -> Option<f64>| {
            rounds.iter().filter_map(|round| server(round).zip(floor(round))).collect::<Vec<_>>()
        };
        let share_us = |millis: f64| millis * 1e3 / f64::from(subscribers);
        let lasts = all(|round| round.last_ms);
        let (last, median) = (Quantiles::of(&lasts), Quantiles::of(&all(|round| round.median_ms)));
        let floor_lasts = all(|round| round.floor_last_ms);
        let floor_last = Quantiles::of(&floor_lasts);
        let floor_median = Quantiles::of(&all(|round| round.floor_median_ms));
        let floor = FloorSummary {
            last_p50_ms: floor_last.p50,
            last_p95_ms: floor_last.p95,
            median_p50_ms: floor_median.p50,
            median_p95_ms: floor_median.p95,
            per_subscriber_us: share_us(floor_last.p50),
            last_ratio: Ratio::of(&pairs(|round| round.last_ms, |round| round.floor_last_ms)),
            median_ratio: Ratio::of(&pairs(|round| round.median_ms, |round| round.floor_median_ms)),
        };
        Summary {
            measured_rounds: lasts.len(),
            last_p50_ms: last.p50,
            last_p95_ms: last.p95,
            median_p50_ms: median.p50,
            median_p95_ms: median.p95,
            per_subscriber_us: share_us(last.p50),
            floor: (!floor_lasts.is_empty()).then_some(floor),
        }
    }
}

impl fmt::Display for Round {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last_ms.zip(self.median_ms) {
            Some((last, median)) => write!(out, "last {last:.3} ms, median {median:.3} ms")?,
            None => out.write_str(INCOMPLETE_ROUND)?,
        }
        match self.floor_last_ms.zip(self.floor_median_ms) {
            Some((last, median)) => write!(out, "; floor: last {last:.3} ms, median {median:.3} ms"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for FanOutResults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let summary = &self.summary;
        writeln!(out, "=== Fan-Out Benchmark Summary ===")?;
        writeln!(out, "Target: {}", self.parts.target)?;
        writeln!(out, "Subscribers of one key: {}", self.subscribers)?;
        writeln!(out, "Rounds: {} ({} measured)", self.rounds, summary.measured_rounds)?;
        writeln!(
            out,
            "Bytes per emission: {:.1} ({} of value)",
            OrDash(self.parts.bytes_per_emission),
            self.value_bytes
        )?;
        writeln!(out, "\nFrom the SET to the last subscriber's emission (ms):")?;
        writeln!(
            out,
            "  p50={:.3} p95={:.3} per-subscriber={:.2}us",
            OrDash(summary.last_p50_ms),
            OrDash(summary.last_p95_ms),
            OrDash(summary.per_subscriber_us)
        )?;
        writeln!(out, "\nFrom the SET to the median subscriber's emission (ms):")?;
        writeln!(out, "  p50={:.3} p95={:.3}", OrDash(summary.median_p50_ms), OrDash(summary.median_p95_ms))?;
        if let Some(floor) = &summary.floor {
            writeln!(
                out,
                "\nThe floor: as many bytes to as many connections, sent by a process that does nothing else (ms):"
            )?;
            writeln!(
                out,
                "  last:   p50={:.3} p95={:.3} per-subscriber={:.2}us; the server takes {}",
                OrDash(floor.last_p50_ms),
                OrDash(floor.last_p95_ms),
                OrDash(floor.per_subscriber_us),
                Times95(floor.last_ratio)
            )?;
            writeln!(
                out,
                "  median: p50={:.3} p95={:.3}; the server takes {}",
                OrDash(floor.median_p50_ms),
                OrDash(floor.median_p95_ms),
                Times95(floor.median_ratio)
            )?;
        }
        self.write_memory(out)?;
        self.write_faults(out)?;
        let version = self.parts.server.version.as_deref().unwrap_or("does not say its version");
        let durability = self.parts.server.durability.as_deref().unwrap_or("not stated by the server");
        writeln!(out, "\nServer: {version}; durability: {durability}")?;
        let Machine { cores, processor, kernel } = &self.parts.machine;
        writeln!(out, "Machine: {cores} cores, {processor}, {kernel}")
    }
}

impl FanOutResults {
    fn write_memory(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Memory { before, subscribed, after, peak, waiting_output } = self.parts.memory;
        writeln!(out, "\nServer Memory (resident, MiB):")?;
        writeln!(
            out,
            "  before={} subscribed={} after the rounds={} at most={}",
            Mebibytes(before),
            Mebibytes(subscribed),
            Mebibytes(after),
            Mebibytes(peak)
        )?;
        writeln!(out, "  output that waited for clients after the rounds={}", Mebibytes(waiting_output))
    }

    fn write_faults(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "\nData Integrity:")?;
        writeln!(out, "  Emissions received: {}", self.parts.received)?;
        writeln!(out, "  {}", self.parts.faults)
    }
}

/// How many times as long, with its confidence.
struct Times95(Option<Ratio>);

impl fmt::Display for Times95 {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(ratio) => {
                write!(out, "{:.2} times as long ({:.2} to {:.2})", ratio.estimate, ratio.low, ratio.high)
            }
            None => write!(out, "what one round does not say"),
        }
    }
}

/// Bytes that a server may not have reported.
struct Mebibytes(Option<u64>);

impl fmt::Display for Mebibytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(bytes) => write!(out, "{:.1}", bytes as f64 / f64::from(1 << 20)),
            None => write!(out, "unknown"),
        }
    }
}
