//! Blocks of series in block files: what snapshots write and refer to, what a start finds, and what is
//! read from files.

mod damage;
mod faults;
mod foresight;

use crate::support::{self, START_US, commands::Random};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemark_engine::section::KEYSPACE;
use tidemark_engine::{Call, Engine, Reply, command};
use tidemark_log::storage::faulty::{Fault, Plan, Site};
use tidemark_log::{
    Durability, FaultyStorage, Log, Lsn, MemoryStorage, Options, Retention, Snapshots, Storage,
};

/// Why a start or a snapshot fails.
type Failed = Box<dyn std::error::Error>;

fn open(storage: &Arc<dyn Storage>, retention: Retention) -> Result<Engine, Failed> {
    let options = Options {
        durability: Durability::Always,
        segment_bytes: Options::SEGMENT_BYTES_MIN,
        retention,
        seed: Some(5),
        ..Options::default()
    };
    let (log, _) = Log::open(Arc::clone(storage), options)?;
    let (log, mut below) = (Arc::new(log), None);
    let snapshots = Snapshots::new(Arc::clone(log.storage()));
    // As the server does it: a snapshot that cannot be loaded is passed over.
    let (engine, covered) = loop {
        let engine = support::engine_with_log(Arc::clone(&log));
        let (snapshot, _) = snapshots.latest_below(log.floor(), below)?;
        let Some(snapshot) = snapshot else { break (engine, Lsn::ZERO) };
        match load(&engine, &snapshot) {
            Ok(()) => break (engine, snapshot.lsn()),
            Err(error) => {
                // The first error is the one to report.
                if snapshots.latest_below(log.floor(), Some(snapshot.lsn())).is_err() {
                    return Err(error);
                }
                below = Some(snapshot.lsn());
            }
        }
    };
    if covered < log.appended() {
        let mut scratch = Reply::default();
        let mut replay = log.replay(covered.next())?;
        while let Some(batch) = replay.next_batch()? {
            for record in batch {
                engine.apply(&record, &mut scratch)?;
            }
        }
    }
    snapshots.set_aside(Some(covered).filter(|lsn| *lsn > Lsn::ZERO))?;
    log.block_files().remove_unused()?;
    Ok(engine)
}

fn load(engine: &Engine, snapshot: &tidemark_log::Snapshot) -> Result<(), Failed> {
    let loader = engine.load(START_US);
    let mut buffer = Vec::new();
    for (number, frame) in snapshot.frames().iter().enumerate().filter(|(_, frame)| frame.section == KEYSPACE)
    {
        snapshot.read_frame(frame, &mut buffer)?;
        loader.load_frame(&buffer).map_err(|error| error.in_frame(number))?;
    }
    loader.finish()?;
    engine.continue_behind(snapshot.lsn());
    Ok(())
}

fn memory() -> (MemoryStorage, Arc<dyn Storage>) {
    let memory = MemoryStorage::with_crashes();
    (memory.clone(), Arc::new(memory))
}

/// Takes a snapshot, and runs `meanwhile` before each of its frames. Returns the bytes that were written.
fn snapshot_while(engine: &Engine, mut meanwhile: impl FnMut()) -> Result<u64, Failed> {
    let goes_on = || {
        meanwhile();
        true
    };
    let taken = engine.take_snapshot(false, || (), goes_on)?;
    Ok(taken.bytes + taken.block_bytes)
}

fn snapshot(engine: &Engine) -> Result<u64, Failed> {
    snapshot_while(engine, || ())
}

fn run_bytes(engine: &Engine, args: &[&[u8]]) -> Vec<u8> {
    let mut reply = Reply::default();
    let command = command::resolve(args).expect("a command");
    engine.execute(&Call { command, args, db: 0, now_us: START_US }, &mut reply);
    reply.bytes().to_vec()
}

fn run(engine: &Engine, line: &str) -> String {
    let words = support::words(line);
    let args: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    String::from_utf8_lossy(&run_bytes(engine, &args)).replace("\r\n", " ")
}

/// Adds `count` points with the next times.
fn fill(engine: &Engine, key: &str, from: u64, count: u64) {
    for start in (from..from + count).step_by(100) {
        let points: Vec<String> = (start..(start + 100).min(from + count))
            .map(|time| format!("{key} {} {}", time * 10, (time * time) % 1_009))
            .collect();
        let answer = run(engine, &format!("TS.MADD {}", points.join(" ")));
        assert!(!answer.contains('-'), "{answer}");
    }
}

/// An engine with the series `a`, `b` and `c` of so many points each.
fn filled(storage: &Arc<dyn Storage>, points: u64) -> Engine {
    let engine = open(storage, Retention::default()).expect("opens");
    for key in ["a", "b", "c"] {
        assert_eq!(run(&engine, &format!("TS.CREATE {key}")), "+OK ");
        fill(&engine, key, 0, points);
    }
    engine
}

fn block_files(storage: &Arc<dyn Storage>) -> Vec<String> {
    let mut names = storage.list().expect("memory lists");
    names.retain(|name| name.starts_with("blocks-"));
    names.sort();
    names
}

/// Waits until at most so many block files are left: a thread frees large values, and closes their files.
fn wait_for_files(engine: &Engine, storage: &Arc<dyn Storage>, most: usize) {
    while block_files(storage).len() > most {
        std::thread::yield_now();
        engine.log().block_files().remove_unused().expect("memory removes");
    }
}

#[test]
fn a_second_snapshot_writes_what_is_new() {
    let (_, storage) = memory();
    let engine = filled(&storage, 30_000);
    let blocks =
        |engine: &Engine| engine.take_snapshot(false, || (), || true).expect("a snapshot").block_bytes;
    let first = blocks(&engine);
    fill(&engine, "b", 30_000, 300);
    assert_eq!(blocks(&engine), 0, "no block is new");
    assert_eq!(block_files(&storage).len(), 1);
    fill(&engine, "b", 30_300, 2_000);
    let second = blocks(&engine);
    assert!(second < first / 5, "{second} bytes of {first}");
    assert_eq!(block_files(&storage).len(), 2);
    let digest = engine.digest();
    drop(engine);
    let again = open(&storage, Retention::default()).expect("starts");
    assert_eq!(again.digest(), digest);
    assert_eq!(blocks(&again), 0, "loaded blocks are where they were");
    assert_eq!(block_files(&storage).len(), 2);
}

#[test]
fn the_times_of_series_that_get_their_points_together_are_written_once() {
    let (_, storage) = memory();
    let engine = open(&storage, Retention::default()).expect("opens");
    let mut random = Random::new(3);
    let jitter: Vec<u64> = (0..9_000).map(|_| random.below(700)).collect();
    let fill = |key: &str| {
        for (start, jitter) in (0..).step_by(100).zip(jitter.chunks(100)) {
            let point = |(time, jitter): (u64, &u64)| format!("{key} {} {}", time * 1_000 + jitter, time % 5);
            let points: Vec<String> = (start..).zip(jitter).map(point).collect();
            let answer = run(&engine, &format!("TS.MADD {}", points.join(" ")));
            assert!(!answer.contains('-'), "{answer}");
        }
    };
    run(&engine, "TS.CREATE first");
    fill("first");
    let alone = engine.take_snapshot(false, || (), || true).expect("a snapshot").block_bytes;
    for key in ["second", "third", "fourth", "fifth"] {
        run(&engine, &format!("TS.CREATE {key}"));
        fill(key);
    }
    let together = engine.take_snapshot(false, || (), || true).expect("a snapshot").block_bytes;
    assert!(together < 2 * alone, "{together} bytes for four series, {alone} for one");
    let digest = engine.digest();
    engine.limit_series_memory(0);
    assert_eq!(engine.drop_points(|| ()), 0);
    assert_eq!(engine.digest(), digest, "they are read from the file");
    drop(engine);
    assert_eq!(open(&storage, Retention::default()).expect("starts").digest(), digest);
}

#[test]
fn files_leave_with_the_last_snapshot_that_needs_them() {
    let (_, storage) = memory();
    let engine = filled(&storage, 9_000);
    snapshot(&engine).expect("a snapshot");
    let all = block_files(&storage);
    assert_eq!(run(&engine, "DEL a b c"), ":3 ");
    snapshot(&engine).expect("a snapshot");
    assert_eq!(block_files(&storage), all, "the older of two kept snapshots needs it");
    assert_eq!(run(&engine, "SET k v"), "+OK ");
    snapshot(&engine).expect("a snapshot");
    wait_for_files(&engine, &storage, 0);
}

#[test]
fn files_of_a_snapshot_that_failed_are_removed() {
    let (memory, inner) = memory();
    let storage = FaultyStorage::new(inner, None);
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let engine = filled(&shared, 9_000);
    let digest = engine.digest();
    for site in [Site::Create, Site::WriteAt, Site::SyncData, Site::SyncDir, Site::Rename] {
        // The fault is to strike the snapshot, not the log.
        engine.log().wait_durable(engine.log().appended()).expect("the disk has space");
        let at = storage.calls_at(site) + if site == Site::Create { 2 } else { 1 };
        let fault = Fault::Error(ErrorKind::StorageFull);
        storage.set_plan(Some(Plan { fault, at, site: Some(site), forever: true, seed: 1 }));
        assert!(snapshot(&engine).is_err(), "a full disk at {site:?}");
        storage.set_plan(None);
        engine.log().block_files().remove_unused().expect("memory removes");
        // The rename was done when the directory could not be synced.
        if site != Site::SyncDir {
            assert_eq!(block_files(&shared), [""; 0], "{site:?}");
        }
    }
    snapshot(&engine).expect("the disk has space again");
    drop(engine);
    let again = open(&(Arc::new(memory) as Arc<dyn Storage>), Retention::default()).expect("starts");
    assert_eq!(again.digest(), digest);
}

#[test]
fn points_in_files_answer_as_points_in_memory_do() {
    let (_, storage) = memory();
    let engine = filled(&storage, 9_000);
    let lines = [
        "TS.RANGE a 0 + AGGREGATION avg 1000",
        "TS.REVRANGE b - + COUNT 20",
        "TS.RANGE c 10240 20490",
        "TS.GET a",
        "TS.MRANGE - + AGGREGATION sum 50000 FILTER l=1",
        "TS.RANGE b - + FILTER_BY_VALUE 17 18",
        "TS.RANGE b - + AGGREGATION twa 7777",
    ];
    let answers = |engine: &Engine| lines.map(|line| run(engine, line));
    assert_eq!(run(&engine, "TS.ALTER a LABELS l 1"), "+OK ");
    let (expected, digest, bytes) = (answers(&engine), engine.digest(), engine.bytes_of_points(|| ()));
    assert!(bytes > 20_000, "{bytes}");
    engine.limit_series_memory(0);
    assert_eq!(engine.drop_points(|| ()), bytes, "nothing is in a file yet");
    snapshot(&engine).expect("a snapshot");
    engine.limit_series_memory(bytes as usize / 2);
    let left = engine.drop_points(|| ());
    assert!((bytes / 3..=bytes / 2).contains(&left), "{left} bytes of {bytes} are left");
    assert_eq!(answers(&engine), expected);
    engine.limit_series_memory(0);
    assert_eq!(engine.drop_points(|| ()), 0);
    assert_eq!(answers(&engine), expected);
    assert_eq!(engine.digest(), digest);

    // Other ways to read and move a series.
    assert_eq!(run(&engine, "COPY a copied"), ":1 ");
    assert_eq!(engine.bytes_of_points(|| ()), 0, "a copy shares the blocks");
    assert_eq!(run(&engine, "RENAME b renamed"), "+OK ");
    assert_eq!(run(&engine, "MOVE c 3"), ":1 ");
    assert_eq!(run(&engine, &lines[5].replace(" b ", " renamed ")), expected[5]);
    assert_eq!(run(&engine, "TS.ADD copied 5 77"), ":5 ");
    assert_eq!(run(&engine, "TS.DEL renamed 100 40000"), ":3991 ");
    let digest = engine.digest();
    snapshot(&engine).expect("a snapshot");
    drop(engine);
    assert_eq!(open(&storage, Retention::default()).expect("starts").digest(), digest);
}

#[test]
fn a_start_leaves_points_in_their_files_beyond_the_limit() {
    let (_, storage) = memory();
    let engine = filled(&storage, 9_000);
    snapshot(&engine).expect("a snapshot");
    let (digest, bytes) = (engine.digest(), engine.bytes_of_points(|| ()));
    drop(engine);
    let (log, _) = Log::open(Arc::clone(&storage), Options::default()).expect("opens");
    let engine = support::engine_with_log(Arc::new(log));
    engine.limit_series_memory(bytes as usize / 3);
    let newest = Snapshots::new(storage).latest(engine.log().floor()).expect("reads").0.expect("a snapshot");
    load(&engine, &newest).expect("loads");
    let loaded = engine.bytes_of_points(|| ());
    assert!((1..=bytes / 2).contains(&loaded), "{loaded} bytes of {bytes}");
    assert_eq!(engine.digest(), digest);
}

#[test]
fn a_damaged_block_is_not_loaded() {
    let (memory, storage) = memory();
    let engine = filled(&storage, 9_000);
    snapshot(&engine).expect("a snapshot");
    assert_eq!(run(&engine, "SET k v"), "+OK ");
    let digest = engine.digest();
    engine.log().close().expect("closes");
    drop(engine);
    let name = block_files(&storage).remove(0);
    let whole = memory.read(&name).expect("the file");
    let mut random = Random::new(9);
    for _ in 0..60 {
        let mut damaged = whole.clone();
        let bit = random.below(whole.len() as u64 * 8) as usize;
        damaged[bit / 8] ^= 1 << (bit % 8);
        let fork = memory.fork();
        fork.put(&name, damaged);
        let fork: Arc<dyn Storage> = Arc::new(fork);
        // The log is complete: the snapshot is passed over.
        let engine = open(&fork, Retention::default()).unwrap_or_else(|error| panic!("bit {bit}: {error}"));
        assert_eq!(engine.digest(), digest, "bit {bit}");
        // The snapshot is set aside.
        wait_for_files(&engine, &fork, 0);
    }
}

#[test]
fn a_start_from_a_damaged_block_alone_is_refused_with_its_series_and_place() {
    let (memory, storage) = memory();
    let one = Retention { keep_snapshots: 1, ..Retention::default() };
    let engine = open(&storage, one).expect("opens");
    assert_eq!(run(&engine, "TS.CREATE small"), "+OK ");
    assert_eq!(run(&engine, "TS.CREATE large"), "+OK ");
    fill(&engine, "small", 0, 3_000);
    fill(&engine, "large", 0, 30_000);
    snapshot(&engine).expect("a snapshot");
    fill(&engine, "small", 3_000, 10);
    let digest = engine.digest();
    while engine.log().floor() <= Lsn::FIRST {
        fill(&engine, "small", 4_000, 10);
        assert_eq!(run(&engine, "TS.DEL small 40000 +"), ":10 ");
        std::thread::yield_now();
    }
    assert_eq!(engine.digest(), digest);
    engine.log().close().expect("closes");
    drop(engine);
    let name = block_files(&storage).remove(0);
    let whole = memory.read(&name).expect("the file");
    let mut keys = BTreeSet::new();
    for at in [50, whole.len() / 3, whole.len() / 2, whole.len() - 10] {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        memory.put(&name, damaged);
        let error = open(&storage, one).err().expect("nothing else has the points").to_string();
        assert!(error.contains(&name) && error.contains("at byte"), "{error}");
        let key = ["small", "large"].into_iter().find(|key| error.contains(key));
        keys.insert(key.unwrap_or_else(|| panic!("no key in: {error}")));
    }
    assert_eq!(keys.len(), 2);
    memory.put(&name, whole);
    assert_eq!(open(&storage, one).expect("starts").digest(), digest);
}

#[test]
fn series_of_a_build_without_block_files_are_refused_with_what_to_do() {
    let engine = filled(&memory().1, 1_100);
    let mut frames = engine.snapshot();
    let mut frame = frames.next_frame().expect("a frame");
    let block = frame.windows(4).position(|word| word == b"TMSB").expect("a block");
    // Before the block: whether it is a reference, the length of the part in two bytes, its kind.
    assert_eq!(frame[block - 4], 0, "the part is whole");
    let loads = |frame: &[u8]| support::engine().load(START_US).load_frame(frame);
    loads(&frame).expect("loads");
    frame.remove(block - 4);
    let error = loads(&frame).expect_err("it is refused").to_string();
    assert!(error.contains("a block of the series at key") && error.contains("TS.RANGE"), "{error}");
}

#[test]
fn files_that_few_blocks_need_are_written_again() {
    let (_, storage) = memory();
    let engine = filled(&storage, 20_000);
    snapshot(&engine).expect("a snapshot");
    engine.limit_series_memory(0);
    engine.drop_points(|| ());
    let first = block_files(&storage);
    assert_eq!(run(&engine, "DEL a b"), ":2 ");
    let began = Instant::now();
    // A thread of its own frees the deleted series, and the snapshots before are kept for a while.
    for round in 0.. {
        assert_eq!(run(&engine, &format!("SET k {round}")), "+OK ");
        snapshot(&engine).expect("a snapshot");
        let left = block_files(&storage);
        if left.len() == 1 && left != first {
            break;
        }
        assert!(began.elapsed() < Duration::from_mins(1), "{left:?} after {round} snapshots");
    }
    assert_eq!(engine.bytes_of_points(|| ()), 0);
    let digest = engine.digest();
    drop(engine);
    assert_eq!(open(&storage, Retention::default()).expect("starts").digest(), digest);
}

#[test]
fn a_snapshot_is_the_state_at_its_cut_whatever_becomes_of_the_series() {
    let (memory, storage) = memory();
    let engine = filled(&storage, 60_000);
    assert_eq!(run(&engine, "COPY a d"), ":1 ");
    let digest = engine.digest();
    let mut steps = [
        "TS.DEL a 100 200000",
        "RENAME b a",
        "COPY a e",
        "DEL a",
        "TS.ADD c 15 1",
        "MOVE d 5",
        "TS.DEL c - +",
        "FLUSHALL",
    ]
    .into_iter();
    let meanwhile = || {
        if let Some(step) = steps.next() {
            let answer = run(&engine, step);
            assert!(!answer.starts_with('-'), "{step}: {answer}");
        }
    };
    snapshot_while(&engine, meanwhile).expect("a snapshot");
    assert!(steps.next().is_none() || engine.digest() != digest);
    // The snapshot alone.
    let (log, _) = Log::open(Arc::new(memory.fork()), Options::default()).expect("opens");
    let loaded = support::engine_with_log(Arc::new(log));
    let snapshots = Snapshots::new(Arc::clone(loaded.log().storage()));
    let newest = snapshots.latest(loaded.log().floor()).expect("reads").0.expect("a snapshot");
    load(&loaded, &newest).expect("loads");
    assert_eq!(loaded.digest(), digest);
}

/// Random commands, snapshots, compressed heads, dropped points and starts, compared with an engine that has
/// all points in memory and compresses only whole blocks.
#[test]
fn no_answer_depends_on_where_points_are() {
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let (_, storage) = memory();
        let twin = support::engine();
        let mut engine = open(&storage, Retention::default()).expect("opens");
        let mut next = 0;
        for step in 0..300 {
            let key = ["a", "b", "c", "d"][random.below(4) as usize];
            let other = ["a", "b", "c", "d"][random.below(4) as usize];
            let (from, length) = (random.below(60_000), random.below(20_000));
            let line = match random.below(17) {
                // Small blocks, and whole ones made of them.
                14..=15 => {
                    engine.seal_heads(|| ());
                    continue;
                }
                16 => {
                    next += 1_000;
                    let count = 20 + random.below(100);
                    let points = (0..count).map(|index| format!("{key} {} {index}", next + index * 3));
                    format!("TS.MADD {}", points.collect::<Vec<_>>().join(" "))
                }
                0..=4 => {
                    next += 1_000;
                    let points =
                        (0..400).map(|index| format!("{key} {} {}", next + index * 2, (next + index) % 97));
                    format!("TS.MADD {}", points.collect::<Vec<_>>().join(" "))
                }
                5 => format!("TS.ADD {key} {from} 5 ON_DUPLICATE last"),
                6 => format!("TS.DEL {key} {from} {}", from + length),
                7 => format!("TS.ALTER {key} RETENTION {}", 30_000 + length),
                8 if step % 4 == 0 => format!("COPY {key} {other} REPLACE"),
                9 if step % 4 == 0 => format!("RENAME {key} {other}"),
                10 if step % 8 == 0 => format!("DEL {key}"),
                11 => format!("TS.CREATE {key}"),
                12 => {
                    snapshot(&engine).expect("memory does not fail");
                    engine.limit_series_memory(random.below(20_000) as usize);
                    engine.drop_points(|| ());
                    continue;
                }
                13 if step % 3 == 0 => {
                    engine.log().wait_durable(engine.log().appended()).expect("memory does not fail");
                    drop(engine);
                    engine = open(&storage, Retention::default()).expect("starts");
                    continue;
                }
                _ => format!("TS.RANGE {key} {from} {} AGGREGATION avg 700", from + length),
            };
            assert_eq!(run(&engine, &line), run(&twin, &line), "seed {seed}, step {step}: {line:.80}");
        }
        assert_eq!(engine.digest(), twin.digest(), "seed {seed}");
    }
}
