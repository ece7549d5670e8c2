//! Limits: the server stops a client that asks too much, and other clients notice nothing.

use crate::common::{TestServer, eventually, frame};
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;
use tidemark_log::ManualClock;
use tidemark_server::config::BindAddress;

/// Timeout of a server whose clock a test advances. Below the time after which the log takes its
/// storage for stalled.
const TIMEOUT: Duration = Duration::from_secs(5);

#[test]
fn a_client_above_the_limit_gets_an_error() {
    let server = TestServer::with(|config| (config.maxclients, config.reserved_clients) = (2, 0));
    let (mut one, mut two) = (server.client(), server.client());
    one.ask("PING", "+PONG\r\n");
    two.ask("PING", "+PONG\r\n");
    assert_eq!(server.client().until_closed(), b"-ERR max number of clients reached\r\n");
    drop(two);
    eventually("a place becomes free", || {
        let mut three = server.client();
        three.send("QUIT\r\n");
        three.until_closed() == b"+OK\r\n"
    });
    one.ask("PING", "+PONG\r\n");
}

#[test]
fn an_administrator_connects_when_all_places_are_taken() {
    let server = TestServer::with(|config| (config.maxclients, config.reserved_clients) = (2, 1));
    // One after the other: workers accept concurrently, and the test needs the older client below.
    let mut one = server.client();
    one.ask("PING", "+PONG\r\n");
    let mut two = server.client();
    two.ask("PING", "+PONG\r\n");
    for command in ["PING", "GET a", "SET a 1", "MULTI", "SUBSCRIBE a", "BLPOP a 0", "DEBUG SLEEP 1"] {
        eventually("the reserved place is free", || {
            let mut three = server.client();
            three.send(format!("{command}\r\n"));
            assert_eq!(three.until_closed(), b"-ERR max number of clients reached\r\n", "{command}");
            true
        });
    }
    let mut administrator = server.client();
    administrator.ask("CONFIG GET maxclients", "*2\r\n$10\r\nmaxclients\r\n$1\r\n2\r\n");
    assert_eq!(
        server.client().until_closed(),
        b"-ERR max number of clients reached\r\n",
        "one place is reserved"
    );
    administrator.command(&["INFO", "clients"]);
    assert!(administrator.bulk().contains("connected_clients:3\r\n"));
    administrator.command(&["CLIENT", "LIST"]);
    let list = administrator.bulk();
    let oldest =
        list.lines().next().and_then(|line| line.strip_prefix("id=")?.split(' ').next()).expect("a client");
    administrator.ask(&format!("CLIENT KILL ID {oldest}"), ":1\r\n");
    assert_eq!(one.until_closed(), b"");
    administrator.ask("CONFIG SET maxclients 10", "+OK\r\n");
    server.client().ask("SET a 1", "+OK\r\n");
    administrator.send("GET a\r\n");
    let answer = administrator.until_closed();
    assert_eq!(answer, b"-ERR max number of clients reached\r\n", "a client in a reserved place keeps it");
}

#[test]
fn a_silent_client_does_not_hold_a_reserved_place() {
    let server = TestServer::with(|config| (config.maxclients, config.reserved_clients) = (1, 1));
    let mut one = server.client();
    one.ask("PING", "+PONG\r\n");
    let mut pooled = server.client();
    pooled.ask("CLIENT SETNAME pooled", "+OK\r\n");
    assert_eq!(pooled.until_closed(), b"");
    server.client().ask("CLIENT GETNAME", "$-1\r\n");
    one.ask("PING", "+PONG\r\n");
}

#[test]
fn a_silent_client_is_disconnected_if_so_configured_but_no_subscriber() {
    let clock = ManualClock::new();
    let server = TestServer::with_clock(&clock, |config| config.timeout = TIMEOUT);
    let (mut silent, mut subscriber) = (server.client(), server.client());
    subscriber.ask("SUBSCRIBE a", "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
    silent.ask("PING", "+PONG\r\n");
    clock.advance(TIMEOUT / 2);
    silent.ask("PING", "+PONG\r\n");
    clock.advance(TIMEOUT);
    assert_eq!(silent.until_closed(), b"");
    server.client().ask("PUBLISH a x", ":1\r\n");
    subscriber.expect("*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n");
}

#[test]
fn a_client_that_does_not_finish_its_request_is_disconnected_and_others_go_on() {
    let clock = ManualClock::new();
    let server = TestServer::with_clock(&clock, |config| config.request_timeout = TIMEOUT);
    let (mut silent, mut half) = (server.client(), server.client());
    half.send("PING\r\n*2\r\n$4\r\nECHO\r\n$1000\r\nhalf");
    half.expect("+PONG\r\n");
    clock.advance(TIMEOUT);
    assert_eq!(half.until_closed(), b"");
    silent.ask("PING", "+PONG\r\n");
    silent.send("INFO stats\r\n");
    assert!(silent.bulk().contains("client_protocol_error_disconnections:1\r\n"));
}

#[test]
fn a_subscriber_that_does_not_read_is_disconnected_and_others_go_on() {
    let server = TestServer::new();
    let (mut slow, mut brisk, mut publisher) = (server.client(), server.client(), server.client());
    publisher.command(&["CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 0 0"]);
    publisher.expect("+OK\r\n");
    slow.ask("SUBSCRIBE a", "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
    brisk.ask("SUBSCRIBE a", "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
    let message = "m".repeat(100_000);
    let publish = frame(&["PUBLISH", "a", &message]);
    let expected = format!("*3\r\n$7\r\nmessage\r\n$1\r\na\r\n${}\r\n{message}\r\n", message.len());
    eventually("the slow subscriber goes", || {
        publisher.send(&publish);
        brisk.expect(&expected);
        publisher.line() == ":1"
    });
    publisher.command(&["INFO", "stats"]);
    assert!(publisher.bulk().contains("client_output_buffer_limit_disconnections:1\r\n"));
}

#[test]
fn unread_replies_stop_their_own_client_and_cost_bounded_memory() {
    let server = TestServer::new();
    let (mut greedy, mut other) = (server.client(), server.client());
    let value = "v".repeat(100_000);
    other.command(&["SET", "key", &value]);
    other.expect("+OK\r\n");
    // The replies have 200 MB in total, and the server can read the request in one turn.
    let count = 2_000;
    greedy.send(frame(&["GET", "key"]).repeat(count));
    // Once replies wait, the server has run as much as it runs without waiting. Without a limit
    // that would be 200 MB.
    let mut most = 0;
    eventually("replies wait", || {
        other.command(&["CLIENT", "LIST"]);
        let list = other.bulk();
        let waiting =
            list.lines().filter_map(|line| line.split(" omem=").nth(1)?.split(' ').next()?.parse().ok());
        most = waiting.max().unwrap_or(0_usize);
        most > 0
    });
    assert!(most < 2 * 1024 * 1024, "{most} bytes wait for one client");
    let reply = format!("${}\r\n{value}\r\n", value.len());
    for _ in 0..count {
        greedy.expect(&reply);
    }
    greedy.ask("PING", "+PONG\r\n");
}

#[test]
fn a_command_that_asks_for_more_than_there_is_memory_ends_its_own_client_only() {
    let server = TestServer::new();
    let (mut greedy, mut other) = (server.client(), server.client());
    other.command(&["CONFIG", "SET", "client-output-buffer-limit", "normal 3mb 0 0"]);
    other.expect("+OK\r\n");
    other.command(&["SET", "key", &"v".repeat(1 << 20)]);
    other.expect("+OK\r\n");
    // The reply would have a terabyte.
    let mut request = String::from("*1000001\r\n$4\r\nMGET\r\n");
    request.push_str(&"$3\r\nkey\r\n".repeat(1_000_000));
    greedy.send(&request);
    greedy.until_closed();
    other.command(&["INFO", "stats"]);
    assert!(other.bulk().contains("client_output_buffer_limit_disconnections:1\r\n"));
}

#[test]
fn a_request_without_end_is_cut_off() {
    let server = TestServer::with(|config| config.query_buffer_limit = 1024 * 1024);
    let mut endless = server.client();
    endless.send("*2\r\n$4\r\nECHO\r\n$100000000\r\n");
    let piece = vec![b'x'; 64 * 1024];
    let mut sent = 0;
    while sent < 64 * 1024 * 1024 && endless.try_send(&piece) {
        sent += piece.len();
    }
    assert!(sent < 64 * 1024 * 1024, "the connection was not closed");
    server.client().ask("PING", "+PONG\r\n");
}

#[test]
fn without_the_password_little_is_possible() {
    let server = TestServer::with(|config| config.requirepass = "secret".to_owned());
    let mut client = server.client();
    client.ask("GET a", "-NOAUTH Authentication required.\r\n");
    client.ask("AUTH wrong", "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    client.ask("AUTH nobody secret", "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    client.ask("AUTH default secret", "+OK\r\n");
    client.ask("GET a", "$-1\r\n");
    client.ask("RESET", "+RESET\r\n");
    client.ask("GET a", "-NOAUTH Authentication required.\r\n");
    client.command(&["HELLO", "3", "AUTH", "default", "secret"]);
    assert_eq!(client.line(), "%7");
}

#[test]
fn a_stranger_may_send_only_small_requests() {
    let server = TestServer::with(|config| config.requirepass = "secret".to_owned());
    let mut client = server.client();
    client.send("*11\r\n");
    assert_eq!(client.until_closed(), b"-ERR Protocol error: unauthenticated multibulk length\r\n");
    let mut client = server.client();
    client.send("*2\r\n$4\r\nAUTH\r\n$16385\r\n");
    assert_eq!(client.until_closed(), b"-ERR Protocol error: unauthenticated bulk length\r\n");
    let mut client = server.client();
    client.send(format!("AUTH secret\r\n*12\r\n{}", "$4\r\nPING\r\n".repeat(12)));
    client.expect("+OK\r\n-ERR wrong number of arguments for 'ping' command\r\n");
}

#[test]
fn a_stranger_that_does_not_log_in_is_disconnected() {
    let clock = ManualClock::new();
    let server = TestServer::with_clock(&clock, |config| {
        config.requirepass = "secret".to_owned();
        config.authentication_timeout = TIMEOUT;
    });
    let (mut known, mut stranger) = (server.client(), server.client());
    known.ask("AUTH secret", "+OK\r\n");
    stranger.ask("PING", "-NOAUTH Authentication required.\r\n");
    clock.advance(TIMEOUT);
    assert_eq!(stranger.until_closed(), b"");
    known.ask("PING", "+PONG\r\n");
}

#[test]
fn a_client_that_guesses_passwords_is_disconnected() {
    let server = TestServer::with(|config| config.requirepass = "secret".to_owned());
    let mut client = server.client();
    client.send("AUTH guess\r\n".repeat(20));
    let answers = client.until_closed();
    let refusals = String::from_utf8(answers).expect("text").matches("-WRONGPASS").count();
    assert_eq!(refusals, 10);
}

#[test]
fn protected_mode_lets_only_this_machine_in() {
    // Without a network there is no client to refuse. Tests without sockets also cover the
    // decision.
    let Some(address) = own_address() else { return };
    let bind =
        |config: &mut tidemark_server::config::Config| config.bind = vec![BindAddress::required("0.0.0.0")];
    let server = TestServer::with(bind);
    let refusal = String::from_utf8(server.client_at(address).until_closed()).expect("text");
    assert!(refusal.starts_with("-DENIED Tidemark runs in protected mode"), "{refusal}");
    server.client().ask("CONFIG SET requirepass secret", "+OK\r\n");
    let mut client = server.client_at(address);
    client.ask("AUTH secret", "+OK\r\n");
    client.ask("PING", "+PONG\r\n");
}

/// Returns an address of this machine that is not a loopback one.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // The socket sends nothing: connecting only chooses the route.
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|address| !address.is_loopback())
}

#[test]
fn a_changed_timeout_reaches_clients_that_are_already_silent() {
    let clock = ManualClock::new();
    let server = TestServer::with_clock(&clock, |_| {});
    // Several clients, so that every worker has some.
    let mut silent: Vec<_> = (0..8).map(|_| server.client()).collect();
    silent.iter_mut().for_each(|client| client.ask("PING", "+PONG\r\n"));
    server.client().ask("CONFIG SET timeout 5", "+OK\r\n");
    clock.advance(TIMEOUT);
    silent.iter_mut().for_each(|client| assert_eq!(client.until_closed(), b""));
}

#[test]
fn a_changed_authentication_timeout_reaches_strangers_that_are_already_silent() {
    let clock = ManualClock::new();
    let server = TestServer::with_clock(&clock, |config| {
        config.requirepass = "secret".to_owned();
        config.authentication_timeout = Duration::ZERO;
    });
    let mut silent: Vec<_> = (0..8).map(|_| server.client()).collect();
    silent.iter_mut().for_each(|client| client.ask("GET k", "-NOAUTH Authentication required.\r\n"));
    let mut administrator = server.client();
    administrator.ask("AUTH secret", "+OK\r\n");
    administrator.ask("CONFIG SET authentication-timeout 5", "+OK\r\n");
    clock.advance(TIMEOUT);
    silent.iter_mut().for_each(|client| assert_eq!(client.until_closed(), b""));
    administrator.ask("PING", "+PONG\r\n");
}
