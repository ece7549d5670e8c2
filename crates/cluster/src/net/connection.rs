//! A connection between two members: frames in, frames out, over TCP or TLS.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

use super::handshake::HANDSHAKE_BYTES_MAX;
use super::outbox::Outbox;
use super::settings::NetSettings;
use super::tls::{Tls, name_of};
use crate::wire::frame::{Channel, Frame, FrameError, FrameReader, Kind};

/// First bytes of a TLS connection: a handshake record of version 3.
const TLS_BEGINNING: [u8; 2] = [0x16, 0x03];

/// A socket, plain or behind TLS.
#[derive(Debug)]
enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection. Frames are read and written at the same time.
#[derive(Debug)]
pub(super) struct Connection {
    reader: ReadHalf<Socket>,
    writer: WriteHalf<Socket>,
    channel: Channel,
    incoming: FrameReader,
    outgoing: Outbox,
    is_flushed: bool,
    /// Sequence of the next frame of each direction.
    next_in: u32,
    next_out: u32,
}

/// Sets what all sockets between members have.
pub(super) fn tune(socket: &TcpStream, settings: &NetSettings) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let socket = SockRef::from(socket);
    let keepalive =
        TcpKeepalive::new().with_time(settings.keepalive).with_interval(settings.keepalive).with_retries(3);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(settings.user_timeout))
}

impl Connection {
    /// Takes a socket that is connected to an address and, with TLS, checks the certificate of the other
    /// end.
    pub(super) async fn connect(
        socket: TcpStream,
        address: &str,
        channel: Channel,
        tls: Option<&Tls>,
    ) -> io::Result<Self> {
        let socket = match tls {
            None => Socket::Plain(socket),
            Some(tls) => {
                let connected = tls.connector.connect(name_of(address)?, socket).await;
                Socket::Tls(Box::new(connected.map_err(|error| of_tls(&error))?.into()))
            }
        };
        Ok(Self::new(socket, channel))
    }

    /// Takes an accepted socket and, with TLS, checks the certificate of the other end.
    pub(super) async fn accept(socket: TcpStream, channel: Channel, tls: Option<&Tls>) -> io::Result<Self> {
        let socket = match tls {
            None => Socket::Plain(socket),
            Some(tls) => {
                let accepted = tls.acceptor.accept(socket).await;
                Socket::Tls(Box::new(accepted.map_err(|error| of_tls(&error))?.into()))
            }
        };
        Ok(Self::new(socket, channel))
    }

    fn new(socket: Socket, channel: Channel) -> Self {
        let (reader, writer) = tokio::io::split(socket);
        Self {
            reader,
            writer,
            channel,
            incoming: FrameReader::new(HANDSHAKE_BYTES_MAX),
            outgoing: Outbox::new(channel),
            is_flushed: true,
            next_in: 0,
            next_out: 0,
        }
    }

    /// Begins requests and answers: numbers are counted from 0 again, and frames may have `limit` bytes.
    pub(super) fn begin(&mut self, limit: usize) {
        self.incoming.set_limit(limit);
        (self.next_in, self.next_out) = (0, 0);
    }

    /// Sets the lane, which who accepts a connection learns from its first frame.
    pub(super) fn set_channel(&mut self, channel: Channel) {
        self.channel = channel;
        self.outgoing = Outbox::new(channel);
    }

    /// Appends a frame to what is to be written.
    pub(super) fn push(&mut self, kind: Kind, payload: Vec<u8>) {
        self.outgoing.push(kind, self.next_out, payload);
        self.next_out = self.next_out.wrapping_add(1);
        self.is_flushed = false;
    }

    /// Returns how many bytes are not written yet.
    pub(super) fn unwritten(&self) -> usize {
        self.outgoing.remaining()
    }

    /// Waits for the first frame of an accepted connection. Returns its payload and channel.
    pub(super) async fn receive_hello(&mut self) -> io::Result<(Bytes, Channel)> {
        loop {
            if self.incoming.rest().starts_with(&TLS_BEGINNING) {
                return Err(invalid("the peer speaks TLS, and this member does not"));
            }
            if let Some(frame) = self.incoming.next_frame().map_err(invalid)? {
                if (frame.kind, frame.sequence) != (Kind::Hello, 0) {
                    return Err(invalid("the first frame is no hello"));
                }
                self.next_in = 1;
                return Ok((frame.payload, frame.channel));
            }
            self.progress(true).await?;
        }
    }

    /// Returns a frame of this kind that has arrived, or a refusal instead of it.
    pub(super) fn next_frame(&mut self, kind: Kind) -> io::Result<Option<Frame>> {
        let Some(frame) = self.incoming.next_frame().map_err(invalid)? else { return Ok(None) };
        if frame.kind == Kind::Refusal {
            return Ok(Some(frame));
        }
        if frame.kind != kind {
            return Err(invalid(format!("a frame of kind {:?} arrived instead of {kind:?}", frame.kind)));
        }
        if frame.channel != self.channel {
            let (found, expected) = (frame.channel, self.channel);
            return Err(invalid(FrameError::Channel { found, expected }));
        }
        if frame.sequence != self.next_in {
            let (found, expected) = (frame.sequence, self.next_in);
            return Err(invalid(FrameError::Sequence { kind, found, expected }));
        }
        self.next_in = self.next_in.wrapping_add(1);
        Ok(Some(frame))
    }

    /// Reads once, if `reads` is set, or writes once: whichever can be done first. Without either it
    /// waits for ever. Nothing is lost if the future is dropped.
    pub(super) async fn progress(&mut self, reads: bool) -> io::Result<()> {
        let Self { reader, writer, incoming, outgoing, is_flushed, .. } = self;
        let writes = !*is_flushed;
        let read = async {
            match reader.read_buf(incoming.buffer()).await? {
                0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the peer closed the connection")),
                _ => Ok(()),
            }
        };
        let write = async {
            if outgoing.has_remaining() {
                if writer.write_buf(outgoing).await? == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
            } else {
                writer.flush().await?;
                *is_flushed = true;
            }
            Ok(())
        };
        tokio::select! {
            read = read, if reads => read,
            written = write, if writes => written,
            else => std::future::pending().await,
        }
    }

    /// Waits for a frame of this kind, or a refusal instead of it.
    pub(super) async fn receive(&mut self, kind: Kind) -> io::Result<Frame> {
        loop {
            if let Some(frame) = self.next_frame(kind)? {
                return Ok(frame);
            }
            self.progress(true).await?;
        }
    }

    /// Waits until everything is written, without reading.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        while !self.is_flushed {
            self.progress(false).await?;
        }
        Ok(())
    }
}

/// Wraps what is wrong with bytes that arrived.
pub(super) fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

fn of_tls(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("TLS with the peer failed: {error}"))
}

macro_rules! either {
    ($socket:expr, $inner:ident => $call:expr) => {
        match $socket.get_mut() {
            Socket::Plain($inner) => $call,
            Socket::Tls($inner) => $call,
        }
    };
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        either!(self, socket => Pin::new(socket).poll_read(cx, into))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        either!(self, socket => Pin::new(socket).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, socket => Pin::new(socket).poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(socket) => socket.is_write_vectored(),
            Self::Tls(socket) => socket.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, socket => Pin::new(socket).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, socket => Pin::new(socket).poll_shutdown(cx))
    }
}
