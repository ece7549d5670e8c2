//! The benchmarks: one file per suite of the original, or per purpose where its newer suite has
//! many.

mod admission;
mod allocation;
mod basin;
mod cell;
mod channel;
mod circuit;
mod conduit;
mod cortex;
mod cross_circuit;
mod cyclic;
mod divide_conquer;
mod emission;
mod fiber;
mod flow;
mod id;
mod idle;
mod ingress;
mod instruments;
mod lifting;
mod lookup;
mod map;
mod name;
mod peers;
mod pin;
mod pipe;
mod port;
mod reservoir;
mod scope;
mod signal_maps;
mod signal_monitor;
mod sink;
mod state;
mod stem;
mod subject;
mod subscriber;
mod tap;
mod ticker;
mod transit;
mod window;

use crate::micro::Benchmark;

/// Returns all benchmarks, in the order in which they run.
#[must_use]
pub fn all() -> Vec<Benchmark> {
    let suites: [Vec<Benchmark>; 39] = [
        pipe::suite(),
        emission::suite(),
        admission::suite(),
        ingress::suite(),
        circuit::suite(),
        idle::suite(),
        allocation::suite(),
        conduit::suite(),
        lookup::suite(),
        channel::suite(),
        stem::suite(),
        cross_circuit::suite(),
        cyclic::suite(),
        transit::suite(),
        divide_conquer::suite().into(),
        flow::suite(),
        fiber::suite(),
        map::suite(),
        window::suite(),
        subscriber::suite(),
        reservoir::suite(),
        basin::suite().into(),
        sink::suite().into(),
        cell::suite().into(),
        port::suite(),
        pin::suite().into(),
        ticker::suite().into(),
        tap::suite(),
        signal_monitor::suite(),
        instruments::suite(),
        signal_maps::suite(),
        lifting::suite(),
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
