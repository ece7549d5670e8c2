//! Flags of `tidemark bench counter`: the original's under its names, and ours.

use super::lookup::Lookup;
use super::parse;
use super::target::Target;
use super::variant::Variant;
use std::path::PathBuf;
use std::time::Duration;

/// Flags of `tidemark bench counter`.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub struct CounterOptions {
    #[command(subcommand)]
    pub(super) action: Option<Action>,
    #[command(flatten)]
    pub(super) flags: Flags,
    #[command(flatten)]
    pub(super) printing: Printing,
    /// Have a process do it, kill it in the middle, and say what is lost: vsa, quota and exact, with a store that survives it
    #[arg(long)]
    pub(super) kill: bool,
    /// Write profiles of the measured time into this folder: cpu.perf.data and cpu.txt by the system's perf, heap.tsv by sizes
    #[arg(long, value_name = "FOLDER", conflicts_with = "kill")]
    pub(super) profile: Option<PathBuf>,
}

/// Several runs, as the original's scripts make them.
#[derive(Clone, Debug, clap::Subcommand)]
pub(super) enum Action {
    /// Each variant once under the same load, as a table (TSV)
    Baselines {
        #[command(flatten)]
        flags: Box<Flags>,
        #[command(flatten)]
        printing: Printing,
    },
    /// Baselines for several write delays, then vsa for several commit intervals and thresholds, into a file (TSV)
    Sweep {
        /// The file
        #[arg(default_value = "sweep_results.tsv")]
        out: PathBuf,
        #[command(flatten)]
        flags: Box<Flags>,
    },
    /// What `--kill` starts and kills
    #[command(hide = true)]
    Victim {
        /// Where it writes down what it was answered
        notebook: PathBuf,
        /// What keys' names begin with
        #[arg(long)]
        names: String,
        #[command(flatten)]
        flags: Box<Flags>,
    },
}

/// How results are written.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(super) struct Printing {
    /// Print the results as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// What a run is to be, as far as it was said. The names are the original's.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Flags {
    /// What is measured [default: vsa]
    #[arg(long, value_enum)]
    pub variant: Option<Variant>,
    /// Operations of all workers together [default: 200000]
    #[arg(long, value_parser = parse::operations)]
    pub ops: Option<u64>,
    /// Run for so long instead of for a number of operations [default: 0, off]
    #[arg(long, value_parser = parse::duration)]
    pub duration: Option<Duration>,
    /// Threads that operate at once [default: 32]
    #[arg(long, visible_alias = "workers", value_parser = parse::workers)]
    pub goroutines: Option<usize>,
    /// Keys, all equally likely [default: 1]
    #[arg(long, value_parser = parse::keys)]
    pub keys: Option<usize>,
    /// Percentage of negative operations [default: 50]
    #[arg(long, value_parser = parse::percentage)]
    pub churn: Option<u32>,
    /// vsa, quota: uncommitted units of a key at which it is committed at once [default: 64]
    #[arg(long, value_parser = parse::units)]
    pub threshold: Option<u64>,
    /// vsa, quota: uncommitted units of a key with which it is committed at the next interval [default: 0, half of the threshold]
    #[arg(long = "low_threshold", value_parser = parse::units_or_zero)]
    pub low_threshold: Option<u64>,
    /// vsa, quota: uncommitted units of a key beyond which whoever moves it waits for its commit [default: 0, the threshold]
    #[arg(long, value_parser = parse::units_or_zero)]
    pub cap: Option<u64>,
    /// exact: units that are reserved at once [default: 0, the cap]
    #[arg(long, value_parser = parse::units_or_zero)]
    pub block: Option<u64>,
    /// How often there is a look at what is to be committed [default: 10ms]
    #[arg(long = "commit_interval", value_parser = parse::interval)]
    pub commit_interval: Option<Duration>,
    /// Everything is committed after so long, counted from the first uncommitted change [default: 15ms]
    #[arg(long = "commit_max_age", value_parser = parse::interval)]
    pub commit_max_age: Option<Duration>,
    /// Limit of every key, where there is one [default: 1000000]
    #[arg(long = "initial_scalar", value_parser = parse::units_or_zero)]
    pub initial_scalar: Option<u64>,
    /// batch: operations that are stored at once [default: 64]
    #[arg(long = "batch_size", value_parser = parse::batch)]
    pub batch_size: Option<u64>,
    /// batch: fewer are stored after so long [default: 10ms]
    #[arg(long = "batch_interval", value_parser = parse::interval)]
    pub batch_interval: Option<Duration>,
    /// crdt: replicas [default: 4]
    #[arg(long, value_parser = parse::replicas)]
    pub replicas: Option<usize>,
    /// crdt: how often they merge [default: 25ms]
    #[arg(long = "merge_interval", value_parser = parse::interval)]
    pub merge_interval: Option<Duration>,
    /// Limiters: units per second of every key [default: 10000]
    #[arg(long, value_parser = parse::rate)]
    pub rate: Option<u64>,
    /// Limiters: units at once of every key [default: 100]
    #[arg(long, value_parser = parse::burst)]
    pub burst: Option<u64>,
    /// What a call to the simulated store takes, such as 50us [default: 0]
    #[arg(long = "write_delay", value_parser = parse::duration)]
    pub write_delay: Option<Duration>,
    /// Take the latency of one operation in so many [default: 1]
    #[arg(long = "sample_every", value_parser = parse::count)]
    pub sample_every: Option<u64>,
    /// Keep at most so many latencies, a fair sample of all; 0: take none [default: 200000]
    #[arg(long = "max_latency_samples", value_parser = parse::samples)]
    pub max_latency_samples: Option<usize>,
    /// Only false: the original serves its profiler over HTTP; see --profile
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse::pprof)]
    pub pprof: Option<bool>,
    /// Of the stream of operations [default: 1]
    #[arg(long, value_parser = parse::count)]
    pub seed: Option<u64>,
    /// How vsa, quota and exact come to a counter [default: name]
    #[arg(long, value_enum)]
    pub lookup: Option<Lookup>,
    /// Where vsa, quota and exact commit to [default: delay]
    #[arg(long, value_name = "STORE", value_parser = parse::target, long_help = STORE_HELP)]
    pub store: Option<Target>,
}

const STORE_HELP: &str = "\
Where vsa, quota and exact commit to [default: delay]
  delay   a store in memory whose every call takes --write_delay besides
  memory  a store in memory
  none    nowhere: every commit is acknowledged and forgotten
  log:FOLDER, redis://HOST[:PORT][/DB], postgres://[USER[:PASSWORD]@]HOST[:PORT]/DB, nats://HOST[:PORT]
          a real store, read back from its beginning behind the final flush. What a run commits stays there, under names of its own";

const AFTER_HELP: &str = "\
Flags may be written with one dash, and with = or without (-variant=vsa -ops 200000). Variables of the environment stand in for flags
that are not given: HARNESS_ and the flag's name in capitals; HARNESS_WORKERS is -goroutines, HARNESS_MAX_AGE -commit_max_age and
HARNESS_MAX_LAT_SAMPLES -max_latency_samples.
The variant governor is there in a program that was built with the feature peers.
vsa, atomic, batch and crdt only count; the others refuse what is beyond their limit (Gated in the report).
Exit codes: 0 measured; 1 it failed, or a counter has done what it must not; 2 wrong flags.";
