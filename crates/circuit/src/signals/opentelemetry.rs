//! Export of signals to OpenTelemetry.
//!
//! Exports counts of signals. For individual signals and their order, use `trace`; an appender can
//! export its events to OpenTelemetry as logs.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter, UpDownCounter};

use super::{Observation, Sign, Symbol, gauges};
use crate::error::Fault;
use crate::failure::thrown::shielded;
use crate::identity::name::Name;
use crate::identity::subject::Subject;
use crate::structure::conduit::Conduit;
use crate::subscription::membership::Subscription;
use crate::subscription::receptor::Receptor;
use crate::subscription::registrar::Registrar;

/// Exports the emissions of a conduit's instruments to instruments of a meter.
///
/// | instrument | kind | unit | value |
/// |---|---|---|---|
/// | `tidemark.signals` | counter | `{signal}` | number of signals: [`Exporter::count_signals`] |
/// | `tidemark.gauge` | up-down counter | `1` | level of a gauge: [`Exporter::follow_gauges`] |
///
/// | attribute | value | example |
/// |---|---|---|
/// | `tidemark.signal.subject` | the name of the instrument | `web.sessions` |
/// | `tidemark.signal.vocabulary` | the vocabulary | `services` |
/// | `tidemark.signal.sign` | the sign | `Fail` |
/// | `tidemark.signal.dimension` | the dimension, if the vocabulary has dimensions | `Caller` |
/// | `tidemark.signal.status` | the status that the sign alone implies, if any | `Degraded` |
///
/// `tidemark.gauge` has only the first one. The attributes are allocated on the first emission of a
/// sign by a subject. After that a signal costs an addition to a counter of the provider, and no
/// memory. Providers limit the number of attribute sets; the SDK aggregates those beyond 2000 into
/// one, unless a view is configured otherwise.
///
/// The provider's code runs in the circuit's context. Its panics are caught and do not count as
/// failures.
///
/// ```
/// use opentelemetry::metrics::{MeterProvider, NoopMeterProvider};
/// use tidemark_circuit::signals::caches;
/// use tidemark_circuit::signals::opentelemetry::Exporter;
/// use tidemark_circuit::{Circuit, name};
///
/// let provider = NoopMeterProvider::new(); // or that of the SDK
/// let exporter = Exporter::new(&provider.meter("web"));
/// let circuit = Circuit::new();
/// let conduit = circuit.conduit::<caches::Sign>()?;
/// let subscription = exporter.count_signals(&conduit)?;
/// caches::pool(&conduit).get(name!("web.sessions")).unwrap().miss();
/// subscription.close();
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Exporter {
    signals: Counter<u64>,
    levels: UpDownCounter<i64>,
}

impl Exporter {
    /// Creates the instruments. They report nothing until there is a value.
    pub fn new(meter: &Meter) -> Self {
        let signals = meter
            .u64_counter("tidemark.signals")
            .with_unit("{signal}")
            .with_description("How often something was said of a subject.");
        let levels = meter
            .i64_up_down_counter("tidemark.gauge")
            .with_unit("1")
            .with_description("Increments less decrements since a gauge was reset.");
        Self { signals: signals.build(), levels: levels.build() }
    }

    /// Counts the emissions of the conduit's instruments from now on, until the subscription is
    /// closed. With [`Routing::Stem`](crate::Routing::Stem) they also count for the enclosing
    /// subjects.
    ///
    /// Fails if the conduit is closed.
    pub fn count_signals<O: Observation>(&self, conduit: &Conduit<O>) -> Result<Subscription<O>, Fault> {
        let signals = self.signals.clone();
        let subscriber =
            conduit.circuit().subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, O>| {
                registrar.receptor(Counts::new(signals.clone(), subject.name()));
            })?;
        conduit.subscribe(&subscriber)
    }

    /// Reports the levels of the conduit's gauges: increments minus decrements, from now on or
    /// since the last reset. The level returns to 0 when the subscription is closed or the circuit
    /// has ended.
    ///
    /// Fails if the conduit is closed.
    pub fn follow_gauges(
        &self,
        conduit: &Conduit<gauges::Sign>,
    ) -> Result<Subscription<gauges::Sign>, Fault> {
        let levels = self.levels.clone();
        let subscriber = conduit.circuit().subscriber(
            move |subject: &Subject, registrar: &mut Registrar<'_, gauges::Sign>| {
                let attributes = [KeyValue::new(SUBJECT, subject.name().path())];
                registrar.receptor(Level { levels: levels.clone(), attributes, stands_at: 0 });
            },
        )?;
        conduit.subscribe(&subscriber)
    }
}

const DIMENSION: &str = "tidemark.signal.dimension";
const SIGN: &str = "tidemark.signal.sign";
const STATUS: &str = "tidemark.signal.status";
const SUBJECT: &str = "tidemark.signal.subject";
const VOCABULARY: &str = "tidemark.signal.vocabulary";

struct Counts {
    signals: Counter<u64>,
    subject: Name,
    /// The attributes of each observation so far, by its ordinal.
    attributes: Vec<Option<Box<[KeyValue]>>>,
}

impl Counts {
    fn new(signals: Counter<u64>, subject: Name) -> Self {
        Self { signals, subject, attributes: Vec::new() }
    }
}

impl<O: Observation> Receptor<O> for Counts {
    fn receive(&mut self, observation: O) {
        let ordinal = observation.ordinal();
        if self.attributes.len() <= ordinal {
            self.attributes.resize(ordinal + 1, None);
        }
        let attributes =
            self.attributes[ordinal].get_or_insert_with(|| attributes_of(self.subject, observation));
        shielded(|| self.signals.add(1, attributes));
    }
}

/// Returns the attributes sorted by their keys, so that the SDK need not reorder them.
fn attributes_of<O: Observation>(subject: Name, observation: O) -> Box<[KeyValue]> {
    let sign = observation.sign();
    let dimension = observation.dimension().map(|name| KeyValue::new(DIMENSION, name));
    let status = sign.status().map(|status| KeyValue::new(STATUS, status.name()));
    dimension
        .into_iter()
        .chain([KeyValue::new(SIGN, sign.name())])
        .chain(status)
        .chain([KeyValue::new(SUBJECT, subject.path()), KeyValue::new(VOCABULARY, O::Sign::VOCABULARY)])
        .collect()
}

struct Level {
    levels: UpDownCounter<i64>,
    attributes: [KeyValue; 1],
    stands_at: i64,
}

impl Level {
    fn change(&mut self, by: i64) {
        self.stands_at += by;
        shielded(|| self.levels.add(by, &self.attributes));
    }
}

impl Receptor<gauges::Sign> for Level {
    fn receive(&mut self, sign: gauges::Sign) {
        match sign {
            gauges::Sign::Increment => self.change(1),
            gauges::Sign::Decrement => self.change(-1),
            gauges::Sign::Reset => self.change(-self.stands_at),
            gauges::Sign::Overflow | gauges::Sign::Underflow => {}
        }
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        self.change(-self.stands_at);
    }
}
