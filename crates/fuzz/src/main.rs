//! Runs the fuzz targets on a stable compiler; see `fuzz/README.md`.
#![allow(
    unsafe_code,
    reason = "an allocator's functions are unsafe; this one counts and passes everything on"
)]

use clap::{Parser, Subcommand};
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tidemark_fuzz::runner::{self, Memory, Plan};
use tidemark_fuzz::{corpus, targets};

/// Finds inputs on which Tidemark panics, hangs, or takes far more memory than they have bytes.
#[derive(Parser)]
#[command(name = "tidemark-fuzz")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Replays the kept corpus of each target, or of those named, and then runs mutants of it.
    Run {
        /// Names of targets.
        targets: Vec<String>,
        /// How long each target runs.
        #[arg(long, default_value_t = 5)]
        seconds: u64,
        /// What the mutations follow from; another one each time if it is not given.
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Runs one target on the bytes of files.
    Once {
        /// The target.
        target: String,
        /// The files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Writes the inputs that every corpus begins with to `fuzz/corpus/`.
    MakeCorpus,
    /// What `run` starts for each target.
    #[command(hide = true)]
    Worker { target: String, seconds: u64, seed: u64, current: PathBuf },
}

fn main() -> anyhow::Result<ExitCode> {
    let memory = Memory { peak: || PEAK.load(Relaxed), restart: restart_peak };
    match Arguments::parse().command {
        Command::Run { targets, seconds, seed } => runner::run(&targets, seconds, seed),
        Command::Once { target, files } => runner::once(targets::find(&target), &files, memory),
        Command::MakeCorpus => corpus::make().map(|()| ExitCode::SUCCESS),
        Command::Worker { target, seconds, seed, current } => {
            let plan = Plan { target: targets::find(&target), seconds, seed, current };
            runner::work(&plan, memory).map(|()| ExitCode::SUCCESS)
        }
    }
}

/// Bytes that the program holds, and the peak since the last restart.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The system's allocator, with its bytes counted.
struct Counting;

fn restart_peak() -> usize {
    let live = LIVE.load(Relaxed);
    PEAK.store(live, Relaxed);
    live
}

fn took(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(live, Relaxed);
}

// SAFETY: each function passes its arguments on to the system's allocator, which keeps the
// contract, and returns what that returns. Counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        took(size);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(block, layout, size) }
    }
}
