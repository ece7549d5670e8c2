//! Circuits as metrics of Prometheus.

use std::thread;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tidemark_circuit::{Circuit, CircuitMetrics, Name, RunBy};

fn circuit(name: &str) -> Circuit {
    let name = Name::new(name).expect("a name");
    Circuit::builder().name(name).run_by(RunBy::Owner).build().expect("valid")
}

fn registered(metrics: &CircuitMetrics) -> Registry {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(metrics.clone()));
    registry
}

fn text(registry: &Registry) -> String {
    let mut text = String::new();
    encode(&mut text, registry).expect("a string takes all");
    text
}

fn emit(circuit: &Circuit, count: u64) {
    let pipe = circuit.pipe(|_: u64| ()).expect("open");
    (0..count).for_each(|value| pipe.emit(value));
    // The release of the handle is an entry of its own.
    drop(pipe);
}

#[test]
fn every_registered_circuit_is_reported_by_its_name() {
    let metrics = CircuitMetrics::new();
    let registry = registered(&metrics);
    let (orders, stock) = (circuit("orders"), circuit("stock.eu"));
    metrics.register(&orders);
    metrics.register(&orders);
    metrics.register(&stock);
    emit(&orders, 4);
    emit(&stock, 6);
    while orders.run(100) {}
    let text = text(&registry);
    for line in [
        "# TYPE circuit_admitted_entries counter",
        r#"circuit_admitted_entries_total{circuit="orders"} 5"#,
        r#"circuit_admitted_entries_total{circuit="stock.eu"} 7"#,
        r#"circuit_handled_entries_total{circuit="orders"} 5"#,
        r#"circuit_handled_entries_total{circuit="stock.eu"} 0"#,
        "# TYPE circuit_backlog_entries gauge",
        r#"circuit_backlog_entries{circuit="orders"} 0"#,
        r#"circuit_backlog_entries{circuit="stock.eu"} 7"#,
        r#"circuit_failures_total{circuit="orders"} 0"#,
        r#"circuit_dropped_emissions_total{circuit="orders"} 0"#,
    ] {
        assert!(text.lines().any(|other| other == line), "{line:?} is missing in {text}");
    }
}

#[test]
fn circuits_are_not_kept_and_those_gone_are_not_reported() {
    let metrics = CircuitMetrics::new();
    let registry = registered(&metrics);
    let orders = circuit("orders");
    metrics.register(&orders);
    assert!(text(&registry).contains("orders"));
    drop(orders);
    assert_eq!(text(&registry), "# EOF\n");
}

#[test]
fn circuits_of_one_name_are_added_up_and_their_counters_do_not_fall() {
    let metrics = CircuitMetrics::new();
    let registry = registered(&metrics);
    let (first, second) = (circuit("worker"), circuit("worker"));
    metrics.register(&first);
    metrics.register(&second);
    emit(&first, 9);
    emit(&second, 4);
    let admitted = r#"circuit_admitted_entries_total{circuit="worker"} 15"#;
    assert!(text(&registry).contains(admitted));
    drop(first);
    let after = text(&registry);
    assert!(after.contains(admitted), "{after}");
    assert!(after.contains(r#"circuit_backlog_entries{circuit="worker"} 5"#), "{after}");
}

#[test]
fn collecting_and_dropping_circuits_at_once_is_sound() {
    let metrics = CircuitMetrics::new();
    let registry = registered(&metrics);
    thread::scope(|scope| {
        let dropping: Vec<_> = (0..2)
            .map(|_| {
                let metrics = metrics.clone();
                scope.spawn(move || {
                    for _ in 0..500 {
                        let circuit = circuit("brief");
                        metrics.register(&circuit);
                        emit(&circuit, 3);
                    }
                })
            })
            .collect();
        while !dropping.iter().all(thread::ScopedJoinHandle::is_finished) {
            text(&registry);
        }
    });
    assert_eq!(text(&registry), "# EOF\n");
}
