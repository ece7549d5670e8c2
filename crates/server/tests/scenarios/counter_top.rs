//! The counters that move most, as `COUNTER.TOP` and `/metrics` report them.

use crate::common::TestServer;
use std::net::TcpStream;

/// Starts a server that samples every move and never commits on its own. One counter goes up and
/// down, another only up.
fn server(names: bool) -> TestServer {
    let server = TestServer::with(|config| {
        config.http = Some(([127, 0, 0, 1], 0).into());
        config.counters.max_age_ms = 86_400_000;
        config.counter_churn_sample = 1;
        config.counter_churn_names = names;
    });
    let mut client = server.client();
    for (command, answer) in [
        ("COUNTER.ADD seats 10", ":10\r\n"),
        ("COUNTER.REFUND seats 7", ":7\r\n"),
        ("COUNTER.REFUND seats 1", ":1\r\n"),
        ("COUNTER.ADD likes 40", ":40\r\n"),
        ("COUNTER.COMMIT likes", ":40\r\n"),
    ] {
        client.ask(command, answer);
    }
    server
}

/// Compares a reply, line by line, with the expected one. `<id>` and `<window>` stand for values
/// that differ from run to run.
fn check(client: &mut crate::common::Client<TcpStream>, command: &str, expected: &str) {
    client.send(format!("{command}\r\n"));
    for (at, expected) in expected.split(' ').enumerate() {
        let line = client.line();
        match expected {
            "<id>" => {
                assert!(line.len() == 16 && line.bytes().all(|byte| byte.is_ascii_hexdigit()), "{line}");
            }
            "<window>" => {
                let window: u64 = line[1..].parse().expect("a number");
                assert!(window <= 60_000, "{window}");
            }
            _ => assert_eq!(line, expected, "line {at} of the answer to {command}"),
        }
    }
}

const SEATS: &str =
    "$3 key $5 seats $2 id $16 <id> $2 db :0 $5 moves :3 $5 error :0 $5 units :18 $9 committed :0 $5 churn";
const LIKES: &str =
    "$3 key $5 likes $2 id $16 <id> $2 db :0 $5 moves :1 $5 error :0 $5 units :40 $9 committed :40 $5 churn";
const HEAD: &str = "$6 sample :1 $6 window <window> $4 keys";

#[test]
fn the_counters_that_move_most_are_listed() {
    let server = server(false);
    let mut client = server.client();
    check(&mut client, "COUNTER.TOP", &format!("*6 {HEAD} *2 *16 {SEATS} $1 1 *16 {LIKES} $1 0"));
    client.send("HELLO 3\r\n");
    // The last line is that of a module without arguments.
    while client.line() != "args" {}
    assert_eq!(client.line(), "*0");
    check(&mut client, "COUNTER.TOP 1", &format!("%3 {HEAD} *1 %8 {SEATS} ,1"));
    check(&mut client, "COUNTER.TOP 1 BY units", &format!("%3 {HEAD} *1 %8 {LIKES} ,0"));
    check(&mut client, "counter.top by churn", &format!("%3 {HEAD} *2 %8 {SEATS} ,1 %8 {LIKES} ,0"));
    for (command, reason) in [
        (
            "COUNTER.TOP 0 BY",
            "syntax error: COUNTER.TOP ends after 'BY', where it takes MOVES, UNITS or CHURN",
        ),
        (
            "COUNTER.TOP 0 BY NAME",
            "syntax error: COUNTER.TOP takes MOVES, UNITS or CHURN after 'BY', not 'NAME'",
        ),
        ("COUNTER.TOP BY", "syntax error: COUNTER.TOP ends after 'BY', where it takes MOVES, UNITS or CHURN"),
        (
            "COUNTER.TOP -1",
            "value is out of range, must be positive: COUNTER.TOP takes a whole number (count) or BY, not '-1'",
        ),
    ] {
        client.ask(command, &format!("-ERR {reason}\r\n"));
    }
    client.ask("COUNTER.TOP 1001", "-ERR count must be at most 1000\r\n");
}

#[test]
fn it_can_be_asked_within_a_transaction() {
    let server = server(false);
    let mut client = server.client();
    client.ask("MULTI", "+OK\r\n");
    client.ask("COUNTER.ADD seats 1", "+QUEUED\r\n");
    client.ask("COUNTER.TOP 0", "+QUEUED\r\n");
    check(&mut client, "EXEC", &format!("*2 :3 *6 {HEAD} *0"));
}

#[test]
fn sampling_can_be_changed_and_turned_off() {
    let server = server(false);
    let mut client = server.client();
    client.ask("CONFIG SET counter-churn-sample 0", "+OK\r\n");
    client.ask("COUNTER.ADD likes 1", ":41\r\n");
    client.ask("COUNTER.TOP", "*6\r\n$6\r\nsample\r\n:0\r\n$6\r\nwindow\r\n:0\r\n$4\r\nkeys\r\n*0\r\n");
    client.ask("CONFIG SET counter-churn-sample 1", "+OK\r\n");
    client.ask("COUNTER.ADD likes 1", ":42\r\n");
    check(&mut client, "COUNTER.TOP", &format!("*6 {HEAD} *1 *16 $3 key $5 likes"));
}

/// Returns the series of `/metrics` about the counters that move most.
fn series(server: &TestServer) -> Vec<String> {
    let metrics = server.http("/metrics");
    let lines = metrics.lines().filter(|line| line.starts_with("tidemark_counter_top_"));
    lines.map(str::to_owned).collect()
}

#[test]
fn monitoring_sees_them_by_numbers_or_by_name() {
    let server = server(false);
    let mut client = server.client();
    let hidden = series(&server);
    assert!(hidden.iter().all(|line| !line.contains("seats") && !line.contains("likes")), "{hidden:?}");
    client.send("COUNTER.TOP 1\r\n");
    // The lines of the map of one key, in RESP2.
    let lines: Vec<String> = (0..38).map(|_| client.line()).collect();
    let id = &lines[lines.iter().position(|line| line == "id").expect("a field") + 2];
    assert!(
        hidden.contains(&format!("tidemark_counter_top_moves{{db=\"0\",key=\"{id}\"}} 3.0")),
        "{hidden:?}"
    );

    client.ask("CONFIG SET counter-churn-names yes", "+OK\r\n");
    assert_eq!(
        series(&server),
        [
            "tidemark_counter_top_moves{db=\"0\",key=\"seats\"} 3.0",
            "tidemark_counter_top_moves{db=\"0\",key=\"likes\"} 1.0",
            "tidemark_counter_top_moved_units{db=\"0\",key=\"seats\"} 18.0",
            "tidemark_counter_top_moved_units{db=\"0\",key=\"likes\"} 40.0",
            "tidemark_counter_top_committed_units{db=\"0\",key=\"seats\"} 0.0",
            "tidemark_counter_top_committed_units{db=\"0\",key=\"likes\"} 40.0",
            "tidemark_counter_top_churn{db=\"0\",key=\"seats\"} 1.0",
            "tidemark_counter_top_churn{db=\"0\",key=\"likes\"} 0.0",
        ]
    );
    client.ask("CONFIG SET counter-churn-series 1", "+OK\r\n");
    assert_eq!(series(&server).len(), 4);
    client.ask("CONFIG SET counter-churn-series 0", "+OK\r\n");
    assert!(series(&server).is_empty());
}

#[test]
fn a_name_of_any_bytes_is_a_label_of_one_line() {
    let server = TestServer::with(|config| {
        config.http = Some(([127, 0, 0, 1], 0).into());
        (config.counter_churn_sample, config.counter_churn_names) = (1, true);
    });
    let mut client = server.client();
    client.send(b"*3\r\n$11\r\nCOUNTER.ADD\r\n$9\r\n\"\\\n\xff{}\xc3\xa4,\r\n$1\r\n1\r\n");
    client.expect(":1\r\n");
    // The key is escaped once as a name, and again as the label of a metric.
    let expected = r#"tidemark_counter_top_moves{db="0",key="\"\\\\\\n\\xff{}ä,"} 1.0"#;
    assert_eq!(series(&server)[0], expected);
    let long = "k".repeat(1000);
    client.ask(&format!("COUNTER.ADD {long} 1"), ":1\r\n");
    client.ask(&format!("COUNTER.ADD {long} 1"), ":2\r\n");
    let first = &series(&server)[0];
    assert!(
        !first.contains("kkk") && first.ends_with("} 2.0"),
        "a part of a name could be another's: {first}"
    );
}
