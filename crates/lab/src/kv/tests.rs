//! The scenario against correct and faulty servers.

use super::{KvOptions, KvScenario};
use crate::null_server::{NullProtocol, NullServer};
use crate::test_run::{self, figure, figure_of, value};
use crate::test_server::{self, Behaviour, Connection};
use crate::watch::fake_server::{self, Flaw};
use std::collections::HashMap;
use tidemark_server::resp::Value;

/// Answer of a test server to the arguments of a request.
type Answer = fn(&mut Store, &[Vec<u8>], &Connection) -> Value;

/// State shared by all connections of a test server.
#[derive(Default)]
struct Store {
    values: HashMap<Vec<u8>, Vec<u8>>,
    position: i64,
}

/// A server with this answer function.
struct Answering {
    answer: Answer,
    store: Store,
}

impl Behaviour for Answering {
    fn answer(&mut self, arguments: &[Vec<u8>], connection: &Connection) -> Vec<Value> {
        vec![(self.answer)(&mut self.store, arguments, connection)]
    }
}

fn serve(answer: Answer) -> u16 {
    test_server::start(Answering { answer, store: Store::default() })
}

fn honest(store: &mut Store, arguments: &[Vec<u8>], _: &Connection) -> Value {
    let argument = |index: usize| arguments[index].clone();
    match &arguments[0][..] {
        b"PING" => Value::Simple(b"PONG".to_vec()),
        b"HELLO" => Value::Map(vec![]),
        b"DEL" => Value::Integer(i64::from(store.values.remove(&argument(1)).is_some())),
        b"GET" => store.values.get(&argument(1)).cloned().map_or(Value::Null, Value::Bulk),
        b"SET" => {
            store.values.insert(argument(1), argument(2));
            store.position += 1;
            Value::Simple(b"OK".to_vec())
        }
        _ => Value::Error(b"ERR unknown command".to_vec()),
    }
}

fn options(port: u16, flags: &[&str]) -> KvOptions {
    let port = port.to_string();
    let common =
        ["--host", "127.0.0.1", "--port", &port, "--duration", "300ms", "--warmup", "50ms", "--json"];
    let small =
        ["--keyspace", "50", "--conns", "4", "--workers", "6", "--reactive-interval", "10ms", "--seed", "1"];
    test_run::options(&[&common[..], &small, flags].concat())
}

fn bench(port: u16, flags: &[&str]) -> anyhow::Result<(bool, serde_json::Value)> {
    test_run::report::<KvScenario>(&options(port, flags))
}

#[test]
fn an_honest_server_succeeds_in_every_mode() {
    let port = serve(honest);
    for flags in [
        &["--cmd", "GETSET"][..],
        &["--cmd", "PING", "--pipeline", "8"],
        &["--cmd", "GET", "--preload", "50"],
        &["--cmd", "SET", "--durable-set", "--threads", "3"],
        // Enough slots for all due requests, however rarely the system schedules the server.
        &["--rate", "2000", "--pipeline", "200"],
    ] {
        let (succeeded, report) = bench(port, flags).unwrap();
        assert!(succeeded, "{flags:?}: {report}");
        assert!(value(&report, "successful_operations").as_u64().unwrap() > 0, "{flags:?}: {report}");
        assert_eq!(value(&report, "operations"), value(&report, "successful_operations"));
        assert!(
            value(&report, "latency").as_f64().unwrap()
                <= figure(&report, "latency")["max"].as_f64().unwrap()
        );
        assert!(figure(&report, "probe_latency")["count"].as_u64().unwrap() > 0);
    }
    let (_, report) = bench(port, &["--cmd", "GET", "--preload", "50"]).unwrap();
    assert_eq!(value(&report, "get_misses"), 0, "every key was preloaded");
}

#[test]
fn an_open_loop_sends_what_is_due_and_no_more() {
    let flags = ["--rate", "1000", "--threads", "2", "--pipeline", "100"];
    let (succeeded, report) = bench(serve(honest), &flags).unwrap();
    assert!(succeeded, "{report}");
    let total = value(&report, "operations").as_u64().unwrap();
    // The number due in the window follows from rate and offset alone, however late they are sent.
    assert_eq!(total, 300, "300 ms at 1000/s are 300 requests");
}

#[test]
fn what_is_due_when_every_connection_waits_at_the_end_is_sent_all_the_same() {
    // The only connection waits for its first reply beyond the window's end.
    let slow_once: Answer = |store, arguments, connection| {
        if arguments[0] == b"SET" && store.position == 0 {
            std::thread::sleep(std::time::Duration::from_millis(1_010));
        }
        honest(store, arguments, connection)
    };
    let flags = ["--cmd", "SET", "--rate", "5", "--workers", "1", "--conns", "1", "--preload", "0"];
    let window = ["--warmup", "0s", "--duration", "1s", "--reactive=false"];
    // The system may fail to schedule the two at the critical time, but not in every attempt.
    let mut reports = (0..10).map(|_| bench(serve(slow_once), &[&flags[..], &window].concat()).unwrap());
    let (_, report) = reports.find(|(succeeded, _)| *succeeded).expect("nothing is left unsent");
    assert_eq!(
        (value(&report, "operations"), value(&report, "unsent_operations")),
        (&5.into(), &0.into()),
        "{report}"
    );
}

#[test]
fn a_rate_that_is_not_kept_is_a_failure() {
    let slow: Answer = |store, arguments, connection| {
        if arguments[0] == b"SET" {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        honest(store, arguments, connection)
    };
    // At most 100 in a second, of 200 that are due.
    let flags = ["--cmd", "SET", "--rate", "200", "--workers", "1", "--conns", "1", "--preload", "0"];
    let window = ["--warmup", "0s", "--duration", "1s", "--reactive=false"];
    let (succeeded, report) = bench(serve(slow), &[&flags[..], &window].concat()).unwrap();
    assert!(!succeeded, "{report}");
    assert!(value(&report, "unsent_operations").as_u64().unwrap() > 50, "{report}");
    assert_eq!(&figure(&report, "latency")["count"], value(&report, "operations"), "{report}");
}

#[test]
fn a_server_that_stalls_shows_in_every_request_that_it_delayed() {
    let stalling: Answer = |_, arguments, _| {
        if arguments[0] == b"SET" && arguments[1].ends_with(b":7") {
            std::thread::sleep(std::time::Duration::from_millis(30));
        }
        Value::Simple(if arguments[0] == b"PING" { b"PONG".to_vec() } else { b"OK".to_vec() })
    };
    let flags = ["--cmd", "SET", "--rate", "2000", "--workers", "1", "--conns", "1", "--preload", "0"];
    let (_, report) = bench(serve(stalling), &[&flags[..], &["--reactive=false"]].concat()).unwrap();
    // One of 50 requests stalls for the time of 60: more than half of the requests wait for it.
    assert!(value(&report, "latency").as_f64().unwrap() > 10.0, "{report}");
}

#[test]
fn requests_without_a_reply_are_among_the_latencies_of_an_open_loop() {
    let flags =
        ["--cmd", "SET", "--rate", "200", "--preload", "0", "--reactive=false", "--op-timeout", "500ms"];
    // Gives no answer once, until the client times out or a connection ends.
    let silent: Answer = |store, arguments, writer| {
        if store.position == 30 {
            // From the middle of the window past its end and past the client's timeout.
            std::thread::sleep(std::time::Duration::from_millis(900));
        }
        honest(store, arguments, writer)
    };
    let closing: Answer = |store, arguments, writer| {
        if store.position > 30 {
            store.position = 0;
            let _ = writer.lock().unwrap().shutdown(std::net::Shutdown::Both);
        }
        honest(store, arguments, writer)
    };
    for answer in [silent, closing] {
        let (succeeded, report) = bench(serve(answer), &flags).unwrap();
        assert!(!succeeded, "{report}");
        assert!(value(&report, "failed_operations").as_u64().unwrap() > 0, "{report}");
        assert_eq!(&figure(&report, "latency")["count"], value(&report, "operations"), "{report}");
    }
}

#[test]
fn an_error_reply_is_a_failure() {
    let full: Answer = |store, arguments, writer| {
        if arguments[0] == b"SET" && store.values.len() > 20 {
            return Value::Error(b"OOM command not allowed".to_vec());
        }
        honest(store, arguments, writer)
    };
    let (succeeded, report) = bench(serve(full), &["--cmd", "SET", "--preload", "0"]).unwrap();
    assert!(!succeeded);
    assert!(value(&report, "failed_operations").as_u64().unwrap() > 0);
    let reasons = report["verdict"]["reasons"].as_array().unwrap();
    assert!(reasons.iter().any(|reason| reason.as_str().unwrap().contains("OOM")), "{report}");
}

#[test]
fn a_wrong_value_is_a_failure() {
    let lying: Answer = |store, arguments, writer| match honest(store, arguments, writer) {
        Value::Bulk(mut value) => {
            value.truncate(3);
            Value::Bulk(value)
        }
        other => other,
    };
    let (succeeded, report) = bench(serve(lying), &["--cmd", "GET", "--preload", "50"]).unwrap();
    assert!(!succeeded);
    assert_eq!(value(&report, "successful_operations"), 0, "{report}");
}

const EMISSIONS: [&str; 5] = ["--reactive-bench", "--reactive-watchers", "2", "--reactive-keyspace", "20"];

#[test]
fn emissions_are_matched_with_their_sets() {
    let open_loop = ["--emit-by", "publish", "--rate", "3000", "--pipeline", "300"];
    for flags in [&["--emit-by", "watch"][..], &open_loop] {
        let port = fake_server::start(Flaw::None);
        // The second run finds the keys of the first; unchanged values would not be emitted.
        for _ in 0..2 {
            let (succeeded, report) = bench(port, &[&EMISSIONS, flags].concat()).unwrap();
            assert!(succeeded, "{report}");
            assert!(value(&report, "emissions").as_u64().unwrap() > 0, "{report}");
            for fault in [
                "emissions_undelivered",
                "emissions_missing",
                "emissions_repeated",
                "emissions_out_of_order",
                "emissions_misdelivered",
            ] {
                assert_eq!(value(&report, fault), 0, "{report}");
            }
        }
    }
}

#[test]
fn a_wrong_emission_is_counted_and_fails_the_run() {
    for (flaw, counts) in [
        (Flaw::Drop(50), &["emissions_missing", "emissions_undelivered"][..]),
        (Flaw::DropUnnumbered(50), &["emissions_undelivered"]),
        (Flaw::Repeat(50), &["emissions_repeated"]),
        (Flaw::Swap(50), &["emissions_out_of_order"]),
        (Flaw::StaleValue(50), &["emissions_undelivered"]),
    ] {
        let flags = [&EMISSIONS[..], &["--op-timeout", "2s"]].concat();
        let (succeeded, report) = bench(fake_server::start(flaw), &flags).unwrap();
        assert!(!succeeded, "{flaw:?}: {report}");
        for count in counts {
            assert_eq!(value(&report, count), 1, "{flaw:?}: {report}");
        }
        assert_eq!(value(&report, "failed_operations"), 0, "{report}");
    }
}

#[test]
fn emissions_of_two_servers_are_compared_by_different_commands() {
    let (a, b) = (fake_server::start(Flaw::None), fake_server::start(Flaw::None));
    let other = format!("redis://127.0.0.1:{b}");
    let flags = [&EMISSIONS[..], &["--against", &other, "--rounds", "2"]].concat();
    let (succeeded, report) = bench(a, &flags).unwrap();
    assert!(succeeded, "{report}");
    let given = (&report["options"]["emit-by"], &report["options"]["against-emit-by"]);
    assert_eq!(given, (&"watch".into(), &"publish".into()));
    assert!(value(&report, "emission_latency_median_ratio").as_f64().unwrap() > 0.0, "{report}");
    for part in ["a", "b"] {
        let latency = figure_of(&report, part, serde_json::Value::Null, "emission_latency_median");
        assert!(latency["value"].as_f64().unwrap() > 0.0, "{report}");
    }
    let (succeeded, text) =
        test_run::text::<KvScenario>(&options(a, &[&flags[..], &["--json=false"]].concat())).unwrap();
    assert!(succeeded, "{text}");
    let (of_a, of_b) = text.split_once("\nB: ").unwrap();
    assert!(of_a.contains(" by GET.WATCH\n") && of_b.contains(" by PUBLISH\n"), "{text}");
}

#[test]
fn a_server_without_watch_is_reported() {
    let plain: Answer = |store, arguments, writer| {
        if arguments[0] == b"GET.WATCH" {
            return Value::Error(b"ERR unknown command 'GET.WATCH'".to_vec());
        }
        honest(store, arguments, writer)
    };
    let error = bench(serve(plain), &["--reactive-bench"]).unwrap_err().to_string();
    assert!(error.contains("refused GET.WATCH") && error.contains("--reactive-bench"), "{error}");
}

#[test]
fn two_servers_are_compared_in_turns() {
    let mut null = NullServer::bind(0, NullProtocol::Resp).unwrap();
    let other = format!("redis://{}", null.address().unwrap());
    std::thread::spawn(move || null.run());
    let (succeeded, report) = bench(serve(honest), &["--against", &other, "--rounds", "2"]).unwrap();
    assert!(succeeded, "{report}");
    let ratio = figure(&report, "throughput_ratio");
    assert_eq!(ratio["count"], 2);
    assert!(ratio["low"].as_f64().unwrap() <= ratio["high"].as_f64().unwrap());
    assert_eq!((&report["servers"][0]["of"], &report["servers"][1]["of"]), (&"a".into(), &"b".into()));
    for part in ["a", "b"] {
        for round in 1..=2 {
            let throughput = figure_of(&report, part, round, "throughput");
            assert!(throughput["value"].as_f64().unwrap() > 0.0, "{report}");
        }
        assert!(figure_of(&report, part, 3, "throughput").is_null(), "{report}");
    }
}
