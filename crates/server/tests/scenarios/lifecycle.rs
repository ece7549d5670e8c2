//! Start, stop and recovery.

use crate::common::{Client, TestServer, eventually, frame, unix_client};
use std::fmt::Write as _;
use std::net::TcpStream;
use std::time::Duration;
use tidemark_log::Durability;
use tidemark_server::config::Config;
use tidemark_server::{Server, StartError};

#[test]
fn a_stop_answers_what_was_read_and_loses_nothing() {
    let server = TestServer::with(|config| config.durability = Durability::Off);
    let mut client = server.client();
    let count = 500;
    client.send(frame(&["INCR", "counter"]).repeat(count));
    client.expect(":1\r\n");
    server.begin_stop();
    let answers = String::from_utf8(client.until_closed()).expect("text");
    let answered = answers.lines().count() + 1;
    let (result, dir) = server.ended();
    result.expect("a clean stop");

    let server = TestServer::in_dir(dir, |_| {});
    let mut client = server.client();
    client.command(&["GET", "counter"]);
    let counter: usize = client.bulk().parse().expect("a number");
    assert_eq!(counter, answered, "every executed command was answered and logged");
}

#[test]
fn a_stop_answers_what_was_received_although_the_replies_are_large() {
    let server = TestServer::with(|config| config.durability = Durability::Off);
    let mut client = server.client();
    let (count, value) = (200, "v".repeat(1_000_000));
    client.command(&["SET", "large", &value]);
    client.expect("+OK\r\n");
    client.send([frame(&["INCR", "counter"]), frame(&["GET", "large"])].concat().repeat(count));
    client.expect(":1\r\n");
    server.begin_stop();
    let answers = client.until_closed();
    let (result, dir) = server.ended();
    result.expect("a clean stop");
    let answers = String::from_utf8(answers).expect("text");
    let increments = answers.matches(':').count() + 1;
    let values = answers.matches('v').count();
    assert_eq!((increments, values), (count, count * value.len()));
    TestServer::in_dir(dir, |_| {}).client().ask("GET counter", "$3\r\n200\r\n");
}

#[test]
fn info_names_the_configuration_file() {
    let server = TestServer::with(|config| config.config_file = Some("/etc/tidemark.toml".into()));
    let mut client = server.client();
    client.command(&["INFO", "server"]);
    assert!(client.bulk().contains("config_file:/etc/tidemark.toml\r\n"));
}

#[test]
fn shutdown_stops_the_server_without_an_answer() {
    let server = TestServer::new();
    let mut client = server.client();
    client.ask("SHUTDOWN ABORT", "-ERR No shutdown in progress.\r\n");
    client.ask("SHUTDOWN SOON", "-ERR syntax error\r\n");
    client.send("SET a 1\r\nSHUTDOWN NOSAVE\r\n");
    assert_eq!(client.until_closed(), b"+OK\r\n");
    let (result, dir) = server.ended();
    result.expect("a clean stop");
    TestServer::in_dir(dir, |_| {}).client().ask("GET a", "$1\r\n1\r\n");
}

#[test]
fn the_state_after_a_restart_is_the_state_before() {
    let server = TestServer::new();
    let mut client = server.client();
    client.send("SET a 1\r\nSELECT 2\r\nSET b 2 EX 1000\r\nMULTI\r\nINCR c\r\nAPPEND d x\r\nEXEC\r\n");
    client.expect("+OK\r\n+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:1\r\n");
    client.command(&["DEBUG", "DIGEST"]);
    let digest = client.line();
    let dir = server.stop();
    let server = TestServer::in_dir(dir, |_| {});
    let mut client = server.client();
    client.command(&["DEBUG", "DIGEST"]);
    assert_eq!(client.line(), digest);
}

#[test]
fn with_always_every_answer_waits_for_the_disk() {
    let server = TestServer::with(|config| config.durability = Durability::Always);
    let mut client = server.client();
    for number in 1..=20 {
        client.command(&["INCR", "a"]);
        client.expect(format!(":{number}\r\n"));
        client.command(&["INFO", "persistence"]);
        let info = client.bulk();
        let lsn = |name: &str| -> u64 {
            let line = info.lines().find(|line| line.starts_with(name)).expect("a line of INFO");
            line.rsplit(':').next().and_then(|value| value.parse().ok()).expect("a number")
        };
        assert!(lsn("log_durable_lsn:") >= number, "{info}");
    }
    let mut pipeline = Vec::new();
    let mut answers = String::new();
    for number in 21..=220 {
        pipeline.extend_from_slice(&frame(&["INCR", "a"]));
        pipeline.extend_from_slice(&frame(&["PING"]));
        write!(answers, ":{number}\r\n+PONG\r\n").expect("memory");
    }
    client.send(pipeline);
    client.expect(answers);
}

#[test]
fn a_single_command_may_ask_for_the_disk() {
    let server = TestServer::with(|config| config.durability = Durability::Off);
    let mut client = server.client();
    client.ask("SET a 1 DURABLE", "+OK\r\n");
    client.ask("DURABLE INCR a", ":2\r\n");
    client.command(&["INFO", "persistence"]);
    assert!(client.bulk().contains("log_durable_lsn:2\r\n"));
    client.send("MULTI\r\nDURABLE INCR a\r\nEXEC\r\n");
    client.expect("+OK\r\n+QUEUED\r\n*1\r\n:3\r\n");
    client.ask(
        "DURABLE GET a",
        "-ERR DURABLE stands before a command that changes keys, such as DURABLE SET key value\r\n",
    );
    client.ask("DURABLE", "-ERR wrong number of arguments for 'durable' command\r\n");
}

#[test]
fn waitaof_waits_for_the_disk() {
    let server = TestServer::with(|config| config.durability = Durability::Off);
    let mut client = server.client();
    client.ask("SET a 1", "+OK\r\n");
    client.ask("WAITAOF 1 0 0", "*2\r\n:1\r\n:0\r\n");
    client.command(&["INFO", "persistence"]);
    assert!(client.bulk().contains("log_durable_lsn:1\r\n"));
    client.ask("WAIT 0 0", ":0\r\n");
    client.ask("WAIT 1 10", ":0\r\n");
}

#[test]
fn keys_expire_without_access() {
    let server = TestServer::new();
    let mut client = server.client();
    for number in 0..100 {
        client.command(&["SET", &format!("key:{number}"), "x", "PX", "20"]);
        client.expect("+OK\r\n");
    }
    eventually("the keys go", || {
        client.command(&["DBSIZE"]);
        client.line() == ":0"
    });
}

#[test]
fn a_sleeping_client_delays_no_other_client() {
    let server = TestServer::with(|config| config.threads = 1);
    let (mut sleeper, mut other) = (server.client(), server.client());
    sleeper.command(&["CLIENT", "ID"]);
    let id = sleeper.line();
    sleeper.send("DEBUG SLEEP 1000\r\nPING\r\n");
    eventually("it sleeps", || {
        other.command(&["CLIENT", "UNBLOCK", &id[1..], "ERROR"]);
        other.line() == ":1"
    });
    sleeper.expect("-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n+PONG\r\n");
}

#[test]
fn a_stop_does_not_wait_for_blocked_clients() {
    let server = TestServer::new();
    let (mut sleeper, mut other) = (server.client(), server.client());
    sleeper.send("DEBUG SLEEP 1000\r\n");
    eventually("it sleeps", || {
        other.command(&["INFO", "clients"]);
        other.bulk().contains("blocked_clients:1")
    });
    server.stop();
    assert_eq!(sleeper.until_closed(), b"");
}

#[test]
fn health_and_metrics_are_served() {
    let server = TestServer::with_http(|_| {});
    server.client().ask("SET a 1", "+OK\r\n");
    assert!(server.http("/health/live").starts_with("HTTP/1.1 200"));
    assert!(server.http("/health/ready").ends_with("ready\n"));
    let metrics = server.http("/metrics");
    for line in
        ["tidemark_commands_total 1\n", "tidemark_keys 1.0\n", "tidemark_log_writable 1.0\n", "# EOF\n"]
    {
        assert!(metrics.contains(line), "{line} is missing in\n{metrics}");
    }
    assert!(server.http("/nothing").starts_with("HTTP/1.1 404"));
}

#[test]
fn metrics_report_counters() {
    let server = TestServer::with_http(|config| config.counters.max_age_ms = 86_400_000);
    let mut client = server.client();
    for (command, answer) in [
        ("COUNTER.ADD c 10", ":10\r\n"),
        ("COUNTER.ADD c -10", ":0\r\n"),
        ("COUNTER.ADD c 20", ":20\r\n"),
        ("COUNTER.COMMIT c", ":20\r\n"),
        ("COUNTER.ADD c 5", ":25\r\n"),
    ] {
        client.ask(command, answer);
    }
    let metrics = server.http("/metrics");
    for line in [
        "tidemark_counter_keys 1.0\n",
        "tidemark_counter_moves_total 4\n",
        "tidemark_counter_moved_units_total 45\n",
        "tidemark_counter_commits_total 1\n",
        "tidemark_counter_committed_units_total 20\n",
        "tidemark_counter_commit_errors_total 0\n",
        "tidemark_counter_write_reduction_ratio 0.75\n",
        "tidemark_counter_churn_ratio 0.555555",
        "tidemark_counters_uncommitted 1.0\n",
        "tidemark_counter_uncommitted_units 5.0\n",
        "tidemark_counter_reserved_units 0.0\n",
        "tidemark_counter_oldest_uncommitted_seconds ",
    ] {
        assert!(metrics.contains(line), "{line} is missing in\n{metrics}");
    }
    client.command(&["INFO", "counters"]);
    let info = client.bulk();
    for line in ["# Counters\r\n", "counter_moves:4\r\n", "counter_churn_ratio:0.555556\r\n"] {
        assert!(info.contains(line), "{line} is missing in\n{info}");
    }
    server.begin_stop();
    let (result, dir) = server.ended();
    result.expect("a clean stop");
    let server = TestServer::in_dir(dir, |_| {});
    let mut client = server.client();
    client.ask("COUNTER.GET c", ":25\r\n");
    client.command(&["INFO", "counters"]);
    let info = client.bulk();
    assert!(info.contains("counter_moves:0\r\ncounter_moved_units:0\r\ncounter_commits:0\r\n"), "{info}");
}

#[test]
fn metrics_report_pools() {
    let server = TestServer::with_http(|_| {});
    let mut client = server.client();
    for command in [
        &["POOL.CREATE", "p", "ITEMS", "car", "1", "5"][..],
        &["POOL.DRAW", "p", "COUNT", "2"],
        &["POOL.RESERVE", "p", "3600000"],
        &["POOL.DRAW", "p", "COUNT", "9"],
        &["POOL.CREATE", "q", "ITEMS", "car", "1", "5"],
        &["POOL.RESERVE", "q", "3600000", "COUNT", "2"],
        &["RENAME", "q", "r"],
        &["POOL.CREATE", "s", "ITEMS", "car", "1", "5"],
        &["SET", "s", "no pool any more"],
        &["PING"],
    ] {
        client.command(command);
    }
    while client.line() != "+PONG" {}
    let metrics = server.http("/metrics");
    for line in [
        "tidemark_pool_keys 2.0\n",
        "tidemark_pool_draws_total 5\n",
        "tidemark_pool_refusals_total 1\n",
        "tidemark_pool_reservations_open 2.0\n",
    ] {
        assert!(metrics.contains(line), "{line} is missing in\n{metrics}");
    }
    client.command(&["DEL", "r"]);
    assert_eq!(client.line(), ":1");
    client.command(&["INFO", "pools"]);
    let info = client.bulk();
    let expected =
        "# Pools\r\npool_keys:1\r\npool_draws:5\r\npool_refusals:1\r\npool_reservations_open:1\r\n";
    assert_eq!(info, expected);
    client.ask("FLUSHALL", "+OK\r\n");
    client.command(&["INFO", "pools"]);
    assert!(client.bulk().contains("pool_keys:0\r\n"));
}

#[test]
fn how_counters_are_committed_can_be_set() {
    let server = TestServer::with(|config| {
        config.counters.cap = 4;
        config.counters.max_age_ms = 86_400_000;
    });
    let mut client = server.client();
    let uncommitted = |client: &mut Client<TcpStream>, units: u32| {
        client.command(&["INFO", "counters"]);
        let (info, line) = (client.bulk(), format!("counter_uncommitted_units:{units}\r\n"));
        assert!(info.contains(&line), "{line} is missing in\n{info}");
    };
    client.ask("COUNTER.ADD a 3", ":3\r\n");
    uncommitted(&mut client, 0);
    client.ask("CONFIG SET counter-cap 16", "+OK\r\n");
    client.ask("COUNTER.ADD b 3", ":3\r\n");
    uncommitted(&mut client, 3);
    client.ask("COUNTER.ADD a 3", ":6\r\n");
    uncommitted(&mut client, 3);
}

#[test]
fn how_many_leases_a_limiter_has_can_be_set() {
    let server = TestServer::with(|config| config.leases_max = 1);
    let mut client = server.client();
    let mut acquire = |change: Option<&str>| {
        if let Some(change) = change {
            client.ask(change, "+OK\r\n");
        }
        client.command(&["LIMIT.ACQUIRE", "k", "CONCURRENCY", "100000", "TTL", "3600000"]);
        let answer: Vec<String> = (0..7).map(|_| client.line()).collect();
        answer[1] == ":1"
    };
    assert!(acquire(None));
    assert!(!acquire(None));
    assert!(acquire(Some("CONFIG SET limit-max-leases 2")));
    assert!(!acquire(None));
    assert!(!acquire(Some("CONFIG SET limit-max-leases 1")));
    client.ask("CONFIG GET limit-max-leases", "*2\r\n$16\r\nlimit-max-leases\r\n$1\r\n1\r\n");
    for wrong in ["0", "100001", "-1", "x"] {
        client.command(&["CONFIG", "SET", "limit-max-leases", wrong]);
        let refused = client.line();
        assert!(refused.starts_with("-ERR"), "{wrong}: {refused}");
    }
}

#[test]
fn a_unix_socket_is_served() {
    let path = tempfile::tempdir().expect("a temporary directory").keep().join("socket");
    let server = TestServer::with(|config| {
        config.unixsocket = Some(path.clone());
        config.port = 0;
    });
    unix_client(&path).ask("PING", "+PONG\r\n");
    server.stop();
    assert!(!path.exists(), "the socket's file goes with the server");
}

#[test]
fn two_servers_share_neither_port_nor_data() {
    let server = TestServer::new();
    let config = |port| Config { dir: server.dir.path().join("data"), port, ..Config::default() };
    let same_port = Server::start(config(server.port)).err().expect("the port is taken").to_string();
    assert!(same_port.contains("another server runs there"), "{same_port}");
    let same_data =
        Server::start(Config { bind: vec![], unixsocket: Some("/nonexistent/socket".into()), ..config(0) });
    assert!(matches!(same_data, Err(StartError::Recover(_))), "the directory is taken");
}

#[test]
fn nothing_to_listen_on_is_said() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = Config { dir: dir.path().to_owned(), port: 0, ..Config::default() };
    let error = Server::start(config).err().expect("nothing to listen on").to_string();
    assert!(error.contains("--port or --unixsocket"), "{error}");
}

#[test]
fn a_stop_ends_even_if_a_client_never_reads() {
    let server = TestServer::with(|config| config.shutdown_timeout = Duration::from_millis(200));
    let mut greedy = server.client();
    let value = "v".repeat(1_000_000);
    greedy.command(&["SET", "key", &value]);
    greedy.expect("+OK\r\n");
    greedy.send(frame(&["GET", "key"]).repeat(100));
    server.stop();
}
