//! Accepts HTTP connections, few at a time and none for long without a request: each takes a descriptor, and those are
//! for clients and the log. Connections that watch reads have places of their own, and stay.
//!
//! Connections are accepted at once, whoever holds the places: where none is free, the oldest connection that has not
//! sent a whole request makes room. While all of them are being served, further ones get a few spare places, in which
//! only health and metrics are answered. So nobody can keep a probe waiting by opening connections.

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

/// How long accepting pauses when the process has run out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Places beside the ordinary ones, for health and metrics alone.
pub(crate) const SPARE_PLACES: usize = 16;

/// How often a free place is looked for before a connection makes room. In between, the runtime looks for what has arrived.
const LOOKS: usize = 3;

/// How long connections are waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// For the next request, or the rest of one.
    pub(crate) request: Duration,
    /// For one that watches, while something waits for it, to read any of it. It may come back, and goes on where it was.
    pub(crate) reader: Duration,
}

/// A listener with a limit on its connections.
pub(crate) struct FewListener {
    listener: TcpListener,
    places: Arc<Places>,
    patience: Patience,
}

/// Places for connections, and who among those that have one has not asked anything.
struct Places {
    ordinary: Arc<Semaphore>,
    spare: Arc<Semaphore>,
    /// Connections that have not sent a whole request, by when that began; those first that were never answered.
    silent: Mutex<BTreeMap<Silence, Arc<Stay>>>,
    /// How many silences have begun.
    silences: AtomicU64,
}

/// When a connection began to say nothing: whether it had been answered before, and a number that ascends.
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

    /// A place for a further connection, and whether it is an ordinary one. It waits for one to be free only if all
    /// connections, those in spare places too, are being served.
    async fn take(&self) -> (OwnedSemaphorePermit, bool) {
        let (ordinary, spare) = (Arc::clone(&self.ordinary), Arc::clone(&self.spare));
        for _ in 0..LOOKS {
            if let Ok(place) = Arc::clone(&ordinary).try_acquire_owned() {
                return (place, true);
            }
            // Those that were accepted a moment ago may have sent their requests: let these be read.
            tokio::task::yield_now().await;
        }
        let unclosed = "nobody closes the semaphores of places";
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

    /// Ends the oldest connection in a place of this kind that has not sent a whole request; whether there is one.
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
    /// At most `connections` at once, beside those that watch and [`SPARE_PLACES`].
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
                    // What is sent is small and complete. A socket that refuses is slower, and works.
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

/// A connection as those know it who answer its requests.
#[derive(Clone)]
pub(crate) struct Visit {
    /// Who visits.
    pub(crate) address: SocketAddr,
    places: Arc<Places>,
    stay: Arc<Stay>,
}

/// How long a connection may stay, and the place that it has.
struct Stay {
    watches: AtomicBool,
    /// It is to end: another one needs the place.
    is_evicted: AtomicBool,
    /// Where it is among those that have not sent a whole request, if it is one of them.
    silence: Mutex<Option<Silence>>,
    /// Wakes the task that reads from it.
    task: AtomicWaker,
    is_ordinary: AtomicBool,
    place: Mutex<OwnedSemaphorePermit>,
}

impl Visit {
    /// A connection from `address` that has this place.
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

    /// A whole request has come.
    pub(crate) fn note_request(&self) {
        let silence = self.stay.silence().take();
        if let Some(silence) = silence {
            self.places.silent().remove(&silence);
        }
    }

    /// Nothing is asked from now on, until [`Visit::note_request`]; `was_answered` if a request was answered before.
    fn note_silence(&self, was_answered: bool) {
        self.note_request();
        if !self.stay.watches() {
            let number = self.places.silences.fetch_add(1, Ordering::Relaxed);
            let silence = (was_answered, number);
            *self.stay.silence() = Some(silence);
            self.places.silent().insert(silence, Arc::clone(&self.stay));
        }
    }

    /// Gives a connection in a spare place an ordinary one, if it has none and one is free; whether it has one now.
    pub(crate) fn find_ordinary_place(&self) -> bool {
        if !self.stay.is_ordinary.load(Ordering::Relaxed) {
            let Ok(place) = Arc::clone(&self.places.ordinary).try_acquire_owned() else { return false };
            *self.stay.place() = place;
            self.stay.is_ordinary.store(true, Ordering::Relaxed);
        }
        true
    }

    /// Lets the connection stay in a place of other kind, and gives its own to somebody else. It ends with its request.
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

/// A connection that fails when its next request, or the rest of one, does not come in time; or, if it watches, when nothing
/// of what is sent is read for long; or when another one needs its place and it has asked nothing.
pub(crate) struct Visitor {
    stream: TcpStream,
    /// When patience is at an end.
    deadline: Pin<Box<Sleep>>,
    patience: Patience,
    /// It watches, and the kernel takes no more for it until it reads.
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

    /// Fails once the deadline has passed or the place is needed, and lets both wake the task otherwise. Whoever watches may
    /// be silent.
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

    /// Waits so long from now on, and not until whatever it has been waiting for.
    fn wait_for(&mut self, patience: Duration) {
        self.deadline.as_mut().reset(Instant::now() + patience);
    }

    /// Begins to wait for a watcher that does not read.
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
        // A request has been answered: the time for the next begins.
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

    /// Serves `router` for up to `connections` at once.
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

    /// Answers when it is let, and in places for everything alone.
    fn slow(go_on: Arc<Semaphore>) -> Router {
        let slow = async move |ConnectInfo(visit): ConnectInfo<Visit>| {
            visit.note_request();
            if !visit.find_ordinary_place() {
                return "no place";
            }
            go_on.acquire().await.expect("nobody closes it").forget();
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
            // The first, which is told that its request has no end, or sees the end.
            let _ = half[0].read_to_end(&mut rest).await;
            half[49].write_all(b": y\r\nConnection: close\r\n\r\n").await.expect("it reads");
            assert!(answer(&mut half[49]).await.ends_with("answer"), "the youngest has its place");
        });
    }

    #[test]
    fn while_all_are_served_there_are_places_for_health_alone_and_nobody_served_is_cut_off() {
        runtime().block_on(async {
            let go_on = Arc::new(Semaphore::new(0));
            let address = serve(2, slow(Arc::clone(&go_on))).await;
            let mut served = [connect(address, REQUEST).await, connect(address, REQUEST).await];
            // Once a third is refused, the first two are being served.
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
