//! The suites of instruments, such as `CounterOps`: lookup by name, and emission of a vocabulary's
//! signs.
//!
//! The original has a row for each sign. Signs are values of one type that share a pipe, so here
//! one row cycles through a vocabulary, and is found by the names of the original's rows.

use super::channel::count;
use super::lookup::{address, named};
use crate::circuit::batch::Batch;
use crate::circuit::rig::{By, Rig, Way};
use crate::micro::benchmark::{Benchmark, each};
use std::hint::black_box;
use tidemark_circuit::signals::{
    Observation, actors, agents, caches, counters, gauges, probes, queues, resources, routers, services,
    situations, statuses, transactions,
};
use tidemark_circuit::{Circuit, Conduit, Pool, name};

/// The original's names for a vocabulary.
struct Words {
    /// The instrument's name in the suite.
    instrument: &'static str,
    /// Whether it emits signs or signals.
    what: &'static str,
    /// The signs for which the original has separate rows.
    said: &'static str,
}

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = Vec::new();
    all.extend(coordination());
    all.extend(data());
    all.extend(execution());
    all.extend(tools());
    all.extend(one_sign());
    all
}

fn coordination() -> Vec<Benchmark> {
    let actor = Words {
        instrument: "actor",
        what: "sign",
        said: "acknowledge affirm ask clarify command deliver deny explain promise report request",
    };
    let agent = Words {
        instrument: "agent",
        what: "signal",
        said: "accept accepted breach breached depend depended fulfill fulfilled inquire inquired observe observed offer \
               offered promise promised retract retracted validate validated",
    };
    let mut all = actor.rows(actors::pool, actors::Actor::sign);
    all.extend(agent.rows(agents::pool, |agent: &agents::Agent, said: agents::Signal| {
        agent.signal(said.sign, said.dimension);
    }));
    all
}

fn data() -> Vec<Benchmark> {
    let cache =
        Words { instrument: "cache", what: "sign", said: "evict expire hit lookup miss remove store" };
    let queue = Words { instrument: "queue", what: "sign", said: "dequeue overflow underflow" };
    let resource =
        Words { instrument: "resource", what: "sign", said: "acquire attempt deny grant release timeout" };
    let router = Words {
        instrument: "router",
        what: "sign",
        said: "corrupt drop forward fragment reassemble receive reorder route send",
    };
    let mut all = cache.rows(caches::pool, caches::Cache::sign);
    all.extend(queue.rows(queues::pool, queues::Queue::sign));
    all.extend(resource.rows(resources::pool, resources::Resource::sign));
    all.extend(router.rows(routers::pool, routers::Router::sign));
    all
}

fn execution() -> Vec<Benchmark> {
    let service = Words {
        instrument: "service",
        what: "signal",
        said: "call called delay delayed discard discarded disconnect disconnected expire expired fail failed recourse \
               recoursed redirect redirected reject rejected resume resumed retry retried schedule scheduled start \
               started stop stopped success succeeded suspend suspended",
    };
    let transaction = Words {
        instrument: "transaction",
        what: "signal",
        said: "abort_coordinator abort_participant commit_coordinator commit_participant compensate_coordinator \
               compensate_participant conflict_coordinator conflict_participant expire_coordinator expire_participant \
               prepare_coordinator prepare_participant rollback_coordinator rollback_participant start_coordinator \
               start_participant",
    };
    let mut all = service.rows(services::pool, |service: &services::Service, said: services::Signal| {
        service.signal(said.sign, said.dimension);
    });
    all.extend(transaction.rows(
        transactions::pool,
        |transaction: &transactions::Transaction, said: transactions::Signal| {
            transaction.signal(said.sign, said.dimension);
        },
    ));
    all
}

fn tools() -> Vec<Benchmark> {
    let counter = Words { instrument: "counter", what: "sign", said: "increment overflow reset" };
    let gauge =
        Words { instrument: "gauge", what: "sign", said: "decrement increment overflow reset underflow" };
    let probe = Words {
        instrument: "probe",
        what: "signal",
        said: "connect connected disconnect disconnected fail failed process processed receive received succeed \
               succeeded transmit transmitted",
    };
    // The original's monitors and reporters became statuses and situations, both with dimensions.
    let monitor = Words {
        instrument: "monitor",
        what: "signal",
        said: "converging_confirmed defective_tentative degraded_measured down_confirmed stable_confirmed",
    };
    let reporter = Words { instrument: "reporter", what: "signal", said: "sign critical normal warning" };
    let mut all = counter.rows(counters::pool, counters::Counter::sign);
    all.extend(gauge.rows(gauges::pool, gauges::Gauge::sign));
    all.extend(probe.rows(probes::pool, |probe: &probes::Probe, said: probes::Signal| {
        probe.signal(said.sign, said.dimension);
    }));
    all.extend(monitor.rows(statuses::pool, |monitor: &statuses::Status, said: statuses::Signal| {
        monitor.signal(said.sign, said.dimension);
    }));
    all.extend(reporter.rows(
        situations::pool,
        |reporter: &situations::Situation, said: situations::Signal| {
            reporter.signal(said.sign, said.dimension);
        },
    ));
    all
}

/// Always the same sign, by its own method: the difference to rows that cycle through all signs is
/// the cycling.
fn one_sign() -> [Benchmark; 2] {
    let enqueue = |suffix: &str| {
        Batch::new(
            format!("QueueOps.emit_enqueue{suffix}"),
            "the same sign each time by an instrument's own method for it, to a conduit with a receptor",
            |circuit, counter| {
                let conduit = circuit.conduit()?;
                count(circuit, &conduit, counter)?;
                let queue = named(&queues::pool(&conduit))?;
                Ok(InTurn::new(vec![()], move |()| queue.enqueue()))
            },
        )
    };
    [enqueue("").until_returned().row(), enqueue("_batch").row()]
}

impl Words {
    /// The rows of a vocabulary, by the function that emits one of its values.
    fn rows<O, I>(
        &self,
        pool: fn(&Conduit<O>) -> Pool<I>,
        say: impl Fn(&I, O) + Copy + Send + 'static,
    ) -> Vec<Benchmark>
    where
        O: Observation,
        I: Clone + Send + Sync + 'static,
    {
        let mut all = self.looking_up(pool);
        let description = format!(
            "all {} {}s of a vocabulary in turn by an instrument, to a conduit with a receptor",
            O::COUNT,
            self.what
        );
        for suffix in ["", "_batch"] {
            let batch = Batch::new(
                self.name(&format!("emit_{}{suffix}", self.what)),
                description.clone(),
                move |circuit: &Circuit, counter| {
                    let conduit = circuit.conduit()?;
                    count(circuit, &conduit, counter)?;
                    let instrument = named(&pool(&conduit))?;
                    Ok(InTurn::new(O::all().collect(), move |said| say(&instrument, said)))
                },
            );
            let batch = if suffix.is_empty() { batch.until_returned() } else { batch };
            let others = self.said.split_whitespace().map(|said| self.name(&format!("emit_{said}{suffix}")));
            all.push(batch.row().also(others));
        }
        all
    }

    fn looking_up<O, I>(&self, pool: fn(&Conduit<O>) -> Pool<I>) -> Vec<Benchmark>
    where
        O: Observation,
        I: Send + Sync + 'static,
    {
        let rows = Benchmark::with_batch(
            &self.name(&format!("{}_from_conduit", self.instrument)),
            "looking up a conduit's instrument of one name, always the same",
            move |_| {
                let rig = Rig::new(By::Pool)?;
                let pool = pool(&rig.conduit()?);
                pool.get(name!("bench")).map_err(Clone::clone)?;
                each(move |_| {
                    // Must live as long as the component that is looked up.
                    let _ = &rig;
                    pool.get(black_box(name!("bench"))).map(address).ok()
                })
            },
        );
        rows.into()
    }

    /// A row of the instrument's suite.
    fn name(&self, row: &str) -> String {
        let (first, rest) = self.instrument.split_at(1);
        format!("{}{rest}Ops.{row}", first.to_uppercase())
    }
}

/// Emits these values in rotation, whatever the scenario's value is.
pub(super) struct InTurn<O, F> {
    all: Vec<O>,
    next: usize,
    say: F,
}

impl<O: Copy, F: FnMut(O)> InTurn<O, F> {
    /// Creates the rotation from at least one value and the function that emits it.
    pub(super) fn new(all: Vec<O>, say: F) -> Self {
        assert!(!all.is_empty(), "there is nothing to say");
        InTurn { all, next: 0, say }
    }

    /// Emits this value outside the rotation.
    pub(super) fn say(&mut self, what: O) {
        (self.say)(what);
    }
}

impl<O: Copy + 'static, F: FnMut(O) + 'static> Way for InTurn<O, F> {
    #[inline]
    fn emit(&mut self, _: u64) {
        (self.say)(black_box(self.all[self.next]));
        self.next = if self.next + 1 == self.all.len() { 0 } else { self.next + 1 };
    }
}
