//! The connection to the server that keys move to.

use super::options::Options;
use crate::shared::Shared;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// How often it is looked whether the server stops.
const LOOK: Duration = Duration::from_millis(100);
/// Longest line of an answer. Bytes.
const MAX_LINE: usize = 64 << 10;
/// Longest time for the connection: the server cannot stop meanwhile.
const CONNECTING: Duration = Duration::from_secs(10);

/// Why a migration ends early.
#[derive(Debug)]
pub(super) enum Failure {
    Connecting,
    Writing,
    Reading,
    /// With this error.
    Other(String),
}

impl Failure {
    /// The error for the client: in Redis's words, which say the same direction for both.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Connecting => "IOERR error or timeout connecting to the client".into(),
            Self::Writing => "IOERR error or timeout writing to target instance".into(),
            Self::Reading => "IOERR error or timeout reading to target instance".into(),
            Self::Other(text) => text.clone(),
        }
    }
}

/// A connection to the target.
pub(super) struct Target<'a> {
    stream: TcpStream,
    /// What was received and is not used yet.
    input: Vec<u8>,
    timeout: Duration,
    shared: &'a Shared,
}

impl<'a> Target<'a> {
    pub(super) fn connect(options: &Options, shared: &'a Shared) -> Result<Self, Failure> {
        let failed = |_| Failure::Connecting;
        // As in Redis, which finds when it writes that it is not connected.
        let port = options.port.ok_or(Failure::Writing)?;
        if shared.is_stopping() {
            return Err(Failure::Connecting);
        }
        let timeout = options.timeout;
        let addresses = (options.host.as_str(), port).to_socket_addrs().map_err(failed)?;
        let mut stream = Err(Failure::Connecting);
        for address in addresses {
            stream =
                TcpStream::connect_timeout(&address, timeout.min(CONNECTING)).map_err(|error| {
                    match error.kind() {
                        ErrorKind::TimedOut => Failure::Connecting,
                        _ => Failure::Writing,
                    }
                });
            if stream.is_ok() {
                break;
            }
        }
        let stream = stream?;
        let look = Some(timeout.min(LOOK));
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_read_timeout(look).map_err(failed)?;
        stream.set_write_timeout(look).map_err(failed)?;
        Ok(Self { stream, input: Vec::new(), timeout, shared })
    }

    /// Repeats a step that moves bytes until it does, or fails, or nothing moved for the timeout.
    fn step(&mut self, mut step: impl FnMut(&mut TcpStream) -> io::Result<usize>) -> Option<usize> {
        let began = self.shared.clock.now();
        loop {
            match step(&mut self.stream) {
                Ok(0) => return None,
                Ok(moved) => return Some(moved),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if self.is_over(began) {
                        return None;
                    }
                }
                Err(_) => return None,
            }
        }
    }

    /// Whether the time since `began` is over, or the server stops.
    fn is_over(&self, began: Instant) -> bool {
        self.shared.is_stopping() || self.shared.clock.now().saturating_duration_since(began) >= self.timeout
    }

    pub(super) fn send(&mut self, mut bytes: &[u8]) -> Result<(), Failure> {
        while !bytes.is_empty() {
            let sent = self.step(|stream| stream.write(bytes)).ok_or(Failure::Writing)?;
            bytes = &bytes[sent..];
        }
        Ok(())
    }

    /// Reads one answer, which is a line: `Ok` with its text, or the target's error.
    pub(super) fn answer(&mut self) -> Result<Result<(), String>, Failure> {
        let line = self.line()?;
        match line.split_first() {
            Some((b'+' | b':', _)) => Ok(Ok(())),
            Some((b'-', error)) => Ok(Err(String::from_utf8_lossy(error).into_owned())),
            // No answer to any of our commands.
            _ => Err(Failure::Reading),
        }
    }

    fn line(&mut self) -> Result<Vec<u8>, Failure> {
        let mut looked_at = 0;
        loop {
            if let Some(at) = self.input[looked_at..].iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.input.drain(..=looked_at + at).collect();
                line.truncate(line.len() - 1);
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return Ok(line);
            }
            looked_at = self.input.len();
            if looked_at > MAX_LINE {
                return Err(Failure::Reading);
            }
            let mut buffer = [0; 4096];
            let read = self.step(|stream| stream.read(&mut buffer)).ok_or(Failure::Reading)?;
            self.input.extend_from_slice(&buffer[..read]);
        }
    }
}

/// Appends a request.
pub(super) fn put_request(into: &mut Vec<u8>, words: &[&[u8]]) {
    into.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        into.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        into.extend_from_slice(word);
        into.extend_from_slice(b"\r\n");
    }
}
