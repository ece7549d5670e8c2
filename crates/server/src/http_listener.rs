//! Accepts HTTP connections, few at a time and none for long without a request: each takes a descriptor, and those are
//! for clients and the log.

use axum::serve::Listener;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

/// How long accepting pauses when the process has run out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listener with a limit on its connections. Further ones wait in the kernel until one ends.
pub(crate) struct FewListener {
    listener: TcpListener,
    places: Arc<Semaphore>,
    patience: Duration,
}

impl FewListener {
    /// At most `connections` at once, each of which gets `patience` for its next request.
    pub(crate) fn new(listener: TcpListener, connections: usize, patience: Duration) -> FewListener {
        FewListener { listener, places: Arc::new(Semaphore::new(connections)), patience }
    }
}

impl Listener for FewListener {
    type Io = Visitor;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Visitor, SocketAddr) {
        let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
            // Nobody closes the semaphore.
            return std::future::pending().await;
        };
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => return (Visitor::new(stream, place, self.patience), address),
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that fails when its next request, or the rest of one, does not come in time.
pub(crate) struct Visitor {
    stream: TcpStream,
    deadline: Pin<Box<Sleep>>,
    patience: Duration,
    _place: OwnedSemaphorePermit,
}

impl Visitor {
    fn new(stream: TcpStream, place: OwnedSemaphorePermit, patience: Duration) -> Visitor {
        Visitor { stream, deadline: Box::pin(tokio::time::sleep(patience)), patience, _place: place }
    }

    /// Fails once the deadline has passed, and lets it wake the task otherwise.
    fn check_time(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.deadline.as_mut().poll(cx).is_ready() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}

impl AsyncRead for Visitor {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_time(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Visitor {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check_time(cx)?;
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        // A request has been answered: the time for the next begins.
        let deadline = Instant::now() + self.patience;
        self.deadline.as_mut().reset(deadline);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::{Router, routing::get};
    use std::io::{Read, Write};

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
    }

    async fn listener(connections: usize, patience: Duration) -> (FewListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        (FewListener::new(listener, connections, patience), address)
    }

    #[test]
    fn beyond_the_limit_nobody_is_accepted_until_somebody_leaves() {
        runtime().block_on(async {
            let (mut few, address) = listener(1, Duration::from_mins(1)).await;
            let _both = (TcpStream::connect(address).await, TcpStream::connect(address).await);
            let (first, _) = few.accept().await;
            let second = tokio::time::timeout(Duration::from_millis(20), few.accept()).await;
            assert!(second.is_err(), "there is no place");
            drop(first);
            few.accept().await;
        });
    }

    #[test]
    fn whoever_sends_no_request_makes_room_for_those_who_do() {
        let runtime = runtime();
        let (few, address) = runtime.block_on(listener(1, Duration::from_millis(50)));
        std::thread::spawn(move || {
            let router = Router::new().route("/", get(async || "answer"));
            runtime.block_on(async { axum::serve(few, router).await })
        });
        let connect = || std::net::TcpStream::connect(address).expect("it listens");
        let (mut silent, mut half, mut brisk) = (connect(), connect(), connect());
        half.write_all(b"GET / HTTP/1.1\r\nHost:").expect("it reads");
        brisk.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").expect("it reads");
        let mut answer = String::new();
        brisk.read_to_string(&mut answer).expect("an answer, and then the end");
        assert!(answer.ends_with("answer"), "{answer}");
        let mut rest = Vec::new();
        assert_eq!(silent.read_to_end(&mut rest).expect("the end"), 0);
        // A request without its end may be told so before the end.
        let _ = half.read_to_end(&mut rest);
    }
}
