//! One run: workers, a watch, and the final state after everything is stored.

use super::ledger::Ledger;
use super::meter::Meter;
use super::outcome::{Exposures, Memory, Outcome};
use super::profile::Profiler;
use super::sample::{Latencies, Reservoir};
use super::settings::Settings;
use super::stopwatch::{Stopwatch, nanos};
use super::subject::Subject;
use super::subjects;
use super::traffic::Traffic;
use super::variant::Variant;
use super::watch::Watch;
use crate::allocations;
use crate::interrupt::Interrupt;
use crate::machine::Machine;
use crate::progress::{Progress, Seconds};
use anyhow::{Context, anyhow};
use rustix::time::{ClockId, clock_gettime};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

/// Number of keys from which the memory per key is measured.
const KEYS_FOR_MEMORY: usize = 10_000;
/// Shortest and longest interval between samples of uncommitted units: short enough to see the
/// effect of a commit, long enough to be no load.
const LOOK_EVERY: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));

/// Interval at which a waiter checks for an early end.
const SUPERVISE_EVERY: Duration = Duration::from_millis(100);

/// The names of a run's keys.
type Names = Arc<[String]>;

/// Creates the subject and measures it. Writes profiles to a folder, if there is one.
pub(super) fn run(
    settings: &Settings,
    profile: Option<&Path>,
    interrupt: &Interrupt,
) -> anyhow::Result<Outcome> {
    let settings = &settings.apart_from_other_runs();
    match settings.variant {
        Variant::Vsa | Variant::Quota | Variant::Exact => {
            measure(settings, profile, interrupt, subjects::Committed::new)
        }
        Variant::Atomic => measure(settings, profile, interrupt, subjects::Words::new),
        Variant::Batch => measure(settings, profile, interrupt, subjects::Batched::new),
        Variant::Crdt => measure(settings, profile, interrupt, subjects::Replicated::new),
        Variant::Token => measure(settings, profile, interrupt, subjects::Buckets::of_tokens),
        Variant::Leaky => measure(settings, profile, interrupt, subjects::Buckets::that_leak),
        Variant::Gcra => measure(settings, profile, interrupt, subjects::gcra),
        #[cfg(feature = "peers")]
        Variant::Governor => measure(settings, profile, interrupt, subjects::governor),
    }
}

/// Measures the subject that `make` creates from settings, names and a meter for calls to a store.
fn measure<S: Subject>(
    settings: &Settings,
    profile: Option<&Path>,
    interrupt: &Interrupt,
    make: impl Fn(&Settings, &Names, &Arc<Meter>) -> anyhow::Result<S>,
) -> anyhow::Result<Outcome> {
    let bytes_per_key = bytes_per_key(settings, &make)?;
    let stopwatch = Stopwatch::calibrated();
    let meter = Arc::new(Meter::new(settings.write_delay));
    let names = settings.names();
    let mut profiler = profile.map(Profiler::attach).transpose()?;
    let (found, allocations) = allocations::during(|| {
        let subject = make(settings, &names, &meter)?;
        Found::of(settings, &subject, &meter, stopwatch, profiler.as_mut(), interrupt)
    });
    if let Some(profiler) = profiler {
        profiler.write(allocations.as_ref()).context("writing the profiles")?;
    }
    let memory = Memory {
        kept_bytes: allocations.map(|all| all.kept_bytes),
        total_bytes: allocations.map(|all| all.bytes),
        allocations: allocations.map(|all| all.count),
        resident_bytes: resident_bytes(),
        bytes_per_key,
    };
    Ok(found?.into_outcome(settings, &meter, stopwatch, memory))
}

/// Whether workers work.
#[derive(Debug, Default)]
struct Phase(AtomicU8);

const WAITING: u8 = 0;
const WORKING: u8 = 1;
const OVER: u8 = 2;

impl Phase {
    fn wait(&self) {
        while self.0.load(Relaxed) == WAITING {
            std::thread::yield_now();
        }
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.0.load(Relaxed) == OVER
    }
}

/// Shows the progress until the work is over, and ends it early on an interrupt.
fn supervise(settings: &Settings, phase: &Phase, is_worked: &AtomicBool, interrupt: &Interrupt) {
    let (clock, mut progress) = (Instant::now(), Progress::new());
    while !is_worked.load(Relaxed) {
        if interrupt.is_asked_for() {
            phase.0.store(OVER, Relaxed);
        }
        let done = clock.elapsed();
        if settings.duration.is_zero() {
            progress.show("measuring", format_args!("{:.0} s", done.as_secs_f64()));
        } else {
            progress.show("measuring", Seconds { done, of: settings.duration });
        }
        std::thread::park_timeout(SUPERVISE_EVERY);
    }
}

/// Sleeps for this duration, or until the work is over because a worker failed or the run was
/// interrupted.
fn sleep_unless_over(duration: Duration, phase: &Phase) {
    let clock = Instant::now();
    while let Some(left) =
        duration.checked_sub(clock.elapsed()).filter(|left| !left.is_zero() && !phase.is_over())
    {
        std::thread::sleep(left.min(SUPERVISE_EVERY));
    }
}

/// Results after everything is stored.
struct Found {
    start: SystemTime,
    is_interrupted: bool,
    duration: Duration,
    final_flush: Duration,
    cpu: Duration,
    ledger: Ledger,
    samples: Vec<u64>,
    exposures: Option<Exposures>,
    over_admitted: Option<u64>,
    durable_minus_truth: Option<u128>,
    memory_minus_truth: Option<u128>,
}

impl Found {
    fn of(
        settings: &Settings,
        subject: &impl Subject,
        meter: &Meter,
        stopwatch: Stopwatch,
        mut profiler: Option<&mut Profiler>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Self> {
        let (phase, is_flushed) = (Phase::default(), AtomicBool::new(false));
        let is_worked = AtomicBool::new(false);
        let every = settings.commit_interval.clamp(LOOK_EVERY.0, LOOK_EVERY.1);
        std::thread::scope(|scope| {
            let start = |worker: usize| {
                let work = {
                    let phase = &phase;
                    move || Worker::new(settings, worker, stopwatch).work(subject, phase)
                };
                std::thread::Builder::new()
                    .spawn_scoped(scope, work)
                    .with_context(|| format!("cannot start worker {} of {}", worker + 1, settings.workers))
            };
            let workers: anyhow::Result<Vec<_>> = (0..settings.workers).map(start).collect();
            let workers = workers.inspect_err(|_| phase.0.store(OVER, Relaxed))?;
            let watching = settings
                .variant
                .commits()
                .then(|| scope.spawn(|| Watch::until(&is_flushed, subject, meter, every)));
            let begun = profiler.as_mut().map_or(Ok(()), |profiler| profiler.begin());
            let (start, cpu, clock) = (SystemTime::now(), process_time(), Instant::now());
            phase.0.store(if begun.is_ok() { WORKING } else { OVER }, Relaxed);
            let supervisor = scope.spawn(|| supervise(settings, &phase, &is_worked, interrupt));
            if !settings.duration.is_zero() {
                sleep_unless_over(settings.duration, &phase);
                phase.0.store(OVER, Relaxed);
            }
            let mut done = Vec::with_capacity(workers.len());
            for worker in workers {
                done.push(worker.join().map_err(|_| anyhow!("a worker has panicked")));
            }
            let (worked, at_end) = (clock.elapsed(), subject.exposure());
            is_worked.store(true, Relaxed);
            supervisor.thread().unpark();
            let flushed = subject.finish();
            let (duration, cpu) =
                (clock.elapsed(), process_time().checked_sub(cpu).expect("processor time grows"));
            let ended = begun.and_then(|()| profiler.map_or(Ok(()), Profiler::end));
            let at_last = subject.exposure();
            is_flushed.store(true, Relaxed);
            let watch = watching.map(|thread| {
                thread.join().map_err(|_| anyhow!("the watch has panicked")).and_then(std::convert::identity)
            });
            let (mut ledger, mut samples) = (Ledger::new(settings.keys), Vec::new());
            for worker in done {
                let worker = worker??;
                ledger.add(&worker.ledger);
                samples.extend(worker.reservoir.into_samples());
            }
            flushed.context("the final flush")?;
            ended?;
            let difference =
                |positions: Option<Vec<i64>>| positions.map(|all| ledger.difference(&all).absolute);
            let promised = if settings.variant == Variant::Exact { settings.block } else { settings.cap };
            let watch = watch.transpose().context("looking at what is uncommitted")?;
            let (at_end, at_last) = (at_end?, at_last?);
            let exposures = watch.map(|watch| watch.end(at_end, at_last, promised));
            let durable_minus_truth = difference(subject.stored().context("reading back what is stored")?);
            Ok(Found {
                start,
                is_interrupted: interrupt.is_asked_for(),
                duration,
                final_flush: duration.checked_sub(worked).expect("the flush is behind the work"),
                cpu,
                samples,
                exposures,
                over_admitted: subject.limit(duration).map(|limit| ledger.beyond(settings.keys, limit)),
                durable_minus_truth,
                memory_minus_truth: difference(subject.positions().context("reading what is in memory")?),
                ledger,
            })
        })
    }

    fn into_outcome(
        self,
        settings: &Settings,
        meter: &Meter,
        stopwatch: Stopwatch,
        memory: Memory,
    ) -> Outcome {
        Outcome {
            start: self.start,
            settings: settings.clone(),
            is_interrupted: self.is_interrupted,
            is_gated: settings.variant.is_gated(),
            duration: self.duration,
            final_flush: self.final_flush,
            operations: self.ledger.operations,
            admitted: self.ledger.admitted,
            given_back: self.ledger.given_back,
            refused: self.ledger.refused,
            over_admitted: self.over_admitted,
            latencies: Latencies::of(self.samples),
            timer_ns: stopwatch.cost_ns(),
            asked: meter.asked(),
            exposures: self.exposures,
            durable_minus_truth: self.durable_minus_truth,
            memory_minus_truth: self.memory_minus_truth,
            memory,
            cpu_ns_per_operation: nanos(self.cpu) as f64 / self.ledger.operations.max(1) as f64,
            machine: Machine::this(),
        }
    }
}

/// A worker thread.
struct Worker {
    number: usize,
    traffic: Traffic,
    stopwatch: Stopwatch,
    /// Maximum number of operations, whatever the time.
    operations: u64,
    /// Interval between latency samples in operations; never if no samples are kept.
    sample_every: u64,
    ledger: Ledger,
    reservoir: Reservoir,
}

impl Worker {
    fn new(settings: &Settings, number: usize, stopwatch: Stopwatch) -> Self {
        let workers = settings.workers as u64;
        let share =
            settings.operations / workers + u64::from((number as u64) < settings.operations % workers);
        let samples = settings.max_latency_samples.div_ceil(settings.workers);
        // A run with fewer operations than samples needs less room.
        let room = if settings.duration.is_zero() { samples.min(share as usize) } else { samples };
        Worker {
            number,
            traffic: Traffic::new(settings.seed, number, settings.keys, settings.churn),
            stopwatch,
            operations: if settings.duration.is_zero() { share } else { u64::MAX },
            sample_every: if samples == 0 { u64::MAX } else { settings.sample_every },
            ledger: Ledger::new(settings.keys),
            reservoir: Reservoir::new(room, settings.seed, number),
        }
    }

    /// Performs operations until the work is over. The loop does not allocate, and reads the clock
    /// only for samples.
    fn work(mut self, subject: &impl Subject, phase: &Phase) -> anyhow::Result<Self> {
        phase.wait();
        let mut until_sample = self.sample_every;
        while self.ledger.operations < self.operations && !phase.is_over() {
            let operation = self.traffic.next();
            let apply = || subject.apply(self.number, operation.key, operation.is_minus);
            until_sample -= 1;
            let moved = if until_sample == 0 {
                until_sample = self.sample_every;
                let (moved, nanos) = self.stopwatch.time(apply);
                self.reservoir.add(nanos);
                moved
            } else {
                apply()
            };
            // If one worker fails, the run is over for all.
            let moved = moved.inspect_err(|_| phase.0.store(OVER, Relaxed))?;
            self.ledger.note(operation.key, moved);
        }
        Ok(self)
    }
}

/// Returns the bytes per key besides its name, if the program's allocator counts: the difference
/// between many keys and one.
fn bytes_per_key<S: Subject>(
    settings: &Settings,
    make: &impl Fn(&Settings, &Names, &Arc<Meter>) -> anyhow::Result<S>,
) -> anyhow::Result<Option<f64>> {
    let kept = |keys: usize| {
        let settings = Settings { keys, ..settings.clone() };
        let (meter, names) = (Arc::new(Meter::new(Duration::ZERO)), settings.names());
        let (subject, allocations) = allocations::during(|| make(&settings, &names, &meter));
        subject?.finish()?;
        let text: usize = names.iter().map(String::len).sum();
        anyhow::Ok(allocations.map(|all| all.kept_bytes - text as i64))
    };
    let (one, many) = (kept(1)?, kept(KEYS_FOR_MEMORY)?);
    Ok(one.zip(many).map(|(one, many)| (many - one) as f64 / (KEYS_FOR_MEMORY - 1) as f64))
}

/// Returns the processor time that this process has used.
fn process_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Returns the process's resident memory, if the system reports it.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes << 10)
}
