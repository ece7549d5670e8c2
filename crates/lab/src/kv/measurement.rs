//! One run against one server.

use super::clock::Clock;
use super::emission::{Board, Watchers};
use super::load::{self, Outcome, Plan};
use super::options::KvOptions;
use super::probe::Probe;
use super::report::{KvResults, Parts};
use super::supervisor::supervise;
use super::workload::{self, Workload};
use crate::client::Client;
use crate::facts::{self, ServerFacts};
use crate::interrupt::Interrupt;
use crate::latency::LatencySummary;
use crate::machine::Machine;
use crate::progress::Progress;
use crate::target::Target;
use anyhow::Context;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Requests per batch while keys are removed and preloaded.
const PREPARE_BATCH: u64 = 256;
/// Timeout of a batch: a server that syncs every write is slow.
pub(super) const PREPARE_PATIENCE: Duration = Duration::from_mins(1);

/// Measures one server with these options.
pub(super) fn measure(
    options: &KvOptions,
    target: &Target,
    interrupt: &Interrupt,
) -> anyhow::Result<KvResults> {
    let connect = || Client::connect(target, options.op_timeout);
    let mut control = connect()?;
    let server = ServerFacts::ask(&mut control)?;
    let workload = Workload::new(options);
    let mut progress = Progress::new();
    progress.show("preparing the keys", "");
    prepare(&mut control, options, &workload, interrupt)
        .with_context(|| format!("cannot prepare the keys on {target}"))?;

    let board = options.reactive_bench.then(|| Board::new(options.emit_max_inflight));
    let clock = Clock::start_after(options.warmup, options.duration);
    let watchers = match &board {
        Some(_) => Some(Watchers::subscribe(options, target)?),
        None => None,
    };
    let streams = (0..options.conns)
        .map(|_| connect().and_then(Client::into_stream))
        .collect::<Result<Vec<_>, _>>()
        .with_context(|| format!("cannot open {} connections", options.conns))?;
    let probe =
        if options.reactive { Some(Probe::new(connect()?, options.reactive_interval)?) } else { None };

    let cpu_before = facts::server_cpu(&mut control)?;
    let plan = Plan {
        options,
        workload: &workload,
        board: board.as_ref(),
        clock: clock.restarted(),
        served: AtomicU64::new(0),
    };
    let is_over = AtomicBool::new(false);
    let start_time = SystemTime::now() + options.warmup;
    let (outcome, probed, emitted) = std::thread::scope(|scope| {
        let supervisor = scope.spawn(|| supervise(&plan, interrupt, &mut progress, &is_over));
        let probing = probe.map(|probe| scope.spawn(|| probe.run(&plan.clock)));
        let watching =
            watchers.zip(board.as_ref()).map(|(watchers, board)| watchers.start(scope, board, &plan.clock));
        let outcome = load::run(&plan, streams);
        let emitted = watching.map(|watching| watching.finish(options.op_timeout));
        let probed = probing.map(|probing| {
            probing.join().map_err(|_| anyhow::anyhow!("the probe panicked")).and_then(std::convert::identity)
        });
        is_over.store(true, Ordering::Release);
        supervisor.thread().unpark();
        (outcome, probed, emitted)
    });
    progress.clear();
    let outcome = outcome?;
    let cpu_after = facts::server_cpu(&mut control)?;
    Ok(KvResults::new(Parts {
        options,
        target,
        start_time,
        measured: plan.clock.measured(),
        is_interrupted: interrupt.is_asked_for(),
        server,
        machine: Machine::this(),
        probed: probed.transpose()?.map_or_else(LatencySummary::default, |latencies| latencies.summary()),
        emitted: emitted.transpose()?,
        server_micros_per_op: micros_per_op(cpu_before, cpu_after, &outcome),
        outcome,
    }))
}

/// Removes the scenario's keys, so that a GET finds only what this run wrote, and preloads some.
fn prepare(
    control: &mut Client,
    options: &KvOptions,
    workload: &Workload,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    in_batches(control, options.keyspace, interrupt, workload::encode_delete)?;
    if options.reactive_bench {
        // Writing the value that a key already has is no change and causes no emission.
        in_batches(control, options.reactive_keyspace, interrupt, workload::encode_delete_watched)?;
    }
    in_batches(control, options.preloaded_keys(), interrupt, |requests, key| {
        workload.encode_set(requests, key, false);
    })
}

fn in_batches(
    control: &mut Client,
    keys: u64,
    interrupt: &Interrupt,
    encode: impl Fn(&mut Vec<u8>, u64),
) -> anyhow::Result<()> {
    let mut requests = Vec::new();
    for first in (0..keys).step_by(PREPARE_BATCH as usize) {
        anyhow::ensure!(!interrupt.is_asked_for(), "interrupted before anything was measured");
        let batch = first..keys.min(first + PREPARE_BATCH);
        requests.clear();
        for key in batch.clone() {
            encode(&mut requests, key);
        }
        control.send_encoded(&requests)?;
        for _ in batch {
            let reply = control.receive(Some(PREPARE_PATIENCE))?.context("the server does not answer")?;
            if let Some(text) = reply.as_error() {
                anyhow::bail!("the server answered {:?}", String::from_utf8_lossy(text));
            }
        }
    }
    Ok(())
}

/// Returns the server's processor time per successful request; a refusal is not counted as work.
fn micros_per_op(before: Option<Duration>, after: Option<Duration>, outcome: &Outcome) -> Option<f64> {
    let used = after?.checked_sub(before?)?;
    (outcome.served > 0).then(|| used.as_secs_f64() * 1e6 / outcome.served as f64)
}
