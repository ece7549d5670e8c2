//! The guarantees of watched reads, over the real binary, real sockets and real files, under random
//! commands, disconnects, slow readers, kills and restarts:
//!
//! - For every subscription the received sequence, each emission once, is the sequence that a model
//!   computes from the log, over RESP, HTTP, a WebSocket and DiceDB's protocol.
//! - Work for the emissions of a named subscription is done as often as its manner says.
//! - Emissions that are reported as gone are gone.
//! - The log has every acknowledged write that it must have.
//!
//! `TIDEMARK_WATCHING_CASES` is the number of cases, `TIDEMARK_WATCHING_SEED` the first seed.

mod archive;
mod browser;
mod case;
mod consumer;
mod dice;
mod dice_flaws;
mod dice_wire;
mod errand;
mod flaws;
mod inbound;
mod json;
mod judge;
mod model;
mod name_flaws;
mod names;
mod operators;
mod page;
mod plan;
mod read;
mod received;
mod stream;
mod subscriber;
mod web_socket;
mod world;
mod writer;

use case::Tally;

/// Number of cases in which every rare event occurs.
const MANY: u64 = 100;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn every_subscription_receives_what_a_model_computes_from_the_log() {
    let (cases, seed) = (setting("TIDEMARK_WATCHING_CASES", 12), setting("TIDEMARK_WATCHING_SEED", 1));
    let mut tally = Tally::default();
    for seed in seed..seed.saturating_add(cases) {
        case::run(seed, &mut tally);
    }
    println!("{cases} cases from seed {seed}: {tally:?}");
    assert!(tally.received > 0 && tally.complete > 0, "a subscriber got an emission");
    if cases >= MANY {
        for (what, count) in tally.rare() {
            assert!(count > 0, "{what}: not once in {cases} cases");
        }
    }
}
