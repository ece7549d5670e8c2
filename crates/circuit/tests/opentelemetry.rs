//! What circuits report to OpenTelemetry, as its SDK passes it to an exporter.
#![allow(unsafe_code, reason = "an allocator is unsafe to write; this one counts and passes on")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Display;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{
    Counter, InstrumentBuilder, InstrumentProvider, Meter, MeterProvider, SyncInstrument,
};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::{
    AggregatedMetrics, Metric, MetricData, ResourceMetrics, ScopeMetrics,
};
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{SdkMeterProvider, Temporality};
use tidemark_circuit::signals::opentelemetry::Exporter;
use tidemark_circuit::signals::{Observation, Symbol, breakers, caches, gauges, services};
use tidemark_circuit::{Circuit, CircuitMeter, Name, Routing, RunBy, name};

struct Counting;

thread_local! {
    /// Allocations of this thread.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: it forwards each call to the system's allocator; counting touches no memory but the
// counter.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Keeps a line for each number of the last export.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl PushMetricExporter for Lines {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let metrics = metrics.scope_metrics().flat_map(ScopeMetrics::metrics);
        *self.0.lock().expect("no panic") = metrics.flat_map(lines).collect();
        Ok(())
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Cumulative
    }
}

/// Formats each number as `name [unit] rising {key=value, ...} 7`.
fn lines(metric: &Metric) -> Vec<String> {
    match metric.data() {
        AggregatedMetrics::U64(data) => lines_of(metric, data),
        AggregatedMetrics::I64(data) => lines_of(metric, data),
        AggregatedMetrics::F64(data) => lines_of(metric, data),
    }
}

fn lines_of<T: Copy + Display>(metric: &Metric, data: &MetricData<T>) -> Vec<String> {
    let MetricData::Sum(sum) = data else { panic!("{} is no sum", metric.name()) };
    let kind = if sum.is_monotonic() { "rising" } else { "level" };
    let line = |attributes: Vec<String>, value: T| {
        let attributes = attributes.join(", ").replace("tidemark.", "");
        format!("{} [{}] {kind} {{{attributes}}} {value}", metric.name(), metric.unit())
    };
    let text = |attribute: &KeyValue| format!("{}={}", attribute.key.as_str(), attribute.value);
    sum.data_points().map(|point| line(point.attributes().map(text).collect(), point.value())).collect()
}

/// The SDK, and what it exports.
struct Backend {
    provider: SdkMeterProvider,
    lines: Lines,
}

impl Backend {
    fn new() -> Self {
        let lines = Lines::default();
        let provider = SdkMeterProvider::builder().with_periodic_exporter(lines.clone()).build();
        Self { provider, lines }
    }

    fn meter(&self) -> Meter {
        self.provider.meter("tests")
    }

    /// Exports now; returns the lines, sorted.
    fn exported(&self) -> Vec<String> {
        self.lines.0.lock().expect("no panic").clear();
        self.provider.force_flush().expect("is not shut down");
        let mut lines = self.lines.0.lock().expect("no panic").clone();
        lines.sort();
        lines
    }
}

fn circuit(name: Name) -> Circuit {
    Circuit::builder().name(name).run_by(RunBy::Owner).build().expect("valid")
}

/// Handles all queued values.
fn run(circuit: &Circuit) {
    while circuit.run(1000) {}
}

#[test]
fn each_thing_that_is_said_of_a_subject_has_its_own_count() {
    let backend = Backend::new();
    let exporter = Exporter::new(&backend.meter());
    let circuit = circuit(name!("web"));
    let (caches, services) = (circuit.conduit().expect("open"), circuit.conduit().expect("open"));
    exporter.count_signals(&caches).expect("open");
    let subscription = exporter.count_signals(&services).expect("open");

    let pool = caches::pool(&caches);
    let cache = |name: Name| pool.get(name).expect("no factory fails");
    (0..3).for_each(|_| cache(name!("sessions")).lookup());
    cache(name!("sessions")).miss();
    cache(name!("pages")).miss();
    let pool = services::pool(&services);
    let service = pool.get(name!("billing")).expect("no factory fails");
    service.fail(services::Dimension::Caller);
    service.fail(services::Dimension::Callee);
    service.fail(services::Dimension::Caller);
    subscription.close();
    service.fail(services::Dimension::Caller);
    run(&circuit);

    let expected = [
        "{signal.dimension=Callee, signal.sign=Fail, signal.status=Degraded, signal.subject=billing, \
         signal.vocabulary=services} 1",
        "{signal.dimension=Caller, signal.sign=Fail, signal.status=Degraded, signal.subject=billing, \
         signal.vocabulary=services} 2",
        "{signal.sign=Lookup, signal.subject=sessions, signal.vocabulary=caches} 3",
        "{signal.sign=Miss, signal.status=Degraded, signal.subject=pages, signal.vocabulary=caches} 1",
        "{signal.sign=Miss, signal.status=Degraded, signal.subject=sessions, signal.vocabulary=caches} 1",
    ];
    assert_eq!(
        backend.exported(),
        expected.map(|line| format!("tidemark.signals [{{signal}}] rising {line}"))
    );
}

#[test]
fn every_signal_of_a_vocabulary_is_counted_separately() {
    let backend = Backend::new();
    let circuit = circuit(name!("plant"));
    let conduit = circuit.conduit::<services::Signal>().expect("open");
    Exporter::new(&backend.meter()).count_signals(&conduit).expect("open");
    let pipe = conduit.get(name!("service"));
    services::Signal::all().for_each(|signal| pipe.emit(signal));
    run(&circuit);
    let exported = backend.exported();
    assert_eq!(exported.len(), services::Sign::ALL.len() * services::Dimension::ALL.len());
    assert!(exported.iter().all(|line| line.ends_with("} 1")), "{exported:?}");
}

#[test]
fn instruments_of_one_name_in_different_circuits_count_together() {
    let backend = Backend::new();
    let exporter = Exporter::new(&backend.meter());
    for circuit in [circuit(name!("first")), circuit(name!("second"))] {
        let conduit = circuit.conduit().expect("open");
        exporter.clone().count_signals(&conduit).expect("open");
        breakers::pool(&conduit).get(name!("db")).expect("no factory fails").probe();
        run(&circuit);
    }
    let attributes = "{signal.sign=Probe, signal.subject=db, signal.vocabulary=breakers}";
    assert_eq!(backend.exported(), [format!("tidemark.signals [{{signal}}] rising {attributes} 2")]);
}

#[test]
fn what_is_said_counts_for_those_that_a_stem_leads_to() {
    let backend = Backend::new();
    let circuit = circuit(name!("web"));
    let conduit = circuit.conduit_with(Routing::Stem).expect("open");
    Exporter::new(&backend.meter()).count_signals(&conduit).expect("open");
    breakers::pool(&conduit).get(name!("db.orders")).expect("no factory fails").probe();
    run(&circuit);
    let subjects = ["db", "db.orders"];
    assert_eq!(
        backend.exported(),
        subjects.map(|subject| format!(
            "tidemark.signals [{{signal}}] rising {{signal.sign=Probe, signal.subject={subject}, \
             signal.vocabulary=breakers}} 1"
        ))
    );
}

#[test]
fn a_signal_that_was_said_before_takes_no_memory() {
    const SIGNALS: u64 = 1000;
    let backend = Backend::new();
    let circuit = circuit(name!("web"));
    let conduit = circuit.conduit::<services::Signal>().expect("open");
    Exporter::new(&backend.meter()).count_signals(&conduit).expect("open");
    let pipe = conduit.get(name!("billing"));
    // Allocations while a circuit handles signals; its queue grows before the count starts.
    let handled = || {
        for _ in 0..SIGNALS {
            services::Signal::all().for_each(|signal| pipe.emit(signal));
        }
        let before = ALLOCATIONS.with(Cell::get);
        run(&circuit);
        ALLOCATIONS.with(Cell::get) - before
    };
    assert_ne!(handled(), 0, "the attributes are made");
    assert_eq!(handled(), 0);

    let total = 2 * SIGNALS;
    assert!(backend.exported().iter().all(|line| line.ends_with(&format!("}} {total}"))));
}

#[test]
fn a_gauge_stands_where_its_signs_have_brought_it() {
    let backend = Backend::new();
    let exporter = Exporter::new(&backend.meter());
    let circuit = circuit(name!("web"));
    let conduit = circuit.conduit().expect("open");
    let subscription = exporter.follow_gauges(&conduit).expect("open");
    let pool = gauges::pool(&conduit);
    let gauge = |name: Name| pool.get(name).expect("no factory fails");
    let stands = |connections: i64, requests: i64| {
        run(&circuit);
        let line = |subject, level| format!("tidemark.gauge [1] level {{signal.subject={subject}}} {level}");
        assert_eq!(backend.exported(), [line("connections", connections), line("requests", requests)]);
    };
    (0..3).for_each(|_| gauge(name!("connections")).increment());
    gauge(name!("connections")).decrement();
    gauge(name!("requests")).decrement();
    stands(2, -1);
    gauge(name!("connections")).overflow();
    gauge(name!("requests")).underflow();
    stands(2, -1);
    gauge(name!("connections")).reset();
    gauge(name!("connections")).increment();
    stands(1, -1);
    subscription.close();
    // Receivers of a closed subscription are removed when their pipe emits the next time.
    gauge(name!("connections")).increment();
    gauge(name!("requests")).increment();
    stands(0, 0);
}

#[test]
fn a_closed_conduit_is_not_exported() {
    let exporter = Exporter::new(&Backend::new().meter());
    let circuit = circuit(name!("web"));
    let conduit = circuit.conduit::<gauges::Sign>().expect("open");
    conduit.close();
    assert!(exporter.count_signals(&conduit).is_err());
    assert!(exporter.follow_gauges(&conduit).is_err());
}

/// A provider whose counters panic.
struct Failing;

impl InstrumentProvider for Failing {
    fn u64_counter(&self, _: InstrumentBuilder<'_, Counter<u64>>) -> Counter<u64> {
        Counter::new(Arc::new(Self))
    }
}

impl SyncInstrument<u64> for Failing {
    fn measure(&self, _: u64, _: &[KeyValue]) {
        panic!("no measurement")
    }
}

#[test]
fn a_provider_that_panics_harms_no_circuit() {
    let circuit = circuit(name!("web"));
    let conduit = circuit.conduit().expect("open");
    Exporter::new(&Meter::new(Arc::new(Failing))).count_signals(&conduit).expect("open");
    breakers::pool(&conduit).get(name!("db")).expect("no factory fails").probe();
    run(&circuit);
    assert_eq!(circuit.failures(), 0);
}

#[test]
fn circuits_are_reported_by_their_names() {
    let backend = Backend::new();
    let meter = CircuitMeter::new(&backend.meter());
    let (orders, stock) = (circuit(name!("orders")), circuit(name!("stock.eu")));
    meter.register(&orders);
    meter.register(&orders);
    meter.register(&stock);
    assert_eq!(format!("{meter:?}"), r#"CircuitMeter { names: ["orders", "stock.eu"] }"#);
    drop(meter);
    emit(&orders, 4);
    emit(&stock, 6);
    run(&orders);
    let expected = [
        "tidemark.circuit.backlog [{entry}] level {circuit.name=orders} 0",
        "tidemark.circuit.backlog [{entry}] level {circuit.name=stock.eu} 7",
        "tidemark.circuit.emissions.dropped [{emission}] rising {circuit.name=orders} 0",
        "tidemark.circuit.emissions.dropped [{emission}] rising {circuit.name=stock.eu} 0",
        "tidemark.circuit.entries.admitted [{entry}] rising {circuit.name=orders} 5",
        "tidemark.circuit.entries.admitted [{entry}] rising {circuit.name=stock.eu} 7",
        "tidemark.circuit.entries.handled [{entry}] rising {circuit.name=orders} 5",
        "tidemark.circuit.entries.handled [{entry}] rising {circuit.name=stock.eu} 0",
        "tidemark.circuit.failures [{failure}] rising {circuit.name=orders} 0",
        "tidemark.circuit.failures [{failure}] rising {circuit.name=stock.eu} 0",
    ];
    assert_eq!(backend.exported(), expected);
    drop((orders, stock));
    assert_eq!(backend.exported(), [""; 0], "circuits are not kept, and those gone are not reported");
}

#[test]
fn circuits_of_one_name_are_added_up_and_their_counters_do_not_fall() {
    let backend = Backend::new();
    let meter = CircuitMeter::new(&backend.meter());
    let (first, second) = (circuit(name!("worker")), circuit(name!("worker")));
    meter.register(&first);
    meter.register(&second);
    emit(&first, 9);
    emit(&second, 4);
    let admitted = "tidemark.circuit.entries.admitted [{entry}] rising {circuit.name=worker} 15";
    assert!(backend.exported().iter().any(|line| line == admitted));
    drop(first);
    let after = backend.exported();
    assert!(after.iter().any(|line| line == admitted), "{after:?}");
    assert!(after.contains(&"tidemark.circuit.backlog [{entry}] level {circuit.name=worker} 5".to_owned()));
}

fn emit(circuit: &Circuit, count: u64) {
    let pipe = circuit.pipe(|_: u64| ()).expect("open");
    (0..count).for_each(|value| pipe.emit(value));
    // The release of the handle is an entry of its own.
    drop(pipe);
}
