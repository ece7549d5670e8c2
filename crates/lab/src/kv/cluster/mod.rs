//! A cluster of three members beside one server alone, and beside etcd if it is installed: all started
//! here, all with every change synced before it is answered, measured in turns.

mod etcd;
mod etcd_client;
mod floor;

use super::comparison::{Side, figures, write_ratio};
use super::measurement;
use super::options::{CommandMix, KvOptions};
use super::report::{KvResults, write_heading};
use crate::cluster::{Cluster, ClusterSettings, Timing};
use crate::folder::Folder;
use crate::interrupt::Interrupt;
use crate::report::{Contents, Figures, Results, Verdict};
use crate::scenario::Console;
use crate::server_process::{Launch, ServerProcess, lasting_port};
use crate::statistics::{Ratio, Spread};
use anyhow::Context;
use etcd::Etcd;
use floor::Floor;
use std::fmt;
use std::time::Duration;

/// What is measured, in the order of the first round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Cluster,
    Alone,
    Etcd,
}

/// Results of all rounds.
#[derive(Debug)]
pub(super) struct ClusterComparison {
    options: KvOptions,
    sides: Vec<(Kind, Side)>,
    floors: Vec<Floor>,
    notes: Vec<String>,
    interrupted: bool,
}

/// A figure of a run.
type Measure = fn(&KvResults) -> f64;

/// Times of the cluster: its members share this machine with what loads them.
const TIMING: Timing = Timing { heartbeat_ms: 50, election_min_ms: 150, election_max_ms: 300 };
/// Longest wait for a server and for a leader.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a write of a cluster may take beside one sync and one round trip.
const ALLOWANCE_MS: f64 = 0.3;
const ETCD_MISSING: &str = "etcd was not measured: it is not installed (Debian: etcd-server)";
const ETCD_UNABLE: &str =
    "etcd was not measured: it has no PING, no open loop (--rate) and no emissions (--reactive-bench)";

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Cluster => "cluster",
            Kind::Alone => "alone",
            Kind::Etcd => "etcd",
        }
    }
}

/// Measures every server `--rounds` times.
pub(super) fn compare(
    options: &KvOptions,
    interrupt: &Interrupt,
    console: &mut Console<'_>,
) -> anyhow::Result<ClusterComparison> {
    let data = Folder::new()?;
    let program = Etcd::program();
    let etcd_fits = options.cmd != CommandMix::Ping && options.rate.is_none() && !options.reactive_bench;
    let notes = match program {
        None => vec![ETCD_MISSING.to_owned()],
        Some(_) if !etcd_fits => vec![ETCD_UNABLE.to_owned()],
        Some(_) => Vec::new(),
    };
    let mut servers = Servers {
        cluster: found_cluster(&data, interrupt)?,
        alone: start_alone(&data)?,
        etcd: program
            .filter(|_| etcd_fits)
            .map(|program| Etcd::start(&program, options.driving_threads()))
            .transpose()
            .context("cannot start etcd")?,
        _data: data,
    };
    let mut kinds = vec![Kind::Cluster, Kind::Alone];
    kinds.extend(servers.etcd.as_ref().map(|_| Kind::Etcd));
    let mut runs: Vec<(Kind, Vec<KvResults>)> = kinds.iter().map(|kind| (*kind, Vec::new())).collect();
    let mut floors = Vec::new();
    for round in 0..options.rounds {
        let seed = options.seed.map(|seed| seed.wrapping_add(round as u64));
        let options = KvOptions { seed, ..options.clone() };
        let floor = Floor::measure().context("cannot measure the disk")?;
        // Another one is first in every round: a machine's speed drifts.
        let mut order = kinds.clone();
        order.rotate_left(round % kinds.len());
        let of_round: anyhow::Result<Vec<(Kind, KvResults)>> =
            order.iter().map(|kind| Ok((*kind, servers.measure(*kind, &options, interrupt)?))).collect();
        // An incomplete round would compare whole runs with partial ones.
        if interrupt.is_asked_for() {
            break;
        }
        let of_round = of_round?;
        let line: Vec<String> = of_round
            .iter()
            .map(|(kind, run)| format!("{} {:.0} ops/s", kind.name(), run.throughput_ops_sec))
            .collect();
        console.note(format_args!("round {}/{}: {}", round + 1, options.rounds, line.join(", ")));
        for (kind, run) in of_round {
            let of_kind = runs.iter_mut().find(|(of, _)| *of == kind);
            of_kind.expect("every measured kind has a list").1.push(run);
        }
        floors.push(floor);
    }
    anyhow::ensure!(!floors.is_empty(), "interrupted before all servers were measured");
    let sides = runs.into_iter().map(|(kind, runs)| (kind, Side::new(runs))).collect();
    let interrupted = interrupt.is_asked_for();
    Ok(ClusterComparison { options: options.clone(), sides, floors, notes, interrupted })
}

/// The servers of a comparison. They end with this value.
struct Servers {
    cluster: Cluster,
    alone: ServerProcess,
    etcd: Option<Etcd>,
    _data: Folder,
}

impl Servers {
    fn measure(
        &mut self,
        kind: Kind,
        options: &KvOptions,
        interrupt: &Interrupt,
    ) -> anyhow::Result<KvResults> {
        let target = match kind {
            Kind::Cluster => {
                let leader = self.cluster.write("bench:leader", "1")?;
                self.cluster.targets()[leader].clone()
            }
            Kind::Alone => self.alone.target(),
            Kind::Etcd => {
                let etcd = self.etcd.as_mut().context("etcd was not started")?;
                return etcd.measure(options).context("etcd");
            }
        };
        measurement::measure(options, &target, interrupt).with_context(|| kind.name())
    }
}

/// Flags of every server of Tidemark: snapshots would fall into another one's measurement.
const FLAGS: [&str; 6] = ["--durability", "always", "--snapshot-after", "0", "--snapshot-after-bytes", "0"];

fn found_cluster(data: &Folder, interrupt: &Interrupt) -> anyhow::Result<Cluster> {
    let settings = ClusterSettings {
        binary: std::env::current_exe().context("cannot find the path of this program")?,
        directory: data.path().join("cluster"),
        timing: TIMING,
        base_client_port: 0,
        base_peer_port: 0,
        flags: FLAGS.map(str::to_owned).into(),
        patience: PATIENCE,
    };
    Cluster::found(&settings, None, interrupt).context("cannot found a cluster")
}

fn start_alone(data: &Folder) -> anyhow::Result<ServerProcess> {
    let binary = std::env::current_exe().context("cannot find the path of this program")?;
    let mut launch = Launch::of_tidemark(&binary, &data.path().join("alone"), lasting_port()?);
    launch.arguments.extend(FLAGS.map(Into::into));
    let mut alone = ServerProcess::launch(launch)?;
    alone.await_answer(PATIENCE)?;
    Ok(alone)
}

impl ClusterComparison {
    fn side(&self, kind: Kind) -> Option<&Side> {
        self.sides.iter().find(|(of, _)| *of == kind).map(|(_, side)| side)
    }

    /// Returns the ratios of the cluster to each of the others: whose, of what, how much.
    fn ratios(&self) -> Vec<(Kind, &'static str, &'static str, Option<Ratio>)> {
        let mut ratios = Vec::new();
        let Some(cluster) = self.side(Kind::Cluster) else { return ratios };
        let values: [(&str, &str, Measure); 4] = [
            ("throughput_ratio", "throughput", |run| run.throughput_ops_sec),
            ("latency_median_ratio", "p50 latency", |run| run.latency.p50),
            ("latency_p99_ratio", "p99 latency", |run| run.latency.p99),
            ("server_cpu_ratio", "server CPU per request", |run| {
                run.server_cpu_micros_per_op.unwrap_or(f64::NAN)
            }),
        ];
        for (kind, side) in self.sides.iter().filter(|(kind, _)| *kind != Kind::Cluster) {
            for (name, text, value) in values {
                let pairs = cluster.runs.iter().zip(&side.runs);
                let pairs: Vec<_> = pairs.map(|(a, b)| (value(a), value(b))).collect();
                // etcd does not say what it has used.
                if pairs.iter().any(|(_, value)| !value.is_nan()) {
                    ratios.push((*kind, name, text, Ratio::of(&pairs)));
                }
            }
        }
        ratios
    }

    /// Returns what an unpipelined write of the cluster takes at the median beyond one sync and one
    /// round trip, in milliseconds, round by round; nothing if the load was another one.
    fn beyond_the_floor(&self) -> Option<Spread> {
        let options = &self.options;
        let is_one_write = options.cmd == CommandMix::Set && options.workers * options.pipeline == 1;
        let runs = &self.side(Kind::Cluster).filter(|_| is_one_write)?.runs;
        let beyond = runs.iter().zip(&self.floors).map(|(run, floor)| run.latency.p50 - floor.sum_ms());
        Some(Spread::of(&beyond.collect::<Vec<_>>()))
    }

    fn floor(&self, cost: fn(&Floor) -> f64) -> Spread {
        Spread::of(&self.floors.iter().map(cost).collect::<Vec<_>>())
    }

    /// Returns the notes of this comparison and of all runs, each once.
    fn all_notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        for run in self.sides.iter().flat_map(|(_, side)| &side.runs) {
            notes.extend(run.notes.iter().filter(|note| !self.notes.contains(note)).cloned());
        }
        notes.sort();
        notes.dedup();
        notes
    }

    /// Returns whether all operations of all servers were right.
    fn verdict(&self) -> Verdict {
        Verdict::unless(self.sides.iter().flat_map(|(kind, side)| side.faults(kind.name())).collect())
    }
}

impl Results for ClusterComparison {
    fn contents(&self) -> Contents {
        let mut figures = Figures::default();
        let rounds = self.floors.len();
        figures.add_spread("sync", "ms", self.floor(|floor| floor.sync), rounds);
        figures.add_spread("shared_sync", "ms", self.floor(|floor| floor.shared_sync), rounds);
        figures.add_spread("round_trip", "ms", self.floor(|floor| floor.round_trip), rounds);
        if let Some(beyond) = self.beyond_the_floor() {
            figures.add_spread("latency_beyond_sync_and_round_trip", "ms", beyond, rounds);
        }
        for (kind, name, _, ratio) in self.ratios() {
            let part = format!("cluster/{}", kind.name());
            figures.add_of(&part, |figures| figures.add_ratio(name, ratio));
        }
        for (kind, side) in &self.sides {
            figures.add_of(kind.name(), |figures| side.add_figures(figures));
        }
        let runs = || self.sides.iter().flat_map(|(_, side)| &side.runs);
        Contents {
            start: runs().map(|run| run.start_time).min().expect("a comparison has runs"),
            end: runs().map(KvResults::end_time).max().expect("a comparison has runs"),
            interrupted: self.interrupted,
            machine: runs().next().expect("a comparison has runs").machine.clone(),
            servers: self
                .sides
                .iter()
                .map(|(kind, side)| side.server.entry(Some(kind.name()), &side.target))
                .collect(),
            figures,
            notes: self.all_notes(),
            verdict: self.verdict(),
        }
    }
}

impl fmt::Display for ClusterComparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.options;
        let machine = self.sides.iter().flat_map(|(_, side)| &side.runs).map(|run| &run.machine).next();
        write_heading(out, options, (self.floors.len(), options.duration), machine)?;
        for (kind, side) in &self.sides {
            side.write(kind.name(), out)?;
        }
        let write = |out: &mut fmt::Formatter<'_>, name: &str, spread: Spread| {
            let [median, min, max] = figures(spread);
            writeln!(out, "{name}: median {median:.3} ms (min {min:.3}, max {max:.3})")
        };
        write(out, "One sync of 4 KiB", self.floor(|floor| floor.sync))?;
        write(out, "One sync while two other files are synced", self.floor(|floor| floor.shared_sync))?;
        write(out, "One round trip", self.floor(|floor| floor.round_trip))?;
        if let Some(beyond) = self.beyond_the_floor() {
            write(out, "p50 of the cluster beyond one sync and one round trip", beyond)?;
            writeln!(out, "   aim: at most {ALLOWANCE_MS:.3} ms")?;
        }
        for (kind, _, text, ratio) in self.ratios() {
            write_ratio(out, &format!("cluster / {}", kind.name()), text, ratio)?;
        }
        if self.interrupted {
            writeln!(out, "Interrupted: the figures are those of the rounds until then.")?;
        }
        self.all_notes().iter().try_for_each(|note| writeln!(out, "{note}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{ClusterComparison, ETCD_MISSING, Kind};
    use crate::kv::cluster::floor::Floor;
    use crate::kv::comparison::Side;
    use crate::kv::options::KvOptions;
    use crate::kv::test_results::results;
    use crate::test_run::{self, figure, figure_of, report_of};
    use serde_json::Value;

    fn comparison(flags: &[&str], kinds: &[(Kind, [u64; 2])]) -> ClusterComparison {
        let side = |(kind, counts): &(Kind, [u64; 2])| {
            let runs = counts.map(|count| results(flags, |outcome| outcome.succeeded = count));
            (*kind, Side::new(runs.to_vec()))
        };
        ClusterComparison {
            options: test_run::options::<KvOptions>(flags),
            sides: kinds.iter().map(side).collect(),
            floors: vec![Floor { sync: 0.5, shared_sync: 0.9, round_trip: 0.1 }; 2],
            notes: vec![ETCD_MISSING.to_owned()],
            interrupted: false,
        }
    }

    #[test]
    fn the_cluster_is_compared_with_each_of_the_others() {
        let kinds = [(Kind::Cluster, [1500, 1650]), (Kind::Alone, [3000, 3300]), (Kind::Etcd, [300, 330])];
        let comparison = comparison(&["--cmd", "SET"], &kinds);
        let text = comparison.to_string();
        for line in [
            "cluster / alone, throughput: 0.500 (95 % confidence 0.500 to 0.500, 2 paired rounds)",
            "cluster / etcd, throughput: 5.000 ",
            "One sync of 4 KiB: median 0.500 ms",
        ] {
            assert!(text.contains(line), "{line:?} is not in:\n{text}");
        }
        assert!(!text.contains("beyond one sync"), "16 clients wait for each other:\n{text}");
        let report = report_of(&comparison);
        let ratio = |part: &str| figure_of(&report, part, Value::Null, "throughput_ratio")["value"].as_f64();
        assert!((ratio("cluster/alone").unwrap() - 0.5).abs() < 1e-9, "{report}");
        assert!((ratio("cluster/etcd").unwrap() - 5.0).abs() < 1e-9, "{report}");
        assert_eq!(figure(&report, "shared_sync")["value"], 0.9);
        assert_eq!(report["servers"][2]["of"], "etcd");
        assert_eq!(report["verdict"]["passed"], true);
    }

    #[test]
    fn one_write_at_a_time_is_set_against_the_floor() {
        let flags = ["--cmd", "SET", "--conns", "1", "--workers", "1"];
        let comparison = comparison(&flags, &[(Kind::Cluster, [1500, 1500]), (Kind::Alone, [1500, 1500])]);
        let report = report_of(&comparison);
        let beyond = figure(&report, "latency_beyond_sync_and_round_trip")["value"].as_f64().unwrap();
        assert!(
            (beyond - 0.4).abs() < 0.01,
            "1 ms is 0.4 ms more than one sync and one round trip: {report}"
        );
        assert!(comparison.to_string().contains("beyond one sync and one round trip: median 0.4"));
        assert!(report["notes"].to_string().contains("etcd was not measured"), "{report}");
    }

    #[test]
    fn a_failed_operation_fails_the_run_of_its_server() {
        let mut comparison = comparison(&[], &[(Kind::Cluster, [1500, 1500])]);
        let failed = results(&[], |outcome| outcome.failed = 2);
        comparison.sides.push((Kind::Alone, Side::new(vec![failed.clone(), failed])));
        let report = report_of(&comparison);
        assert_eq!(report["verdict"]["passed"], false);
        assert!(report["verdict"]["reasons"].to_string().contains("alone: 4 operations failed"), "{report}");
    }
}
