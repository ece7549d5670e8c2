//! Accepts HTTP connections with limits on their number and idle time, as each takes a file
//! descriptor that clients and the log need. Connections that watch reads have places of their own
//! and may stay.
//!
//! Connections are accepted immediately. If no place is free, the oldest connection that has not
//! sent a whole request is evicted. If all of them are being served, further connections get a few
//! spare places, which serve only health and metrics: idle connections cannot block a probe.

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use futures_util::task::AtomicWaker;
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

/// Pause in accepting when the process has run out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Extra places for health and metrics only.
pub(crate) const SPARE_PLACES: usize = 16;

/// Attempts to find a free place before a connection is evicted. Between them the runtime reads
/// arrived requests.
const LOOKS: usize = 3;

/// Time limits of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// For the next request, or the rest of one.
    pub(crate) request: Duration,
    /// For a watching client to read pending data. It may reconnect and resume.
    pub(crate) reader: Duration,
}

/// A listener with a limit on its connections.
pub(crate) struct FewListener {
    listener: TcpListener,
    places: Arc<Places>,
    patience: Patience,
}

/// Places for connections, and the connections in them without a request.
struct Places {
    ordinary: Arc<Semaphore>,
    spare: Arc<Semaphore>,
    /// Connections that have not sent a whole request, in order of eviction: those never answered
    /// first, then by age.
    silent: Mutex<BTreeMap<Silence, Arc<Stay>>>,
    /// Number of silences that have begun.
    silences: AtomicU64,
}

/// Start of a silence: whether the connection had been answered before, and an ascending number.
type Silence = (bool, u64);

impl Places {
    fn new(connections: usize) -> Places {
        Places {
            ordinary: Arc::new(Semaphore::new(connections)),
            spare: Arc::new(Semaphore::new(SPARE_PLACES)),
            silent: Mutex::default(),
            silences: AtomicU64::new(0),
        }
    }

    /// Returns a place for a connection, and whether it is an ordinary one. Waits only while all
    /// connections, including those in spare places, are being served.
    async fn take(&self) -> (OwnedSemaphorePermit, bool) {
        let (ordinary, spare) = (Arc::clone(&self.ordinary), Arc::clone(&self.spare));
        for _ in 0..LOOKS {
            if let Ok(place) = Arc::clone(&ordinary).try_acquire_owned() {
                return (place, true);
            }
            // Recently accepted connections may have sent their requests: let these be read.
            tokio::task::yield_now().await;
        }
        let unclosed = "the semaphores of places are never closed";
        if self.evict(true) {
            return (ordinary.acquire_owned().await.expect(unclosed), true);
        }
        if let Ok(place) = Arc::clone(&spare).try_acquire_owned() {
            return (place, false);
        }
        self.evict(false);
        tokio::select! {
            place = ordinary.acquire_owned() => (place.expect(unclosed), true),
            place = spare.acquire_owned() => (place.expect(unclosed), false),
        }
    }

    /// Evicts the oldest connection in a place of this kind that has not sent a whole request.
    /// Returns whether there was one.
    fn evict(&self, is_ordinary: bool) -> bool {
        let mut silent = self.silent();
        let oldest = silent.iter().find(|(_, stay)| stay.is_ordinary.load(Ordering::Relaxed) == is_ordinary);
        let Some(oldest) = oldest.map(|(silence, _)| *silence) else { return false };
        let stay = silent.remove(&oldest).expect("it was just found");
        stay.is_evicted.store(true, Ordering::Release);
        stay.task.wake();
        true
    }

    fn silent(&self) -> MutexGuard<'_, BTreeMap<Silence, Arc<Stay>>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FewListener {
    /// Allows at most `connections` at a time, in addition to watching ones and [`SPARE_PLACES`].
    pub(crate) fn new(listener: TcpListener, connections: usize, patience: Patience) -> FewListener {
        FewListener { listener, places: Arc::new(Places::new(connections)), patience }
    }
}

impl Listener for FewListener {
    type Io = Visitor;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Visitor, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    // Responses are small and complete. A failure only costs latency.
                    let _ = stream.set_nodelay(true);
                    let (place, is_ordinary) = self.places.take().await;
                    let visit = Visit::with(address, place, is_ordinary, Arc::clone(&self.places));
                    return (Visitor::new(stream, visit, self.patience), address);
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Handle of a connection for the handlers of its requests.
#[derive(Clone)]
pub(crate) struct Visit {
    /// Address of the peer.
    pub(crate) address: SocketAddr,
    places: Arc<Places>,
    stay: Arc<Stay>,
}

/// State of a connection and the place that it holds.
struct Stay {
    watches: AtomicBool,
    /// The connection must end because another needs its place.
    is_evicted: AtomicBool,
    /// Key among the silent connections, if it is one of them.
    silence: Mutex<Option<Silence>>,
    /// Wakes the task that reads from the connection.
    task: AtomicWaker,
    is_ordinary: AtomicBool,
    place: Mutex<OwnedSemaphorePermit>,
}

impl Visit {
    /// Creates a connection from `address` that holds `place`.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn new(address: SocketAddr, place: OwnedSemaphorePermit) -> Visit {
        Visit::with(address, place, true, Arc::new(Places::new(1)))
    }

    fn with(
        address: SocketAddr,
        place: OwnedSemaphorePermit,
        is_ordinary: bool,
        places: Arc<Places>,
    ) -> Visit {
        let stay = Stay {
            watches: AtomicBool::new(false),
            is_evicted: AtomicBool::new(false),
            silence: Mutex::new(None),
            task: AtomicWaker::new(),
            is_ordinary: AtomicBool::new(is_ordinary),
            place: Mutex::new(place),
        };
        Visit { address, places, stay: Arc::new(stay) }
    }

    /// Records that a whole request has arrived.
    pub(crate) fn note_request(&self) {
        let silence = self.stay.silence().take();
        if let Some(silence) = silence {
            self.places.silent().remove(&silence);
        }
    }

    /// Starts a silence, until [`Visit::note_request`]. `was_answered`: a request was answered
    /// before.
    fn note_silence(&self, was_answered: bool) {
        self.note_request();
        if !self.stay.watches() {
            let number = self.places.silences.fetch_add(1, Ordering::Relaxed);
            let silence = (was_answered, number);
            *self.stay.silence() = Some(silence);
            self.places.silent().insert(silence, Arc::clone(&self.stay));
        }
    }

    /// Moves a connection from a spare to an ordinary place if one is free. Returns whether its
    /// place is ordinary now.
    pub(crate) fn find_ordinary_place(&self) -> bool {
        if !self.stay.is_ordinary.load(Ordering::Relaxed) {
            let Ok(place) = Arc::clone(&self.places.ordinary).try_acquire_owned() else { return false };
            *self.stay.place() = place;
            self.stay.is_ordinary.store(true, Ordering::Relaxed);
        }
        true
    }

    /// Moves the connection to a place for watching, until its request ends.
    pub(crate) fn watch_from(&self, place: OwnedSemaphorePermit) {
        *self.stay.place() = place;
        self.stay.watches.store(true, Ordering::Relaxed);
    }
}

impl Stay {
    fn watches(&self) -> bool {
        self.watches.load(Ordering::Relaxed)
    }

    fn silence(&self) -> MutexGuard<'_, Option<Silence>> {
        self.silence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self) -> MutexGuard<'_, OwnedSemaphorePermit> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connected<IncomingStream<'_, FewListener>> for Visit {
    fn connect_info(stream: IncomingStream<'_, FewListener>) -> Visit {
        stream.io().visit.clone()
    }
}

/// A connection that fails when its request does not arrive in time, when its place is needed
/// during a silence, or, if it watches, when it reads nothing for long.
pub(crate) struct Visitor {
    stream: TcpStream,
    /// End of the current time limit.
    deadline: Pin<Box<Sleep>>,
    patience: Patience,
    /// The connection watches, and its socket buffer is full until the client reads.
    is_stuck: bool,
    visit: Visit,
}

impl Drop for Visitor {
    fn drop(&mut self) {
        self.visit.note_request();
    }
}

impl Visitor {
    fn new(stream: TcpStream, visit: Visit, patience: Patience) -> Visitor {
        visit.note_silence(false);
        let deadline = Box::pin(tokio::time::sleep(patience.request));
        Visitor { stream, deadline, patience, is_stuck: false, visit }
    }

    /// Fails if the deadline has passed or the place is needed; otherwise registers both to wake
    /// the task. A watching connection may be silent.
    fn check_time(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let stay = &self.visit.stay;
        stay.task.register(cx.waker());
        if stay.is_evicted.load(Ordering::Acquire) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if stay.watches() && !self.is_stuck {
            return Ok(());
        }
        match self.deadline.as_mut().poll(cx) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }

    /// Restarts the time limit from now.
    fn wait_for(&mut self, patience: Duration) {
        self.deadline.as_mut().reset(Instant::now() + patience);
    }

    /// Starts the time limit of a watching client that does not read.
    fn note_stuck(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.visit.stay.watches() && !self.is_stuck {
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
        // A request was answered: the time for the next one begins.
        self.visit.note_silence(true);
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
        let patience = Patience { request: patience, reader: patience };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        (FewListener::new(listener, connections, patience), address)
    }

    /// Serves `router` with up to `connections` ordinary places and returns the address.
    async fn serve(connections: usize, router: Router) -> SocketAddr {
        let (few, address) = listener(connections, Duration::from_mins(10)).await;
        let router = router.into_make_service_with_connect_info::<Visit>();
        tokio::spawn(async { axum::serve(few, router).await });
        address
    }

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";

    async fn connect(address: SocketAddr, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.write_all(bytes).await.expect("it reads");
        stream
    }

    async fn answer(stream: &mut TcpStream) -> String {
        let mut answer = String::new();
        let read = stream.read_to_string(&mut answer);
        tokio::time::timeout(Duration::from_secs(20), read).await.expect("in time").expect("an answer");
        answer
    }

    /// Returns a router that answers when the test permits, and only in ordinary places.
    fn slow(go_on: Arc<Semaphore>) -> Router {
        let slow = async move |ConnectInfo(visit): ConnectInfo<Visit>| {
            visit.note_request();
            if !visit.find_ordinary_place() {
                return "no place";
            }
            go_on.acquire().await.expect("it is never closed").forget();
            "answer"
        };
        let probe = async |ConnectInfo(visit): ConnectInfo<Visit>| {
            visit.note_request();
            "healthy"
        };
        Router::new().route("/", get(slow)).route("/health", get(probe))
    }

    #[test]
    fn the_oldest_that_has_sent_no_whole_request_makes_room_where_none_is_left() {
        runtime().block_on(async {
            let address = serve(2, slow(Arc::new(Semaphore::new(100)))).await;
            let mut half = Vec::new();
            for _ in 0..50 {
                half.push(connect(address, b"GET / HTTP/1.1\r\nX").await);
                assert!(answer(&mut connect(address, REQUEST).await).await.ends_with("answer"));
            }
            let mut rest = Vec::new();
            // The first one receives an error about its incomplete request, or the end.
            let _ = half[0].read_to_end(&mut rest).await;
            half[49].write_all(b": y\r\nConnection: close\r\n\r\n").await.expect("it reads");
            assert!(answer(&mut half[49]).await.ends_with("answer"), "the youngest has its place");
        });
    }

    #[test]
    fn while_all_connections_are_in_use_only_health_checks_are_accepted_and_no_served_client_is_cut_off() {
        runtime().block_on(async {
            let go_on = Arc::new(Semaphore::new(0));
            let address = serve(2, slow(Arc::clone(&go_on))).await;
            let mut served = [connect(address, REQUEST).await, connect(address, REQUEST).await];
            // Once a third connection is refused, the first two are being served.
            while !answer(&mut connect(address, REQUEST).await).await.ends_with("no place") {}
            let _trickling = [0; 3 * SPARE_PLACES].map(|_| std::net::TcpStream::connect(address));
            for _ in 0..3 * SPARE_PLACES {
                let probe = [b"GET /health".as_slice(), &REQUEST[b"GET /".len()..]].concat();
                assert!(answer(&mut connect(address, &probe).await).await.ends_with("healthy"));
            }
            go_on.add_permits(10);
            for stream in &mut served {
                assert!(answer(stream).await.ends_with("answer"));
            }
            assert!(answer(&mut connect(address, REQUEST).await).await.ends_with("answer"));
        });
    }

    #[test]
    fn an_idle_connection_is_closed_for_a_client_with_a_request() {
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
        // An incomplete request may be answered with an error before the end.
        let _ = half.read_to_end(&mut rest);
    }

    #[test]
    fn a_watching_client_may_stay_silent_and_frees_its_place_for_other_clients() {
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
        // There is one place, and the second connection is served while the first stays.
        for mut watcher in [0, 1].map(ask) {
            let mut answer = String::new();
            watcher.read_to_string(&mut answer).expect("an answer, and then the end");
            assert!(answer.ends_with("answer"), "{answer}");
        }
    }

    #[test]
    fn a_watching_client_that_does_not_read_is_closed_for_room_too() {
        let runtime = runtime();
        let (few, address) = runtime.block_on(listener(1, Duration::from_millis(50)));
        let places = Arc::new(Semaphore::new(1));
        let place = Arc::clone(&places);
        runtime.block_on(async {
            let watch = async move |ConnectInfo(visit): ConnectInfo<Visit>| {
                visit.watch_from(place.try_acquire_owned().expect("there is no other watcher"));
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
