//! Recovery of the keyspace from the data directory: open the log, load the newest snapshot, apply
//! the log after it.

use crate::config::{Config, LogStorage};
use crate::data_directory::make_private;
use crate::durability::loading::{Loading, Source};
use crate::durability::recover_error::RecoverError;
use crate::group::{Membership, NodeError};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tidemark_cluster::Installation;
use tidemark_engine::keyspace::SHARDS;
use tidemark_engine::section::{KEYSPACE, NAMED, WATCHED};
use tidemark_engine::watch::{QueryLimits, RetentionLimits, WriteBudget};
use tidemark_engine::{Engine, Protocol, Reply};
use tidemark_log::{
    Clock, FileStorage, Log, Lsn, Member, MemoryStorage, MmapStorage, Options, Recovery, Retention, Snapshot,
    SnapshotError, Snapshots, Storage, Verify,
};

/// The keyspace recovered from snapshot and log.
pub(crate) struct Recovered {
    pub(crate) engine: Engine,
    /// Last record that the newest usable snapshot covers; 0 without one.
    pub(crate) snapshot: Lsn,
    /// Its size. Bytes.
    pub(crate) snapshot_bytes: u64,
    /// Bytes of the log after it.
    pub(crate) replayed_bytes: u64,
    /// Human-readable findings, one per line.
    pub(crate) report: String,
}

/// An open log, and what its recovery found.
pub(crate) struct OpenLog {
    pub(crate) log: Arc<Log>,
    /// What is needed to take part in a group, if the directory is that of a member, until it does.
    pub(crate) membership: Option<(Membership, Member)>,
    recovery: Recovery,
}

/// Opens the log in the data directory.
pub(crate) fn open(config: &Config, clock: Clock) -> Result<OpenLog, RecoverError> {
    let storage = storage(config)?;
    let options = Options {
        durability: config.durability,
        format: config.log_format,
        segment_bytes: config.log_segment_bytes,
        segment_age: unless_zero(config.log_segment_age),
        retention: Retention {
            bytes: (config.log_retention_bytes > 0).then_some(config.log_retention_bytes),
            age: unless_zero(config.log_retention_age),
            keep_snapshots: config.snapshot_keep,
        },
        // The replay verifies every record that it applies.
        verify: Verify::Tail,
        clock,
        ..Options::default()
    };
    let Some(mut membership) = Membership::open(config, &*storage)? else {
        let (log, recovery) = Log::open(storage, options)?;
        return Ok(OpenLog { log: Arc::new(log), membership: None, recovery });
    };
    let installation = Installation::take_up(&storage).map_err(NodeError::Start)?;
    let (log, member, recovery) = Log::open_member(storage, options)?;
    if let Some(installation) = installation {
        installation.complete(&member).map_err(NodeError::Start)?;
    }
    log.block_files().set_part(membership.part_of_numbers());
    membership.begin_alone(config, &log, &member)?;
    membership.end_recovery(config)?;
    Ok(OpenLog { log: Arc::new(log), membership: Some((membership, member)), recovery })
}

/// Budget of watched reads per second of replay, none of which has a subscriber yet. Microseconds.
const UNHEARD_WHILE_LOADING_US: u64 = 500_000;

/// Creates an engine over a log, without its data.
pub(crate) fn empty_engine(log: &Arc<Log>, config: &Config) -> Engine {
    let engine = Engine::new(Arc::clone(log), SHARDS, seed());
    engine.limit_queries(QueryLimits { queries: config.watch_max_queries, bytes: config.watch_max_bytes });
    engine.limit_names(config.watch_max_names);
    engine.limit_tracking(config.tracking_limits());
    engine.limit_series_memory(config.series_memory_limit());
    engine.limit_retention(RetentionLimits {
        bytes: config.watch_retention_bytes,
        age_us: config.watch_retention_age.as_micros() as u64,
    });
    // No client waits for writes during recovery, and clients that resume should find as many
    // emissions as possible.
    engine.limit_writes(WriteBudget {
        write_us: config.watch_write_budget_us,
        unheard_us: UNHEARD_WHILE_LOADING_US.max(config.watch_unsubscribed_budget_us),
        ..WriteBudget::UNLIMITED
    });
    engine
}

/// Recovers the state from snapshot and log.
pub(crate) fn load(opened: &OpenLog, config: &Config, loading: &Loading) -> Result<Recovered, RecoverError> {
    let OpenLog { log, recovery, .. } = opened;
    let mut report: Vec<String> = torn_tail(recovery).into_iter().chain(gap(recovery)).collect();
    let (engine, snapshot) = newest_state(log, config, loading, &mut report)?;
    let from = snapshot.map_or(Lsn::FIRST, Lsn::next);
    let began = log.clock().now();
    let (records, replayed_bytes) = replay(&engine, from, loading)?;
    if !engine.is_following() {
        engine.keep_queries(log.clock().now_us());
    }
    report.push(match records {
        0 if snapshot.is_none() => "the log is empty".to_owned(),
        0 => "no records behind the snapshot".to_owned(),
        records => format!(
            "{records} {} of the log applied in {}, up to {}",
            if records == 1 { "record" } else { "records" },
            seconds(log.clock().elapsed(began)),
            engine.applied()
        ),
    });
    // The log after a skipped snapshot is needed again.
    engine.log().retain(from);
    match Snapshots::new(Arc::clone(engine.log().storage())).set_aside(snapshot) {
        Ok(paths) => report.extend(paths.into_iter().map(|path| format!("set aside: {path}"))),
        Err(error @ SnapshotError::Sync(_)) => return Err(error.into()),
        // It was not needed. At worst the next snapshot evicts the good one in its place.
        Err(error) => report.push(format!("not set aside: {error}")),
    }
    match engine.log().block_files().remove_unused() {
        Ok(_) => {}
        Err(error @ SnapshotError::Sync(_)) => return Err(error.into()),
        // They take space only; the next snapshot tries again.
        Err(error) => report.push(format!("block files that no snapshot needs are not removed: {error}")),
    }
    let snapshots = Snapshots::new(Arc::clone(engine.log().storage()));
    let snapshot_bytes = snapshot.map_or(Ok(0), |lsn| snapshots.bytes(lsn))?;
    let (snapshot, report) = (snapshot.unwrap_or_default(), report.join("\n"));
    Ok(Recovered { engine, snapshot, snapshot_bytes, replayed_bytes, report })
}

/// Loads the newest usable snapshot. Returns the engine and the snapshot's last record; an empty
/// engine if the log is complete without one.
fn newest_state(
    log: &Arc<Log>,
    config: &Config,
    loading: &Loading,
    report: &mut Vec<String>,
) -> Result<(Engine, Option<Lsn>), RecoverError> {
    let snapshots = Snapshots::new(Arc::clone(log.storage()));
    let mut failed: Option<(Lsn, RecoverError)> = None;
    loop {
        let below = failed.as_ref().map(|(lsn, _)| *lsn);
        let (snapshot, damaged) = match (snapshots.latest_below(log.floor(), below), failed) {
            (Ok(found), _) => found,
            // The first error is the one to report.
            (Err(_), Some((_, error))) => return Err(error),
            (Err(error), None) => return Err(error.into()),
        };
        report.extend(damaged.iter().map(|error| format!("passed over: {error}")));
        let engine = empty_engine(log, config);
        let Some(snapshot) = snapshot else { return Ok((engine, None)) };
        let (began, lsn) = (log.clock().now(), snapshot.lsn());
        match load_snapshot(&engine, &snapshot, loading) {
            Ok(()) => {
                report.push(format!(
                    "snapshot at record {lsn} loaded in {}",
                    seconds(log.clock().elapsed(began))
                ));
                return Ok((engine, Some(lsn)));
            }
            Err(RecoverError::GivenUp) => return Err(RecoverError::GivenUp),
            Err(error) => {
                report.push(format!("passed over: {error}"));
                failed = Some((lsn, error));
            }
        }
    }
}

fn storage(config: &Config) -> Result<Arc<dyn Storage>, RecoverError> {
    if config.private_dir && config.log_storage != LogStorage::Memory {
        make_private(&config.dir)?;
    }
    let failed = |error| RecoverError::Directory { dir: config.dir.clone(), error };
    Ok(match config.log_storage {
        LogStorage::File => Arc::new(FileStorage::new(&config.dir).map_err(failed)?),
        LogStorage::Mmap => Arc::new(MmapStorage::new(&config.dir).map_err(failed)?),
        LogStorage::Memory => Arc::new(MemoryStorage::new()),
    })
}

fn unless_zero(time: Duration) -> Option<Duration> {
    (!time.is_zero()).then_some(time)
}

/// Loads a snapshot's frames on all cores.
fn load_snapshot(engine: &Engine, snapshot: &Snapshot, loading: &Loading) -> Result<(), RecoverError> {
    loading.begin(Source::Snapshot, snapshot.frames().len() as u64);
    let next = AtomicUsize::new(0);
    let failed = |error| RecoverError::Load { lsn: snapshot.lsn(), error };
    let loader = engine.load(engine.log().clock().now_us());
    let take = || {
        let number = next.fetch_add(1, Ordering::Relaxed);
        Some((number, snapshot.frames().get(number)?))
    };
    let work = || {
        let mut buffer = Vec::new();
        while let Some((number, frame)) = take() {
            go_on(loading)?;
            if frame.section == KEYSPACE {
                snapshot.read_frame(frame, &mut buffer)?;
                loader.load_frame(&buffer).map_err(|error| failed(error.in_frame(number)))?;
            }
            loading.advance(1);
        }
        Ok(())
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mine = work();
        others
            .into_iter()
            .map(|other| other.join().unwrap_or(Err(RecoverError::Panicked)))
            .fold(mine, Result::and)
    })?;
    loader.finish().map_err(failed)?;
    engine.continue_behind(snapshot.lsn());
    let (mut buffer, numbered) = (Vec::new(), || snapshot.frames().iter().enumerate());
    for (number, frame) in numbered().filter(|(_, frame)| frame.section == WATCHED) {
        snapshot.read_frame(frame, &mut buffer)?;
        let loaded = engine.load_queries(snapshot.lsn(), engine.log().clock().now_us(), &buffer);
        loaded.map_err(|error| failed(error.in_frame(number)))?;
    }
    for (number, frame) in numbered().filter(|(_, frame)| frame.section == NAMED) {
        snapshot.read_frame(frame, &mut buffer)?;
        engine.load_names(&buffer).map_err(|error| failed(error.in_frame(number)))?;
    }
    Ok(())
}

/// Applies every record from `from` on. Returns their number and their bytes.
fn replay(engine: &Engine, from: Lsn, loading: &Loading) -> Result<(u64, u64), RecoverError> {
    let last = engine.log().appended();
    if last < from {
        return Ok((0, 0));
    }
    loading.begin(Source::Log, engine.log().records_between(from.previous(), last));
    let mut batches = engine.log().replay(from)?;
    let (mut records, mut bytes, mut scratch) = (0, 0, Reply::new(Protocol::Resp2));
    while let Some(batch) = batches.next_batch()? {
        go_on(loading)?;
        let in_batch = batch.len();
        records += in_batch;
        for record in batch {
            bytes += record.payload.len() as u64;
            engine
                .apply(&record, &mut scratch)
                .map_err(|error| RecoverError::Apply { lsn: record.lsn, error })?;
        }
        loading.advance(in_batch);
    }
    Ok((records, bytes))
}

fn go_on(loading: &Loading) -> Result<(), RecoverError> {
    if loading.is_given_up() { Err(RecoverError::GivenUp) } else { Ok(()) }
}

fn torn_tail(recovery: &Recovery) -> Option<String> {
    let torn = recovery.torn.as_ref()?;
    let bytes = if torn.bytes == 1 { "1 byte".to_owned() } else { format!("{} bytes", torn.bytes) };
    Some(format!("an unfinished write was cut off: {bytes} at offset {} of {}", torn.offset, torn.path))
}

/// Reports the gap, only at the start that leaves it.
fn gap(recovery: &Recovery) -> Option<String> {
    let gap = recovery.gap?;
    Some(format!(
        "the log was not closed after record {}: the next one has the number {}",
        recovery.last_lsn,
        gap.last.next()
    ))
}

fn seconds(elapsed: Duration) -> String {
    format!("{:.2} s", elapsed.as_secs_f64())
}

/// Seed for random choices of commands such as `SPOP`; the log records the choices.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0_u64)
}
