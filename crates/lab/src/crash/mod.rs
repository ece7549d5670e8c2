//! The crash scenario: whether every write is emitted exactly once when a subscriber, the server or both are killed.
//!
//! ```text
//! writer        SET … DURABLE, one after the other ─► ledger ──┐
//! executioner   waits for a random moment, kills, restarts     ├─► verdict
//! subscriber    processes emissions, crashes, comes back with ─┘
//!               the last position that it has processed
//! ```
//!
//! The writer's ledger is the judge's only source: a write that was acknowledged must be emitted once and in order. When the
//! answer to a write was lost, the restarted server is asked whether it has the value: then it must be emitted as well, and
//! otherwise it must never be.

mod options;
mod progress;
mod report;
mod watcher;
mod writer;

pub use options::{CrashKind, CrashOptions};

use crate::client::Client;
use crate::facts::ServerFacts;
use crate::interrupt::Interrupt;
use crate::random::Random;
use crate::report::Verdict;
use crate::scenario::{Console, Scenario};
use crate::server_process::ServerProcess;
use crate::target::Target;
use crate::wall_time;
use crate::watch::delivery::Delivery;
use anyhow::Context;
use progress::Progress;
use report::{CrashResults, Iteration};
use signal_hook::consts::SIGTERM;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant, SystemTime};
use watcher::Watcher;
use writer::Writer;

/// How often the executioner looks whether its moment has come.
const LOOK_INTERVAL: Duration = Duration::from_micros(100);

/// About as long as a write takes that is on disk when it is answered.
const WRITE_TIME: Duration = Duration::from_millis(1);

/// Whether every write is emitted exactly once when a client, the server or both are killed.
pub struct CrashScenario;

impl Scenario for CrashScenario {
    const NAME: &'static str = "crash";
    type Options = CrashOptions;

    fn run(options: &CrashOptions, console: &mut Console<'_>) -> anyhow::Result<Verdict> {
        let start = SystemTime::now();
        // Distinguishes the keys, values and directories of this run from those of other runs, whatever the seed.
        let run = wall_time::run_number(start);
        // So that the server of an iteration ends with it.
        let interrupt = Interrupt::by_signal()?;
        interrupt.also_by(SIGTERM)?;
        let mut results = Vec::new();
        let mut facts = None;
        for number in 1..=options.iterations {
            let random = Random::new(options.seed.unwrap_or(run), u64::from(number));
            let crash = Crash { options, number, run, interrupt: interrupt.clone() };
            let iteration = crash.run(random, &mut facts, console);
            if interrupt.is_asked_for() {
                console.note(format_args!("interrupted in iteration {number}"));
                break;
            }
            let iteration = iteration
                .with_context(|| format!("iteration {number} of the scenario {}", options.scenario.name()))?;
            console.note(format_args!("iteration {number}/{}: {iteration}", options.iterations));
            results.push(iteration);
        }
        anyhow::ensure!(
            !(results.is_empty() && interrupt.is_asked_for()),
            "interrupted before an iteration had ended"
        );
        let (target, server) = facts.context("no iteration was run: --iterations is 0")?;
        let is_interrupted = interrupt.is_asked_for();
        let results = CrashResults::new(options, target, server, start, is_interrupted, results);
        console.print::<Self>(options, &results, options.report.json)
    }
}

/// One iteration: a crash, what came before it, and what comes of it.
struct Crash<'a> {
    options: &'a CrashOptions,
    number: u32,
    run: u64,
    interrupt: Interrupt,
}

/// The server's address and what it says of itself, asked once.
type Facts = Option<(String, ServerFacts)>;

impl Crash<'_> {
    /// On a server of its own, unless the server is to live.
    fn run(self, random: Random, facts: &mut Facts, console: &mut Console<'_>) -> anyhow::Result<Iteration> {
        let options = self.options;
        if !options.scenario.kills_server() {
            return self.exchange(random, &options.server.target(), None, facts);
        }
        let binary = match &options.binary {
            Some(binary) => binary.clone(),
            None => std::env::current_exe().context("cannot find the path of this program; give --binary")?,
        };
        let directory = options.base_dir.join(format!("{:x}-{}", self.run, self.number));
        let mut server =
            ServerProcess::start(&binary, &directory, options.server.port, options.stabilize_wait)?;
        let target = server.target();
        let result = self.exchange(random, &target, Some(&mut server), facts);
        drop(server);
        if result.as_ref().is_ok_and(Iteration::is_exactly_once) {
            std::fs::remove_dir_all(&directory)
                .with_context(|| format!("cannot remove {}", directory.display()))?;
            // Not if there is something else in it.
            let _ = std::fs::remove_dir(&options.base_dir);
        } else {
            console.note(format_args!("the server's data and output stay in {}", directory.display()));
        }
        result
    }

    /// Writer, subscriber and executioner, until everything that was written has arrived or does not arrive any more.
    fn exchange(
        self,
        random: Random,
        target: &Target,
        server: Option<&mut ServerProcess>,
        facts: &mut Facts,
    ) -> anyhow::Result<Iteration> {
        let Crash { options, number, run, interrupt } = self;
        let keys: Vec<String> =
            (0..options.keys).map(|key| format!("crash-bench:{run:x}:{number}:{key}")).collect();
        let progress = Progress::new(run ^ u64::from(number), interrupt);
        if facts.is_none() {
            let mut control = Client::connect(target, options.wait.max_wait)?;
            *facts = Some((target.to_string(), ServerFacts::ask(&mut control)?));
        }
        let watcher = Watcher::subscribe(options, target, &keys, &progress)?;
        let writer = Writer::new(options, target, &keys, &progress);
        let (ready, is_ready) = sync_channel(1);
        let (written, received, restart) = std::thread::scope(|scope| {
            // A thread that fails notifies the other threads, which would wait for it otherwise.
            let watcher = scope.spawn(|| watcher.run(&ready).inspect_err(|_| progress.fail()));
            let writer = scope.spawn(|| writer.run().inspect_err(|_| progress.fail()));
            let restart =
                execute(options, &progress, random, &is_ready, server).inspect_err(|_| progress.fail());
            (writer.join(), watcher.join(), restart)
        });
        anyhow::ensure!(!progress.is_interrupted(), "interrupted");
        let restart = restart?;
        let lost_writes = written.map_err(|_| anyhow::anyhow!("the writer stopped"))??;
        let received = received.map_err(|_| anyhow::anyhow!("the subscriber stopped"))??;
        let ledger = progress.into_ledger();
        let mut control = Client::connect(target, options.wait.max_wait)?;
        let lost_at_end = writer::lost_writes(&ledger, &writer::values_of(&mut control, &keys)?);
        for key in &keys {
            control.call(&["DEL", key])?;
        }
        let delivery = Delivery::of(&ledger, &received.starts, &received.receipts);
        let lost_writes = lost_writes + lost_at_end;
        Ok(Iteration::new(report::Parts { number, ledger, delivery, received, lost_writes, restart }))
    }
}

/// Waits for a random moment in the middle half of the writes, and lets happen what the scenario says. Returns how long the
/// server took to answer again, if it was killed.
fn execute(
    options: &CrashOptions,
    progress: &Progress,
    mut random: Random,
    is_ready: &Receiver<()>,
    server: Option<&mut ServerProcess>,
) -> anyhow::Result<Option<Duration>> {
    is_ready.recv().context("the subscriber stopped")?;
    let updates = u64::from(options.updates);
    let moment = updates / 4 + random.below((updates / 2).max(1));
    while progress.written() < moment {
        if progress.has_failed() {
            return Ok(None);
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    // Half of the time in the pause between two writes, half of the time in the middle of one.
    let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).max(1);
    let pause = options.update_interval;
    std::thread::sleep(match random.below(2) {
        0 => Duration::from_nanos(random.below(nanos(pause))),
        _ => pause.saturating_add(Duration::from_nanos(random.below(nanos(WRITE_TIME)))),
    });
    if options.scenario.crashes_client() {
        progress.crash_client();
    }
    let Some(server) = server else { return Ok(None) };
    progress.note_crash(Instant::now());
    server.kill().context("cannot kill the server")?;
    progress.count_kill();
    server.restart(options.stabilize_wait).map(Some)
}

#[cfg(test)]
mod tests;
