//! Accepts HTTP connections, few at a time and none for long without a request: each takes a descriptor, and those are
//! for clients and the log. Connections that watch reads have places of their own, and stay.

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

/// How long accepting pauses when the process has run out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long connections are waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// For the next request, or the rest of one.
    pub(crate) request: Duration,
    /// The same while no place is free: not longer, or those who ask for nothing keep out those who ask.
    pub(crate) crowded: Duration,
    /// For one that watches, while something waits for it, to read any of it. It may come back, and goes on where it was.
    pub(crate) reader: Duration,
}

/// A listener with a limit on its connections. Further ones wait in the kernel until one ends.
pub(crate) struct FewListener {
    listener: TcpListener,
    places: Arc<Places>,
    patience: Patience,
}

/// Places for connections, one of which may be held for whoever comes next.
struct Places {
    free: Arc<Semaphore>,
    is_one_held: AtomicBool,
}

impl Places {
    fn are_taken(&self) -> bool {
        !self.is_one_held.load(Ordering::Relaxed) && self.free.available_permits() == 0
    }
}

impl FewListener {
    /// At most `connections` at once, beside those that watch.
    pub(crate) fn new(listener: TcpListener, connections: usize, patience: Patience) -> FewListener {
        let free = Arc::new(Semaphore::new(connections));
        let places = Places { free, is_one_held: AtomicBool::new(false) };
        FewListener { listener, places: Arc::new(places), patience }
    }
}

impl Listener for FewListener {
    type Io = Visitor;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Visitor, SocketAddr) {
        let Ok(place) = Arc::clone(&self.places.free).acquire_owned().await else {
            // Nobody closes the semaphore.
            return std::future::pending().await;
        };
        self.places.is_one_held.store(true, Ordering::Relaxed);
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    // What is sent is small and complete. A socket that refuses is slower, and works.
                    let _ = stream.set_nodelay(true);
                    let places = Arc::clone(&self.places);
                    places.is_one_held.store(false, Ordering::Relaxed);
                    return (Visitor::new(stream, address, place, places, self.patience), address);
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection as those know it who answer its requests.
#[derive(Clone)]
pub(crate) struct Visit {
    /// Who visits.
    pub(crate) address: SocketAddr,
    stay: Arc<Stay>,
}

/// How long a connection may stay, and the place that it has.
struct Stay {
    watches: AtomicBool,
    /// A whole request has come, and nothing of its answer has been written.
    is_served: AtomicBool,
    place: Mutex<OwnedSemaphorePermit>,
}

impl Visit {
    /// A connection from `address` that has this place.
    pub(crate) fn new(address: SocketAddr, place: OwnedSemaphorePermit) -> Visit {
        let (watches, is_served) = (AtomicBool::new(false), AtomicBool::new(false));
        Visit { address, stay: Arc::new(Stay { watches, is_served, place: Mutex::new(place) }) }
    }

    /// A whole request has come.
    pub(crate) fn note_request(&self) {
        self.stay.is_served.store(true, Ordering::Relaxed);
    }

    /// Lets the connection stay in a place of other kind, and gives its own to somebody else. It ends with its request.
    pub(crate) fn watch_from(&self, place: OwnedSemaphorePermit) {
        *self.stay.place.lock().unwrap_or_else(PoisonError::into_inner) = place;
        self.stay.watches.store(true, Ordering::Relaxed);
    }
}

impl Connected<IncomingStream<'_, FewListener>> for Visit {
    fn connect_info(stream: IncomingStream<'_, FewListener>) -> Visit {
        stream.io().visit.clone()
    }
}

/// A connection that fails when its next request, or the rest of one, does not come in time; or, if it watches, when nothing
/// of what is sent is read for long.
pub(crate) struct Visitor {
    stream: TcpStream,
    /// When patience is at an end.
    deadline: Instant,
    /// The next look at the time, and at who else would like to come in.
    look: Pin<Box<Sleep>>,
    places: Arc<Places>,
    patience: Patience,
    /// It watches, and the kernel takes no more for it until it reads.
    is_stuck: bool,
    visit: Visit,
}

impl Visitor {
    fn new(
        stream: TcpStream,
        address: SocketAddr,
        place: OwnedSemaphorePermit,
        places: Arc<Places>,
        patience: Patience,
    ) -> Visitor {
        Visitor {
            stream,
            deadline: Instant::now() + patience.request,
            look: Box::pin(tokio::time::sleep(patience.crowded)),
            places,
            patience,
            is_stuck: false,
            visit: Visit::new(address, place),
        }
    }

    fn watches(&self) -> bool {
        self.visit.stay.watches.load(Ordering::Relaxed)
    }

    /// Fails once the deadline has passed, and lets it wake the task otherwise. Whoever watches may be silent.
    fn check_time(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.watches() && !self.is_stuck {
            return Ok(());
        }
        while self.look.as_mut().poll(cx).is_ready() {
            let asks_nothing = !self.watches() && !self.visit.stay.is_served.load(Ordering::Relaxed);
            if asks_nothing && self.places.are_taken() || self.deadline <= Instant::now() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.look_again();
        }
        Ok(())
    }

    /// Waits so long from now on, and not until whatever it has been waiting for.
    fn wait_for(&mut self, patience: Duration) {
        self.deadline = Instant::now() + patience;
        self.look_again();
    }

    fn look_again(&mut self) {
        let at = self.deadline.min(Instant::now() + self.patience.crowded);
        self.look.as_mut().reset(at);
    }

    /// Begins to wait for a watcher that does not read.
    fn note_stuck(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.watches() && !self.is_stuck {
            self.is_stuck = true;
            self.wait_for(self.patience.reader);
        }
        self.check_time(cx)
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
        let Poll::Ready(written) = Pin::new(&mut self.stream).poll_write(cx, bytes) else {
            self.note_stuck(cx)?;
            return Poll::Pending;
        };
        let written = written?;
        self.is_stuck = false;
        // A request has been answered: the time for the next begins.
        self.visit.stay.is_served.store(false, Ordering::Relaxed);
        let patience = self.patience.request;
        self.wait_for(patience);
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
    use axum::body::Body;
    use axum::{Router, extract::ConnectInfo, routing::get};
    use std::io::{Read, Write};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
    }

    async fn listener(connections: usize, patience: Duration) -> (FewListener, SocketAddr) {
        let patience = Patience { request: patience, crowded: patience, reader: patience };
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
    fn whoever_sends_no_request_makes_room_at_once_where_none_is_left() {
        let runtime = runtime();
        runtime.block_on(async {
            let (mut few, address) = listener(2, Duration::from_mins(10)).await;
            few.patience.crowded = Duration::from_millis(20);
            tokio::spawn(async {
                let router = Router::new().route("/", get(async || "answer"));
                axum::serve(few, router).await
            });
            let mut half = Vec::new();
            for _ in 0..5 {
                let mut stream = TcpStream::connect(address).await.expect("it listens");
                stream.write_all(b"GET / HTTP/1.1\r\nX").await.expect("it reads");
                half.push(stream);
            }
            let mut brisk = TcpStream::connect(address).await.expect("it listens");
            let request = b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
            brisk.write_all(request).await.expect("it reads");
            let mut answer = String::new();
            let asked = brisk.read_to_string(&mut answer);
            tokio::time::timeout(Duration::from_secs(20), asked).await.expect("in time").expect("an answer");
            assert!(answer.ends_with("answer"), "{answer}");
        });
    }

    #[test]
    fn whoever_has_asked_is_answered_however_many_want_in() {
        let runtime = runtime();
        runtime.block_on(async {
            let (mut few, address) = listener(2, Duration::from_mins(10)).await;
            few.patience.crowded = Duration::from_millis(20);
            tokio::spawn(async {
                let slow = async |ConnectInfo(visit): ConnectInfo<Visit>| {
                    visit.note_request();
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    ([("connection", "close")], "answer")
                };
                let router =
                    Router::new().route("/", get(slow)).into_make_service_with_connect_info::<Visit>();
                axum::serve(few, router).await
            });
            let mut all = Vec::new();
            for _ in 0..4 {
                let mut stream = TcpStream::connect(address).await.expect("it listens");
                stream.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").await.expect("it reads");
                all.push(stream);
            }
            for mut stream in all {
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.expect("an answer, and then the end");
                assert!(answer.ends_with("answer"), "{answer}");
            }
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

    #[test]
    fn whoever_watches_stays_silent_as_long_as_need_be_and_leaves_its_place_to_others() {
        let runtime = runtime();
        let (few, address) = runtime.block_on(listener(1, Duration::from_millis(50)));
        std::thread::spawn(move || {
            let places = Arc::new(Semaphore::new(2));
            let watch = async move |ConnectInfo(visit): ConnectInfo<Visit>| {
                visit.watch_from(Arc::clone(&places).acquire_owned().await.expect("it is open"));
                tokio::time::sleep(Duration::from_millis(300)).await;
                ([("connection", "close")], "answer")
            };
            let router = Router::new().route("/", get(watch)).into_make_service_with_connect_info::<Visit>();
            runtime.block_on(async { axum::serve(few, router).await })
        });
        let ask = |_| {
            let mut stream = std::net::TcpStream::connect(address).expect("it listens");
            stream.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").expect("it reads");
            stream
        };
        // There is one place, and the second is served while the first is.
        for mut watcher in [0, 1].map(ask) {
            let mut answer = String::new();
            watcher.read_to_string(&mut answer).expect("an answer, and then the end");
            assert!(answer.ends_with("answer"), "{answer}");
        }
    }

    #[test]
    fn whoever_watches_and_does_not_read_makes_room_too() {
        let runtime = runtime();
        let (few, address) = runtime.block_on(listener(1, Duration::from_millis(50)));
        let places = Arc::new(Semaphore::new(1));
        let place = Arc::clone(&places);
        runtime.block_on(async {
            let watch = async move |ConnectInfo(visit): ConnectInfo<Visit>| {
                visit.watch_from(place.try_acquire_owned().expect("nobody else watches"));
                Body::from_stream(futures_util::stream::repeat_with(|| {
                    Ok::<_, io::Error>(vec![b'x'; 100_000])
                }))
            };
            let router = Router::new().route("/", get(watch)).into_make_service_with_connect_info::<Visit>();
            let server = tokio::spawn(async { axum::serve(few, router).await });
            let mut silent = TcpStream::connect(address).await.expect("it listens");
            silent.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").await.expect("it reads");
            let mut first = [0];
            silent.read_exact(&mut first).await.expect("an answer begins");
            assert_eq!(places.available_permits(), 0);
            let free = tokio::time::timeout(Duration::from_secs(20), places.acquire()).await;
            assert!(free.is_ok(), "its place is free");
            server.abort();
        });
    }
}
