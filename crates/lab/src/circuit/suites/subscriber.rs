//! `SubscriberOps`: closing subscribers, with a new circuit, conduits and subscriptions for every
//! call, created outside the measured time.

use crate::circuit::rig::{By, Rig};
use crate::micro::benchmark::{Benchmark, Work};
use crate::micro::tally::Tally;
use std::time::Instant;
use tidemark_circuit::{Conduit, Registrar, Subject, Subscriber, name};

/// Subscribers per call of the rows with `batch`.
const BATCH: u64 = 1_000;

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = vec![
        closing("close_no_subscriptions_await", "a subscriber without subscriptions", 0, false),
        closing("close_one_subscription_await", "a subscriber with one subscription", 1, false),
        closing("close_five_subscriptions_await", "a subscriber with five subscriptions", 5, false),
        closing("close_ten_subscriptions_await", "a subscriber with ten subscriptions", 10, false),
        closing("close_five_conduits_await", "a subscriber of five conduits", 5, false),
        closing("close_ten_conduits_await", "a subscriber of ten conduits", 10, false),
        closing(
            "close_idempotent_await",
            "a subscriber with one subscription that is closed already",
            1,
            true,
        ),
        many("close_no_subscriptions_batch_await", "subscribers without subscriptions", false),
        many(
            "close_one_subscription_batch_await",
            "subscribers with one subscription each, to one conduit",
            true,
        ),
    ];
    all.push(Benchmark::new(
        "SubscriberOps.close_idempotent_batch_await",
        "closing a subscriber again that is closed already, 1,000 times, and one await, each",
        |_| {
            Work::calls(BATCH, || {
                let rig = Rig::new(By::Pool)?;
                let (_conduits, subscriber) = subscribed(&rig, 1)?;
                subscriber.close_and_settle()?;
                let clock = Instant::now();
                for _ in 0..BATCH {
                    subscriber.close();
                }
                rig.settle()?;
                Ok(clock.elapsed())
            })
        },
    ));
    all.push(Benchmark::new(
        "SubscriberOps.close_with_pending_emissions_await",
        "ten emissions, closing the subscriber behind them, and an await, counted",
        |_| {
            Work::calls(1, || {
                let (rig, mut tally) = (Rig::new(By::Pool)?, Tally::default());
                let (conduit, counter) = (rig.conduit()?, tally.counter());
                let subscriber = rig.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u64>| {
                    let counter = counter.clone();
                    registrar.receptor(move |value| counter.count(value));
                })?;
                conduit.subscribe(&subscriber)?;
                let pipe = conduit.get(name!("bench"));
                let clock = Instant::now();
                for value in 0..10 {
                    pipe.emit(value);
                }
                subscriber.close();
                rig.settle()?;
                let took = clock.elapsed();
                tally.expect(10)?;
                Ok(took)
            })
        },
    ));
    all
}

fn closing(name: &str, what: &str, conduits: usize, closed: bool) -> Benchmark {
    let measures = format!("closing {what}, and an await; the shared pool runs the circuit");
    Benchmark::new(format!("SubscriberOps.{name}"), measures, move |_| {
        Work::calls(1, move || {
            let rig = Rig::new(By::Pool)?;
            let (_conduits, subscriber) = subscribed(&rig, conduits)?;
            if closed {
                subscriber.close();
            }
            rig.settle()?;
            let clock = Instant::now();
            subscriber.close();
            rig.settle()?;
            Ok(clock.elapsed())
        })
    })
}

fn many(name: &str, what: &str, subscribe: bool) -> Benchmark {
    let measures = format!("closing {what}, 1,000 and one await, each; the shared pool runs the circuit");
    Benchmark::new(format!("SubscriberOps.{name}"), measures, move |_| {
        Work::calls(BATCH, move || {
            let rig = Rig::new(By::Pool)?;
            let conduit = rig.conduit()?;
            let mut subscribers = Vec::new();
            for _ in 0..BATCH {
                let subscriber = rig.subscriber(register)?;
                if subscribe {
                    conduit.subscribe(&subscriber)?;
                }
                subscribers.push(subscriber);
            }
            rig.settle()?;
            let clock = Instant::now();
            for subscriber in &subscribers {
                subscriber.close();
            }
            rig.settle()?;
            Ok(clock.elapsed())
        })
    })
}

/// Returns a subscriber of so many conduits.
fn subscribed(rig: &Rig, conduits: usize) -> anyhow::Result<(Vec<Conduit<u64>>, Subscriber<u64>)> {
    let subscriber = rig.subscriber(register)?;
    let mut all = Vec::new();
    for _ in 0..conduits {
        let conduit = rig.conduit()?;
        conduit.subscribe(&subscriber)?;
        all.push(conduit);
    }
    Ok((all, subscriber))
}

fn register(_: &Subject, registrar: &mut Registrar<'_, u64>) {
    registrar.receptor(|_: u64| {});
}
