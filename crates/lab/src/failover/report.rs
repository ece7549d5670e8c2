//! Results of a run: text for people, a report for programs.

use super::options::{FailoverOptions, Fault};
use super::round::Round;
use crate::cluster::Timing;
use crate::duration;
use crate::facts::ServerFacts;
use crate::machine::Machine;
use crate::or_dash::OrDash;
use crate::report::{Contents, Figures, Measured, Results, Verdict};
use crate::statistics::{Quantiles, Spread};
use std::fmt;
use std::time::SystemTime;

/// What was measured with one cluster.
#[derive(Clone, Debug)]
pub(super) struct OfTiming {
    pub(super) timing: Timing,
    address: String,
    facts: ServerFacts,
    pub(super) quiet: Vec<Round>,
    faults: Vec<(Fault, Vec<Round>)>,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub(super) struct FailoverResults {
    options: FailoverOptions,
    start: SystemTime,
    end: SystemTime,
    timings: Vec<OfTiming>,
    is_interrupted: bool,
    machine: Machine,
}

/// A time of a round, in milliseconds.
type Time = fn(&Round) -> Option<f64>;

/// The times of a failover: name in a report, name in the text, whether the original has it.
const TIMES: [(&str, &str, Time); 7] = [
    ("client_gap", "Longest Gap Between Acknowledged Writes, One Client (ms)", |round| round.gaps.client),
    ("cluster_gap", "Longest Gap Between Acknowledged Writes, All Clients (ms)", |round| round.gaps.cluster),
    ("detection_time", "Detection Time (ms)", |round| Some(round.election?.detection_ms)),
    ("election_time", "Election Time (ms)", |round| Some(round.election?.election_ms)),
    ("total_failover_time", "Total Failover Time (ms)", |round| Some(round.election?.total_ms)),
    ("return_time", "Return of the Old Leader, Until It Has Everything (ms)", |round| round.return_ms),
    ("client_gap_before", "Longest Gap Before the Fault, One Client (ms)", |round| round.gaps.client_before),
];

/// Name of the part of a run without faults.
const QUIET: &str = "quiet";

impl OfTiming {
    pub(super) fn new(timing: Timing, address: String, facts: ServerFacts) -> Self {
        OfTiming { timing, address, facts, quiet: Vec::new(), faults: Vec::new() }
    }

    /// Returns the rounds of a fault, to be added to.
    pub(super) fn faults_mut(&mut self, fault: Fault) -> &mut Vec<Round> {
        let at = self.faults.iter().position(|(kind, _)| *kind == fault).unwrap_or_else(|| {
            self.faults.push((fault, Vec::new()));
            self.faults.len() - 1
        });
        &mut self.faults[at].1
    }

    pub(super) fn has_measured(&self) -> bool {
        self.parts().any(|(_, rounds)| !rounds.is_empty())
    }

    pub(super) fn is_right(&self) -> bool {
        self.parts().flat_map(|(_, rounds)| rounds).all(|round| round.faults("").is_empty())
    }

    /// Returns the parts of the run with their names.
    fn parts(&self) -> impl Iterator<Item = (&'static str, &[Round])> {
        let faults = self.faults.iter().map(|(fault, rounds)| (fault.name(), &rounds[..]));
        std::iter::once((QUIET, &self.quiet[..])).chain(faults).filter(|(_, rounds)| !rounds.is_empty())
    }
}

impl FailoverResults {
    pub(super) fn new(
        options: &FailoverOptions,
        start: SystemTime,
        is_interrupted: bool,
        timings: Vec<OfTiming>,
    ) -> Self {
        FailoverResults {
            options: options.clone(),
            start,
            end: SystemTime::now(),
            timings,
            is_interrupted,
            machine: Machine::this(),
        }
    }

    /// Returns the name of a part in a report: with its times if there are several.
    fn name(&self, of: &OfTiming, part: &str) -> String {
        if self.options.curve.is_empty() { part.to_owned() } else { format!("{} {part}", of.timing) }
    }

    /// Returns whether no acknowledged write was missing, and nothing else was wrong.
    pub(super) fn verdict(&self) -> Verdict {
        let mut faults = Vec::new();
        for of in &self.timings {
            for (part, rounds) in of.parts() {
                let name = self.name(of, part);
                faults.extend(rounds.iter().flat_map(|round| round.faults(&name)));
            }
        }
        Verdict::unless(faults)
    }

    fn notes(&self) -> Vec<String> {
        let interrupted = "Interrupted: the figures are those of the rounds until then.";
        self.is_interrupted.then(|| interrupted.to_owned()).into_iter().collect()
    }
}

impl Results for FailoverResults {
    fn contents(&self) -> Contents {
        let mut figures = Figures::default();
        for of in &self.timings {
            for (part, rounds) in of.parts() {
                figures.add_of(&self.name(of, part), |figures| add_figures(figures, part, rounds));
            }
        }
        let server = |of: &OfTiming| {
            let name = (!self.options.curve.is_empty()).then(|| of.timing.to_string());
            of.facts.entry(name.as_deref(), &of.address)
        };
        Contents {
            start: self.start,
            end: self.end,
            interrupted: self.is_interrupted,
            machine: self.machine.clone(),
            servers: self.timings.iter().map(server).collect(),
            figures,
            notes: self.notes(),
            verdict: self.verdict(),
        }
    }
}

/// Adds the figures of all rounds of a part, and of each.
fn add_figures(figures: &mut Figures, part: &str, rounds: &[Round]) {
    if part == QUIET {
        figures.add("quiet_time", "s", rounds.iter().map(|round| round.seconds).sum::<f64>());
    } else {
        figures.add("iterations", "count", rounds.len());
    }
    for (name, _, time) in TIMES {
        let times: Vec<f64> = rounds.iter().filter_map(time).collect();
        let (Quantiles { p50, p95, p99, mean }, Spread { min, max, .. }) =
            (Quantiles::of(&times), Spread::of(&times));
        if let Some(figure) = figures.add(name, "ms", p50) {
            figure.count = Some(times.len() as u64);
            (figure.p95, figure.p99, figure.mean) = (p95.number(), p99.number(), mean.number());
            (figure.min, figure.max) = (min.number(), max.number());
        }
    }
    figures.add_counts(COUNTS.map(|(name, count)| (name, sum(rounds, count))));
    for round in rounds {
        figures.add_round(round.number, |figures| {
            for (name, _, time) in TIMES {
                figures.add(name, "ms", time(round));
            }
            figures.add_counts(COUNTS.map(|(name, count)| (name, count(round))));
            if let Some(election) = round.election {
                figures.add("old_leader", "number", round.old_leader + 1);
                figures.add("new_leader", "number", election.new_leader + 1);
            }
        });
    }
}

/// A count of a round.
type Count = fn(&Round) -> u64;

const COUNTS: [(&str, Count); 10] = [
    ("writes_acknowledged", |round| round.acknowledged),
    ("writes_unknown", |round| round.unknown),
    ("writes_missing", |round| round.missing),
    ("writes_phantom", |round| round.phantoms),
    ("writes_disagreeing", |round| round.disagreements),
    ("refusals", |round| round.refusals),
    ("elections", |round| round.terms),
    ("stuck_clients", |round| round.stuck_clients),
    ("writes_during_failover", |round| round.writes_during_failover),
    ("writes_succeeded", |round| round.writes_succeeded),
];

fn sum(rounds: &[Round], count: Count) -> u64 {
    rounds.iter().map(count).sum()
}

/// Returns one line on a round.
pub(super) fn line(round: &Round) -> String {
    format!(
        "longest gap {:.1} ms, total failover {:.1} ms, {} writes acknowledged, {} unknown, {} missing",
        OrDash(round.gaps.client.unwrap_or(f64::NAN)),
        OrDash(round.election.map_or(f64::NAN, |election| election.total_ms)),
        round.acknowledged,
        round.unknown,
        round.missing
    )
}

impl fmt::Display for FailoverResults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.options;
        writeln!(out, "=== Failover Benchmark Summary ===")?;
        writeln!(out, "Iterations: {}", options.iterations)?;
        for of in &self.timings {
            let Timing { heartbeat_ms, election_min_ms, election_max_ms } = of.timing;
            writeln!(
                out,
                "Raft Config: heartbeat={heartbeat_ms}ms, election={election_min_ms}ms to {election_max_ms}ms"
            )?;
            for (part, rounds) in of.parts() {
                write_part(out, part, rounds)?;
            }
            writeln!(out)?;
        }
        if self.timings.len() > 1 {
            self.write_curve(out)?;
        }
        self.write_facts(out)?;
        self.verdict().reasons().iter().try_for_each(|reason| writeln!(out, "WRONG: {reason}"))?;
        self.notes().iter().try_for_each(|note| writeln!(out, "{note}"))
    }
}

fn write_part(out: &mut fmt::Formatter<'_>, part: &str, rounds: &[Round]) -> fmt::Result {
    if part == QUIET {
        let seconds: f64 = rounds.iter().map(|round| round.seconds).sum();
        writeln!(out, "\n--- Without a Fault, {seconds:.0} s ---")?;
        writeln!(out, "Needless elections: {}", sum(rounds, |round| round.terms))?;
    } else {
        let fault = [Fault::Kill, Fault::Stop, Fault::Cut].into_iter().find(|fault| fault.name() == part);
        writeln!(out, "\n--- Fault: {part} ({}) ---", fault.map_or("", Fault::description))?;
    }
    for (_, title, time) in TIMES {
        let times: Vec<f64> = rounds.iter().filter_map(time).collect();
        if times.is_empty() {
            continue;
        }
        let title =
            if part == QUIET { "Longest Gap Between Acknowledged Writes, One Client (ms)" } else { title };
        let (Quantiles { p50, p95, p99, mean }, Spread { min, max, .. }) =
            (Quantiles::of(&times), Spread::of(&times));
        writeln!(
            out,
            "{title}:\n  p50={p50:.2} p95={p95:.2} p99={p99:.2} avg={mean:.2} min={min:.2} max={max:.2}"
        )?;
    }
    let [acknowledged, unknown, missing, phantoms, disagreeing, refusals, elections, ..] =
        COUNTS.map(|(_, count)| sum(rounds, count));
    if part != QUIET {
        writeln!(out, "Elections: {elections} for {} failovers", rounds.len())?;
    }
    writeln!(
        out,
        "Writes: acknowledged={acknowledged} missing={missing} unknown={unknown} (on some members only: \
         {disagreeing}) refused-but-executed={phantoms}; refusals={refusals}"
    )
}

impl FailoverResults {
    fn write_curve(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "--- Curve: Longest Gap of One Client (ms), Needless Elections ---")?;
        writeln!(
            out,
            "{:<14} {:>9} {:>9} {:>6} {:>9} {:>9} {:>9}",
            "times", "quiet s", "elections", "fault", "p50", "p99", "max"
        )?;
        for of in &self.timings {
            let seconds: f64 = of.quiet.iter().map(|round| round.seconds).sum();
            let elections = sum(&of.quiet, |round| round.terms);
            let (seconds, elections) = if of.quiet.is_empty() {
                ("-".to_owned(), "-".to_owned())
            } else {
                (format!("{seconds:.0}"), elections.to_string())
            };
            let timing = of.timing.to_string();
            if of.faults.is_empty() {
                writeln!(out, "{timing:<14} {seconds:>9} {elections:>9}")?;
            }
            for (fault, rounds) in &of.faults {
                let gaps: Vec<f64> = rounds.iter().filter_map(|round| round.gaps.client).collect();
                let (quantiles, spread) = (Quantiles::of(&gaps), Spread::of(&gaps));
                let [p50, p99, max] = [quantiles.p50, quantiles.p99, spread.max].map(OrDash);
                let fault = fault.name();
                writeln!(
                    out,
                    "{timing:<14} {seconds:>9} {elections:>9} {fault:>6} {p50:>9.1} {p99:>9.1} {max:>9.1}"
                )?;
            }
        }
        writeln!(out)
    }

    /// Writes the conditions under which the figures were measured.
    fn write_facts(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.options;
        let facts = self.timings.first().map(|of| &of.facts);
        let version = facts.and_then(|facts| facts.version.as_deref()).unwrap_or("does not say its version");
        writeln!(out, "Members: 3 on this machine, {version}; durability: {}", options.durability.name())?;
        let [pause, timeout, poll] =
            [options.write_interval, options.answer_timeout, options.leader_poll].map(duration::format);
        writeln!(
            out,
            "Clients: {}, one write at a time, a pause of {pause} between two; another member after {timeout} without \
             an answer; {} busy threads; leader polled every {poll}",
            options.clients, options.busy_threads
        )?;
        let Machine { cores, processor, kernel } = &self.machine;
        writeln!(out, "Machine: {cores} cores, {processor}, {kernel}")
    }
}

#[cfg(test)]
mod tests {
    use super::{FailoverResults, OfTiming};
    use crate::cluster::Timing;
    use crate::facts::ServerFacts;
    use crate::failover::election::Takeover;
    use crate::failover::moments::LongestGaps;
    use crate::failover::options::{FailoverOptions, Fault};
    use crate::failover::round::Round;
    use crate::test_run::{self, figure_of, report_of};
    use serde_json::Value;
    use std::time::SystemTime;

    fn round(number: u32, gap: f64) -> Round {
        let election =
            Takeover { detection_ms: 150.0, election_ms: 320.5, total_ms: gap - 1.0, new_leader: 2 };
        Round {
            number,
            election: Some(election),
            gaps: LongestGaps { client: Some(gap), cluster: Some(gap - 2.0), client_before: Some(3.0) },
            return_ms: Some(90.0),
            terms: 1,
            acknowledged: 1000,
            unknown: 2,
            refusals: 30,
            ..Round::default()
        }
    }

    fn results(flags: &[&str], rounds: Vec<Round>) -> FailoverResults {
        let options: FailoverOptions = test_run::options(flags);
        let of = |timing: &Timing| {
            let facts = ServerFacts { version: Some("Tidemark 0.1.0".into()), durability: None };
            let mut of = OfTiming::new(*timing, "a:1,b:2,c:3".into(), facts);
            of.faults_mut(Fault::Kill).extend(rounds.clone());
            of.quiet.push(Round { number: 1, seconds: 10.0, terms: 4, ..Round::default() });
            of
        };
        let timings: Vec<_> = options.timings().unwrap().iter().map(of).collect();
        FailoverResults::new(&options, SystemTime::UNIX_EPOCH, false, timings)
    }

    #[test]
    fn the_text_has_the_originals_lines_and_the_gaps() {
        let flags = ["--iterations", "2", "--heartbeat-ms", "100", "--election-ms", "1000"];
        let results = results(&flags, vec![round(1, 200.0), round(2, 240.0)]);
        let text = results.to_string();
        for line in [
            "=== Failover Benchmark Summary ===\nIterations: 2\n",
            "Raft Config: heartbeat=100ms, election=300ms to 1000ms\n",
            "--- Without a Fault, 10 s ---\nNeedless elections: 4\n",
            "--- Fault: kill (SIGKILL of the leader) ---\n",
            "One Client (ms):\n  p50=220.00 p95=238.00 p99=239.60 avg=220.00 min=200.00 max=240.00\n",
            "Detection Time (ms):\n  p50=150.00 p95=150.00 p99=150.00 avg=150.00",
            "Election Time (ms):\n  p50=320.50",
            "Total Failover Time (ms):\n  p50=219.00",
            "Elections: 2 for 2 failovers\n",
            "acknowledged=2000 missing=0 unknown=4 ",
        ] {
            assert!(text.contains(line), "{line:?} is not in:\n{text}");
        }
        assert!(!text.contains("Curve") && !text.contains("Interrupted"), "{text}");
    }

    #[test]
    fn the_report_has_every_time_and_count() {
        let report = report_of(&results(&["--iterations", "2"], vec![round(1, 200.0), round(2, 240.0)]));
        let kill = |round: Value, name| figure_of(&report, "kill", round, name);
        for (name, value) in [("client_gap", 220.0), ("cluster_gap", 218.0), ("total_failover_time", 219.0)] {
            assert_eq!(kill(Value::Null, name)["value"], value, "{report}");
        }
        for key in ["min", "max", "mean", "p95", "p99", "count"] {
            assert!(kill(Value::Null, "client_gap")[key].is_number(), "{key}: {report}");
        }
        assert_eq!(kill(Value::Null, "writes_acknowledged")["value"], 2000);
        assert_eq!(kill(2.into(), "client_gap")["value"], 240.0);
        assert_eq!(kill(2.into(), "new_leader")["value"], 3);
        assert_eq!(figure_of(&report, "quiet", Value::Null, "elections")["value"], 4);
        assert_eq!(report["verdict"]["passed"], true);
    }

    #[test]
    fn a_curve_has_a_line_for_each_of_its_times() {
        let results = results(&["--curve=15/100/125,50/150/300", "--rounds", "1"], vec![round(1, 200.0)]);
        let text = results.to_string();
        assert!(
            text.contains("\n15/100/125            10         4   kill     200.0     200.0     200.0\n"),
            "{text}"
        );
        assert!(text.contains("\n50/150/300            10         4   kill "), "{text}");
        let report = report_of(&results);
        assert_eq!(figure_of(&report, "50/150/300 kill", Value::Null, "client_gap")["value"], 200.0);
        assert_eq!(report["servers"][1]["of"], "50/150/300");
    }

    #[test]
    fn one_missing_write_fails_the_run() {
        let whole = || vec![round(1, 200.0)];
        assert!(results(&["--rounds", "1"], whole()).verdict().has_passed());
        let wrong = |change: fn(&mut Round)| {
            let mut rounds = whole();
            change(&mut rounds[0]);
            let results = results(&["--rounds", "1"], rounds);
            assert!(!results.verdict().has_passed());
            results.to_string()
        };
        let text = wrong(|round| {
            round.missing = 1;
            round.missing_keys = vec!["failover-bench:7".into()];
        });
        assert!(text.contains("WRONG: kill, iteration 1: 1 acknowledged writes are missing"), "{text}");
        assert!(text.contains("missing: failover-bench:7"), "{text}");
        assert!(wrong(|round| round.phantoms = 1).contains("refused writes were executed"));
        assert!(wrong(|round| round.disagreements = 1).contains("on one member and not on another"));
        assert!(wrong(|round| round.stuck_clients = 1).contains("no acknowledged write after the fault"));
        assert!(wrong(|round| round.wrong_answers.push("odd".into())).contains("iteration 1: odd"));
    }

    #[test]
    fn a_run_that_ended_early_says_so() {
        let mut results = results(&["--rounds", "2"], vec![round(1, 200.0)]);
        results.is_interrupted = true;
        assert!(results.to_string().contains("Interrupted: "), "{results}");
        assert_eq!(report_of(&results)["interrupted"], true);
    }
}
