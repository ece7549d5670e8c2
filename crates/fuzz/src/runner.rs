//! The runner: a process for each target, which replays the kept corpus and then runs mutants until
//! its time is over.
//!
//! ```text
//! run ──► worker TARGET ──► current: the input that it runs, before it runs it
//!  └── the worker ends badly: the input is kept in fuzz/artifacts/TARGET/
//! ```
//!
//! A worker ends on a panic of any thread, on an input that takes more processor time than
//! `SECONDS_MAX` or waits for ever, on one that takes more memory than `allowance` permits, and on
//! a signal. The runner gets no coverage feedback. It mutates accepted mutants further, which reach
//! code past the checks that refuse other inputs.

use crate::mutation::mutate;
use crate::{TARGETS, Target, corpus, targets};
use anyhow::{Context, Result, bail};
use fastrand::Rng;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, exit};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Most processor time of an input, however busy the machine is. Seconds.
const SECONDS_MAX: u64 = 10;
/// Pause between two checks of the watchdog, and the number of checks after which an input counts
/// as waiting for ever: two minutes.
const LOOK_PAUSE: Duration = Duration::from_millis(200);
const LOOKS_MAX: u64 = 600;
/// Clock ticks per second, in which Linux reports processor time to all programs.
const TICKS_PER_SECOND: u64 = 100;
/// Memory that every input may take, and what it may take in addition for each of its bytes. Bytes.
const MEMORY_BYTES: usize = 64 << 20;
const MEMORY_PER_BYTE: usize = 4096;
/// Address space limit of a worker. Bytes.
const ADDRESS_BYTES_MAX: u64 = 8 << 30;
/// Most accepted mutants that are kept to be mutated further.
const ACCEPTED_MAX: usize = 512;
/// Exit status of a worker that has found a failure.
const FOUND: i32 = 101;

/// Functions that measure the memory of the program.
#[derive(Clone, Copy)]
pub struct Memory {
    /// Returns the peak since the last restart. Bytes.
    pub peak: fn() -> usize,
    /// Restarts the peak at the current value, and returns that. Bytes.
    pub restart: fn() -> usize,
}

/// The job of a worker.
pub struct Plan {
    /// Target to run.
    pub target: &'static Target,
    /// Duration; the corpus is replayed in any case.
    pub seconds: u64,
    /// Seed of the mutations.
    pub seed: u64,
    /// File for the running input.
    pub current: PathBuf,
}

/// Returns how much memory an input of this size may take. Bytes.
pub fn allowance(input_bytes: usize) -> usize {
    MEMORY_BYTES + MEMORY_PER_BYTE * input_bytes
}

/// Runs the named targets, or all, one after another, and reports how many passed.
pub fn run(names: &[String], seconds: u64, seed: Option<u64>) -> Result<ExitCode> {
    let chosen: Vec<&'static Target> = match names {
        [] => TARGETS.iter().collect(),
        names => names.iter().map(|name| targets::find(name)).collect(),
    };
    let seed = match seed {
        Some(seed) => seed,
        None => SystemTime::now().duration_since(UNIX_EPOCH)?.subsec_nanos().into(),
    };
    println!("seed {seed}, {seconds} s for each target");
    let (mut passed, mut failed) = (0, 0);
    for target in chosen {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/artifacts").join(target.name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let current = folder.join(format!("current-{}", std::process::id()));
        let status = Command::new(std::env::current_exe()?)
            .args(["worker", target.name, &seconds.to_string(), &seed.to_string()])
            .arg(&current)
            .status()?;
        if status.success() {
            passed += 1;
        } else {
            failed += 1;
            println!("{}: failed, {status}", target.name);
            keep(target, &folder, &current)?;
        }
        fs::remove_file(&current).with_context(|| format!("cannot remove {}", current.display()))?;
    }
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Keeps the input on which a worker has ended, and prints how to run it again.
fn keep(target: &Target, folder: &Path, current: &Path) -> Result<()> {
    let written = fs::read(current)?;
    let Some((length, bytes)) = written.split_first_chunk::<8>() else {
        println!("{}: no input was running", target.name);
        return Ok(());
    };
    let bytes = bytes
        .get(..u64::from_le_bytes(*length) as usize)
        .context("the current input was not written as a whole")?;
    let kept = folder.join(format!("crash-{:08x}", crc32c::crc32c(bytes)));
    fs::write(&kept, bytes)?;
    let kept = kept.canonicalize()?;
    println!("{}: the input is in {}", target.name, kept.display());
    println!(
        "{}: run it again with: {} once {} {}",
        target.name,
        std::env::current_exe()?.display(),
        target.name,
        kept.display()
    );
    Ok(())
}

/// Runs a target on the bytes of files.
pub fn once(target: &Target, files: &[PathBuf], memory: Memory) -> Result<ExitCode> {
    for file in files {
        let input = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let (held, began) = ((memory.restart)(), Instant::now());
        let is_accepted = (target.run)(&input);
        println!(
            "{}: {} in {} ms and {} kB",
            file.display(),
            if is_accepted { "accepted" } else { "refused" },
            began.elapsed().as_millis(),
            (memory.peak)().saturating_sub(held) / 1024
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs a target until its time is over. Ends the process at the first failure.
pub fn work(plan: &Plan, memory: Memory) -> Result<()> {
    limit_memory()?;
    let current = Current::new(&plan.current)?;
    end_on_any_panic();
    let target = plan.target;
    let watchdog = watch(target.name);
    let mut random = Rng::with_seed(plan.seed ^ u64::from(crc32c::crc32c(target.name.as_bytes())));
    let mut bases: Vec<Vec<u8>> = corpus::kept(target)?.into_iter().map(|(_, input)| input).collect();
    let kept = bases.len();
    let (began, limit) = (Instant::now(), Duration::from_secs(plan.seconds));
    let (mut inputs, mut accepted) = (0_u64, 0_u64);
    loop {
        let is_kept = (inputs as usize) < kept;
        if !is_kept && began.elapsed() >= limit {
            break;
        }
        let input = if is_kept {
            bases[inputs as usize].clone()
        } else {
            let (base, other) = (random.usize(..bases.len()), random.usize(..bases.len()));
            mutate(&bases[base], &bases[other], target.words, &mut random)
        };
        current.write(&input)?;
        inputs += 1;
        watchdog.store(inputs, Ordering::Relaxed);
        let held = (memory.restart)();
        let is_accepted = (target.run)(&input);
        let took = (memory.peak)().saturating_sub(held);
        if took > allowance(input.len()) {
            println!("{}: an input of {} bytes took {took} bytes of memory", target.name, input.len());
            exit(FOUND);
        }
        accepted += u64::from(is_accepted);
        if is_accepted && !is_kept {
            if bases.len() < kept + ACCEPTED_MAX {
                bases.push(input);
            } else {
                let place = kept + random.usize(..ACCEPTED_MAX);
                bases[place] = input;
            }
        }
    }
    watchdog.store(0, Ordering::Relaxed);
    println!("{}: {inputs} inputs, {accepted} accepted", target.name);
    if accepted == 0 {
        bail!("{}: no input was accepted, so nothing behind the first checks has run", target.name);
    }
    Ok(())
}

/// Makes an allocation fail that goes far beyond what any input may take.
fn limit_memory() -> Result<()> {
    let most = Some(ADDRESS_BYTES_MAX);
    let limit = rustix::process::Rlimit { current: most, maximum: most };
    rustix::process::setrlimit(rustix::process::Resource::As, limit).context("cannot limit the memory")
}

/// Ends the process on a panic of any thread, even where a caller would catch it.
fn end_on_any_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        print(info);
        let _ = std::io::stdout().flush();
        exit(FOUND);
    }));
}

/// Starts the watchdog, which ends the process when an input runs too long. The returned number
/// identifies the running input; 0 means none.
fn watch(name: &'static str) -> &'static AtomicU64 {
    static RUNNING: AtomicU64 = AtomicU64::new(0);
    std::thread::spawn(move || {
        // Checks are counted instead of time: an input does not become slow when the machine is
        // suspended.
        let (mut number, mut looks, mut ticks_before) = (0, 0, processor_ticks());
        loop {
            std::thread::sleep(LOOK_PAUSE);
            let running = RUNNING.load(Ordering::Relaxed);
            if running != number {
                (number, looks, ticks_before) = (running, 0, processor_ticks());
                continue;
            }
            looks += 1;
            let took = (processor_ticks() - ticks_before) / TICKS_PER_SECOND;
            if running != 0 && (took >= SECONDS_MAX || looks >= LOOKS_MAX) {
                println!(
                    "{name}: an input is not done after {took} s of processor time and {looks} looks at it"
                );
                exit(FOUND);
            }
        }
    });
    &RUNNING
}

/// Returns the processor time of the process in ticks.
fn processor_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux describes a process to itself");
    // The name of the program may contain spaces and ends at the last bracket. The third and all
    // later fields follow it.
    let (_, fields) = stat.rsplit_once(')').expect("the name stands in brackets");
    let ticks = |field: &str| field.parse::<u64>().expect("a number");
    fields.split_ascii_whitespace().skip(11).take(2).map(ticks).sum()
}

/// File for the running input: its length, and the bytes.
struct Current(File);

impl Current {
    fn new(path: &Path) -> Result<Self> {
        Ok(Self(File::create(path).with_context(|| format!("cannot write {}", path.display()))?))
    }

    fn write(&self, input: &[u8]) -> Result<()> {
        let bytes = [&(input.len() as u64).to_le_bytes(), input].concat();
        self.0.write_all_at(&bytes, 0).context("cannot write the current input")
    }
}
