//! A real nats-server, and the part of its protocol that is needed to read a stream.

use super::free_port;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

/// A running server with `JetStream`.
pub(crate) struct Nats {
    child: Child,
    pub(crate) port: u16,
}

impl Nats {
    /// Starts a server on `dir` at a port of its own.
    pub(crate) fn start(dir: &Path) -> Self {
        Self::start_at(dir, free_port())
    }

    /// Starts a server on `dir` and waits until it answers.
    pub(crate) fn start_at(dir: &Path, port: u16) -> Self {
        let child = Command::new("nats-server")
            .args(["-a", "127.0.0.1", "-p", &port.to_string(), "-js", "-sd", &dir.to_string_lossy()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nats-server is installed");
        let nats = Self { child, port };
        let began = Instant::now();
        while Stream::try_open(port, "NONE").is_none() {
            assert!(began.elapsed() < PATIENCE, "nats-server answers");
            std::thread::sleep(Duration::from_millis(10));
        }
        nats
    }

    /// Kills the server with `kill -9`; returns the port, on which another may start.
    pub(crate) fn kill(mut self) -> u16 {
        self.end();
        self.port
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Opens a stream of this server.
    pub(crate) fn stream(&self, name: &str) -> Stream {
        Stream::try_open(self.port, name).expect("nats-server answers")
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.end();
    }
}

/// A message as stored in a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) subject: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) payload: Vec<u8>,
}

impl Stored {
    /// Returns the LSN of the message's record.
    pub(crate) fn lsn(&self) -> u64 {
        self.headers["Tidemark-Lsn"].parse().expect("an LSN")
    }
}

/// A connection for one stream.
pub(crate) struct Stream {
    name: String,
    reader: BufReader<TcpStream>,
}

impl Stream {
    fn try_open(port: u16, name: &str) -> Option<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
        let mut opened = Self { name: name.to_owned(), reader: BufReader::new(stream) };
        let hello =
            "CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\nSUB answers 1\r\n";
        opened.reader.get_mut().write_all(hello.as_bytes()).ok()?;
        // Succeeds only once `JetStream` itself answers.
        opened.ask("INFO", "").map(|_| opened)
    }

    /// Calls the API of `JetStream`; `None` while it does not answer.
    fn ask(&mut self, subject: &str, request: &str) -> Option<Value> {
        let request = format!("PUB $JS.API.{subject} answers {}\r\n{request}\r\n", request.len());
        self.reader.get_mut().write_all(request.as_bytes()).ok()?;
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.first().copied()? {
                "PING" => self.reader.get_mut().write_all(b"PONG\r\n").ok()?,
                "MSG" => {
                    let mut payload = vec![0; words.last()?.parse::<usize>().ok()? + 2];
                    self.reader.read_exact(&mut payload).ok()?;
                    return serde_json::from_slice(&payload).ok();
                }
                // No responder is there yet.
                "HMSG" => return None,
                _ => {}
            }
        }
    }

    /// Publishes a message that does not come from a sink.
    pub(crate) fn publish(&mut self, subject: &str, payload: &str) {
        let message = format!("PUB {subject} {}\r\n{payload}\r\n", payload.len());
        self.reader.get_mut().write_all(message.as_bytes()).expect("the server reads");
    }

    /// Creates the stream.
    pub(crate) fn make(&mut self) {
        let (subject, request) = (format!("STREAM.CREATE.{}", self.name), json!({"name": self.name}));
        let made = self.ask(&subject, &request.to_string()).expect("an answer");
        assert!(made.get("error").is_none(), "{made}");
    }

    /// Removes all messages.
    pub(crate) fn purge(&mut self) {
        let purged = self.ask(&format!("STREAM.PURGE.{}", self.name), "").expect("an answer");
        assert_eq!(purged["success"], true, "{purged}");
    }

    /// Returns the number of messages; 0 if there is no such stream.
    pub(crate) fn count(&mut self) -> u64 {
        let info = self.ask(&format!("STREAM.INFO.{}", self.name), "").expect("an answer");
        info["state"]["messages"].as_u64().unwrap_or(0)
    }

    /// Returns all messages in order.
    pub(crate) fn messages(&mut self) -> Vec<Stored> {
        (1..=self.count()).map(|sequence| self.message(sequence)).collect()
    }

    fn message(&mut self, sequence: u64) -> Stored {
        let subject = format!("STREAM.MSG.GET.{}", self.name);
        let answer = self.ask(&subject, &json!({"seq": sequence}).to_string()).expect("an answer");
        let message = &answer["message"];
        let bytes = |field: &str| {
            message[field].as_str().map(|text| STANDARD.decode(text).expect("base64")).unwrap_or_default()
        };
        let headers = String::from_utf8(bytes("hdrs")).expect("text");
        let headers = headers.lines().filter_map(|line| line.split_once(": "));
        Stored {
            subject: message["subject"].as_str().expect("a subject").to_owned(),
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            payload: bytes("data"),
        }
    }
}
