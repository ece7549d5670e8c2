//! A subscriber's connection: frames as received bytes, parsed without the code under test.

use super::inbound::Inbound;
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// Receive buffer of a subscriber that does not read. Bytes.
const SMALL_WINDOW: usize = 4096;

/// One whole value, as received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame(pub(crate) Vec<u8>);

impl Frame {
    /// Returns the elements of an aggregate, as received; empty for any other value.
    pub(crate) fn elements(&self) -> Vec<&[u8]> {
        elements(&self.0)
    }

    /// Returns the first word of a frame about a subscription.
    pub(crate) fn word(&self) -> &[u8] {
        elements(&self.0).first().map_or(b"", |first| content(first))
    }

    pub(crate) fn is_error(&self) -> bool {
        self.0.first() == Some(&b'-')
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).trim_end().to_owned()
    }
}

/// Returns the elements of an encoded aggregate.
pub(crate) fn elements(bytes: &[u8]) -> Vec<&[u8]> {
    let Some((kind, count, mut at)) = head(bytes, 0) else { return Vec::new() };
    let Some(count) = children(kind, count) else { return Vec::new() };
    let mut elements = Vec::new();
    for _ in 0..count {
        let Some(end) = end_of(bytes, at) else { break };
        elements.push(&bytes[at..end]);
        at = end;
    }
    elements
}

/// Returns the content of a string or number, without its framing.
pub(crate) fn content(element: &[u8]) -> &[u8] {
    match (element.first(), head(element, 0)) {
        (Some(b'$'), Some((_, length, at))) if length >= 0 => {
            element.get(at..at + length as usize).unwrap_or_default()
        }
        (Some(_), Some((_, _, at))) => &element[1..at - 2],
        _ => b"",
    }
}

/// Reads an element as a number.
pub(crate) fn number(element: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(content(element)).into_owned();
    text.parse().unwrap_or_else(|_| panic!("a number is expected where {text:?} stands"))
}

/// Returns the offset after the value that begins at `at`, if it is complete.
fn end_of(bytes: &[u8], at: usize) -> Option<usize> {
    let (mut at, mut missing) = (at, 1);
    while missing > 0 {
        let (kind, count, behind) = head(bytes, at)?;
        at = behind;
        missing -= 1;
        match (kind, children(kind, count)) {
            (b'$' | b'=' | b'!', _) if count >= 0 => at += count as usize + 2,
            (_, Some(children)) => missing += children,
            _ => {}
        }
    }
    (at <= bytes.len()).then_some(at)
}

/// Returns the kind of a value, the number in its first line or zero, and the offset after that
/// line.
fn head(bytes: &[u8], at: usize) -> Option<(u8, i64, usize)> {
    let kind = *bytes.get(at)?;
    let length = bytes[at..].windows(2).position(|pair| pair == b"\r\n")?;
    let count = std::str::from_utf8(&bytes[at + 1..at + length]).ok().and_then(|text| text.parse().ok());
    Some((kind, count.unwrap_or(0), at + length + 2))
}

fn children(kind: u8, count: i64) -> Option<usize> {
    let count = usize::try_from(count).ok()?;
    match kind {
        b'*' | b'~' | b'>' => Some(count),
        b'%' => Some(count * 2),
        _ => None,
    }
}

/// A connection of frames.
pub(crate) struct Connection(Inbound);

impl Connection {
    pub(crate) fn open(port: u16, has_small_window: bool) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        if has_small_window {
            // Set before connecting, because the ends negotiate the window then.
            socket.set_recv_buffer_size(SMALL_WINDOW)?;
        }
        socket.connect(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
        Ok(Self(Inbound::over(TcpStream::from(socket))?))
    }

    pub(crate) fn send<W: AsRef<[u8]>>(&mut self, words: &[W]) -> io::Result<()> {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            let word = word.as_ref();
            request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            request.extend_from_slice(word);
            request.extend_from_slice(b"\r\n");
        }
        self.0.send(&request)
    }

    /// Returns the next whole frame; `None` after `patience`.
    pub(crate) fn next(&mut self, patience: Duration) -> io::Result<Option<Frame>> {
        Ok(self.0.next(patience, |bytes| end_of(bytes, 0))?.map(Frame))
    }
}
