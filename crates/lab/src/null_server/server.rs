//! The server: one thread, which parses requests and answers them.

use super::options::NullProtocol;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use tidemark_server::resp::request::{RequestLimits, RequestParser};

const LISTENER: Token = Token(usize::MAX);
const EVENTS_PER_TURN: usize = 1024;
const READ_BYTES: usize = 64 << 10;
/// An incomplete request above this closes its connection.
const REQUEST_BYTES_MAX: usize = 64 << 20;
/// A client that does not read its replies is dropped here.
const REPLY_BYTES_MAX: usize = 64 << 20;
const CONNECTIONS_MAX: usize = 10_000;

/// One listening socket and its connections, on one thread.
pub struct NullServer {
    poll: Poll,
    listener: TcpListener,
    /// A connection's token is its place here.
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    scratch: Box<[u8]>,
    protocol: NullProtocol,
}

impl NullServer {
    /// Listens on the loopback address.
    pub fn bind(port: u16, protocol: NullProtocol) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        Ok(NullServer {
            poll,
            listener,
            connections: Vec::new(),
            free: Vec::new(),
            scratch: vec![0; READ_BYTES].into_boxed_slice(),
            protocol,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the process ends or the poll fails.
    pub fn run(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_PER_TURN);
        loop {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => result?,
            }
            for event in &events {
                if event.token() == LISTENER {
                    self.accept()?;
                } else {
                    self.serve(event.token().0);
                }
            }
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let (mut stream, _) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The peer left before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            let slot = self.free.pop().unwrap_or(self.connections.len());
            if slot >= CONNECTIONS_MAX {
                continue;
            }
            stream.set_nodelay(true)?;
            self.poll.registry().register(
                &mut stream,
                Token(slot),
                Interest::READABLE | Interest::WRITABLE,
            )?;
            if slot == self.connections.len() {
                self.connections.push(None);
            }
            self.connections[slot] = Some(Connection::new(stream, self.protocol));
        }
    }

    fn serve(&mut self, slot: usize) {
        let place = &mut self.connections[slot];
        // An event of a connection that an earlier event of the same turn has ended.
        let Some(connection) = place else { return };
        if connection.turn(&mut self.scratch).is_err() {
            *place = None;
            self.free.push(slot);
        }
    }
}

/// One client.
struct Connection {
    stream: TcpStream,
    framing: Framing,
    /// The start of a request whose rest has not arrived.
    incomplete: Vec<u8>,
    /// Replies that the socket has not taken.
    replies: Vec<u8>,
}

/// The connection is over, whatever the reason.
struct Closed;

impl From<io::Error> for Closed {
    fn from(_: io::Error) -> Self {
        Closed
    }
}

impl Connection {
    fn new(stream: TcpStream, protocol: NullProtocol) -> Self {
        let framing = match protocol {
            NullProtocol::Resp => Framing::Resp(RequestParser::default()),
            NullProtocol::Dicedb => Framing::Dicedb,
        };
        Connection { stream, framing, incomplete: Vec::new(), replies: Vec::new() }
    }

    /// Reads until the socket is empty, answers everything that is whole, and writes once per read.
    fn turn(&mut self, scratch: &mut [u8]) -> Result<(), Closed> {
        self.flush()?;
        loop {
            let length = match self.stream.read(scratch) {
                Ok(0) => return Err(Closed),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            self.consume(&scratch[..length])?;
            self.flush()?;
            // A short read has emptied the socket; what arrives later raises a new event.
            if length < scratch.len() {
                return Ok(());
            }
        }
    }

    fn consume(&mut self, received: &[u8]) -> Result<(), Closed> {
        if self.incomplete.is_empty() {
            let consumed = self.framing.answer(received, &mut self.replies)?;
            self.incomplete.extend_from_slice(&received[consumed..]);
        } else {
            self.incomplete.extend_from_slice(received);
            let consumed = self.framing.answer(&self.incomplete, &mut self.replies)?;
            self.incomplete.drain(..consumed);
        }
        if self.incomplete.len() > REQUEST_BYTES_MAX || self.replies.len() > REPLY_BYTES_MAX {
            return Err(Closed);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Closed> {
        let mut written = 0;
        while let Some(rest) = self.replies.get(written..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(0) => return Err(Closed),
                Ok(length) => written += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        if written == self.replies.len() {
            self.replies.clear();
        } else {
            self.replies.drain(..written);
        }
        Ok(())
    }
}

/// Where one request ends and the next one begins.
enum Framing {
    Resp(RequestParser),
    Dicedb,
}

impl Framing {
    /// Answers every whole request in `input`; returns the bytes that they took.
    fn answer(&mut self, input: &[u8], replies: &mut Vec<u8>) -> Result<usize, Closed> {
        match self {
            Framing::Resp(parser) => answer_resp(parser, input, replies),
            Framing::Dicedb => Ok(answer_dicedb(input, replies)),
        }
    }
}

fn answer_resp(parser: &mut RequestParser, input: &[u8], replies: &mut Vec<u8>) -> Result<usize, Closed> {
    let limits = RequestLimits { authenticated: true, ..RequestLimits::default() };
    let mut consumed = 0;
    while let Some(rest) = input.get(consumed..).filter(|rest| !rest.is_empty()) {
        let Some(length) = parser.next(rest, &limits).map_err(|_| Closed)? else { break };
        if !parser.is_empty() {
            replies.extend_from_slice(reply_to(parser.argument(0, rest)));
        }
        consumed += length;
    }
    Ok(consumed)
}

/// A frame is its length, big-endian, and so many bytes.
fn answer_dicedb(input: &[u8], replies: &mut Vec<u8>) -> usize {
    /// The result `OK` of a GET whose value is empty, which the client takes for that of a SET as well.
    const OK: [u8; 11] = [0, 0, 0, 7, 0x12, 2, b'O', b'K', 0x8a, 1, 0];
    let mut consumed = 0;
    while let Some((length, rest)) = input.get(consumed..).and_then(<[u8]>::split_first_chunk::<4>) {
        let length = u32::from_be_bytes(*length) as usize;
        if rest.len() < length {
            break;
        }
        replies.extend_from_slice(&OK);
        consumed += 4 + length;
    }
    consumed
}

/// A reply of the right shape for what clients check: no key exists, and everything else succeeds.
fn reply_to(command: &[u8]) -> &'static [u8] {
    if command.eq_ignore_ascii_case(b"PING") {
        b"+PONG\r\n"
    } else if command.eq_ignore_ascii_case(b"GET") {
        b"$-1\r\n"
    } else {
        b"+OK\r\n"
    }
}

#[cfg(test)]
mod tests {
    use super::{Framing, NullServer};
    use crate::null_server::NullProtocol;
    use std::io::{Read, Write};
    use tidemark_server::resp::request::RequestParser;

    #[test]
    fn requests_are_counted_by_their_framing_in_any_split() {
        // The value looks like a request; only its length says that it is none.
        let input = b"PING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$18\r\n*1\r\n$4\r\nPING\r\nabcd\r\n*2\r\n$3\r\nget\r\n$1\r\nk\r\n";
        for step in 1..input.len() {
            let mut framing = Framing::Resp(RequestParser::default());
            let (mut replies, mut buffer) = (Vec::new(), Vec::new());
            for piece in input.chunks(step) {
                buffer.extend_from_slice(piece);
                let consumed = framing.answer(&buffer, &mut replies).unwrap_or_else(|_| panic!("is RESP"));
                buffer.drain(..consumed);
            }
            assert_eq!(replies, b"+PONG\r\n+OK\r\n$-1\r\n");
            assert!(buffer.is_empty());
        }
    }

    #[test]
    fn frames_of_protocol_buffers_are_counted_in_any_split() {
        let input =
            [&[0, 0, 0, 6, 0x0a, 4][..], b"PING", &[0, 0, 0, 0, 0, 0, 0, 2, 0x0a, 0, 0, 0, 1]].concat();
        for step in 1..input.len() {
            let (mut replies, mut buffer) = (Vec::new(), Vec::new());
            for piece in input.chunks(step) {
                buffer.extend_from_slice(piece);
                let consumed =
                    Framing::Dicedb.answer(&buffer, &mut replies).unwrap_or_else(|_| panic!("is framed"));
                buffer.drain(..consumed);
            }
            assert_eq!(replies, [0, 0, 0, 7, 0x12, 2, b'O', b'K', 0x8a, 1, 0].repeat(3));
            assert_eq!(buffer, [0, 0, 1], "the fourth has only begun");
        }
    }

    #[test]
    fn it_answers_a_pipeline_over_a_socket_and_closes_on_what_is_not_resp() {
        let mut server = NullServer::bind(0, NullProtocol::Resp).unwrap();
        let address = server.address().unwrap();
        std::thread::spawn(move || server.run());
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(&b"*1\r\n$4\r\nPING\r\n".repeat(30_000)).unwrap();
        let mut replies = vec![0; 7 * 30_000];
        stream.read_exact(&mut replies).unwrap();
        assert_eq!(replies, b"+PONG\r\n".repeat(30_000));
        stream.write_all(b"*x\r\n").unwrap();
        assert_eq!(stream.read(&mut replies).unwrap(), 0);
    }
}
