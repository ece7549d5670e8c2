//! `ConduitOps`: lookup of pipes by name, and subscriptions.

use crate::circuit::rig::{By, Rig};
use crate::micro::benchmark::{Benchmark, Work, each};
use std::hint::black_box;
use std::time::Instant;
use tidemark_circuit::{Conduit, Fault, Name, Pipe, Registrar, Subject, Subscription, name};

/// Number of subscriptions per await of the circuit.
const SUBSCRIPTIONS: u64 = 1_000;

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = Vec::new();
    let [one, batch] = Benchmark::with_batch(
        "ConduitOps.get_by_name",
        "looking up the pipe of one name, always the same",
        |_| {
            let (_rig, conduit) = conduit()?;
            each(move |_| found(conduit.get(black_box(name!("bench")))))
        },
    );
    all.extend([one.at_most(3.0).in_summary(), batch.at_most(3.0)]);
    all.push(
        Benchmark::new(
            "ConduitOps.get_varied",
            "looking up the pipe of one of 1,024 names, in an order without pattern",
            |sizes| {
                let (_rig, conduit) = conduit()?;
                let names = names(sizes.names)?;
                for name in &names {
                    conduit.get(*name);
                }
                let mask = names.len() - 1;
                each(move |number| {
                    let place = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
                    found(conduit.get(names[place as usize & mask]))
                })
            },
        )
        .at_most(3.0),
    );
    all.extend(Benchmark::with_batch(
        "ConduitOps.get_by_substrate",
        "looking up the pipe of a subject's name",
        |_| {
            let (rig, conduit) = conduit()?;
            let subject = rig.subject().clone();
            each(move |_| found(conduit.get(black_box(&subject))))
        },
    ));
    all.extend(Benchmark::with_batch(
        "ConduitOps.get_cached",
        "looking up the pipe of one name twice and comparing the two",
        |_| {
            let (_rig, conduit) = conduit()?;
            each(move |_| conduit.get(black_box(name!("bench"))) == conduit.get(black_box(name!("bench"))))
        },
    ));
    all.extend(subscribing());
    all
}

fn subscribing() -> [Benchmark; 3] {
    [
        Benchmark::new(
            "ConduitOps.subscribe",
            "making a subscriber and subscribing it, until that returns; 1,000 to one conduit, then the circuit is awaited, \
             outside of the measured time",
            |_| {
                let rig = Rig::new(By::Pool)?;
                Work::calls(SUBSCRIPTIONS, move || {
                    let conduit = rig.conduit()?;
                    let clock = Instant::now();
                    let subscriptions = subscribe_many(&rig, &conduit)?;
                    let took = clock.elapsed();
                    rig.settle()?;
                    drop(subscriptions);
                    conduit.close_and_settle()?;
                    Ok(took)
                })
            },
        ),
        Benchmark::new(
            "ConduitOps.subscribe_batch",
            "making a subscriber and subscribing it, 1,000 to one conduit, and one await behind them, each",
            |_| {
                let rig = Rig::new(By::Pool)?;
                Work::calls(SUBSCRIPTIONS, move || {
                    let conduit = rig.conduit()?;
                    let clock = Instant::now();
                    let subscriptions = subscribe_many(&rig, &conduit)?;
                    rig.settle()?;
                    let took = clock.elapsed();
                    drop(subscriptions);
                    conduit.close_and_settle()?;
                    Ok(took)
                })
            },
        ),
        Benchmark::new(
            "ConduitOps.subscribe_with_emission_await",
            "making a subscriber, subscribing it, an emission that calls it, an await, and closing the subscription; the shared \
             pool runs the circuit",
            |_| {
                let (rig, conduit) = conduit()?;
                each(move |value| {
                    let subscriber = rig.subscriber(ignore)?;
                    let subscription = conduit.subscribe(&subscriber)?;
                    conduit.get(name!("bench")).emit(value);
                    rig.settle()?;
                    subscription.close();
                    anyhow::Ok(())
                })
            },
        ),
    ]
}

fn conduit() -> anyhow::Result<(Rig, Conduit<u64>)> {
    let rig = Rig::new(By::Pool)?;
    let conduit = rig.conduit()?;
    conduit.get(name!("bench"));
    Ok((rig, conduit))
}

/// Returns a result for the black box.
fn found(pipe: &Pipe<u64>) -> *const Pipe<u64> {
    pipe
}

fn names(count: u64) -> anyhow::Result<Vec<Name>> {
    assert!(count.is_power_of_two(), "{count} names cannot be gone through by a mask");
    (0..count)
        .map(|number| Ok(Name::new(&format!("bench.service{}.instance{number}", number % 32))?))
        .collect()
}

fn subscribe_many(rig: &Rig, conduit: &Conduit<u64>) -> Result<Vec<Subscription<u64>>, Fault> {
    (0..SUBSCRIPTIONS).map(|_| conduit.subscribe(&rig.subscriber(ignore)?)).collect()
}

fn ignore(_: &Subject, _: &mut Registrar<'_, u64>) {}
