//! The lab of counters with real stores: it commits to them as programs do, and reads their values
//! back.

use crate::running::{self, Kind, Running};
use crate::support::counters::{figures, said, try_run};
use tidemark_counter::store::Store;
use tidemark_stores::{NatsOptions, NatsStore, PostgresOptions, PostgresStore, RedisOptions, RedisStore};

/// Connects to a server that is starting.
pub(crate) fn store_at(kind: Kind, port: u16, _: &str) -> Box<dyn Store> {
    let address = address(kind, port);
    match kind {
        Kind::Redis => Box::new(RedisStore::new(RedisOptions::new(address)).expect("an address")),
        Kind::Postgres => Box::new(PostgresStore::new(PostgresOptions::new(address)).expect("an address")),
        Kind::Nats => Box::new(NatsStore::new(NatsOptions::new(address)).expect("an address")),
    }
}

fn address(kind: Kind, port: u16) -> String {
    match kind {
        Kind::Redis => format!("redis://127.0.0.1:{port}"),
        Kind::Postgres => format!("postgres://tidemark@127.0.0.1:{port}/postgres"),
        Kind::Nats => format!("nats://127.0.0.1:{port}"),
    }
}

/// Runs every variant that commits; `exact` twice: the second run does not count what the first one
/// left.
fn every_counter_has_its_truth_in(store: &str) {
    let store = format!("-store={store}");
    for variant in ["vsa", "quota", "exact", "exact"] {
        let variant = format!("-variant={variant}");
        let text = said(&[
            &variant,
            &store,
            "-ops=5000",
            "-goroutines=4",
            "-keys=7",
            "-churn=40",
            "-threshold=20",
            "-commit_interval=2ms",
            "-initial_scalar=100",
        ]);
        let figures = figures(&text);
        assert_eq!((figures["durable_minus_truth"], figures["ops"]), (0, 5000), "{text}");
        assert!(figures["db_calls"] > 0 && figures["call_ns"] > 0, "{text}");
    }
}

#[test]
fn the_log_has_the_truth() {
    let directory = tempfile::tempdir().unwrap();
    every_counter_has_its_truth_in(&format!("log:{}", directory.path().display()));
}

#[test]
fn redis_has_the_truth() {
    let server = Running::start(Kind::Redis);
    every_counter_has_its_truth_in(&address(server.kind, server.port));
}

#[test]
fn postgres_has_the_truth() {
    let server = Running::start(Kind::Postgres);
    every_counter_has_its_truth_in(&address(server.kind, server.port));
}

#[test]
fn nats_has_the_truth() {
    let server = Running::start(Kind::Nats);
    every_counter_has_its_truth_in(&address(server.kind, server.port));
}

#[test]
fn a_store_that_is_not_there_is_named_without_its_password() {
    let port = running::free_port();
    let address = format!("-store=redis://lab:secret@127.0.0.1:{port}");
    let error = format!("{:#}", try_run(&[&address, "-ops=10"], &[]).unwrap_err());
    assert!(!error.contains("secret") && error.contains(&port.to_string()), "{error}");
}
