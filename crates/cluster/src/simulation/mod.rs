//! Members in one thread, from one seed, in virtual time: with the real log on a simulated disk,
//! and a simulated network. Members are killed, lose power or their disks, are cut off from each
//! other, have slow disks and clocks of different speed, join and leave. Processes end in the middle of
//! a write, or between two of the steps that begin a segment, cut a log, or install a snapshot.
//!
//! Members have a memory, take snapshots of it, release the log that those cover, and send them to
//! members that lack what is gone: a new one, one that lost its disk, one that was away.
//!
//! Checked are: entries of one place and term are equal on all members (log matching); a term has
//! one leader; what is committed stays; a leader does not begin while another has a lease; an LSN
//! that was told is that of one record; a read shows what was acknowledged before it; each
//! acknowledged record is on all members at its LSN, and only once; memory, and each snapshot, is what is
//! committed up to its last record; and writes go on when all faults have ended.
//!
//! The code under test is that of members: consensus, driver, log, snapshots and their transfer. What
//! waits for a disk on other threads takes its turn here. Not here are files, sockets, the threads of the
//! log, and the engine: memory is a set of operations.
//!
//! A seed gives the same history each time. `TIDEMARK_SEED=17 cargo test … replay -- --ignored
//! --nocapture` prints that of one seed, and `TIDEMARK_SEEDS=from..to` runs many: see `campaign`.

mod clients;
mod disk;
mod history;
mod killed_leader;
mod lock;
mod memory;
mod mortal;
mod nemesis;
mod network;
mod refusals;
mod run;
mod snapshots;
mod suspects;
mod trace;
mod world;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::faults::Faults;

/// Runs seeds on all processors; returns what happened in all, and the seeds with violations.
fn run_all(seeds: std::ops::Range<u64>) -> (run::Outcome, BTreeMap<u64, Vec<String>>) {
    let next = AtomicU64::new(seeds.start);
    let total = Mutex::new((run::Outcome::default(), BTreeMap::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let seed = next.fetch_add(1, Ordering::Relaxed)
                    && seed < seeds.end
                {
                    let outcome = run::run_seed(seed, Faults::default(), false);
                    let mut total = lock::lock(&total);
                    total.0.add(&outcome);
                    if !outcome.violations.is_empty() {
                        println!("seed {seed}: {:#?}", outcome.violations);
                        total.1.insert(seed, outcome.violations);
                    }
                }
            });
        }
    });
    total.into_inner().expect("no thread has panicked")
}

#[test]
fn seeds_violate_nothing() {
    let began = Instant::now();
    let (total, violations) = run_all(0..500);
    println!("{total:?} in {:?}", began.elapsed());
    assert!(violations.is_empty(), "{violations:#?}");
    // The faults happen, and the seeds are not trivial.
    assert!(
        total.acknowledged > 50_000
            && total.reads > 10_000
            && total.terms > 1_000
            && total.crashes > 1_000
            && total.cuts > 100
            && total.transfers > 25
            && total.changes > 100
            && total.healed > 100
            && total.torn > 100
            && total.snapshots > 1_000
            && total.installed > 25,
        "{total:?}"
    );
}

#[test]
fn a_seed_has_one_history() {
    for seed in 0..8 {
        let run = || run::run_seed(seed, Faults::default(), false);
        assert_eq!(run().digest, run().digest, "seed {seed}");
    }
    assert_ne!(
        run::run_seed(1, Faults::default(), false).digest,
        run::run_seed(2, Faults::default(), false).digest
    );
}

/// How a loss of what was committed shows.
const LOSS: &[&str] = &["was acknowledged at", "has committed", "is committed", "is that of operation"];

/// Expects that a seed finds a fault: by a violation that has one of these words. A fault may first
/// show as a group that does not go on.
fn expect_found(faults: Faults, words: &[&str]) {
    let is_expected = |violation: &String| words.iter().any(|words| violation.contains(words));
    let found =
        (0..1_000).find(|seed| run::run_seed(*seed, faults, false).violations.iter().any(is_expected));
    println!("seed {:?} finds {words:?}", found.unwrap_or_else(|| panic!("no seed finds {faults:?}")));
}

#[test]
fn an_entry_that_is_acknowledged_before_its_sync_is_found() {
    expect_found(Faults { acknowledge_before_sync: true, ..Faults::default() }, LOSS);
}

#[test]
fn a_ballot_that_is_not_synced_is_found() {
    expect_found(Faults { ballot_not_synced: true, ..Faults::default() }, &["is led by"]);
}

#[test]
fn a_leader_that_takes_up_its_term_again_is_found() {
    expect_found(Faults { restore_leader: true, ..Faults::default() }, &["no write in", "has committed"]);
}

#[test]
fn a_refused_batch_that_is_overtaken_is_found() {
    expect_found(Faults { overtake_refused: true, ..Faults::default() }, &["of the last one are unwritten"]);
}

#[test]
fn an_answer_before_the_commit_is_found() {
    expect_found(Faults { commit_before_quorum: true, ..Faults::default() }, LOSS);
}

#[test]
fn a_read_without_a_lease_is_found() {
    expect_found(Faults { read_without_lease: true, ..Faults::default() }, &["a read shows"]);
}

#[test]
fn an_lsn_that_is_given_twice_is_found() {
    expect_found(Faults { term_without_gap: true, ..Faults::default() }, &["is that of operation"]);
}

#[test]
fn a_member_that_votes_although_it_lost_entries_is_found() {
    expect_found(Faults { suspect_votes: true, ..Faults::default() }, LOSS);
}

#[test]
fn memory_that_is_kept_behind_a_cut_is_found() {
    let faults = Faults { keeps_memory_behind_a_cut: true, ..Faults::default() };
    expect_found(faults, &[": memory at"]);
}

#[test]
fn a_snapshot_that_counts_before_it_is_committed_is_found() {
    expect_found(
        Faults { snapshot_at_appended: true, ..Faults::default() },
        &["a snapshot at", "is loaded at"],
    );
}

#[test]
fn a_new_disk_that_votes_is_found() {
    expect_found(Faults { admits_new_disks: true, ..Faults::default() }, LOSS);
}

/// Prints the history of one seed: `TIDEMARK_SEED=17 cargo test … replay -- --ignored --nocapture`. With
/// `TIDEMARK_TRACE=1` also what the library says of itself.
#[test]
#[ignore = "prints the seed that it is asked for"]
fn replay() {
    let seed = std::env::var("TIDEMARK_SEED").expect("TIDEMARK_SEED=number").parse().expect("a number");
    let is_traced = std::env::var_os("TIDEMARK_TRACE").is_some();
    let _traced = is_traced.then(|| tracing::subscriber::set_default(trace::Trace::default()));
    let outcome = run::run_seed(seed, Faults::default(), true);
    println!("{outcome:#?}");
    assert!(outcome.violations.is_empty());
}

/// A campaign by hand, on the processors that it may use. Prints what it found after each part, so it can
/// be ended at any time:
///
/// ```text
/// TIDEMARK_SEEDS=1000..1000000 taskset -c 0 nice -n 15 cargo test --profile test-fast -p tidemark-cluster --lib \
///     campaign -- --ignored --nocapture
/// ```
#[test]
#[ignore = "as long as it is asked to run"]
fn campaign() {
    const PART: u64 = 2_000;
    let asked = std::env::var("TIDEMARK_SEEDS").expect("TIDEMARK_SEEDS=from..to");
    let (from, to) = asked.split_once("..").expect("from..to");
    let (from, to): (u64, u64) = (from.parse().expect("a number"), to.parse().expect("a number"));
    let began = Instant::now();
    let (mut total, mut violations) = (run::Outcome::default(), BTreeMap::new());
    for begin in (from..to).step_by(PART as usize) {
        let end = to.min(begin + PART);
        let (outcome, found) = run_all(begin..end);
        total.add(&outcome);
        violations.extend(found);
        let per_second = (end - from) as f64 / began.elapsed().as_secs_f64();
        println!(
            "seeds {from}..{end}: {} with a violation, {per_second:.1} seeds/s; {total:?}",
            violations.len()
        );
    }
    assert!(violations.is_empty(), "seeds with a violation: {:?}", violations.keys());
}
