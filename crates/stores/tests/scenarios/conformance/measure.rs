//! Prints how long commits take. Asserts nothing about it.

use super::running::{Kind, Running};
use super::support::TestStore;
use std::time::{Duration, Instant};
use tidemark_counter::store::{Batch, Delta, Store};
use tidemark_stores::{LogOptions, LogStore};

const RUNS: usize = 5;
/// Duration of each run.
const RUN: Duration = Duration::from_millis(200);

#[test]
#[ignore = "prints figures: cargo test --release -- --ignored --nocapture measure"]
fn microseconds_of_a_batch() {
    println!("{:<10} {:>8} {:>8} {:>8}   changes in a batch", "", 1, 64, 1_000);
    print_row("memory", &mut *TestStore::memory().store());
    let directory = tempfile::tempdir().expect("a directory");
    print_row("log", &mut LogStore::open(&LogOptions::new(directory.path())).expect("a log"));
    for (name, kind) in [("redis", Kind::Redis), ("postgres", Kind::Postgres), ("nats", Kind::Nats)] {
        let running = Running::start(kind);
        print_row(name, &mut *TestStore::on(&running).store());
    }
}

/// Prints the median over several runs of the mean time of a batch, in µs.
fn print_row(name: &str, store: &mut dyn Store) {
    print!("{name:<10}");
    for count in [1, 64, 1_000] {
        let mut runs: Vec<_> = (0..RUNS).map(|_| microseconds(store, count)).collect();
        runs.sort_by(f64::total_cmp);
        print!(" {:>8.1}", runs[RUNS / 2]);
    }
    println!();
}

fn microseconds(store: &mut dyn Store, count: usize) -> f64 {
    let claim = store.claim("measured").expect("a claim");
    let deltas =
        (0..count).map(|index| Delta { key: format!("tenant:{index}").into_bytes().into(), amount: 1 });
    let mut batch = Batch {
        writer: "measured".into(),
        epoch: claim.epoch,
        sequence: claim.last_sequence,
        deltas: deltas.collect(),
    };
    let (began, before) = (Instant::now(), batch.sequence);
    while began.elapsed() < RUN {
        batch.sequence += 1;
        store.commit(&batch).expect("a receipt");
    }
    began.elapsed().as_secs_f64() * 1e6 / (batch.sequence - before) as f64
}
