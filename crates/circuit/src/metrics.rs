//! The stats of circuits as metrics of Prometheus.

use std::collections::BTreeMap;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::circuit::Circuit;
use crate::followers::Follower;
use crate::machine::Machine;
use crate::stats::Stats;

/// Reports the [`Stats`] of circuits, labelled by the circuits' names, whenever metrics are collected.
///
/// Circuits are not kept: one that is dropped is reported no more. Circuits of the same name are reported as one, with the sums of
/// their numbers; what those among them have counted that are gone stays in the sums as long as another one of the name is there,
/// so that counters do not fall. Clones are the same collector.
///
/// ```
/// use prometheus_client::encoding::text::encode;
/// use prometheus_client::registry::Registry;
/// use tidemark_circuit::{Circuit, CircuitMetrics, RunBy, name};
///
/// let circuit = Circuit::builder().name(name!("orders")).run_by(RunBy::Owner).build()?;
/// let metrics = CircuitMetrics::new();
/// metrics.register(&circuit);
/// let mut registry = Registry::default();
/// registry.register_collector(Box::new(metrics.clone()));
///
/// circuit.pipe(|_: u64| ())?.emit(7);
/// let mut text = String::new();
/// encode(&mut text, &registry)?;
/// // The emission, and the release of the pipe.
/// assert!(text.contains(r#"circuit_admitted_entries_total{circuit="orders"} 2"#), "{text}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct CircuitMetrics {
    groups: Arc<Mutex<BTreeMap<&'static str, Group>>>,
}

impl CircuitMetrics {
    /// A collector without circuits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Has the circuit reported from now on, for as long as it exists. Registering it twice makes no difference.
    pub fn register(&self, circuit: &Circuit) {
        let machine = circuit.machine();
        let mut groups = lock(&self.groups);
        let group = groups.entry(circuit.subject().name().path()).or_default();
        if group.watches.iter().any(|watch| watch.is_of(machine)) {
            return;
        }
        let watch = Arc::new(Watch(Mutex::new(Watched::There(At(NonNull::from(&**machine))))));
        let follower: Weak<Watch> = Arc::downgrade(&watch);
        machine.followers.add(follower);
        group.watches.push(watch);
    }

    /// The sums of all names that there is a circuit of.
    fn collect(&self) -> Vec<(&'static str, Stats)> {
        let mut groups = lock(&self.groups);
        groups.retain(|_, group| group.forget_gone());
        groups.iter().map(|(name, group)| (*name, group.sum())).collect()
    }
}

impl Collector for CircuitMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let all = self.collect();
        let mut family = |name: &str, help: &str, metric: &dyn Fn(&Stats) -> Metric| -> fmt::Result {
            let Some((_, first)) = all.first() else { return Ok(()) };
            let mut family = encoder.encode_descriptor(name, help, None, metric(first).kind())?;
            all.iter().try_for_each(|(circuit, stats)| {
                metric(stats).encode(family.encode_family(&[("circuit", *circuit)])?)
            })
        };
        let counter = |value| Metric::Counter(ConstCounter::new(value));
        let gauge = |value: u64| Metric::Gauge(ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)));
        family("circuit_admitted_entries", "Entries put into the queues.", &|stats| counter(stats.admitted))?;
        family("circuit_handled_entries", "Entries handled.", &|stats| counter(stats.handled))?;
        family("circuit_backlog_entries", "Entries that wait.", &|stats| gauge(stats.backlog))?;
        family("circuit_failures", "Callbacks that have failed.", &|stats| counter(stats.failures))?;
        family("circuit_dropped_emissions", "Emissions dropped because a queue was full.", &|stats| {
            counter(stats.dropped)
        })
    }
}

impl fmt::Debug for CircuitMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitMetrics").field("names", &lock(&self.groups).keys()).finish()
    }
}

enum Metric {
    Counter(ConstCounter<u64>),
    Gauge(ConstGauge<i64>),
}

impl Metric {
    fn kind(&self) -> MetricType {
        match self {
            Self::Counter(counter) => counter.metric_type(),
            Self::Gauge(gauge) => gauge.metric_type(),
        }
    }

    fn encode(&self, encoder: prometheus_client::encoding::MetricEncoder<'_>) -> fmt::Result {
        match self {
            Self::Counter(counter) => counter.encode(encoder),
            Self::Gauge(gauge) => gauge.encode(encoder),
        }
    }
}

/// The circuits of one name.
#[derive(Default)]
struct Group {
    watches: Vec<Arc<Watch>>,
    /// What those have counted that are gone.
    gone: Stats,
}

impl Group {
    /// False if no circuit is left.
    fn forget_gone(&mut self) -> bool {
        let gone = &mut self.gone;
        self.watches.retain(|watch| match &*lock(&watch.0) {
            Watched::There(_) => true,
            Watched::Gone(last) => {
                *gone = add(*gone, *last);
                false
            }
        });
        !self.watches.is_empty()
    }

    fn sum(&self) -> Stats {
        self.watches.iter().map(|watch| watch.stats()).fold(self.gone, add)
    }
}

fn add(left: Stats, right: Stats) -> Stats {
    Stats {
        admitted: left.admitted + right.admitted,
        handled: left.handled + right.handled,
        backlog: left.backlog + right.backlog,
        failures: left.failures + right.failures,
        dropped: left.dropped + right.dropped,
    }
}

/// A look at a circuit that does not keep it.
struct Watch(Mutex<Watched>);

enum Watched {
    There(At),
    /// The last numbers of a circuit that is gone.
    Gone(Stats),
}

/// Where a machine is. It is there as long as this is: `gone` replaces this under the lock before the machine is freed.
struct At(NonNull<Machine>);

#[allow(unsafe_code, reason = "a machine may be looked at from any thread")]
// SAFETY: all that is done with it is looking at a machine, which is `Sync`.
unsafe impl Send for At {}

impl At {
    #[allow(unsafe_code, reason = "see the type")]
    fn stats(&self) -> Stats {
        // SAFETY: see the type; whoever has a reference to this holds the lock.
        Stats::of(unsafe { self.0.as_ref() })
    }
}

impl Watch {
    fn stats(&self) -> Stats {
        match &*lock(&self.0) {
            Watched::There(at) => at.stats(),
            Watched::Gone(last) => *last,
        }
    }

    fn is_of(&self, machine: &Machine) -> bool {
        matches!(&*lock(&self.0), Watched::There(at) if std::ptr::eq(at.0.as_ptr(), machine))
    }
}

impl Follower for Watch {
    fn gone(&self) {
        let mut watched = lock(&self.0);
        if let Watched::There(at) = &*watched {
            // Nothing waits any more, whatever was left.
            *watched = Watched::Gone(Stats { backlog: 0, ..at.stats() });
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
