//! Measures snapshots and starts of an engine with many points in series.
//!
//! ```text
//! cargo run --release -p tidemark-engine --example snapshots_of_series -- FOLDER POINTS
//! ```
//!
//! The folder must not exist. A fiftieth of the points is added by commands, the rest by copies of those
//! series, which become blocks of their own in the first snapshot. Then the engine starts from it, gets 1 %
//! new points, takes another snapshot, and starts from that one.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tidemark_engine::section::KEYSPACE;
use tidemark_engine::{Call, Engine, Reply, command};
use tidemark_log::{Durability, FileStorage, Log, Options, Snapshots, Storage};

const SERIES: u64 = 100;
const COPIES: u64 = 50;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn open(storage: &Arc<dyn Storage>) -> Result<Engine> {
    let options = Options { durability: Durability::Off, ..Options::default() };
    let (log, _) = Log::open(Arc::clone(storage), options)?;
    Ok(Engine::new(Arc::new(log), 64, 1))
}

fn run(engine: &Engine, args: &[&[u8]]) -> Result<()> {
    let mut reply = Reply::default();
    let command = command::resolve(args).map_err(|error| error.to_string())?;
    engine.execute(&Call { command, args, db: 0, now_us: 1 }, &mut reply);
    match reply.bytes().first() {
        Some(b'-') => Err(String::from_utf8_lossy(reply.bytes()).into_owned().into()),
        _ => Ok(()),
    }
}

/// Adds points to a series: about one a second, and values of a gauge with one decimal.
fn add(engine: &Engine, key: &str, from: u64, count: u64, random: &mut fastrand::Rng) -> Result<()> {
    let mut value = 500_i64;
    let mut points = (from..from + count).map(|index| {
        value = (value + random.i64(-3..=3)).clamp(0, 1_000);
        [(index * 1_000 + random.u64(0..5)).to_string(), format!("{}.{}", value / 10, value % 10)]
    });
    loop {
        let some: Vec<[String; 2]> = points.by_ref().take(500).collect();
        if some.is_empty() {
            return Ok(());
        }
        let mut args: Vec<&[u8]> = vec![b"TS.MADD"];
        for [time, value] in &some {
            args.extend([key.as_bytes(), time.as_bytes(), value.as_bytes()]);
        }
        run(engine, &args)?;
    }
}

fn snapshot(engine: &Engine) -> Result<()> {
    let began = Instant::now();
    let taken = engine.take_snapshot(false, || (), || true)?;
    let took = began.elapsed().as_secs_f64();
    let (bytes, in_blocks) = (taken.bytes, taken.block_bytes);
    println!("snapshot: {took:.2} s, {bytes} bytes and {in_blocks} bytes of blocks written");
    Ok(())
}

/// Starts from the newest snapshot, as the server does: checks it, and loads it on all cores.
fn start(storage: &Arc<dyn Storage>) -> Result<Engine> {
    let began = Instant::now();
    let engine = open(storage)?;
    let snapshots = Snapshots::new(Arc::clone(storage));
    let (newest, _) = snapshots.latest(engine.log().floor())?;
    let newest = newest.ok_or("there is no snapshot")?;
    let verified = began.elapsed().as_secs_f64();
    let (loader, next) = (engine.load(1), AtomicUsize::new(0));
    let work = || -> Result<()> {
        let mut buffer = Vec::new();
        while let Some(frame) = newest.frames().get(next.fetch_add(1, Ordering::Relaxed)) {
            if frame.section == KEYSPACE {
                newest.read_frame(frame, &mut buffer)?;
                loader.load_frame(&buffer)?;
            }
        }
        Ok(())
    };
    let threads = std::thread::available_parallelism()?.get();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a thread has panicked")?)
    })?;
    loader.finish()?;
    engine.continue_behind(newest.lsn());
    let took = began.elapsed().as_secs_f64();
    println!("start: {took:.2} s, of which {verified:.2} s for the log and the check of the snapshot");
    Ok(engine)
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(folder), Some(points)) = (args.next(), args.next()) else {
        return Err("give a folder and a number of points".into());
    };
    if Path::new(&folder).exists() {
        return Err(format!("{folder} exists").into());
    }
    let each = points.parse::<u64>()? / SERIES / COPIES;
    let storage: Arc<dyn Storage> = Arc::new(FileStorage::new(&folder)?);
    let mut random = fastrand::Rng::with_seed(7);
    let engine = open(&storage)?;
    let began = Instant::now();
    for series in 0..SERIES {
        let first = format!("s:{series}:0");
        run(&engine, &[b"TS.CREATE", first.as_bytes()])?;
        add(&engine, &first, 0, each, &mut random)?;
        for copy in 1..COPIES {
            run(&engine, &[b"COPY", first.as_bytes(), format!("s:{series}:{copy}").as_bytes()])?;
        }
    }
    println!(
        "{} points in {} series: {:.0} s",
        each * SERIES * COPIES,
        SERIES * COPIES,
        began.elapsed().as_secs_f64()
    );
    snapshot(&engine)?;
    engine.log().close()?;
    drop(engine);
    let engine = start(&storage)?;
    println!("{} bytes of blocks in memory", engine.bytes_of_points(|| ()));
    for series in 0..SERIES {
        for copy in 0..COPIES {
            add(&engine, &format!("s:{series}:{copy}"), each, each / 100, &mut random)?;
        }
    }
    snapshot(&engine)?;
    engine.log().close()?;
    drop(engine);
    drop(start(&storage)?);
    Ok(())
}
