//! The outgoing connection of one lane to one peer. It is made again whenever it ends.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::build::Build;
use super::connection::{Connection, invalid, tune};
use super::endpoint::Endpoint;
use super::handshake::{decode_reason, encode_reason};
use super::presence::Present;
use super::transport::Lane;
use crate::ids::{NodeId, RandomId};
use crate::wire::frame::{HEADER_BYTES, Kind};

/// Bytes that a frame costs besides its payload while it is queued or not answered.
pub(super) const FRAME_COST: usize = 128;

/// Bytes that are handed to the socket before more frames are taken from the queue.
const UNWRITTEN_BYTES_MAX: usize = 1 << 20;

/// How many of the longest waits follow a refusal, which lasts until an operator or a new list of
/// members ends it.
const REFUSED_BACKOFFS: u32 = 10;

/// State of a link, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkStatus {
    /// The other end.
    pub peer: NodeId,
    /// The lane.
    pub lane: Lane,
    /// Whether a connection is there.
    pub is_connected: bool,
    /// The directory of the process at the other end, of the last connection.
    pub directory: Option<RandomId>,
    /// The build at the other end, of the last connection, and the version of the protocol that the two
    /// use.
    pub build: Option<(Build, u16)>,
    /// Bytes that are queued or not answered.
    pub queued_bytes: usize,
    /// Why the last connection ended or could not be made; empty before the first failure.
    pub last_error: String,
}

/// Hands frames to the task of a link. Dropping it ends the task: unanswered frames fail.
#[derive(Debug)]
pub(super) struct Link {
    peer: NodeId,
    lane: Lane,
    calls: mpsc::UnboundedSender<Call>,
    queued_bytes_max: usize,
    state: Arc<LinkState>,
    task: AbortHandle,
}

/// What the task of a link shows.
#[derive(Debug, Default)]
struct LinkState {
    queued_bytes: AtomicUsize,
    shown: Mutex<Shown>,
}

/// What the task of a link has last seen.
#[derive(Clone, Debug, Default)]
struct Shown {
    is_connected: bool,
    directory: Option<RandomId>,
    build: Option<(Build, u16)>,
    last_error: String,
}

/// A frame and who waits for its answer.
#[derive(Debug)]
struct Call {
    frame: Vec<u8>,
    waiting: Waiting,
}

/// Who waits for an answer. Its bytes count as queued until it is dropped.
#[derive(Debug)]
struct Waiting {
    answer: oneshot::Sender<Bytes>,
    bytes: Queued,
}

#[derive(Debug)]
struct Queued {
    state: Arc<LinkState>,
    bytes: usize,
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.state.queued_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Link {
    pub(super) fn start(
        runtime: &tokio::runtime::Handle,
        endpoint: &Endpoint,
        peer: NodeId,
        address: String,
        lane: Lane,
    ) -> Self {
        let (calls, queue) = mpsc::unbounded_channel();
        let state = Arc::<LinkState>::default();
        let task = LinkTask {
            endpoint: endpoint.clone(),
            peer,
            address,
            lane,
            queue,
            state: Arc::clone(&state),
            resolving: None,
            waiting: VecDeque::new(),
        };
        let task = runtime.spawn(task.run()).abort_handle();
        let queued_bytes_max = endpoint.settings.queued_bytes_max(lane);
        Self { peer, lane, calls, queued_bytes_max, state, task }
    }

    /// Queues a frame. The receiver fails at once if the frame or what is queued is too large.
    pub(super) fn send(&self, frame: Vec<u8>) -> oneshot::Receiver<Bytes> {
        let (answer, receiver) = oneshot::channel();
        let limit = self.lane.request_bytes_max();
        if frame.len() > limit {
            self.state.fail(format!("a frame of {} bytes is above the limit of {limit} bytes", frame.len()));
            return receiver;
        }
        let bytes = frame.len() + FRAME_COST;
        let before = self.state.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        let queued = Queued { state: Arc::clone(&self.state), bytes };
        if before + bytes > self.queued_bytes_max {
            self.state.fail(format!("{before} bytes are queued, the limit is {}", self.queued_bytes_max));
            return receiver;
        }
        // If the task has ended, the call is dropped and the receiver fails.
        let _ = self.calls.send(Call { frame, waiting: Waiting { answer, bytes: queued } });
        receiver
    }

    pub(super) fn status(&self) -> LinkStatus {
        let Shown { is_connected, directory, build, last_error } = self.state.lock().clone();
        let queued_bytes = self.state.queued_bytes.load(Ordering::Relaxed);
        let (peer, lane) = (self.peer, self.lane);
        LinkStatus { peer, lane, is_connected, directory, build, queued_bytes, last_error }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl LinkState {
    fn lock(&self) -> std::sync::MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, error: String) {
        self.lock().last_error = error;
    }
}

/// The task of a link.
struct LinkTask {
    endpoint: Endpoint,
    peer: NodeId,
    address: String,
    lane: Lane,
    queue: mpsc::UnboundedReceiver<Call>,
    state: Arc<LinkState>,
    /// The lookup of the address that is under way.
    resolving: Option<JoinHandle<io::Result<Vec<SocketAddr>>>>,
    /// Frames that were sent, in order.
    waiting: VecDeque<(Waiting, Instant)>,
}

impl LinkTask {
    async fn run(mut self) {
        let (first, longest) = self.endpoint.settings.backoff;
        let mut backoff = first;
        let mut reported = String::new();
        loop {
            let mut is_useful = false;
            let error = match self.connect().await {
                Ok((connection, present)) => {
                    self.state.lock().is_connected = true;
                    let end = self.converse(connection, &mut is_useful).await;
                    drop(present);
                    match end {
                        Ok(()) => return,
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            let error_kind = error.kind();
            let error = format!("node {} at {}: {error}", self.peer, self.address);
            {
                let mut shown = self.state.lock();
                (shown.is_connected, shown.last_error) = (false, error.clone());
            }
            // A peer that is away is reported once.
            if is_useful || reported != error {
                self.endpoint.events.connection_failed(Some(self.peer), &error);
                reported = error;
            }
            self.waiting.clear();
            while let Ok(call) = self.queue.try_recv() {
                drop(call);
            }
            if self.queue.is_closed() {
                return;
            }
            backoff = if is_useful { first } else { (backoff * 2).min(longest) };
            if error_kind == io::ErrorKind::PermissionDenied {
                backoff = longest * REFUSED_BACKOFFS;
            }
            // Links that broke together do not come back together.
            sleep(backoff.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
        }
    }

    async fn connect(&mut self) -> io::Result<(Connection, Present)> {
        let patience = self.endpoint.settings.patience;
        let late = |_| {
            io::Error::new(io::ErrorKind::TimedOut, format!("no connection was made within {patience:?}"))
        };
        timeout(patience, self.shake_hands()).await.map_err(late)?
    }

    /// Returns the socket addresses of the peer. A lookup that takes longer than an attempt to connect is
    /// taken up by the next one: it occupies a thread of the runtime.
    async fn resolve(&mut self) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = self.address.parse() {
            return Ok(vec![address]);
        }
        let address = self.address.clone();
        let look_up = || spawn_blocking(move || address.to_socket_addrs().map(Iterator::collect));
        let resolved = self.resolving.get_or_insert_with(look_up).await;
        self.resolving = None;
        resolved.map_err(io::Error::other)?
    }

    async fn shake_hands(&mut self) -> io::Result<(Connection, Present)> {
        let addresses = self.resolve().await?;
        let endpoint = &self.endpoint;
        let (tls, channel) = (endpoint.tls(), endpoint.channel(self.lane));
        let socket = TcpStream::connect(&addresses[..]).await?;
        tune(&socket, &endpoint.settings)?;
        let connected = Connection::connect(socket, &self.address, channel, tls.as_ref());
        let mut connection = connected.await?;
        connection.push(Kind::Hello, endpoint.hello(self.peer).encode());
        let frame = connection.receive(Kind::Welcome).await?;
        if frame.kind == Kind::Refusal {
            return Err(refused_by_peer(&frame.payload));
        }
        match self.check_welcome(&frame.payload) {
            Ok(present) => {
                connection.push(Kind::Confirm, Vec::new());
                connection.begin(self.lane.answer_bytes_max());
                Ok((connection, present))
            }
            Err(refusal) => {
                connection.push(Kind::Refusal, encode_reason(&refusal));
                // The reason is for people: it may get lost.
                let _ = connection.flush().await;
                Err(io::Error::new(io::ErrorKind::PermissionDenied, refusal))
            }
        }
    }

    fn check_welcome(&self, payload: &[u8]) -> Result<Present, String> {
        let (welcome, protocol) = self.endpoint.check(payload)?;
        if welcome.node != self.peer {
            return Err(format!("node {} answers as node {}", self.peer, welcome.node));
        }
        let present = self.endpoint.presence.enter(welcome.node, welcome.process)?;
        let mut shown = self.state.lock();
        (shown.directory, shown.build) = (Some(welcome.directory), Some((welcome.build, protocol)));
        drop(shown);
        Ok(present)
    }

    /// Sends frames and takes answers until the connection ends. Returns `Ok` if the link itself ends.
    async fn converse(&mut self, mut connection: Connection, is_useful: &mut bool) -> io::Result<()> {
        let mut last_answer = Instant::now();
        loop {
            while let Some(frame) = connection.next_frame(Kind::Answer)? {
                if frame.kind == Kind::Refusal {
                    return Err(refused_by_peer(&frame.payload));
                }
                let (waiting, _) =
                    self.waiting.pop_front().ok_or_else(|| invalid("an answer arrived without a request"))?;
                last_answer = Instant::now();
                *is_useful = true;
                // The caller may have stopped waiting.
                let _ = waiting.answer.send(frame.payload);
            }
            // Frames before the oldest one have arrived: only its own bytes need time to travel.
            let oldest = self.waiting.front();
            let oldest = oldest.map(|(waiting, sent)| (waiting.bytes.bytes, (*sent).max(last_answer)));
            let deadline =
                oldest.map(|(bytes, since)| since + self.endpoint.settings.patience_for(self.lane, bytes));
            let silence = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            while connection.unwritten() < UNWRITTEN_BYTES_MAX
                && let Ok(call) = self.queue.try_recv()
            {
                self.take(call, &mut connection);
            }
            let has_room = connection.unwritten() < UNWRITTEN_BYTES_MAX;
            tokio::select! {
                progress = connection.progress(true) => progress?,
                call = self.queue.recv(), if has_room => match call {
                    None => return Ok(()),
                    Some(call) => self.take(call, &mut connection),
                },
                () = silence => {
                    let open = self.waiting.len();
                    let waited = oldest.map_or(Duration::ZERO, |(_, since)| since.elapsed());
                    let error = format!("{open} requests have no answer after {} ms", waited.as_millis());
                    return Err(io::Error::new(io::ErrorKind::TimedOut, error));
                }
            }
        }
    }

    fn take(&mut self, Call { frame, waiting }: Call, connection: &mut Connection) {
        connection.push(Kind::Request, frame);
        self.waiting.push_back((waiting, Instant::now()));
    }
}

/// Returns the error of a frame by which the other end has refused this member.
pub(super) fn refused_by_peer(payload: &Bytes) -> io::Error {
    let error = format!("it refuses this member: {}", decode_reason(payload));
    io::Error::new(io::ErrorKind::PermissionDenied, error)
}

const _: () = assert!(FRAME_COST > HEADER_BYTES);
