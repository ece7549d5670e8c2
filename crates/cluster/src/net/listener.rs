//! Incoming connections: strangers until their handshake is complete, then peers.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::connection::{Connection, invalid, tune};
use super::endpoint::Endpoint;
use super::handshake::{Hello, encode_reason};
use super::link::{FRAME_COST, refused_by_peer};
use super::presence::Present;
use super::roster::Roster;
use super::transport::{Lane, Service};
use crate::ids::NodeId;
use crate::wire::frame::{Channel, FrameError, Kind};

/// Requests that have arrived and that the service has not taken.
const REQUESTS_QUEUED: usize = 64;

/// Answers that the service has given and that are not written.
const ANSWERS_QUEUED: usize = 64;

/// Bytes of answers that are handed to the socket before the service is asked for more.
const UNWRITTEN_BYTES_MAX: usize = 1 << 20;

/// Wait after an error of the listening socket, such as a lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Listens for the connections of peers. Dropping it closes all of them.
#[derive(Debug)]
pub(super) struct Listener {
    task: AbortHandle,
    accepted: Arc<Accepted>,
}

/// The connections of a listener.
#[derive(Debug, Default)]
struct Accepted {
    /// Those whose handshake is not complete, oldest first.
    strangers: Mutex<VecDeque<(u64, AbortHandle)>>,
    /// One connection for each lane of a peer: the newest.
    peers: Mutex<HashMap<(NodeId, Lane), PeerConnection>>,
}

#[derive(Debug)]
struct PeerConnection {
    number: u64,
    hello: Hello,
    task: AbortHandle,
}

/// Removes a stranger from the list when its task ends or it has become a peer.
struct Stranger {
    accepted: Arc<Accepted>,
    number: u64,
}

impl Drop for Stranger {
    fn drop(&mut self) {
        lock(&self.accepted.strangers).retain(|(number, _)| *number != self.number);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Listener {
    pub(super) fn start<S: Service>(
        runtime: &tokio::runtime::Handle,
        endpoint: Endpoint,
        socket: TcpListener,
        service: S,
    ) -> Self {
        let accepted = Arc::<Accepted>::default();
        let accepting = accept_all(endpoint, socket, service, Arc::clone(&accepted));
        Self { task: runtime.spawn(accepting).abort_handle(), accepted }
    }

    /// Closes the connections of those that the roster does not admit.
    pub(super) fn retain(&self, endpoint: &Endpoint, roster: &Roster) {
        lock(&self.accepted.peers).retain(|_, connection| {
            let is_admitted = connection.hello.check(&endpoint.identity, roster).is_ok();
            if !is_admitted {
                connection.task.abort();
            }
            is_admitted
        });
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
        lock(&self.accepted.strangers).drain(..).for_each(|(_, task)| task.abort());
        lock(&self.accepted.peers).drain().for_each(|(_, connection)| connection.task.abort());
    }
}

async fn accept_all<S: Service>(
    endpoint: Endpoint,
    socket: TcpListener,
    service: S,
    accepted: Arc<Accepted>,
) {
    for number in 0.. {
        let (socket, address) = match socket.accept().await {
            Ok(connection) => connection,
            Err(error) => {
                endpoint.events.connection_failed(None, &format!("accepting a connection: {error}"));
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let incoming = Incoming {
            endpoint: endpoint.clone(),
            service: service.clone(),
            accepted: Arc::clone(&accepted),
            number,
        };
        let mut strangers = lock(&accepted.strangers);
        if strangers.len() >= endpoint.settings.strangers_max
            && let Some((_, oldest)) = strangers.pop_front()
        {
            oldest.abort();
        }
        // The task finds itself in the list: it cannot end before the lock is released.
        let task = tokio::spawn(incoming.run(socket, address));
        strangers.push_back((number, task.abort_handle()));
    }
}

/// One incoming connection.
struct Incoming<S> {
    endpoint: Endpoint,
    service: S,
    accepted: Arc<Accepted>,
    number: u64,
}

impl<S: Service> Incoming<S> {
    async fn run(self, socket: TcpStream, address: SocketAddr) {
        let stranger = Stranger { accepted: Arc::clone(&self.accepted), number: self.number };
        let patience = self.endpoint.settings.handshake_timeout;
        let late = |_| {
            let error = format!("it has not said who it is within {patience:?}");
            Err((None, io::Error::new(io::ErrorKind::TimedOut, error)))
        };
        let handshake = timeout(patience, self.shake_hands(socket)).await.unwrap_or_else(late);
        let (connection, hello, lane, present) = match handshake {
            Ok(welcomed) => welcomed,
            Err((peer, error)) => {
                let error = format!("a connection from {address}: {error}");
                return self.endpoint.events.connection_failed(peer, &error);
            }
        };
        let node = hello.node;
        self.register(hello, lane);
        drop(stranger);
        let end = self.converse(connection, node, lane).await;
        drop(present);
        let mut peers = lock(&self.accepted.peers);
        if peers.get(&(node, lane)).is_some_and(|newest| newest.number == self.number) {
            peers.remove(&(node, lane));
        }
        drop(peers);
        if let Err(error) = end {
            if lane == Lane::Heartbeat && error.kind() != io::ErrorKind::InvalidData {
                self.endpoint.events.heartbeats_closed(node);
            }
            let error = format!("the connection of node {node} from {address}: {error}");
            self.endpoint.events.connection_failed(Some(node), &error);
        }
    }

    /// Makes this the only connection of the peer's lane. An older one is of the same process, which
    /// has given it up.
    fn register(&self, hello: Hello, lane: Lane) {
        let own = lock(&self.accepted.strangers)
            .iter()
            .find(|(number, _)| *number == self.number)
            .map(|(_, task)| task.clone());
        // A stranger that has been pushed out of the list is aborted at its next wait.
        let Some(task) = own else { return };
        let key = (hello.node, lane);
        let connection = PeerConnection { number: self.number, hello, task };
        let older = lock(&self.accepted.peers).insert(key, connection);
        if let Some(older) = older {
            older.task.abort();
        }
    }

    async fn shake_hands(
        &self,
        socket: TcpStream,
    ) -> Result<(Connection, Hello, Lane, Present), (Option<NodeId>, io::Error)> {
        let unknown = |error| (None, error);
        let endpoint = &self.endpoint;
        tune(&socket, &endpoint.settings).map_err(unknown)?;
        let group = endpoint.identity.group;
        let any = Channel { group, lane: 0 };
        let accepted = Connection::accept(socket, any, endpoint.tls().as_ref()).await;
        let mut connection = accepted.map_err(unknown)?;
        let (hello, channel) = connection.receive_hello().await.map_err(unknown)?;
        let lane = Lane::of_code(channel.lane);
        connection.set_channel(Channel { group, lane: channel.lane });
        let welcome = endpoint.check(&hello).and_then(|(hello, _)| {
            let lane = lane.ok_or_else(|| format!("there is no lane {}", channel.lane))?;
            if channel.group != group {
                return Err(format!("node {} has no group {}", endpoint.identity.node, channel.group));
            }
            let present = endpoint.presence.enter(hello.node, hello.process)?;
            Ok((hello, lane, present))
        });
        let (hello, lane, present) = match welcome {
            Ok(welcome) => welcome,
            Err(refusal) => {
                connection.push(Kind::Refusal, encode_reason(&refusal));
                // The reason is for people: it may get lost.
                let _ = connection.flush().await;
                return Err((None, io::Error::new(io::ErrorKind::PermissionDenied, refusal)));
            }
        };
        let node = hello.node;
        let known = |error| (Some(node), error);
        connection.push(Kind::Welcome, endpoint.hello(hello.node).encode());
        let confirm = connection.receive(Kind::Confirm).await.map_err(known)?;
        if confirm.kind == Kind::Refusal {
            return Err(known(refused_by_peer(&confirm.payload)));
        }
        connection.begin(lane.request_bytes_max());
        Ok((connection, hello, lane, present))
    }

    /// Passes requests to the service and its answers back. Returns `Ok` if the service ends.
    async fn converse(&self, mut connection: Connection, peer: NodeId, lane: Lane) -> io::Result<()> {
        let (requests, queue) = mpsc::channel(REQUESTS_QUEUED);
        let (sender, mut answers) = mpsc::channel(ANSWERS_QUEUED);
        let service = self.service.clone();
        // A task of its own: when the connection ends, the service finishes what it has begun.
        tokio::spawn(async move { service.serve(peer, lane, queue, sender).await });
        let mut unanswered = VecDeque::new();
        let mut unanswered_bytes = 0;
        let mut next: Option<Bytes> = None;
        loop {
            while next.is_none()
                && unanswered_bytes <= self.endpoint.settings.unanswered_bytes_max
                && let Some(frame) = connection.next_frame(Kind::Request)?
            {
                if frame.kind == Kind::Refusal {
                    return Err(refused_by_peer(&frame.payload));
                }
                let cost = frame.payload.len() + FRAME_COST;
                unanswered.push_back(cost);
                unanswered_bytes += cost;
                match requests.try_send(frame.payload) {
                    Ok(()) => {}
                    Err(mpsc::error::TrySendError::Full(payload)) => next = Some(payload),
                    Err(mpsc::error::TrySendError::Closed(_)) => return Ok(()),
                }
            }
            let reads = next.is_none() && unanswered_bytes <= self.endpoint.settings.unanswered_bytes_max;
            let has_room = connection.unwritten() < UNWRITTEN_BYTES_MAX;
            tokio::select! {
                progress = connection.progress(reads) => progress?,
                permit = requests.reserve(), if next.is_some() => match (permit, next.take()) {
                    (Ok(permit), Some(payload)) => permit.send(payload),
                    _ => return Ok(()),
                },
                answer = answers.recv(), if has_room => {
                    let Some(answer) = answer else { return Ok(()) };
                    let asked = unanswered.pop_front();
                    unanswered_bytes -= asked.ok_or_else(|| invalid("the service answers without a request"))?;
                    let (length, limit) = (answer.len(), lane.answer_bytes_max());
                    if length > limit {
                        return Err(invalid(FrameError::TooLarge { length, limit }));
                    }
                    connection.push(Kind::Answer, answer);
                }
            }
        }
    }
}
