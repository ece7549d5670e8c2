//! A WebSocket as browsers use it: text messages, masked on their way to the server.

use super::inbound::{Inbound, PATIENCE, behind};
use serde_json::Value;
use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
/// The bit of a message that is complete, and the bit of a masked payload.
const FINAL: u8 = 0x80;
const MASKED: u8 = 0x80;
/// Marks of a length that does not fit into seven bits.
const LENGTH_IN_2_BYTES: u8 = 0x7e;
const LENGTH_IN_8_BYTES: u8 = 0x7f;

/// A WebSocket connection.
pub(crate) struct WebSocket(Inbound);

impl WebSocket {
    /// Connects; fails if the server has no room, or stops.
    pub(crate) fn open(port: u16) -> io::Result<Self> {
        let mut inbound = Inbound::connect(port)?;
        inbound.send(
            b"GET /v1/watch HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
              Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        )?;
        let head = inbound.next(PATIENCE, behind(b"\r\n\r\n"))?.expect("a server that runs answers");
        let is_open = head.starts_with(b"HTTP/1.1 101 ");
        if is_open { Ok(Self(inbound)) } else { Err(io::ErrorKind::ConnectionRefused.into()) }
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
        self.0.send(&frame)
    }

    /// Returns the next message; `None` after `patience`.
    pub(crate) fn next(&mut self, patience: Duration) -> io::Result<Option<Value>> {
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let end_of = |bytes: &[u8]| payload_in(bytes).map(|payload| payload.end);
            let Some(frame) = self.0.next(left, end_of)? else { return Ok(None) };
            let payload = payload_in(&frame).map_or(&frame[..0], |payload| &frame[payload]);
            match frame[0] & !FINAL {
                TEXT => {
                    let message = serde_json::from_slice(payload);
                    return Ok(Some(message.unwrap_or_else(|error| panic!("{error}: {payload:?}"))));
                }
                PING => self.send_frame(PONG, payload)?,
                CLOSE => return Err(io::ErrorKind::UnexpectedEof.into()),
                other => panic!("a message of its own kind: {other}"),
            }
        }
    }
}

/// Returns the range of the payload of the first frame, if its head is complete.
fn payload_in(bytes: &[u8]) -> Option<Range<usize>> {
    let (first, second) = (*bytes.first()?, *bytes.get(1)?);
    assert!(first & FINAL != 0 && second & MASKED == 0, "the server's messages are whole and not masked");
    let (at, length) = match second {
        LENGTH_IN_2_BYTES => (4, usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?))),
        LENGTH_IN_8_BYTES => {
            (10, usize::try_from(u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?)).ok()?)
        }
        short => (2, usize::from(short)),
    };
    Some(at..at + length)
}
