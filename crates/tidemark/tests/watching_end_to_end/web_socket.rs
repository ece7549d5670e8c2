//! A WebSocket as a browser has it: messages of text, masked on their way to the server.

use crate::stream::PATIENCE;
use serde_json::Value;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
/// The bit of a message that is not continued, and the one of a payload that is masked.
const FINAL: u8 = 0x80;
const MASKED: u8 = 0x80;
/// What stands for a length that does not fit into seven bits.
const LENGTH_IN_2_BYTES: u8 = 0x7e;
const LENGTH_IN_8_BYTES: u8 = 0x7f;

/// See the module's documentation.
pub(crate) struct WebSocket {
    stream: TcpStream,
    /// What has come and has not been taken.
    buffer: Vec<u8>,
}

impl WebSocket {
    /// Connects; an error if the server has no place, or stops.
    pub(crate) fn open(port: u16) -> io::Result<Self> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.write_all(
            b"GET /v1/watch HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
              Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        )?;
        let mut socket = Self { stream, buffer: Vec::new() };
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(end) = socket.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                let head: Vec<u8> = socket.buffer.drain(..end + 4).collect();
                let is_open = head.starts_with(b"HTTP/1.1 101 ");
                return if is_open { Ok(socket) } else { Err(io::ErrorKind::ConnectionRefused.into()) };
            }
            socket.fill(until.saturating_duration_since(Instant::now()))?;
        }
    }

    pub(crate) fn send(&mut self, message: &Value) -> io::Result<()> {
        self.send_frame(TEXT, message.to_string().as_bytes())
    }

    fn send_frame(&mut self, kind: u8, payload: &[u8]) -> io::Result<()> {
        let mut frame = vec![FINAL | kind];
        match u16::try_from(payload.len()) {
            Ok(length @ 0..126) => frame.push(MASKED | length as u8),
            Ok(length) => {
                frame.push(MASKED | LENGTH_IN_2_BYTES);
                frame.extend(length.to_be_bytes());
            }
            Err(_) => {
                frame.push(MASKED | LENGTH_IN_8_BYTES);
                frame.extend((payload.len() as u64).to_be_bytes());
            }
        }
        let mask = [0x5a, 0x00, 0xff, 0x13];
        frame.extend(mask);
        frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        self.stream.write_all(&frame)
    }

    /// The next message; `None` if none has come for so long.
    pub(crate) fn next(&mut self, patience: Duration) -> io::Result<Option<Value>> {
        let until = Instant::now() + patience;
        loop {
            if let Some((kind, payload)) = self.take_frame() {
                match kind {
                    TEXT => {
                        let message = serde_json::from_slice(&payload);
                        return Ok(Some(message.unwrap_or_else(|error| panic!("{error}: {payload:?}"))));
                    }
                    PING => self.send_frame(PONG, &payload)?,
                    CLOSE => return Err(io::ErrorKind::UnexpectedEof.into()),
                    other => panic!("a message of its own kind: {other}"),
                }
                continue;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.fill(left)? {
                return Ok(None);
            }
        }
    }

    /// The kind and the payload of the next frame, if it has come as a whole.
    fn take_frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let (first, second) = (*self.buffer.first()?, *self.buffer.get(1)?);
        assert!(first & FINAL != 0 && second & MASKED == 0, "the server's messages are whole and not masked");
        let (at, length) = match second {
            LENGTH_IN_2_BYTES => {
                (4, usize::from(u16::from_be_bytes(self.buffer.get(2..4)?.try_into().ok()?)))
            }
            LENGTH_IN_8_BYTES => {
                (10, usize::try_from(u64::from_be_bytes(self.buffer.get(2..10)?.try_into().ok()?)).ok()?)
            }
            short => (2, usize::from(short)),
        };
        let payload = self.buffer.get(at..at + length)?.to_vec();
        self.buffer.drain(..at + length);
        Some((first & 0x0f, payload))
    }

    /// Takes what has come, or waits for something; whether there was anything.
    fn fill(&mut self, patience: Duration) -> io::Result<bool> {
        if patience.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(patience))?;
        let mut chunk = [0; 16 * 1024];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.buffer.extend_from_slice(&chunk[..count]);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}
