//! Stats of circuits as Prometheus metrics.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::circuit::Circuit;
use crate::observe::census::Census;
use crate::observe::stats::Stats;

/// Reports the [`Stats`] of circuits, labelled by the circuits' names, whenever metrics are
/// collected.
///
/// Circuits are not kept alive; dropped ones are not reported. Circuits of the same name are
/// reported as one, with the sums of their numbers. The sum includes dropped ones while another
/// circuit of the name exists, so counters do not decrease. Clones are handles of the same
/// collector.
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
    census: Arc<Census>,
}

impl CircuitMetrics {
    /// Creates a collector without circuits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reports the circuit for as long as it exists. Repeated registrations have no effect.
    pub fn register(&self, circuit: &Circuit) {
        self.census.register(circuit);
    }
}

impl Collector for CircuitMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let all = self.census.take();
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
        f.debug_struct("CircuitMetrics").field("names", &self.census.names()).finish()
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
