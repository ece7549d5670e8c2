//! Minimal client of DiceDB's protocol.

use super::TestServer;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longer than any step needs, so that a test fails instead of hanging.
const PATIENCE: Duration = Duration::from_secs(20);

/// Connection that sends `wire.Command` and receives `wire.Result`.
pub(crate) struct DiceClient {
    stream: TcpStream,
}

/// Ends a connection when dropped.
pub(crate) struct DiceEnd(TcpStream);

impl Drop for DiceEnd {
    fn drop(&mut self) {
        // The server may have closed it.
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}

/// Received `wire.Result`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiceResult {
    pub(crate) ok: bool,
    pub(crate) message: String,
    pub(crate) fingerprint: u64,
    /// The body's field number and content.
    pub(crate) body: Option<(u64, Vec<u8>)>,
}

/// Field of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Field {
    Number(u64, i64),
    Bytes(u64, Vec<u8>),
}

impl DiceClient {
    pub(crate) fn connect(server: &TestServer) -> DiceClient {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).expect("the server listens");
        stream.set_nodelay(true).expect("a socket option");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
        DiceClient { stream }
    }

    /// Connects as `dicedb-go` does: with a handshake.
    pub(crate) fn greeted(server: &TestServer, id: &str, mode: &str) -> DiceClient {
        let mut client = DiceClient::connect(server);
        let answer = client.ask(&["HANDSHAKE", id, mode]);
        assert_eq!((answer.ok, answer.body), (true, Some((14, Vec::new()))));
        client
    }

    /// Shuts down the sending direction.
    pub(crate) fn end_input(&self) {
        self.stream.shutdown(std::net::Shutdown::Write).expect("a connected socket");
    }

    /// Returns a guard that ends the connection when dropped, even while another thread reads from
    /// it.
    pub(crate) fn end(&self) -> DiceEnd {
        DiceEnd(self.stream.try_clone().expect("a descriptor"))
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    pub(crate) fn send(&mut self, words: &[&str]) {
        self.send_bytes(&frame(&command(words)));
    }

    /// Sends a command and reads the next result as its answer.
    pub(crate) fn ask(&mut self, words: &[&str]) -> DiceResult {
        self.send(words);
        self.receive()
    }

    pub(crate) fn receive(&mut self) -> DiceResult {
        self.try_receive().expect("the server answers")
    }

    /// Reads the next result; `None` if the server has closed the connection.
    pub(crate) fn try_receive(&mut self) -> Option<DiceResult> {
        let mut header = [0; 4];
        match self.stream.read_exact(&mut header) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
                return None;
            }
            Err(error) => panic!("{error} while waiting for a result"),
        }
        let mut payload = vec![0; u32::from_be_bytes(header) as usize];
        self.stream.read_exact(&mut payload).expect("a whole frame");
        Some(DiceResult::decode(&payload))
    }

    /// Expects a result without a body and with this error message.
    #[track_caller]
    pub(crate) fn expect_error(&mut self, words: &[&str], message: &str) {
        let answer = self.ask(words);
        assert_eq!((answer.ok, answer.message.as_str(), answer.body), (false, message, None), "{words:?}");
    }

    /// Runs a command and returns the text of its answer.
    #[track_caller]
    pub(crate) fn text(&mut self, words: &[&str], field: u64) -> String {
        let body = self.body(words, field);
        match fields(&body).as_slice() {
            [] => String::new(),
            [Field::Bytes(1, text)] => String::from_utf8(text.clone()).expect("text"),
            other => panic!("{words:?}: {other:?}"),
        }
    }

    /// Runs a command and returns the number of its answer.
    #[track_caller]
    pub(crate) fn number(&mut self, words: &[&str], field: u64) -> i64 {
        let body = self.body(words, field);
        match fields(&body).as_slice() {
            [] => 0,
            [Field::Number(1, number)] => *number,
            other => panic!("{words:?}: {other:?}"),
        }
    }

    /// Runs a command and returns the elements of its answer: score, member and rank.
    #[track_caller]
    pub(crate) fn elements(&mut self, words: &[&str], field: u64) -> Vec<(i64, String, i64)> {
        elements(&self.body(words, field))
    }

    /// Runs a command and returns the body of its answer.
    #[track_caller]
    pub(crate) fn body(&mut self, words: &[&str], field: u64) -> Vec<u8> {
        let answer = self.ask(words);
        assert_eq!((answer.ok, answer.message.as_str()), (true, "OK"), "{words:?}");
        let (found, body) = answer.body.unwrap_or_else(|| panic!("{words:?} is answered without a body"));
        assert_eq!(found, field, "{words:?}");
        body
    }
}

impl DiceResult {
    fn decode(payload: &[u8]) -> DiceResult {
        let mut result = DiceResult { ok: true, message: String::new(), fingerprint: 0, body: None };
        for field in fields(payload) {
            match field {
                Field::Number(1, status) => result.ok = status == 0,
                Field::Bytes(2, text) => result.message = String::from_utf8(text).expect("text"),
                Field::Number(3, number) => result.fingerprint = number as u64,
                Field::Bytes(field, body) => {
                    assert!(result.body.is_none(), "two bodies");
                    result.body = Some((field, body));
                }
                Field::Number(..) => panic!("{field:?}"),
            }
        }
        result
    }
}

/// Decodes the elements of a body: score, member and rank.
pub(crate) fn elements(body: &[u8]) -> Vec<(i64, String, i64)> {
    let mut found = Vec::new();
    for field in fields(body) {
        let Field::Bytes(_, element) = field else { panic!("{field:?}") };
        let mut parts = (0, String::new(), 0);
        for part in fields(&element) {
            match part {
                Field::Number(1, score) => parts.0 = score,
                Field::Bytes(2, member) => parts.1 = String::from_utf8(member).expect("text"),
                Field::Number(3, rank) => parts.2 = rank,
                other => panic!("{other:?}"),
            }
        }
        found.push(parts);
    }
    found
}

/// Encodes a `wire.Command`.
pub(crate) fn command(words: &[&str]) -> Vec<u8> {
    let mut message = Vec::new();
    for (index, word) in words.iter().enumerate() {
        message.push(if index == 0 { 0x0a } else { 0x12 });
        put_varint(&mut message, word.len() as u64);
        message.extend_from_slice(word.as_bytes());
    }
    message
}

/// Prefixes a message with its length.
pub(crate) fn frame(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("a short message");
    [&length.to_be_bytes(), message].concat()
}

fn put_varint(message: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        message.push(number as u8 | 0x80);
        number >>= 7;
    }
    message.push(number as u8);
}

/// Decodes all fields of a message.
pub(crate) fn fields(mut message: &[u8]) -> Vec<Field> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let tag = take_varint(&mut message);
        found.push(match tag & 7 {
            0 => Field::Number(tag >> 3, take_varint(&mut message) as i64),
            2 => {
                let length = take_varint(&mut message) as usize;
                let (content, rest) = message.split_at(length);
                message = rest;
                Field::Bytes(tag >> 3, content.to_vec())
            }
            other => panic!("wire type {other}"),
        });
    }
    found
}

fn take_varint(message: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first().expect("a whole number");
        *message = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return number;
        }
    }
    panic!("a number of more than 64 bits");
}
