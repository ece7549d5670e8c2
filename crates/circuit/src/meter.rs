//! The stats of circuits as metrics of OpenTelemetry.

use std::fmt;
use std::sync::Arc;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter};

use crate::census::Census;
use crate::circuit::Circuit;
use crate::stats::Stats;

/// Reports the [`Stats`] of circuits by instruments of a meter, whenever these are read.
///
/// | instrument | kind | unit | what |
/// |---|---|---|---|
/// | `tidemark.circuit.entries.admitted` | counter | `{entry}` | entries put into the queues |
/// | `tidemark.circuit.entries.handled` | counter | `{entry}` | entries handled |
/// | `tidemark.circuit.backlog` | up-down counter | `{entry}` | entries that wait |
/// | `tidemark.circuit.failures` | counter | `{failure}` | callbacks that have failed |
/// | `tidemark.circuit.emissions.dropped` | counter | `{emission}` | emissions dropped because a queue was full |
///
/// Each has the attribute `tidemark.circuit.name`. Circuits are not kept: one that is dropped is reported no more. Circuits of the
/// same name are reported as one, with the sums of their numbers; what those among them have counted that are gone stays in the
/// sums as long as another one of the name is there, so that counters do not fall.
///
/// Clones register with the same instruments. They report as long as the meter's provider reads them, also when all clones are
/// dropped.
///
/// ```
/// use opentelemetry::metrics::{MeterProvider, NoopMeterProvider};
/// use tidemark_circuit::{Circuit, CircuitMeter, name};
///
/// let provider = NoopMeterProvider::new(); // or that of the SDK
/// let meter = CircuitMeter::new(&provider.meter("orders"));
/// let circuit = Circuit::builder().name(name!("orders")).build()?;
/// meter.register(&circuit);
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone)]
pub struct CircuitMeter {
    census: Arc<Census>,
}

impl CircuitMeter {
    /// Makes the instruments, which report no circuits yet.
    pub fn new(meter: &Meter) -> Self {
        let census = Arc::new(Census::default());
        let counter = |name, unit, description, value: fn(&Stats) -> u64| {
            let builder = meter.u64_observable_counter(name).with_unit(unit).with_description(description);
            builder.with_callback(callback(&census, value)).build();
        };
        counter(
            "tidemark.circuit.entries.admitted",
            "{entry}",
            "Entries put into the queues of circuits.",
            |stats| stats.admitted,
        );
        counter(
            "tidemark.circuit.entries.handled",
            "{entry}",
            "Entries that circuits have handled.",
            |stats| stats.handled,
        );
        counter(
            "tidemark.circuit.failures",
            "{failure}",
            "Callbacks of circuits that have failed.",
            |stats| stats.failures,
        );
        counter(
            "tidemark.circuit.emissions.dropped",
            "{emission}",
            "Emissions dropped because the queue of a circuit was full.",
            |stats| stats.dropped,
        );
        meter
            .i64_observable_up_down_counter("tidemark.circuit.backlog")
            .with_unit("{entry}")
            .with_description("Entries that wait in the queues of circuits.")
            .with_callback(callback(&census, |stats| i64::try_from(stats.backlog).unwrap_or(i64::MAX)))
            .build();
        Self { census }
    }

    /// Has the circuit reported from now on, for as long as it exists. Registering it twice makes no difference.
    pub fn register(&self, circuit: &Circuit) {
        self.census.register(circuit);
    }
}

impl fmt::Debug for CircuitMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitMeter").field("names", &self.census.names()).finish()
    }
}

/// What an instrument calls when it is read.
fn callback<T: 'static>(
    census: &Arc<Census>,
    value: fn(&Stats) -> T,
) -> impl Fn(&dyn AsyncInstrument<T>) + Send + Sync + 'static {
    let census = Arc::clone(census);
    move |instrument: &dyn AsyncInstrument<T>| {
        for (name, stats) in census.take() {
            instrument.observe(value(&stats), &[KeyValue::new("tidemark.circuit.name", name)]);
        }
    }
}
