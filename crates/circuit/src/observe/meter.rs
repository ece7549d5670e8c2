//! Stats of circuits as OpenTelemetry metrics.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter};

use crate::circuit::Circuit;
use crate::observe::census::Census;
use crate::observe::stats::Stats;
use crate::sync::unpoisoned;

/// Reports the [`Stats`] of circuits by instruments of a meter, whenever these are read.
///
/// | instrument | kind | unit | value |
/// |---|---|---|---|
/// | `tidemark.circuit.entries.admitted` | counter | `{entry}` | entries put into the queues |
/// | `tidemark.circuit.entries.handled` | counter | `{entry}` | entries handled |
/// | `tidemark.circuit.backlog` | up-down counter | `{entry}` | waiting entries |
/// | `tidemark.circuit.failures` | counter | `{failure}` | failed callbacks |
/// | `tidemark.circuit.emissions.dropped` | counter | `{emission}` | emissions dropped by a full queue |
///
/// Instruments that are read one after the other report numbers of the same time: the first one
/// takes them, and the others report the same for a tenth of a second.
///
/// Each has the attribute `tidemark.circuit.name`. Circuits are not kept alive; dropped ones are
/// not reported. Circuits of the same name are reported as one, with the sums of their numbers. The
/// sum includes dropped ones while another circuit of the name exists, so counters do not decrease.
///
/// Clones register with the same instruments. These report as long as the meter's provider reads
/// them, even after all clones are dropped.
///
/// ```
/// use opentelemetry::metrics::{MeterProvider, NoopMeterProvider};
/// use tidemark_circuit::{Circuit, CircuitMeter, name};
///
/// let provider = NoopMeterProvider::new(); // or that of the SDK
/// let meter = CircuitMeter::new(&provider.meter("orders"));
/// let circuit = Circuit::builder().name(name!("orders")).build()?;
/// meter.register(&circuit);
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
#[derive(Clone)]
pub struct CircuitMeter {
    census: Arc<Census>,
}

/// Name, unit and description of an instrument, and its value.
type Counter = (&'static str, &'static str, &'static str, fn(&Stats) -> u64);

/// Monotonic values.
const COUNTERS: [Counter; 4] = [
    ("tidemark.circuit.entries.admitted", "{entry}", "Entries put into the queues of circuits.", |stats| {
        stats.admitted
    }),
    ("tidemark.circuit.entries.handled", "{entry}", "Entries that circuits have handled.", |stats| {
        stats.handled
    }),
    ("tidemark.circuit.failures", "{failure}", "Callbacks of circuits that have failed.", |stats| {
        stats.failures
    }),
    (
        "tidemark.circuit.emissions.dropped",
        "{emission}",
        "Emissions dropped because the queue of a circuit was full.",
        |stats| stats.dropped,
    ),
];

impl CircuitMeter {
    /// Creates the instruments, without circuits.
    pub fn new(meter: &Meter) -> Self {
        let census = Arc::new(Census::default());
        let shared = Arc::new(Shared { census: Arc::clone(&census), last: Mutex::default() });
        for (name, unit, description, value) in COUNTERS {
            let builder = meter.u64_observable_counter(name).with_unit(unit).with_description(description);
            builder.with_callback(callback(&shared, name, value)).build();
        }
        let backlog = "tidemark.circuit.backlog";
        meter
            .i64_observable_up_down_counter(backlog)
            .with_unit("{entry}")
            .with_description("Entries that wait in the queues of circuits.")
            .with_callback(callback(&shared, backlog, |stats| {
                i64::try_from(stats.backlog).unwrap_or(i64::MAX)
            }))
            .build();
        Self { census }
    }

    /// Reports the circuit for as long as it exists. Repeated registrations have no effect.
    pub fn register(&self, circuit: &Circuit) {
        self.census.register(circuit);
    }
}

impl fmt::Debug for CircuitMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitMeter").field("names", &self.census.names()).finish()
    }
}

/// Returns the callback of the instrument of this name.
fn callback<T: 'static>(
    shared: &Arc<Shared>,
    name: &'static str,
    value: fn(&Stats) -> T,
) -> impl Fn(&dyn AsyncInstrument<T>) + Send + Sync + 'static {
    let shared = Arc::clone(shared);
    move |instrument: &dyn AsyncInstrument<T>| {
        for (circuit, stats) in &*shared.numbers(name, Instant::now()) {
            instrument.observe(value(stats), &[KeyValue::new("tidemark.circuit.name", *circuit)]);
        }
    }
}

struct Shared {
    census: Arc<Census>,
    last: Mutex<Last>,
}

/// The numbers taken last, and the instruments that have reported them.
#[derive(Default)]
struct Last {
    taken: Option<Instant>,
    numbers: Numbers,
    reported: Vec<&'static str>,
}

type Numbers = Arc<[(&'static str, Stats)]>;

/// Maximum age of reported numbers: longer than one pass over all instruments, shorter than the
/// time between two passes.
const AGE_MAX: Duration = Duration::from_millis(100);

impl Shared {
    /// Returns the numbers for this instrument: those of the current pass, or new ones if they are
    /// too old or it has reported them already.
    fn numbers(&self, instrument: &'static str, now: Instant) -> Numbers {
        let mut last = unpoisoned(self.last.lock());
        let is_fresh = last.taken.is_some_and(|taken| now.saturating_duration_since(taken) <= AGE_MAX);
        if !is_fresh || last.reported.contains(&instrument) {
            *last = Last { taken: Some(now), numbers: self.census.take().into(), reported: Vec::new() };
        }
        last.reported.push(instrument);
        Arc::clone(&last.numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pipe, RunBy, name};

    fn circuit() -> (Circuit, Pipe<u64>) {
        let circuit =
            Circuit::builder().run_by(RunBy::Owner).name(name!("meter")).build().expect("no thread");
        let pipe = circuit.discard().expect("open");
        (circuit, pipe)
    }

    #[test]
    fn numbers_that_are_read_together_are_of_one_time() {
        let (circuit, pipe) = circuit();
        let census = Arc::new(Census::default());
        census.register(&circuit);
        let shared = Shared { census, last: Mutex::default() };
        let now = Instant::now();
        let admitted = |instrument, now| {
            pipe.emit(1);
            shared.numbers(instrument, now)[0].1.admitted
        };
        assert_eq!(admitted("admitted", now), 1);
        assert_eq!(admitted("handled", now), 1);
        assert_eq!(admitted("backlog", now + AGE_MAX), 1);
        // The first one again: a new pass.
        assert_eq!(admitted("admitted", now), 4);
        assert_eq!(admitted("handled", now), 4);
        // Numbers older than `AGE_MAX` are taken again.
        assert_eq!(admitted("backlog", now + 2 * AGE_MAX), 6);
    }
}
