//! Cost of the log: nanoseconds per append, records per second in replay, and one durable append
//! per storage.
//!
//! `cargo bench -p tidemark-log` prints one line per figure: the median of several runs and their
//! range.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use tidemark_log::{Durability, FileStorage, Log, Lsn, MemoryStorage, MmapStorage, Options, Storage};

const ROUNDS: usize = 5;
const APPENDS: u64 = 1_000_000;
const PAYLOAD: [u8; 64] = [0x5A; 64];
const SYNCS: usize = 2000;

fn main() {
    for payload_bytes in [16, 64, 1024] {
        append_cost(payload_bytes);
    }
    for threads in [1, 2] {
        append_threads(threads);
    }
    let directory = tempfile::tempdir_in(".").expect("the working directory is writable");
    replay_rate("memory", Arc::new(MemoryStorage::new()));
    replay_rate("file", Arc::new(FileStorage::new(directory.path().join("replay")).expect("is made")));
    sync_latency("memory", Arc::new(MemoryStorage::new()));
    sync_latency("file", Arc::new(FileStorage::new(directory.path().join("file")).expect("is made")));
    sync_latency("mmap", Arc::new(MmapStorage::new(directory.path().join("mmap")).expect("is made")));
}

/// A buffer and segments that hold a whole round, so that the figure measures the append and not
/// the disk.
fn roomy() -> Options {
    Options {
        durability: Durability::Off,
        buffer_bytes: 2 << 30,
        segment_bytes: 1 << 30,
        ..Options::default()
    }
}

fn append_cost(payload_bytes: usize) {
    let payload = vec![0x5A; payload_bytes];
    let count = APPENDS * 64 / payload_bytes.max(64) as u64;
    let figures = (0..ROUNDS).map(|_| {
        let (log, _) = Log::open(Arc::new(MemoryStorage::new()), roomy()).expect("opens");
        fill(&log, &payload, count / 4);
        log.wait_durable(log.appended()).expect("syncs");
        let began = Instant::now();
        fill(&log, &payload, count);
        began.elapsed().as_nanos() as f64 / count as f64
    });
    report(&format!("append, {payload_bytes}-byte payload"), "ns", figures.collect());
}

fn append_threads(threads: u64) {
    let figures = (0..ROUNDS).map(|_| {
        let (log, _) = Log::open(Arc::new(MemoryStorage::new()), roomy()).expect("opens");
        fill(&log, &PAYLOAD, APPENDS / 4);
        log.wait_durable(log.appended()).expect("syncs");
        let began = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| fill(&log, &PAYLOAD, APPENDS / threads));
            }
        });
        APPENDS as f64 / began.elapsed().as_secs_f64() / 1e6
    });
    report(&format!("append, {threads} threads, 64-byte payload"), "M records/s", figures.collect());
}

fn replay_rate(name: &str, storage: Arc<dyn Storage>) {
    let (log, _) =
        Log::open(storage, Options { durability: Durability::Off, ..Options::default() }).expect("opens");
    fill(&log, &PAYLOAD, 4 * APPENDS);
    log.wait_durable(log.appended()).expect("syncs");
    let figures = (0..ROUNDS).map(|_| {
        let began = Instant::now();
        let mut replay = log.replay(Lsn::FIRST).expect("begins");
        let mut count = 0_u64;
        while let Some(batch) = replay.next_batch().expect("reads") {
            count += batch.iter().map(|record| black_box(record).payload.len() as u64 / 64).sum::<u64>();
        }
        assert_eq!(count, 4 * APPENDS);
        count as f64 / began.elapsed().as_secs_f64() / 1e6
    });
    report(&format!("replay, {name}, 64-byte payload"), "M records/s", figures.collect());
}

fn sync_latency(name: &str, storage: Arc<dyn Storage>) {
    let options = Options { durability: Durability::Always, ..Options::default() };
    let (log, _) = Log::open(storage, options).expect("opens");
    fill(&log, &PAYLOAD, 1);
    log.wait_durable(Lsn(1)).expect("syncs");
    let mut times: Vec<f64> = (0..SYNCS)
        .map(|_| {
            let began = Instant::now();
            let lsn = log.append(0, 1, |buffer| buffer.extend_from_slice(&PAYLOAD)).expect("is accepted");
            log.wait_durable(lsn).expect("syncs");
            began.elapsed().as_nanos() as f64 / 1e3
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    let (p50, p99) = (times[SYNCS / 2], times[SYNCS * 99 / 100]);
    println!("durable append, {name:<38} p50 {p50:8.1} us   p99 {p99:8.1} us   ({SYNCS} samples)");
}

fn fill(log: &Log, payload: &[u8], count: u64) {
    for number in 0..count {
        let lsn = log.append(number, 1, |buffer| buffer.extend_from_slice(payload));
        black_box(lsn.expect("is accepted"));
    }
}

fn report(name: &str, unit: &str, mut figures: Vec<f64>) {
    figures.sort_unstable_by(f64::total_cmp);
    let (low, median, high) = (figures[0], figures[figures.len() / 2], figures[figures.len() - 1]);
    println!("{name:<48} {median:8.1} {unit}   ({low:.1} to {high:.1}, {ROUNDS} rounds)");
}
