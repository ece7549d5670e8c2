//! Limits over HTTP on the real program: many clients at one quota, commits, crashes, and waits
//! that are as long as the server states.

use crate::support::{Answer, Server, call, free_port, wait_until};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

const CLIENTS: usize = 10;
const LIMIT: i64 = 1000;
const CAP: i64 = 40;
const BLOCK: i64 = 16;
const KILLS: u64 = 4;

/// Starts a server; returns it with its HTTP port.
fn start(directory: &Path, durability: &str) -> (Server, u16) {
    let http = free_port();
    let address = format!("127.0.0.1:{http}");
    let server =
        Server::start(directory, &["--http", &address, "--durability", durability, "--threads", "2"]);
    // The HTTP listener starts last.
    wait_until("HTTP listens", || TcpStream::connect(&address).is_ok());
    (server, http)
}

/// A persistent connection.
struct Visitor(BufReader<TcpStream>);

impl Visitor {
    fn connect(http: u16) -> io::Result<Visitor> {
        let stream = TcpStream::connect(("127.0.0.1", http))?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok(Visitor(BufReader::new(stream)))
    }

    /// Sends a request; returns the status of the answer, and how many seconds it says to wait.
    fn ask(&mut self, target: &str, body: &str) -> io::Result<(u16, Option<u64>)> {
        let length = body.len();
        let request =
            format!("POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}");
        self.0.get_mut().write_all(request.as_bytes())?;
        let (mut status, mut wait, mut length) = (0, None, 0);
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest.split(' ').next().and_then(|status| status.parse().ok()).expect("a status");
            } else if let Some(seconds) = line.strip_prefix("retry-after: ") {
                wait = Some(seconds.parse().expect("whole seconds"));
            } else if let Some(bytes) = line.strip_prefix("content-length: ") {
                length = bytes.parse().expect("a length");
            } else if line.is_empty() {
                self.0.read_exact(&mut vec![0; length])?;
                return Ok((status, wait));
            }
        }
    }
}

/// Takes one unit at a time until it is refused or the server has gone; returns the units granted.
fn take_all(http: u16, target: &str, body: &str) -> i64 {
    let (mut granted, Ok(mut visitor)) = (0, Visitor::connect(http)) else { return 0 };
    loop {
        match visitor.ask(target, body) {
            Ok((200, _)) => granted += 1,
            Ok((429, None)) | Err(_) => return granted,
            Ok(other) => panic!("{target}: {other:?}"),
        }
    }
}

/// Lets all clients take units while `meanwhile` runs; returns the units granted in total.
fn take_together(http: u16, target: &str, body: &str, meanwhile: impl FnOnce()) -> i64 {
    std::thread::scope(|scope| {
        let clients: Vec<_> =
            (0..CLIENTS).map(|_| scope.spawn(move || take_all(http, target, body))).collect();
        meanwhile();
        clients.into_iter().map(|client| client.join().expect("the client ends well")).sum()
    })
}

#[test]
fn many_clients_are_granted_a_quota_to_the_last_unit_and_no_further() {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, http) = start(directory.path(), "interval:50ms");
    let mut client = server.client();
    for promise in [["RELAXED", "40"], ["EXACT", "16"]] {
        let key = promise[0];
        let create = [&["COUNTER.CREATE", key, "LIMIT", "1000"], &promise[..]].concat();
        call(&mut client, &create);
        let body = format!(
            "{{\"limits\": [{{\"key\": \"{key}\"}}, {{\"key\": \"wide\", \"limit\": \"LOG 9000 PER 1\"}}]}}"
        );
        assert_eq!(take_together(http, "/v1/check", &body, || {}), LIMIT, "{promise:?}");
        assert_eq!(call(&mut client, &["COUNTER.GET", key]), Answer::Integer(LIMIT));
    }
    // The quota that the original's path creates is equally exact.
    assert_eq!(take_together(http, "/check?api_key=alice", "", || {}), LIMIT);
    assert_eq!(call(&mut client, &["COUNTER.GET", "check:alice"]), Answer::Integer(LIMIT));
}

#[test]
fn what_is_committed_can_be_released() {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, http) = start(directory.path(), "always");
    let mut visitor = Visitor::connect(http).expect("HTTP listens");
    for _ in 0..5 {
        assert_eq!(visitor.ask("/check?api_key=alice", "").expect("an answer"), (200, None));
    }
    call(&mut server.client(), &["COUNTER.COMMIT", "check:alice"]);
    server.kill();
    let (server, http) = start(directory.path(), "always");
    let mut visitor = Visitor::connect(http).expect("HTTP listens");
    for left in (0..5).rev() {
        assert_eq!(visitor.ask("/release?api_key=alice", "").expect("an answer"), (204, None));
        let position = call(&mut server.client(), &["COUNTER.GET", "check:alice"]);
        assert_eq!(position, Answer::Integer(left));
    }
    assert_eq!(visitor.ask("/release?api_key=alice", "").expect("an answer"), (204, None));
    assert_eq!(call(&mut server.client(), &["COUNTER.GET", "check:alice"]), Answer::Integer(0));
}

/// Lets clients take units until the server is killed, again and again, and then the rest.
fn granted_over_kills(directory: &Path, terms: &[&str]) -> i64 {
    let mut granted = 0;
    for round in 0..=KILLS {
        let (server, http) = start(directory, "always");
        if round == 0 {
            call(&mut server.client(), &[&["COUNTER.CREATE", "seats", "LIMIT", "1000"], terms].concat());
        }
        let body = "{\"key\": \"seats\"}";
        granted += if round < KILLS {
            // A different delay each time.
            let moment = Duration::from_millis(20 + round * 17);
            take_together(http, "/v1/check", body, move || {
                std::thread::sleep(moment);
                server.kill();
            })
        } else {
            take_together(http, "/v1/check", body, || {})
        };
    }
    granted
}

#[test]
fn a_killed_server_never_grants_more_than_an_exact_quota() {
    let directory = tempfile::tempdir().expect("a directory");
    let granted = granted_over_kills(directory.path(), &["EXACT", &BLOCK.to_string()]);
    assert!(granted <= LIMIT, "{granted} of {LIMIT} were granted");
    // All crashes together may cost a block, and each of them one unanswered grant per client.
    let lost = BLOCK + KILLS as i64 * CLIENTS as i64;
    assert!(granted >= LIMIT - lost, "{granted} of {LIMIT} were granted");
}

#[test]
fn a_kill_after_each_check_takes_nothing_from_a_quota_but_its_check() {
    let directory = tempfile::tempdir().expect("a directory");
    for _ in 0..20 {
        let (server, http) = start(directory.path(), "interval:50ms");
        let mut visitor = Visitor::connect(http).expect("HTTP listens");
        assert_eq!(visitor.ask("/check?api_key=alice", "").expect("an answer"), (200, None));
        server.kill();
    }
    let (server, _) = start(directory.path(), "interval:50ms");
    assert_eq!(call(&mut server.client(), &["COUNTER.GET", "check:alice"]), Answer::Integer(20));
}

#[test]
fn a_killed_server_grants_no_more_than_its_cap_again_of_a_relaxed_quota() {
    let directory = tempfile::tempdir().expect("a directory");
    let granted = granted_over_kills(directory.path(), &["RELAXED", &CAP.to_string()]);
    let most = LIMIT + KILLS as i64 * CAP;
    assert!(granted <= most, "{granted} of {LIMIT} were granted");
    let unheard = KILLS as i64 * CLIENTS as i64;
    assert!(granted >= LIMIT - unheard, "{granted} of {LIMIT} were granted");
}

#[test]
fn a_client_that_waits_for_retry_after_is_allowed() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_server, http) = start(directory.path(), "interval:50ms");
    // The test is about the wait that the server states, so it sleeps for it; all definitions in
    // parallel.
    std::thread::scope(|scope| {
        for definition in ["GCRA 1 PER 700", "FIXED 1 PER 700", "LOG 1 PER 700"] {
            scope.spawn(move || {
                let mut visitor = Visitor::connect(http).expect("HTTP listens");
                let body = format!("{{\"key\": \"{definition}\", \"limit\": \"{definition}\"}}");
                let wait = loop {
                    if let (429, wait) = visitor.ask("/v1/check", &body).expect("an answer") {
                        break wait;
                    }
                };
                std::thread::sleep(Duration::from_secs(wait.expect("time helps")));
                assert_eq!(visitor.ask("/v1/check", &body).expect("an answer").0, 200, "{definition}");
            });
        }
    });
}
