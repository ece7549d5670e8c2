//! The benchmarks, one file per suite of the original's.

mod circuit;
mod conduit;
mod cortex;
mod cyclic;
mod emission;
mod flow;
mod id;
mod idle;
mod name;
mod peers;
mod pipe;
mod reservoir;
mod scope;
mod state;
mod subject;
mod subscriber;
mod tap;

use super::benchmark::Benchmark;

/// All benchmarks, in the order in which they run.
#[must_use]
pub fn all() -> Vec<Benchmark> {
    let suites = [
        pipe::suite(),
        emission::suite(),
        circuit::suite(),
        idle::suite(),
        conduit::suite(),
        cyclic::suite(),
        flow::suite(),
        subscriber::suite(),
        reservoir::suite(),
        tap::suite(),
        name::suite(),
        subject::suite(),
        id::suite(),
        state::suite(),
        scope::suite(),
        cortex::suite(),
        peers::suite(),
    ];
    suites.into_iter().flatten().collect()
}
