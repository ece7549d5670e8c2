//! Health and metrics are answered, however many connections other clients open.

use crate::common::{TestServer, events};
use std::io::Write;
use std::net::TcpStream;

/// More connections would prove no more, because the limit is what counts, and could exceed the
/// file descriptors of the test process.
const CONNECTIONS: usize = 16;

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).expect("a status")
}

#[test]
fn health_is_answered_while_many_trickle_their_requests() {
    let server = TestServer::with_http(|config| config.http_connections = CONNECTIONS);
    let address = server.http_address();
    let trickle = || {
        let mut stream = TcpStream::connect(address).expect("HTTP listens");
        stream.write_all(b"GET /health/live HTTP/1.1\r\nX-").expect("HTTP reads");
        stream
    };
    let mut trickling: Vec<TcpStream> = (0..4 * CONNECTIONS).map(|_| trickle()).collect();
    for round in 0..200 {
        // Sends one more byte on each connection, and opens the closed ones again.
        for stream in &mut trickling {
            if stream.write_all(b"x").is_err() {
                *stream = trickle();
            }
        }
        let target = ["/health/live", "/health/ready", "/metrics"][round % 3];
        assert_eq!(status(&server.http(target)), "200", "{target}");
    }
}

#[test]
fn health_is_answered_while_all_connections_are_being_served() {
    let server = TestServer::with_http(|config| config.http_connections = CONNECTIONS);
    let mut client = server.client();
    client.ask("CLIENT PAUSE 1000000 ALL", "+OK\r\n");
    // Requests that wait for the end of the pause.
    let mut waiting: Vec<TcpStream> =
        (0..CONNECTIONS).map(|_| events::connect(server.http_address())).collect();
    for stream in &mut waiting {
        stream.write_all(b"GET /check?api_key=k HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("HTTP reads");
    }
    crate::common::eventually("all places are taken", || {
        // A request that gets a place waits as well. The test abandons it.
        let mut stream = TcpStream::connect(server.http_address()).expect("HTTP listens");
        stream.set_read_timeout(Some(std::time::Duration::from_millis(200))).expect("a socket option");
        stream.write_all(b"GET /check?api_key=k HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("HTTP reads");
        let mut answer = [0; 12];
        std::io::Read::read_exact(&mut stream, &mut answer).is_ok() && answer.ends_with(b"503")
    });
    for target in ["/health/live", "/health/ready", "/metrics"] {
        assert_eq!(status(&server.http(target)), "200", "{target}");
    }
}
