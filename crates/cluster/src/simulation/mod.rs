//! Members in one thread, from one seed, in virtual time: with the real log on a simulated disk,
//! and a simulated network. Members are killed, lose power, are cut off from each other, and have
//! slow disks.
//!
//! Checked are: entries of one place and term are equal on all members (log matching); a term has
//! one leader; what is committed stays; a leader does not begin while another has a lease; each
//! acknowledged record is on all members at its LSN, and only once; and writes go on when all
//! faults have ended.
//!
//! `TIDEMARK_SEEDS=from..to` runs these seeds: see `campaign`.

mod disk;
mod history;
mod network;
mod run;

use std::time::Instant;

use crate::faults::Faults;

/// Runs seeds until one violates something; returns that.
fn find_violation(seeds: std::ops::Range<u64>, faults: Faults) -> Option<(u64, Vec<String>)> {
    seeds.into_iter().find_map(|seed| {
        let outcome = run::run_seed(seed, faults);
        (!outcome.violations.is_empty()).then_some((seed, outcome.violations))
    })
}

#[test]
fn seeds_violate_nothing() {
    let (mut total, began) = (run::Outcome::default(), Instant::now());
    for seed in 0..100 {
        let outcome = run::run_seed(seed, Faults::default());
        assert!(outcome.violations.is_empty(), "seed {seed}: {:#?}", outcome.violations);
        total.add(&outcome);
    }
    println!("{total:?} in {:?}", began.elapsed());
    // The faults happen, and the seeds are not trivial.
    assert!(
        total.acknowledged > 2000
            && total.terms > 200
            && total.crashes > 200
            && total.cuts > 5
            && total.transfers > 5,
        "{total:?}"
    );
}

#[test]
fn an_entry_that_is_acknowledged_before_its_sync_is_found() {
    let faults = Faults { acknowledge_before_sync: true, ..Faults::default() };
    assert!(find_violation(0..400, faults).is_some());
}

#[test]
fn a_ballot_that_is_not_synced_is_found() {
    let faults = Faults { ballot_not_synced: true, ..Faults::default() };
    assert!(find_violation(0..400, faults).is_some());
}

#[test]
fn a_leader_that_takes_up_its_term_again_is_found() {
    let faults = Faults { restore_leader: true, ..Faults::default() };
    assert!(find_violation(0..400, faults).is_some());
}

#[test]
fn a_refused_batch_that_is_overtaken_is_found() {
    let faults = Faults { overtake_refused: true, ..Faults::default() };
    assert!(find_violation(0..400, faults).is_some());
}

/// A campaign by hand: `TIDEMARK_SEEDS=1000..5000 nice -n 15 cargo test … campaign -- --ignored --nocapture`.
#[test]
#[ignore = "as long as it is asked to run"]
fn campaign() {
    let asked = std::env::var("TIDEMARK_SEEDS").expect("TIDEMARK_SEEDS=from..to");
    let (from, to) = asked.split_once("..").expect("from..to");
    let seeds = from.parse().expect("a number")..to.parse::<u64>().expect("a number");
    let (mut total, mut bad, began) = (run::Outcome::default(), 0, Instant::now());
    for seed in seeds.clone() {
        let outcome = run::run_seed(seed, Faults::default());
        if !outcome.violations.is_empty() {
            bad += 1;
            println!("seed {seed}: {:?}", outcome.violations);
        }
        total.add(&outcome);
    }
    let per_second = (seeds.end - seeds.start) as f64 / began.elapsed().as_secs_f64();
    println!("{seeds:?}: {bad} with a violation, {per_second:.1} seeds/s; {total:?}");
    assert!(bad == 0, "{bad} seeds with a violation");
}
