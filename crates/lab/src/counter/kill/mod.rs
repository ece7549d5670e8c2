//! The cost of a kill. A process of this program works against a real store and is killed. The
//! store is then compared with the answers, and a second process takes what is left.
//!
//! `notebook` ─► `victim`; `notebook` ─► `reckoning` ─► `aftermath`; this file kills, reads and
//! counts.

mod aftermath;
mod notebook;
mod reckoning;
mod victim;

pub(super) use victim::work;

use super::meter::Meter;
use super::metered::open_durable;
use super::settings::Settings;
use super::subject::Subject;
use super::subjects::{Committed, WRITER};
use crate::machine::Machine;
use crate::scenario::{Caller, Console};
use aftermath::Aftermath;
use anyhow::{Context, anyhow, bail, ensure};
use notebook::{Answered, Notebook};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Working time without `-duration`.
const WORKS_FOR: Duration = Duration::from_millis(500);

/// A worker process. It ends when this value is dropped, and at the latest when its standard input
/// is closed.
struct Victim(Child);

impl Victim {
    /// Starts it, and returns when it works.
    fn start(settings: &Settings, notebook: &Notebook, caller: &Caller) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("which program this is")?;
        let mut command = Command::new(program);
        command.args(&caller.arguments).arg("victim").arg(notebook.path()).args(settings.flags());
        // Not an argument: an address may contain a password, and a process's arguments are public.
        command.env("HARNESS_STORE", settings.store.flag());
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut victim = Victim(child.context("cannot start the process to be killed")?);
        let output = victim.0.stdout.take().context("its output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).context("its output")?;
        if line.trim_end() != victim::WORKING {
            bail!("the process to be killed has ended by itself: {}", victim.0.wait()?);
        }
        Ok(victim)
    }

    /// Kills it with `SIGKILL` and waits for its end.
    fn kill(mut self) -> anyhow::Result<()> {
        if let Some(status) = self.0.try_wait()? {
            bail!("the process to be killed has ended by itself: {status}");
        }
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Kills a run and returns the cost.
pub(super) fn run(settings: &Settings, console: &mut Console<'_>) -> anyhow::Result<Aftermath> {
    ensure!(
        settings.variant.commits(),
        "--kill is for vsa, quota and exact: {} has nothing that a kill could take",
        settings.variant
    );
    ensure!(
        settings.store.is_durable(),
        "--kill needs a store that survives it: --store=log:FOLDER, redis://, postgres:// or nats://, not {}",
        settings.store
    );
    let start = SystemTime::now();
    let settings = settings.apart_from_other_runs();
    let notebook = Notebook::create(&settings)?;
    let works_for = if settings.duration.is_zero() { WORKS_FOR } else { settings.duration };
    let victim = Victim::start(&settings, &notebook, &console.caller)?;
    console.note(format_args!("a process works against {}", settings.store));
    let clock = Instant::now();
    thread::sleep(works_for);
    victim.kill()?;
    let worked = clock.elapsed();
    console.note("it is killed; what is left is counted");
    let answered = notebook.read()?;
    let durable = durable(&settings).context("what the store has")?;
    let second = SecondLife::of(&settings, &durable).context("the second life")?;
    let sum = |units: fn(&Answered) -> u64| answered.keys.iter().map(units).sum::<u64>();
    Ok(Aftermath {
        start,
        end: SystemTime::now(),
        worked,
        operations: answered.operations,
        admitted: sum(|key| key.admitted),
        given_back: sum(|key| key.given_back),
        in_doubt: sum(|key| key.doubtful_up + key.doubtful_down),
        distance: reckoning::distance(&answered.keys, &durable),
        restart: second.restart,
        admitted_afterwards: second.admitted.iter().sum(),
        totals: settings
            .variant
            .is_gated()
            .then(|| reckoning::totals(&answered.keys, &second.admitted, settings.initial_scalar)),
        durable_minus_truth: second.durable_minus_truth,
        machine: Machine::this(),
        settings,
    })
}

/// Returns the stored value of each key. Commits in flight cannot arrive later: claiming the
/// writer's name fences its previous owner.
fn durable(settings: &Settings) -> anyhow::Result<Vec<i64>> {
    let mut store = open_durable(&settings.store)?;
    store.claim(WRITER)?;
    let names = settings.names();
    let keys: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
    Ok(store.load(&keys)?.into_iter().map(Option::unwrap_or_default).collect())
}

/// Counters of the process that continues after the kill.
struct SecondLife {
    restart: Duration,
    /// Units of each key.
    admitted: Vec<u64>,
    durable_minus_truth: u128,
}

impl SecondLife {
    /// Takes the remaining units of every key.
    fn of(settings: &Settings, durable: &[i64]) -> anyhow::Result<Self> {
        let (clock, meter) = (Instant::now(), Arc::new(Meter::new(Duration::ZERO)));
        let counters = Committed::new(settings, &settings.names(), &meter)?;
        let restart = clock.elapsed();
        let admitted =
            if settings.variant.is_gated() { drain(&counters, settings)? } else { vec![0; settings.keys] };
        counters.finish()?;
        let stored = counters.stored()?.context("a store that can be read")?;
        let truth =
            durable.iter().zip(&admitted).map(|(durable, taken)| i128::from(*durable) + i128::from(*taken));
        let off =
            stored.iter().zip(truth).map(|(stored, truth)| (i128::from(*stored) - truth).unsigned_abs());
        Ok(SecondLife { restart, durable_minus_truth: off.sum(), admitted })
    }
}

/// Takes from every key until it refuses a single unit; several at once, so that they share waits
/// for the store.
fn drain(counters: &Committed, settings: &Settings) -> anyhow::Result<Vec<u64>> {
    let keys: Vec<usize> = (0..settings.keys).collect();
    let share = settings.keys.div_ceil(settings.workers).max(1);
    let part = |keys: &[usize]| -> anyhow::Result<Vec<u64>> {
        keys.iter().map(|key| drain_key(counters, *key, settings.initial_scalar)).collect()
    };
    thread::scope(|scope| {
        let drains: Vec<_> = keys.chunks(share).map(|keys| scope.spawn(move || part(keys))).collect();
        let panicked = |_| Err(anyhow!("the thread that takes the rest has panicked"));
        let parts = drains.into_iter().map(|drain| drain.join().unwrap_or_else(panicked));
        Ok(parts.collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect())
    })
}

/// Takes by halves: some dozens of takes, whatever is left.
fn drain_key(counters: &Committed, key: usize, limit: u64) -> anyhow::Result<u64> {
    let (mut taken, mut amount) = (0, limit.max(1).next_power_of_two());
    while amount > 0 {
        while counters.take(key, amount)? {
            taken += amount;
        }
        amount /= 2;
    }
    Ok(taken)
}
