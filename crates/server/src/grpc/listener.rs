//! Accepts a limited number of gRPC connections: each takes a file descriptor and carries any
//! number of calls.

use crate::net::file_descriptors::OWN_GRPC_CONNECTIONS;
use futures_util::stream::{self, Stream};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;
use tonic::transport::server::{Connected, TcpConnectInfo};

/// Pause in accepting when the process has run out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Length of the HTTP/2 client preface (RFC 9113, section 3.4) and the time limit for it. After
/// that, keep-alive pings detect a dead client.
const GREETING_BYTES: usize = 24;
const GREETING_PATIENCE: Duration = Duration::from_secs(10);

/// Returns a stream of connections, at most [`OWN_GRPC_CONNECTIONS`] at a time. Further ones wait
/// in the kernel's backlog.
pub(super) fn connections(listener: TcpListener) -> impl Stream<Item = io::Result<Connection>> {
    let places = Arc::new(Semaphore::new(OWN_GRPC_CONNECTIONS));
    stream::unfold((listener, places), |(listener, places)| async move {
        // The semaphore is never closed.
        let place = Arc::clone(&places).acquire_owned().await.ok()?;
        let stream = accept(&listener).await;
        let greeting =
            Greeting { missing: GREETING_BYTES, until: Box::pin(tokio::time::sleep(GREETING_PATIENCE)) };
        Some((Ok(Connection { stream, greeting: Some(greeting), _place: place }), (listener, places)))
    })
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // A failure only costs latency.
                let _ = stream.set_nodelay(true);
                return stream;
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// A connection and its place.
pub(super) struct Connection {
    stream: TcpStream,
    /// Rest of the preface, until the client has proved to speak HTTP/2.
    greeting: Option<Greeting>,
    _place: OwnedSemaphorePermit,
}

/// See [`GREETING_BYTES`].
struct Greeting {
    missing: usize,
    until: Pin<Box<Sleep>>,
}

impl Connection {
    /// Counts received bytes of the preface. A client that is silent for too long loses its place.
    fn greeted(
        &mut self,
        read: Poll<io::Result<()>>,
        bytes: usize,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(greeting) = &mut self.greeting else { return read };
        greeting.missing = greeting.missing.saturating_sub(bytes);
        if greeting.missing == 0 {
            self.greeting = None;
        } else if read.is_pending() && greeting.until.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.greeted(read, buffer.filled().len() - before, cx)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
