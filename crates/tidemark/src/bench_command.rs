//! `tidemark bench`: the laboratory's scenarios.

use clap::Args;
use std::ffi::OsString;
use std::io::{stderr, stdout};
use std::process::ExitCode;
use tidemark_lab::circuit::CircuitScenario;
use tidemark_lab::counter::CounterScenario;
use tidemark_lab::crash::CrashScenario;
use tidemark_lab::failover::FailoverScenario;
use tidemark_lab::fan_out::{FanOutScenario, FloorScenario};
use tidemark_lab::interrupt::Interrupt;
use tidemark_lab::kv::KvScenario;
use tidemark_lab::null_server::NullServerScenario;
use tidemark_lab::pool::PoolScenario;
use tidemark_lab::reconnect::ReconnectScenario;
use tidemark_lab::report::Verdict;
use tidemark_lab::scenario::{Caller, Console, Scenario};
use tidemark_lab::time_series::TimeSeriesScenario;
use tidemark_lab::{output, single_dash};

/// Arguments of `tidemark bench`.
#[derive(Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    scenario: ScenarioChoice,
}

/// Options of a scenario.
type Options<S> = Box<<S as Scenario>::Options>;

#[derive(clap::Subcommand)]
enum ScenarioChoice {
    /// Throughput and latency of GET, SET and PING on any server of the Redis protocol
    #[command(name = KvScenario::NAME)]
    Kv(Options<KvScenario>),
    /// How soon a reconnecting subscriber has what it missed, exactly once
    #[command(name = ReconnectScenario::NAME)]
    Reconnect(Options<ReconnectScenario>),
    /// Whether every write is emitted exactly once when a client, the server or both are killed
    #[command(name = CrashScenario::NAME)]
    Crash(Options<CrashScenario>),
    /// How long a cluster takes no writes when its leader is killed, stopped or cut off, and whether
    /// an acknowledged write is missing then
    #[command(name = FailoverScenario::NAME)]
    Failover(Options<FailoverScenario>),
    /// How soon the last of many subscribers of one key has its new value, compared with the time
    /// that the system needs to send it
    #[command(name = FanOutScenario::NAME)]
    FanOut(Options<FanOutScenario>),
    /// A process that `fan-out` starts
    #[command(name = FloorScenario::NAME, hide = true)]
    Floor(Options<FloorScenario>),
    /// What circuits cost: emission, awaiting, wiring and names, under the original's names and
    /// beside peers
    #[command(name = CircuitScenario::NAME)]
    Circuit(Options<CircuitScenario>),
    /// What churning counters and limiters cost, and what of them is uncommitted, under the
    /// original's flags
    #[command(name = CounterScenario::NAME)]
    Counter(Options<CounterScenario>),
    /// What draws from prize pools and related operations cost, under the original's names and
    /// beside peers
    #[command(name = PoolScenario::NAME)]
    Pool(Options<PoolScenario>),
    /// What time series cost in memory, in a log and under faults, under the original's names
    #[command(name = TimeSeriesScenario::NAME)]
    Series(Options<TimeSeriesScenario>),
    /// Answer requests without doing work: the limit of this machine
    #[command(name = NullServerScenario::NAME)]
    NullServer(Options<NullServerScenario>),
}

/// Runs one scenario. If Ctrl-C ends it, the report covers what was measured until then.
pub(crate) fn run(args: BenchArgs) -> anyhow::Result<ExitCode> {
    let result = args.scenario.run();
    let Some(exit_code) = Interrupt::exit_code() else { return result.map(|verdict| verdict.exit_code()) };
    if let Err(error) = result
        && !output::is_closed(&error)
    {
        output::report(format_args!("tidemark: {error:#}"));
    }
    Ok(ExitCode::from(exit_code))
}

impl ScenarioChoice {
    fn run(self) -> anyhow::Result<Verdict> {
        match self {
            ScenarioChoice::Kv(options) => run_scenario::<KvScenario>(&options),
            ScenarioChoice::Reconnect(options) => run_scenario::<ReconnectScenario>(&options),
            ScenarioChoice::Crash(options) => run_scenario::<CrashScenario>(&options),
            ScenarioChoice::Failover(options) => run_scenario::<FailoverScenario>(&options),
            ScenarioChoice::FanOut(options) => run_scenario::<FanOutScenario>(&options),
            ScenarioChoice::Floor(options) => run_scenario::<FloorScenario>(&options),
            ScenarioChoice::Circuit(options) => run_scenario::<CircuitScenario>(&options),
            ScenarioChoice::Counter(options) => run_scenario::<CounterScenario>(&options),
            ScenarioChoice::Pool(options) => run_scenario::<PoolScenario>(&options),
            ScenarioChoice::Series(options) => run_scenario::<TimeSeriesScenario>(&options),
            ScenarioChoice::NullServer(options) => run_scenario::<NullServerScenario>(&options),
        }
    }
}

/// Runs a scenario on standard output and standard error.
fn run_scenario<S: Scenario>(options: &S::Options) -> anyhow::Result<Verdict> {
    let caller = Caller { arguments: vec!["bench".into(), S::NAME.into()] };
    let (mut out, mut notes) = (stdout().lock(), stderr());
    S::run(options, &mut Console::new(&mut out, &mut notes, caller))
}

/// Returns the program's arguments, with the single-dash spelling of long flags (`-duration 30s`)
/// that the benchmarks accept.
pub(crate) fn normalised(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let arguments: Vec<OsString> = arguments.collect();
    if arguments.get(1).is_none_or(|subcommand| subcommand != "bench") {
        return arguments;
    }
    single_dash::normalise(arguments, &long_flags()).collect()
}

/// Returns the long flags of every scenario.
fn long_flags() -> Vec<String> {
    let command = BenchArgs::augment_args(clap::Command::new("bench"));
    command.get_subcommands().flat_map(single_dash::long_flags).collect()
}

#[cfg(test)]
mod tests {
    use super::normalised;
    use std::ffi::OsString;

    fn normalise(arguments: &[&str]) -> Vec<OsString> {
        normalised(arguments.iter().map(OsString::from))
    }

    #[test]
    fn single_dash_flags_are_understood_after_bench_only() {
        assert_eq!(
            normalise(&[
                "tidemark",
                "bench",
                "kv",
                "-duration",
                "30s",
                "-reactive=false",
                "-value-size",
                "9"
            ]),
            ["tidemark", "bench", "kv", "--duration", "30s", "--reactive=false", "--value-size", "9"]
        );
        assert_eq!(
            normalise(&[
                "tidemark", "bench", "circuit", "-wi", "5", "-i", "9", "-bm", "ss", "-rff", "x", "-l"
            ]),
            ["tidemark", "bench", "circuit", "--wi", "5", "-i", "9", "--bm", "ss", "--rff", "x", "-l"]
        );
        assert_eq!(
            normalise(&["tidemark", "bench", "counter", "-variant=vsa", "-ops", "9", "-commit_interval=1ms"]),
            ["tidemark", "bench", "counter", "--variant=vsa", "--ops", "9", "--commit_interval=1ms"]
        );
        assert_eq!(
            normalise(&["tidemark", "bench", "pool", "-go", "-prof", "gc", "DrawOps"]),
            ["tidemark", "bench", "pool", "--go", "--prof", "gc", "DrawOps"]
        );
        assert_eq!(normalise(&["tidemark", "cli", "-host", "h"]), ["tidemark", "cli", "-host", "h"]);
    }
}
