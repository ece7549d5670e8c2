//! Three members of etcd on this machine, and the load on them.

use super::etcd_client::{EtcdClient, Status};
use crate::facts::ServerFacts;
use crate::folder::Folder;
use crate::kv::load::Outcome;
use crate::kv::measurement::PREPARE_PATIENCE;
use crate::kv::options::{CommandMix, KvOptions};
use crate::kv::report::{KvResults, Parts};
use crate::latency::LatencySummary;
use crate::machine::Machine;
use crate::random::Random;
use crate::server_process::{Launch, ServerProcess, lasting_port};
use crate::target::Target;
use anyhow::Context;
use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::runtime::Runtime;

/// Members of the cluster.
const MEMBERS: usize = 3;
/// Longest wait for a leader.
const LEADER_PATIENCE: Duration = Duration::from_secs(30);
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Keys that are written at once before the measurement.
const PREPARE_AT_ONCE: u64 = 64;

/// An etcd cluster; it ends with this value.
pub(super) struct Etcd {
    members: Vec<ServerProcess>,
    runtime: Runtime,
    _data: Folder,
}

/// What the clients of a run share.
struct Load {
    options: KvOptions,
    value: Vec<u8>,
    measured_from: Instant,
    end: Instant,
}

impl Etcd {
    /// Returns the program, if it is installed.
    pub(super) fn program() -> Option<PathBuf> {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join("etcd")).find(|file| file.is_file())
    }

    /// Starts three members with the program's own settings, and waits until one of them leads.
    pub(super) fn start(program: &Path, threads: usize) -> anyhow::Result<Self> {
        let data = Folder::new()?;
        let address = Ipv4Addr::LOCALHOST.to_string();
        let ports = || (0..MEMBERS).map(|_| lasting_port()).collect::<anyhow::Result<Vec<_>>>();
        let (clients, peers) = (ports()?, ports()?);
        let url = |port: &u16| format!("http://{address}:{port}");
        let list: Vec<String> =
            (1..).zip(&peers).map(|(number, peer)| format!("m{number}={}", url(peer))).collect();
        let mut members = Vec::new();
        for (number, (client, peer)) in (1..).zip(clients.iter().zip(&peers)) {
            let directory = data.path().join(format!("etcd{number}"));
            let named = [
                ("--name", format!("m{number}")),
                ("--listen-client-urls", url(client)),
                ("--advertise-client-urls", url(client)),
                ("--listen-peer-urls", url(peer)),
                ("--initial-advertise-peer-urls", url(peer)),
                ("--initial-cluster", list.join(",")),
                ("--initial-cluster-state", "new".to_owned()),
            ];
            let mut arguments: Vec<OsString> = vec!["--data-dir".into(), directory.join("data").into()];
            arguments.extend(named.into_iter().flat_map(|(name, value)| [name.into(), value.into()]));
            members.push(ServerProcess::launch(Launch {
                binary: program.to_owned(),
                directory,
                arguments,
                target: Target::new(&address, *client),
                namespace: None,
            })?);
        }
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
        let mut etcd = Etcd { members, runtime, _data: data };
        etcd.leader()?;
        Ok(etcd)
    }

    /// Waits until a member leads. Returns its address and version.
    fn leader(&mut self) -> anyhow::Result<(Target, Status)> {
        let deadline = Instant::now() + LEADER_PATIENCE;
        while Instant::now() < deadline {
            for member in &mut self.members {
                member.check().context("etcd")?;
                let target = member.target();
                let status = self.runtime.block_on(async {
                    let client =
                        EtcdClient::connect(&target.host, target.port, LEADER_PATIENCE).await.ok()?;
                    client.status().await.ok()
                });
                if let Some(status) = status.filter(|status| status.leads) {
                    return Ok((target, status));
                }
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        anyhow::bail!("no member of etcd leads after {LEADER_PATIENCE:?}")
    }

    /// Measures a closed loop at the leader, which spares etcd the way from another member.
    pub(super) fn measure(&mut self, options: &KvOptions) -> anyhow::Result<KvResults> {
        let (target, status) = self.leader()?;
        let start_time = SystemTime::now() + options.warmup;
        let outcome = self.runtime.block_on(drive(options, &target)).map_err(anyhow::Error::msg)?;
        Ok(KvResults::new(Parts {
            options,
            target: &target,
            start_time,
            measured: options.duration,
            is_interrupted: false,
            server: ServerFacts {
                version: Some(format!("etcd {}", status.version)),
                durability: Some("every entry synced by a majority".to_owned()),
            },
            machine: Machine::this(),
            outcome,
            probed: LatencySummary::default(),
            emitted: None,
            server_micros_per_op: None,
        }))
    }
}

/// Writes the first keys, and then lets every worker send one request after the other.
async fn drive(options: &KvOptions, target: &Target) -> Result<Outcome, String> {
    let connect = || EtcdClient::connect(&target.host, target.port, options.op_timeout);
    let value = vec![b'x'; options.value_size];
    let first = EtcdClient::connect(&target.host, target.port, PREPARE_PATIENCE).await?;
    let keys = options.preloaded_keys();
    for batch in (0..keys).step_by(PREPARE_AT_ONCE as usize) {
        let put = |number: u64| {
            let (client, value) = (first.clone(), value.clone());
            tokio::spawn(async move { client.put(&key(number), &value).await })
        };
        let puts: Vec<_> = (batch..keys.min(batch + PREPARE_AT_ONCE)).map(put).collect();
        for put in puts {
            put.await.map_err(|error| error.to_string())??;
        }
    }
    let mut connections = Vec::new();
    for _ in 0..options.conns {
        connections.push(connect().await?);
    }
    let now = Instant::now();
    let measured_from = now + options.warmup;
    let load = Arc::new(Load {
        options: options.clone(),
        value,
        measured_from,
        end: measured_from + options.duration,
    });
    let workers = options.workers * options.pipeline;
    let worker = |number: usize| {
        let client = connections[number % connections.len()].clone();
        tokio::spawn(work(Arc::clone(&load), client, number as u64))
    };
    let tasks: Vec<_> = (0..workers).map(worker).collect();
    let mut total = Outcome::default();
    for task in tasks {
        total.add(task.await.map_err(|error| error.to_string())?);
    }
    // Workers are no threads.
    total.threads = options.driving_threads();
    Ok(total)
}

/// One worker: a request at a time until the end of the window.
async fn work(load: Arc<Load>, client: EtcdClient, number: u64) -> Outcome {
    let options = &load.options;
    let seed = options.seed.expect("a run without --seed is given one before it begins");
    let mut random = Random::new(seed, number);
    let mut outcome = Outcome::default();
    loop {
        let began = Instant::now();
        if began >= load.end {
            return outcome;
        }
        let reads = match options.cmd {
            CommandMix::Get => true,
            CommandMix::GetSet => random.below(options.mix.total()) < u64::from(options.mix.get),
            CommandMix::Set | CommandMix::Ping => false,
        };
        let key = key(random.below(options.keyspace));
        let result =
            if reads { client.get(&key).await } else { client.put(&key, &load.value).await.map(|()| true) };
        let now = Instant::now();
        let is_measured = began >= load.measured_from;
        match result {
            Ok(_) if !is_measured || now > load.end => {}
            Ok(is_there) => {
                outcome.succeeded += 1;
                outcome.misses += u64::from(!is_there);
                outcome.latencies.record_nanos((now - began).as_nanos() as u64);
            }
            Err(error) => {
                outcome.fail(u64::from(is_measured), || error);
                // A broken connection fails at once, and would fill the window with failures.
                tokio::time::sleep(LOOK_INTERVAL).await;
            }
        }
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("bench:key:{number}").into_bytes()
}
