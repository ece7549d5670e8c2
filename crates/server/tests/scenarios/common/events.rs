//! Client of Server-Sent Events that sees them as a browser does.

use super::TestServer;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than any step needs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Connects to the HTTP port.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("HTTP listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
    stream
}

/// Event as a browser sees it.
#[derive(Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) kind: String,
    pub(crate) data: Value,
}

/// Stream of events.
pub(crate) struct Events {
    pub(crate) head: String,
    pub(crate) body: BufReader<TcpStream>,
    /// Unread bytes of the current chunk.
    rest: usize,
}

impl Events {
    /// Watches a read.
    pub(crate) fn open(server: &TestServer, query: &str) -> Events {
        Events::ask(server, query, "")
    }

    /// Watches a read with further header lines, each with its line end.
    pub(crate) fn ask(server: &TestServer, query: &str, headers: &str) -> Events {
        Events::of(server, &format!("watch?{query}"), headers)
    }

    /// Opens the event stream of any target.
    pub(crate) fn of(server: &TestServer, target: &str, headers: &str) -> Events {
        let address = server.http_address();
        let mut stream = connect(address);
        let request = format!(
            "GET /v1/{target} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n{headers}\r\n"
        );
        stream.write_all(request.as_bytes()).expect("HTTP reads");
        let (mut body, mut head) = (BufReader::new(stream), String::new());
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(body.read_line(&mut head).expect("a line"), 0, "{head}");
        }
        Events { head: head.to_ascii_lowercase(), body, rest: 0 }
    }

    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
    }

    fn byte(&mut self) -> u8 {
        if self.rest == 0 {
            let mut line = String::new();
            while line.trim().is_empty() {
                line.clear();
                assert_ne!(self.body.read_line(&mut line).expect("a chunk"), 0, "the stream has ended");
            }
            self.rest = usize::from_str_radix(line.trim(), 16).expect("a length");
            assert_ne!(self.rest, 0, "the stream has ended");
        }
        self.rest -= 1;
        let mut byte = [0];
        self.body.read_exact(&mut byte).expect("a byte");
        byte[0]
    }

    fn line(&mut self) -> String {
        let mut line = Vec::new();
        loop {
            match self.byte() {
                b'\n' => return String::from_utf8(line).expect("text"),
                byte => line.push(byte),
            }
        }
    }

    pub(crate) fn next(&mut self) -> Event {
        assert_eq!(self.status(), 200, "{}", self.head);
        let mut event = Event { id: None, kind: String::new(), data: Value::Null };
        loop {
            let line = self.line();
            match line.split_once(':').map(|(name, value)| (name, value.trim_start())) {
                Some(("id", id)) => event.id = Some(id.to_owned()),
                Some(("event", kind)) => kind.clone_into(&mut event.kind),
                Some(("data", data)) => event.data = serde_json::from_str(data).expect("JSON"),
                // A comment keeps the connection alive.
                Some(("", _)) => {}
                None if line.is_empty() && !event.kind.is_empty() => return event,
                None if line.is_empty() => {}
                _ => panic!("{line}"),
            }
        }
    }

    #[track_caller]
    pub(crate) fn expect(&mut self, expected: Event) {
        assert_eq!(self.next(), expected);
    }
}
