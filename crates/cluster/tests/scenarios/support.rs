//! Members for scenarios.

use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tidemark_cluster::RandomId;
use tidemark_cluster::net::{
    Identity, Lane, NetEvents, NetSettings, Peer, Roster, Service, TcpTransport, Tls, Transport,
};
use tidemark_cluster::{GroupId, NodeId};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

/// Longest wait for what must happen.
const PATIENCE: Duration = Duration::from_secs(20);

/// Answers each request with itself behind the sender and the lane.
#[derive(Clone)]
pub(crate) struct Echo;

impl Service for Echo {
    async fn serve(
        &self,
        from: NodeId,
        lane: Lane,
        mut requests: mpsc::Receiver<Bytes>,
        answers: mpsc::Sender<Vec<u8>>,
    ) {
        while let Some(request) = requests.recv().await {
            let mut answer = vec![from.0 as u8, lane.code()];
            answer.extend_from_slice(&request[..request.len().min(1000)]);
            if answers.send(answer).await.is_err() {
                return;
            }
        }
    }
}

/// What a member has reported.
#[derive(Default)]
pub(crate) struct Reports {
    pub(crate) heartbeats_closed: Mutex<Vec<NodeId>>,
    pub(crate) errors: Mutex<Vec<String>>,
}

impl NetEvents for Reports {
    fn heartbeats_closed(&self, peer: NodeId) {
        self.heartbeats_closed.lock().expect("reports").push(peer);
    }

    fn connection_failed(&self, _: Option<NodeId>, error: &str) {
        self.errors.lock().expect("reports").push(error.to_owned());
    }
}

impl Reports {
    /// Waits until an error has these words.
    pub(crate) async fn error_with(&self, words: &str) -> String {
        let has = || self.errors.lock().expect("reports").iter().find(|error| error.contains(words)).cloned();
        let looking = until(words, has);
        tokio::select! {
            error = looking => error,
            () = tokio::time::sleep(PATIENCE / 2) => panic!("never: {words}, but {:?}", self.errors),
        }
    }
}

/// Waits until `found` returns a value.
pub(crate) async fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = found() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("never: {what}"))
}

/// Runs a scenario on a runtime of its own.
pub(crate) fn run(scenario: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime
        .block_on(async { tokio::time::timeout(4 * PATIENCE, scenario).await.expect("the scenario ends") });
}

pub(crate) fn id(number: u8) -> RandomId {
    RandomId([number; 16])
}

/// The identity of a member of the cluster 1.
pub(crate) fn identity(node: u64) -> Identity {
    Identity {
        cluster: id(1),
        group: GroupId(0),
        node: NodeId(node),
        directory: id(100 + node as u8),
        process: RandomId::draw().expect("random bytes"),
    }
}

/// Settings for scenarios in which nothing is late, however busy the machine is.
pub(crate) fn patient() -> NetSettings {
    NetSettings {
        patience: Duration::from_mins(1),
        disk_patience: Duration::from_mins(1),
        ..NetSettings::default()
    }
}

/// A member, or what poses as one.
pub(crate) struct Member {
    pub(crate) transport: TcpTransport,
    pub(crate) reports: Arc<Reports>,
    pub(crate) address: SocketAddr,
    pub(crate) identity: Identity,
}

impl Member {
    pub(crate) fn start(identity: Identity) -> Self {
        Self::start_with(identity, patient(), None, Echo)
    }

    pub(crate) fn start_with(
        identity: Identity,
        settings: NetSettings,
        tls: Option<Tls>,
        service: impl Service,
    ) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("its address");
        let reports = Arc::<Reports>::default();
        let events = Arc::clone(&reports);
        let transport =
            TcpTransport::new(Handle::current(), identity, settings, tls, events).expect("settings");
        transport.listen(socket, service).expect("a listener");
        Self { transport, reports, address, identity }
    }

    pub(crate) fn node(&self) -> NodeId {
        self.identity.node
    }

    /// How other members list it.
    pub(crate) fn listed(&self) -> (NodeId, Peer) {
        let directory = Some(self.identity.directory);
        (self.node(), Peer { address: format!("localhost:{}", self.address.port()), directory })
    }

    pub(crate) async fn ask(&self, to: &Member, lane: Lane, request: &[u8]) -> Option<Bytes> {
        self.transport.send(to.node(), lane, request.to_vec()).await.ok()
    }

    /// Asks until there is an answer, through connections that are not there yet.
    pub(crate) async fn ask_until_answered(&self, to: &Member, lane: Lane, request: &[u8]) -> Bytes {
        let asking = async {
            loop {
                if let Some(answer) = self.ask(to, lane, request).await {
                    return answer;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(PATIENCE, asking).await.expect("an answer")
    }

    pub(crate) fn send(&self, to: NodeId, lane: Lane, request: Vec<u8>) -> oneshot::Receiver<Bytes> {
        self.transport.send(to, lane, request)
    }

    /// Waits until a lane to this peer is connected.
    pub(crate) async fn connected(&self, to: NodeId, lane: Lane) {
        let is_connected = || {
            let links = self.transport.links();
            links.iter().any(|link| (link.peer, link.lane) == (to, lane) && link.is_connected).then_some(())
        };
        until("a connection", is_connected).await;
    }
}

/// Lists these members to each other.
pub(crate) fn introduce(members: &[&Member]) {
    for member in members {
        let others = members.iter().filter(|other| other.node() != member.node());
        let peers = others.map(|other| other.listed()).collect();
        member.transport.set_roster(Roster { peers, admits_unlisted: false });
    }
}
