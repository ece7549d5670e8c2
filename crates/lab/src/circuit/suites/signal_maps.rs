//! `SignMapOps`, `SignalMapOps` and `SignalSetOps` of the original's newer suite: precomputed
//! readings of a vocabulary. No circuit.

use super::lookup::in_turn;
use crate::micro::benchmark::{Benchmark, each};
use std::hint::black_box;
use tidemark_circuit::signals::{Map, Sign, SignMap, SignalMap, Symbol, resources, situations, statuses};

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = Vec::new();
    all.extend(signs());
    all.extend(signals());
    all.extend(making());
    all
}

fn signs() -> [Benchmark; 3] {
    let map = || SignMap::new(resources::Sign::status);
    [
        Benchmark::new("SignMapOps.apply_single", "what a map has for a sign, always the same", move |_| {
            let map = map();
            each(move |_| map[black_box(resources::Sign::Grant)])
        }),
        Benchmark::new(
            "SignMapOps.apply_varied_batch",
            "what a map has for a sign, of all in turn; see apply_varied_control_batch",
            move |sizes| {
                let map = map();
                in_turn(sizes.batch, resources::Sign::ALL.to_vec(), move |sign| map[sign])
            },
        ),
        Benchmark::new(
            "SignMapOps.apply_varied_control_batch",
            "going through what a map has for all signs without looking it up, which is part of apply_varied_batch",
            move |sizes| {
                in_turn(sizes.batch, map().iter().map(|(_, status)| *status).collect(), |status| status)
            },
        ),
    ]
}

/// A signal is its sign and its dimension, so either form of lookup costs the same.
fn signals() -> [Benchmark; 4] {
    let single = |name: &str, what: &str| {
        let measures = format!("what a map has for {what}, always the same");
        Benchmark::new(format!("SignalMapOps.{name}"), measures, |_| {
            let map = readings();
            each(move |_| map[black_box(normal())])
        })
    };
    [
        single("apply_single", "a signal"),
        Benchmark::new(
            "SignalMapOps.apply_varied_batch",
            "what a map has for a signal, of all in turn",
            |sizes| {
                let map = readings();
                let signals = map.iter().map(|(signal, _)| signal).collect();
                in_turn(sizes.batch, signals, move |signal| map[signal])
            },
        ),
        single("get_single", "a sign and a dimension, which are a signal"),
        Benchmark::new(
            "SignalMapOps.get_varied_batch",
            "what a map has for a sign and a dimension, of all in turn, made a signal for it",
            |sizes| {
                let map = readings();
                in_turn(sizes.batch, pairs(), move |(sign, dimension)| {
                    map[situations::Signal { sign, dimension }]
                })
            },
        ),
    ]
}

/// The original stores all signals of a vocabulary in a table, and these rows look one up. Here a
/// signal is two bytes and is created on the fly.
fn making() -> [Benchmark; 3] {
    let single = |name: &str, which: &str, signal: situations::Signal| {
        let measures = format!("making {which} signal of its sign and its dimension; there is no table");
        Benchmark::new(format!("SignalSetOps.{name}"), measures, move |_| {
            each(move |_| situations::Signal {
                sign: black_box(signal.sign),
                dimension: black_box(signal.dimension),
            })
        })
    };
    let last =
        situations::Signal { sign: situations::Sign::Critical, dimension: situations::Dimension::Volatile };
    [
        single("get_single", "the first", normal()),
        Benchmark::new(
            "SignalSetOps.get_varied_batch",
            "making a signal of its sign and its dimension, of all in turn; there is no table",
            |sizes| in_turn(sizes.batch, pairs(), |(sign, dimension)| situations::Signal { sign, dimension }),
        ),
        single("get_worst_case", "the last", last),
    ]
}

fn normal() -> situations::Signal {
    situations::Signal { sign: situations::Sign::Normal, dimension: situations::Dimension::Constant }
}

fn pairs() -> Vec<(situations::Sign, situations::Dimension)> {
    let of = |&sign| situations::Dimension::ALL.iter().map(move |&dimension| (sign, dimension));
    situations::Sign::ALL.iter().flat_map(of).collect()
}

/// Maps situations to statuses by urgency.
fn readings() -> SignalMap<situations::Sign, situations::Dimension, statuses::Sign> {
    Map::new(|signal: situations::Signal| match (signal.sign, signal.dimension) {
        (situations::Sign::Normal, _) => statuses::Sign::Stable,
        (situations::Sign::Warning, situations::Dimension::Volatile) => statuses::Sign::Diverging,
        (situations::Sign::Warning, _) => statuses::Sign::Degraded,
        (situations::Sign::Critical, _) => statuses::Sign::Defective,
    })
}
