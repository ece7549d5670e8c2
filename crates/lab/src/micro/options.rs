//! Flags of microbenchmarks: those of JMH, each also under a descriptive name.

use super::sizes::Sizes;
use crate::duration;
use clap::value_parser;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How rows are chosen and measured, and where the results go.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct MicroOptions {
    #[command(subcommand)]
    pub(crate) action: Option<Action>,
    /// Benchmarks to run: parts of their names; * stands for anything, ^ and $ for the ends. All if none is given
    #[arg(value_name = "PATTERN")]
    pub(crate) patterns: Vec<String>,
    /// List the benchmarks instead of running them; with -v also what they measure
    #[arg(short, long)]
    pub(crate) list: bool,
    /// Say of each benchmark what it measures
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Only the benchmarks that say most
    #[arg(long)]
    pub(crate) summary: bool,
    /// Measure in turns, round by round, and compare: with `peers` everybody that does the same as ours, or with a
    /// pattern all benchmarks that are meant with the one that fits it
    #[arg(long, value_name = "peers|PATTERN")]
    pub(crate) against: Option<String>,
    /// Print the results as tables in Markdown, in place of the table
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Print the results as Go's benchmarks are printed, a line for each iteration, in place of the table; counts what
    /// operations ask the allocator for
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) go: bool,
    /// Print the results as a report in JSON, as the other scenarios of `tidemark bench` do, in place of the table
    #[arg(long, conflicts_with_all = ["markdown", "go"])]
    pub(crate) json: bool,
    /// What to report
    #[arg(long, visible_alias = "bm", value_enum, default_value = "avgt")]
    pub(crate) mode: Mode,
    /// Iterations that are not counted [default: 3; 0 with --mode ss]
    #[arg(long, visible_alias = "wi", value_name = "COUNT", value_parser = value_parser!(u32).range(..=ITERATIONS_MAX))]
    pub(crate) warmup_iterations: Option<u32>,
    /// Iterations that are counted; each gives one sample [default: 10; 1 with --mode ss]
    #[arg(short, long, value_name = "COUNT", value_parser = value_parser!(u32).range(1..=ITERATIONS_MAX))]
    pub(crate) iterations: Option<u32>,
    /// Time of a warm-up iteration: seconds, or with a unit
    #[arg(short, long, value_name = "TIME", default_value = "0.3", value_parser = seconds)]
    pub(crate) warmup_time: Duration,
    /// Time of an iteration that is counted: seconds, or with a unit
    #[arg(short = 'r', long, value_name = "TIME", default_value = "0.3", value_parser = seconds)]
    pub(crate) time: Duration,
    /// Processes that measure each benchmark one after the other; 0: this one does
    #[arg(short, long, value_name = "COUNT", default_value_t = 0)]
    #[arg(value_parser = value_parser!(u32).range(..=FORKS_MAX))]
    pub(crate) forks: u32,
    /// Profiler: gc counts what one operation asks the allocator for
    #[arg(long, visible_alias = "prof", value_name = "PROFILER")]
    pub(crate) profiler: Option<Profiler>,
    /// Format of the result file
    #[arg(long, visible_alias = "rf", value_name = "FORMAT", requires = "result_file")]
    pub(crate) result_format: Option<ResultFormat>,
    /// Write the results to this file, in JMH's JSON; - is standard output, in place of the table
    #[arg(long, visible_alias = "rff", value_name = "FILE")]
    pub(crate) result_file: Option<PathBuf>,
    /// Small scenarios: shows that everything runs, and gives no figures to go by
    #[arg(long)]
    pub(crate) quick: bool,
    /// Measure exactly these as a fork, and write the samples
    #[arg(long, hide = true, value_delimiter = ',')]
    pub(crate) as_fork: Vec<String>,
}

/// What is done instead of measuring.
#[derive(Clone, Debug, clap::Subcommand)]
pub(crate) enum Action {
    /// Compare the results of two runs
    Compare {
        /// Results of the first run
        a: PathBuf,
        /// Results of the second run
        b: PathBuf,
    },
}

/// What is reported of the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Time of an operation
    #[default]
    #[value(name = "avgt")]
    AverageTime,
    /// Operations per second
    #[value(name = "thrpt")]
    Throughput,
    /// Time of an operation in one call, without warm-up
    #[value(name = "ss")]
    SingleShot,
}

/// A metric that is measured besides the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profiler {
    Allocations,
}

/// How results are written to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ResultFormat {
    /// JMH's JSON
    Json,
}

/// Measurement parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) mode: Mode,
    pub(crate) warmup_iterations: u32,
    pub(crate) iterations: u32,
    pub(crate) warmup_time: Duration,
    pub(crate) time: Duration,
    pub(crate) forks: u32,
    pub(crate) allocations: bool,
    pub(crate) sizes: Sizes,
}

/// The options of a run, as its report states them.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct RunOptions<'a, R> {
    patterns: &'a [String],
    summary: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<&'a str>,
    mode: &'static str,
    warmup_iterations: u32,
    iterations: u32,
    #[serde(serialize_with = "duration::serialize")]
    warmup_time: Duration,
    #[serde(serialize_with = "duration::serialize")]
    time: Duration,
    forks: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    profiler: Option<&'static str>,
    quick: bool,
    /// Those that the laboratory adds.
    #[serde(flatten)]
    rest: &'a R,
}

/// Stands for standard output in place of a file.
const STANDARD_OUTPUT: &str = "-";
const ITERATIONS_MAX: i64 = 10_000;
const FORKS_MAX: i64 = 100;
const TIME_MAX: Duration = Duration::from_hours(1);

impl MicroOptions {
    /// Returns the measurement parameters.
    pub(crate) fn plan(&self) -> Plan {
        let (warmups, iterations) = if self.mode == Mode::SingleShot { (0, 1) } else { (3, 10) };
        Plan {
            mode: self.mode,
            warmup_iterations: self.warmup_iterations.unwrap_or(warmups),
            iterations: self.iterations.unwrap_or(iterations),
            warmup_time: self.warmup_time,
            time: self.time,
            forks: self.forks,
            allocations: self.profiler.is_some() || self.go,
            sizes: if self.quick { Sizes::QUICK } else { Sizes::FULL },
        }
    }

    /// Returns the options for a report; `rest` are those that the laboratory adds.
    pub(crate) fn of_run<'a, R>(&'a self, rest: &'a R) -> RunOptions<'a, R> {
        let plan = self.plan();
        RunOptions {
            patterns: &self.patterns,
            summary: self.summary,
            against: self.against.as_deref(),
            mode: plan.mode.word(),
            warmup_iterations: plan.warmup_iterations,
            iterations: plan.iterations,
            warmup_time: plan.warmup_time,
            time: plan.time,
            forks: plan.forks,
            profiler: plan.allocations.then_some("gc"),
            quick: self.quick,
            rest,
        }
    }

    /// Returns whether JMH's JSON is printed in place of the table.
    pub(crate) fn prints_json(&self) -> bool {
        self.result_file.as_deref() == Some(Path::new(STANDARD_OUTPUT))
    }

    /// Returns the file that receives the results.
    pub(crate) fn results_path(&self) -> Option<&Path> {
        self.result_file.as_deref().filter(|path| *path != Path::new(STANDARD_OUTPUT))
    }
}

impl Mode {
    /// Returns JMH's word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Mode::AverageTime => "avgt",
            Mode::Throughput => "thrpt",
            Mode::SingleShot => "ss",
        }
    }
}

impl std::str::FromStr for Profiler {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split(':').next() {
            Some("gc") => Ok(Profiler::Allocations),
            _ => Err("the profiler here is gc; for stacks and caches run this program under perf".to_owned()),
        }
    }
}

/// Parses seconds as JMH writes them (`1`, `0.5`), or a duration with a unit.
fn seconds(text: &str) -> Result<Duration, String> {
    let time = match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => Some(duration::parse(text).map_err(|error| error.to_string())?),
    };
    time.filter(|time| !time.is_zero() && *time <= TIME_MAX)
        .ok_or_else(|| "a time is longer than nothing and at most an hour".to_owned())
}

#[cfg(test)]
impl Plan {
    /// Returns a plan for tests.
    pub(crate) fn quick() -> Self {
        Plan {
            mode: Mode::AverageTime,
            warmup_iterations: 0,
            iterations: 2,
            warmup_time: Duration::from_micros(1),
            time: Duration::from_micros(1),
            forks: 0,
            allocations: false,
            sizes: Sizes::QUICK,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MicroOptions, Mode, Profiler};
    use crate::test_run::{Line, try_options};
    use clap::CommandFactory;
    use std::time::Duration;

    fn parse(flags: &[&str]) -> Result<MicroOptions, clap::Error> {
        try_options(flags)
    }

    #[test]
    fn the_originals_flags_are_understood() {
        let given = ["PipeOps", "--wi", "5", "-i", "7", "-w", "2", "-r", "0.5", "-f", "3", "--bm", "thrpt"];
        let options =
            parse(&[&given[..], &["--rf", "json", "--rff", "x.json", "--prof", "gc:churn"]].concat())
                .unwrap();
        let plan = options.plan();
        assert_eq!((plan.warmup_iterations, plan.iterations, plan.forks), (5, 7, 3));
        assert_eq!((plan.warmup_time, plan.time), (Duration::from_secs(2), Duration::from_millis(500)));
        assert_eq!((plan.mode, plan.allocations), (Mode::Throughput, true));
        assert_eq!(options.patterns, ["PipeOps"]);
        assert_eq!(options.profiler, Some(Profiler::Allocations));
        assert!(parse(&["--go"]).unwrap().plan().allocations);
    }

    #[test]
    fn a_single_shot_is_one_without_warm_up_unless_asked_for_more() {
        let plan = |flags: &[&str]| parse(flags).unwrap().plan();
        assert_eq!((plan(&["--bm", "ss"]).warmup_iterations, plan(&["--bm", "ss"]).iterations), (0, 1));
        assert_eq!(plan(&["--bm", "ss", "-i", "4"]).iterations, 4);
    }

    #[test]
    fn the_help_gives_every_default() {
        let help = Line::<MicroOptions>::command().render_long_help().to_string().replace('\n', " ");
        for flag in ["--warmup-iterations", "--iterations"] {
            let (_, text) = help.split_once(&format!(" {flag} <COUNT>")).unwrap();
            let text = text.split(" --").next().unwrap();
            assert!(text.contains("[default: "), "{flag}: {text}");
        }
        let plan = |mode| parse(&["--mode", mode]).unwrap().plan();
        for (mode, expected) in [("avgt", (3, 10)), ("ss", (0, 1))] {
            assert_eq!((plan(mode).warmup_iterations, plan(mode).iterations), expected);
        }
        assert!(
            help.contains("[default: 3; 0 with --mode ss]")
                && help.contains("[default: 10; 1 with --mode ss]")
        );
    }

    #[test]
    fn wrong_flags_are_named_with_what_is_right() {
        let message = |flags: &[&str]| match parse(flags) {
            Err(error) => error.to_string(),
            Ok(options) => panic!("{flags:?} gave {options:?}"),
        };
        for (flags, expected) in [
            (&["-i", "0"][..], "0 is not in 1..=10000"),
            (&["-r", "0"], "a time is longer than nothing"),
            (&["-r", "-1"], "-1"),
            (&["-r", "nan"], "a time is longer than nothing"),
            (&["-r=-1"], "a time is longer than nothing"),
            (&["-r", "soon"], "invalid duration \"soon\""),
            (&["-f", "101"], "101 is not in 0..=100"),
            (&["--bm", "fast"], "[possible values: avgt, thrpt, ss]"),
            (&["--prof", "perfnorm"], "the profiler here is gc"),
            (&["--rf", "json"], "--result-file"),
            (&["--rf", "csv", "--rff", "x"], "[possible values: json]"),
            (&["--go", "--markdown"], "cannot be used with"),
            (&["--go", "--json"], "cannot be used with"),
            (&["compare", "a.json"], "<B>"),
        ] {
            let message = message(flags);
            assert!(message.contains(expected), "{flags:?}: {message}");
        }
    }
}
