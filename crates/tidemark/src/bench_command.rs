//! `tidemark bench`: the laboratory's scenarios.

use anyhow::Context;
use clap::Args;
use std::ffi::OsString;
use std::process::ExitCode;
use tidemark_lab::interrupt::Interrupt;
use tidemark_lab::{circuit, counter, crash, fan_out, kv, null_server, output, pool, reconnect, single_dash};

/// Arguments of `tidemark bench`.
#[derive(Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(clap::Subcommand)]
enum Scenario {
    /// Throughput and latency of GET, SET and PING on any server of the Redis protocol
    Kv(Box<kv::KvOptions>),
    /// How soon a reconnecting subscriber has what it missed, exactly once
    Reconnect(reconnect::ReconnectOptions),
    /// Whether every write is emitted exactly once when a client, the server or both are killed
    Crash(crash::CrashOptions),
    /// How soon the last of many subscribers of one key has its new value, compared with the time
    /// that the system needs to send it
    FanOut(fan_out::FanOutOptions),
    /// A process that `fan-out` starts
    #[command(hide = true)]
    FanOutFloor(fan_out::FloorOptions),
    /// What circuits cost: emission, awaiting, wiring and names, under the original's names and
    /// beside peers
    Circuit(Box<circuit::CircuitOptions>),
    /// What churning counters and limiters cost, and what of them is uncommitted, under the
    /// original's flags
    Counter(Box<counter::CounterOptions>),
    /// What draws from prize pools and related operations cost, under the original's names and
    /// beside peers
    Pool(Box<pool::PoolOptions>),
    /// Answer requests without doing work: the limit of this machine
    NullServer(null_server::NullServerOptions),
}

/// Runs one scenario. If Ctrl-C ends it, the report covers what was measured until then.
pub(crate) fn run(args: BenchArgs) -> anyhow::Result<ExitCode> {
    let result = run_scenario(args.scenario);
    let Some(exit_code) = Interrupt::exit_code() else { return result };
    if let Err(error) = result
        && !output::is_closed(&error)
    {
        output::tell(format_args!("tidemark: {error:#}"));
    }
    Ok(ExitCode::from(exit_code))
}

fn run_scenario(scenario: Scenario) -> anyhow::Result<ExitCode> {
    match scenario {
        Scenario::Kv(options) => {
            if !kv::run(&options, &mut std::io::stdout().lock())? {
                return Ok(ExitCode::FAILURE);
            }
        }
        Scenario::Reconnect(options) => {
            if !reconnect::run(&options, &mut std::io::stdout().lock())? {
                return Ok(ExitCode::FAILURE);
            }
        }
        Scenario::Crash(options) => {
            if !crash::run(&options, &mut std::io::stdout().lock())? {
                return Ok(ExitCode::FAILURE);
            }
        }
        Scenario::FanOut(options) => {
            if !fan_out::run(&options, &mut std::io::stdout().lock())? {
                return Ok(ExitCode::FAILURE);
            }
        }
        Scenario::FanOutFloor(options) => fan_out::run_floor(&options)?,
        Scenario::Circuit(options) => {
            let caller = circuit::Caller { arguments: vec!["bench".into(), "circuit".into()] };
            circuit::run(&options, &caller, &mut std::io::stdout().lock(), &mut std::io::stderr())?;
        }
        Scenario::Counter(options) => {
            let caller = counter::Caller { arguments: vec!["bench".into(), "counter".into()] };
            let environment = |name: &str| std::env::var(name).ok();
            let (mut out, mut notes) = (std::io::stdout().lock(), std::io::stderr());
            if !counter::run(&options, &caller, &environment, &mut out, &mut notes)? {
                return Ok(ExitCode::FAILURE);
            }
        }
        Scenario::Pool(options) => {
            let caller = pool::Caller { arguments: vec!["bench".into(), "pool".into()] };
            pool::run(&options, &caller, &mut std::io::stdout().lock(), &mut std::io::stderr())?;
        }
        Scenario::NullServer(options) => {
            null_server::run(&options).with_context(|| format!("null server on port {}", options.port))?;
        }
    }
    Ok(ExitCode::SUCCESS)
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
