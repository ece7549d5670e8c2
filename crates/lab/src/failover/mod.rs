//! The failover scenario: how long a cluster takes no writes when its leader fails, and whether it
//! loses any.
//!
//! ```text
//! three members ◄── clients, one write in flight each ─► outcomes ─┐
//!       ▲                                                          ├─► verdict
//!       └── fault of the leader ─► election ─► every member is read ┘
//! ```
//!
//! Of a write, a client knows one of three things: it was acknowledged, it was refused before it was
//! executed (the client repeats it), or its outcome is unknown (the client does not repeat it). An
//! acknowledged write must be on every member, a refused one on none, and an unknown one on all or none.

mod audit;
mod election;
mod moments;
mod options;
mod report;
mod round;
mod writer;

pub use options::{FailoverOptions, FailoverOptionsError, Fault, MemberDurability};

use crate::client::Client;
use crate::cluster::{Cluster, ClusterSettings, MEMBERS, Network, Timing};
use crate::facts::ServerFacts;
use crate::interrupt::Interrupt;
use crate::random::Random;
use crate::report::Verdict;
use crate::scenario::{Console, Scenario};
use crate::wall_time;
use anyhow::Context;
use report::{FailoverResults, OfTiming};
use round::Scene;
use signal_hook::consts::SIGTERM;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

/// Longest time of writing between two audits without a fault.
const QUIET_ROUND: Duration = Duration::from_secs(10);
/// Least pause after a failover, in which a second election would be seen.
const SETTLE_MIN: Duration = Duration::from_millis(300);
/// Longest wait for an answer of a member that is asked for its facts.
const FACTS_PATIENCE: Duration = Duration::from_secs(5);

/// How long a cluster takes no writes when its leader fails, and whether it loses any.
pub struct FailoverScenario;

impl Scenario for FailoverScenario {
    const NAME: &'static str = "failover";
    type Options = FailoverOptions;

    fn run(options: &FailoverOptions, console: &mut Console<'_>) -> anyhow::Result<Verdict> {
        let timings = options.timings()?;
        let start = SystemTime::now();
        let run = wall_time::run_number(start);
        // So that the members end with the run.
        let interrupt = Interrupt::by_signal()?;
        interrupt.also_by(SIGTERM)?;
        let network = if options.faults().contains(&Fault::Cut) {
            Some(Network::enter_new(MEMBERS).context("--fault cut is not possible here")?)
        } else {
            None
        };
        let binary = binary(options)?;
        // Members know their directories by absolute paths, whatever directory this program is in.
        let base = std::path::absolute(&options.base_dir).context("the path of --base-dir is not valid")?;
        let directory = base.join(format!("{run:x}"));
        let is_over = AtomicBool::new(false);
        let results = std::thread::scope(|scope| {
            for _ in 0..options.busy_threads {
                scope.spawn(|| keep_busy(&is_over));
            }
            let (directory, interrupt) = (directory.clone(), interrupt.clone());
            let lab = Laboratory { options, binary, directory, run, network, interrupt };
            let results = lab.measure(&timings, console);
            is_over.store(true, Ordering::Relaxed);
            results
        });
        let results = results.inspect_err(|_| console.note(stays(&directory)))?;
        let results = FailoverResults::new(options, start, interrupt.is_asked_for(), results);
        if results.verdict().has_passed() {
            std::fs::remove_dir_all(&directory)
                .with_context(|| format!("cannot remove {}", directory.display()))?;
            // Not if there is something else in it.
            let _ = std::fs::remove_dir(&base);
        } else {
            console.note(stays(&directory));
        }
        console.print::<Self>(options, &results, options.report.json)
    }
}

/// What a run is made with.
struct Laboratory<'a> {
    options: &'a FailoverOptions,
    binary: PathBuf,
    directory: PathBuf,
    run: u64,
    network: Option<Network>,
    interrupt: Interrupt,
}

impl Laboratory<'_> {
    /// Measures a cluster with each of these times. After Ctrl-C, what was measured until then.
    fn measure(&self, timings: &[Timing], console: &mut Console<'_>) -> anyhow::Result<Vec<OfTiming>> {
        let mut results = Vec::new();
        for timing in timings {
            let directory = self.directory.join(timing.to_string().replace('/', "-"));
            let settings = ClusterSettings {
                binary: self.binary.clone(),
                directory: directory.clone(),
                timing: *timing,
                base_client_port: self.options.base_client_port,
                base_peer_port: self.options.base_raft_port,
                flags: self.options.member_flags(),
                patience: self.options.max_leader_wait,
            };
            let cluster = Cluster::found(&settings, self.network.as_ref(), &self.interrupt);
            if self.interrupt.is_asked_for() {
                break;
            }
            let mut cluster =
                cluster.with_context(|| format!("cannot found a cluster with times {timing}"))?;
            let leader = cluster.write("failover-bench:facts", "1")?;
            let facts = ServerFacts::ask(&mut Client::connect(&cluster.targets()[leader], FACTS_PATIENCE)?)?;
            let mut of_timing = OfTiming::new(*timing, cluster.address(), facts);
            self.measure_one(&mut cluster, &mut of_timing, console)
                .with_context(|| format!("with times {timing}"))?;
            drop(cluster);
            let is_right = of_timing.is_right();
            results.push(of_timing);
            if self.interrupt.is_asked_for() {
                break;
            }
            // A curve of many points needs the disk of one.
            if is_right && timings.len() > 1 {
                std::fs::remove_dir_all(&directory)
                    .with_context(|| format!("cannot remove {}", directory.display()))?;
            }
        }
        let has_measured = results.iter().any(OfTiming::has_measured);
        anyhow::ensure!(has_measured, "interrupted before anything was measured");
        Ok(results)
    }

    fn measure_one(
        &self,
        cluster: &mut Cluster,
        results: &mut OfTiming,
        console: &mut Console<'_>,
    ) -> anyhow::Result<()> {
        let options = self.options;
        let timing = results.timing;
        let settle = SETTLE_MIN.max(Duration::from_millis(timing.election_max_ms * 2));
        let mut random = Random::new(self.run, timing.election_max_ms);
        let leader = cluster.write("failover-bench:term", "1")?;
        let term = cluster.term(leader)?;
        let mut scene = Scene { options, cluster, interrupt: &self.interrupt, run: self.run, settle, term };
        let mut number = 0;
        let mut left = options.quiet_for;
        while !left.is_zero() && !self.interrupt.is_asked_for() {
            let time = left.min(QUIET_ROUND);
            left -= time;
            number += 1;
            let round = scene.stay_quiet(number, time);
            if self.interrupt.is_asked_for() {
                console.note(format_args!("interrupted in the time without a fault"));
                return Ok(());
            }
            let round = round?;
            let written = options.quiet_for.saturating_sub(left).as_secs_f64();
            console.note(format_args!(
                "{timing}, no fault: {written:.0} of {:.0} s, {} elections",
                options.quiet_for.as_secs_f64(),
                round.terms
            ));
            results.quiet.push(round);
        }
        for fault in options.faults() {
            let rounds = results.faults_mut(fault);
            for iteration in 1..=options.iterations {
                number += 1;
                let round = scene.fail_over(number, fault, &mut random);
                if self.interrupt.is_asked_for() {
                    console.note(format_args!("interrupted in iteration {iteration} of {}", fault.name()));
                    return Ok(());
                }
                let round = round.with_context(|| format!("iteration {iteration} of {}", fault.name()))?;
                let round = round::Round { number: iteration, ..round };
                console.note(format_args!(
                    "{timing}, {} {iteration}/{}: {}",
                    fault.name(),
                    options.iterations,
                    report::line(&round)
                ));
                rounds.push(round);
            }
        }
        Ok(())
    }
}

/// Returns the program that members run.
fn binary(options: &FailoverOptions) -> anyhow::Result<PathBuf> {
    match &options.binary {
        Some(binary) => Ok(binary.clone()),
        None => std::env::current_exe().context("cannot find the path of this program; give --binary"),
    }
}

fn stays(directory: &Path) -> String {
    format!("the members' data and output stay in {}", directory.display())
}

/// Uses a core until the run is over.
fn keep_busy(is_over: &AtomicBool) {
    let mut random = Random::new(1, 1);
    while !is_over.load(Ordering::Relaxed) {
        (0..10_000).for_each(|_| {
            std::hint::black_box(random.next());
        });
    }
}
