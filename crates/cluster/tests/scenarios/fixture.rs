//! Members in one process: logs in memory, connections over channels that a test can cut.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tidemark_cluster::net::{Lane, Service, Transport};
use tidemark_cluster::{
    Consensus, Group, GroupParts, GroupService, Installation, Level, Member, Members, NodeId, Role, Settings,
    Term, TermListener, VoteStore,
};
use tidemark_log::{Log, Lsn, MemoryStorage, Options, Storage};
use tokio::sync::{mpsc, oneshot, watch};

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until `look` finds something.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

type Call = (Vec<u8>, oneshot::Sender<Bytes>);

/// The network: members that run, and cut directions. A change of it ends connections.
#[derive(Debug, Default)]
struct Topology {
    services: BTreeMap<u64, GroupService>,
    cut: BTreeSet<(u64, u64)>,
}

#[derive(Clone, Debug)]
struct Network(Arc<(Mutex<Topology>, watch::Sender<u64>)>);

impl Network {
    fn change(&self, change: impl FnOnce(&mut Topology)) {
        change(&mut lock(&self.0.0));
        self.0.1.send_modify(|version| *version += 1);
    }

    fn service(&self, from: u64, to: u64) -> Option<GroupService> {
        let topology = lock(&self.0.0);
        let is_cut = topology.cut.contains(&(from, to)) || topology.cut.contains(&(to, from));
        topology.services.get(&to).filter(|_| !is_cut && topology.services.contains_key(&from)).cloned()
    }
}

type Links = BTreeMap<(u64, Lane), mpsc::UnboundedSender<Call>>;

#[derive(Clone)]
struct Wire {
    network: Network,
    me: u64,
    links: Arc<Mutex<Links>>,
}

impl Transport for Wire {
    fn send(&self, to: NodeId, lane: Lane, frame: Vec<u8>) -> oneshot::Receiver<Bytes> {
        let (answer, receiver) = oneshot::channel();
        let mut links = lock(&self.links);
        let link = links.entry((to.0, lane)).or_insert_with(|| {
            let (sender, calls) = mpsc::unbounded_channel();
            tokio::spawn(run_link(self.network.clone(), self.me, to.0, lane, calls));
            sender
        });
        drop(link.send((frame, answer)));
        receiver
    }
}

async fn run_link(network: Network, me: u64, to: u64, lane: Lane, mut calls: mpsc::UnboundedReceiver<Call>) {
    let mut changes = network.0.1.subscribe();
    while let Some(first) = calls.recv().await {
        let Some(service) = network.service(me, to) else { continue };
        changes.mark_unchanged();
        let (requests, received) = mpsc::channel(4096);
        let (sender, mut answers) = mpsc::channel(4096);
        let serving = tokio::spawn(async move { service.serve(NodeId(me), lane, received, sender).await });
        let mut pending = std::collections::VecDeque::new();
        let mut next = Some(first);
        loop {
            if let Some((frame, answer)) = next.take() {
                if requests.try_send(frame.into()).is_err() {
                    break;
                }
                pending.push_back(answer);
            }
            tokio::select! {
                call = calls.recv() => match call {
                    Some(call) => next = Some(call),
                    None => break,
                },
                answer = answers.recv() => match answer {
                    Some(frame) => drop(pending.pop_front().map(|answer: oneshot::Sender<Bytes>| answer.send(frame.into()))),
                    None => break,
                },
                _ = changes.changed() => if network.service(me, to).is_none() { break },
            }
        }
        drop(requests);
        drop(serving);
    }
}

/// What a listener was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Begin(u64),
    End(u64),
    Cut(Lsn),
}

#[derive(Debug, Default)]
struct Events {
    seen: Mutex<Vec<Event>>,
    /// Names of the members, each time that they changed.
    members: Mutex<Vec<Vec<u64>>>,
    /// The newest level of the group.
    level: Mutex<Level>,
}

impl TermListener for Events {
    fn begin_term(&self, term: Term, _lsn: Lsn) {
        lock(&self.seen).push(Event::Begin(term.0));
    }

    fn end_term(&self, term: Term) {
        lock(&self.seen).push(Event::End(term.0));
    }

    fn members(&self, members: &[Member]) {
        lock(&self.members).push(members.iter().map(|member| member.id.0).collect());
    }

    fn level(&self, level: Level) {
        *lock(&self.level) = level;
    }

    fn end_log(&self, _: Lsn) {}

    fn cut(&self, lsn: Lsn) {
        lock(&self.seen).push(Event::Cut(lsn));
    }
}

/// The saved ballot, which survives a kill.
#[derive(Clone, Debug, Default)]
struct Ballot(Arc<Mutex<Option<Vec<u8>>>>);

impl VoteStore for Ballot {
    fn save(&mut self, ballot: &[u8]) -> io::Result<()> {
        *lock(&self.0) = Some(ballot.to_vec());
        Ok(())
    }
}

/// What is left of a member that was killed.
#[derive(Clone, Debug)]
struct Remains {
    storage: MemoryStorage,
    ballot: Ballot,
}

/// A member that runs.
pub(crate) struct Running {
    pub(crate) group: Group,
    pub(crate) log: Arc<Log>,
    events: Arc<Events>,
    remains: Remains,
}

impl Running {
    pub(crate) fn events(&self) -> Vec<Event> {
        lock(&self.events.seen).clone()
    }

    /// The level of the group that the listener was told last.
    pub(crate) fn level(&self) -> Level {
        *lock(&self.events.level)
    }

    /// The lists of members that the listener was told, in order.
    pub(crate) fn lists(&self) -> Vec<Vec<u64>> {
        lock(&self.events.members).clone()
    }
}

/// Describes a member that votes.
pub(crate) fn member(node: u64) -> Member {
    Member {
        id: NodeId(node),
        peer_address: format!("127.0.0.1:700{node}"),
        client_address: format!("127.0.0.1:637{node}"),
        directory: None,
        is_voter: true,
    }
}

/// All members of a group.
pub(crate) struct Fleet {
    network: Network,
    /// Those of members that are started from now on.
    pub(crate) settings: Settings,
    pub(crate) running: BTreeMap<u64, Running>,
    killed: BTreeMap<u64, Remains>,
}

pub(crate) fn options() -> Options {
    Options { segment_bytes: 64 << 10, seed: Some(1), ..Options::default() }
}

impl Fleet {
    /// Starts `count` members, and makes them a group.
    pub(crate) fn begin(count: u64, settings: Settings) -> Self {
        let network = Network(Arc::new((Mutex::default(), watch::channel(0).0)));
        let mut members = Self { network, settings, running: BTreeMap::new(), killed: BTreeMap::new() };
        for node in 1..=count {
            members.start(node);
        }
        let list = Members::new((1..=count).map(member).collect()).expect("is valid");
        members.running[&1].group.init(list).expect("begins");
        members
    }

    /// Starts a member, or starts a killed one again.
    pub(crate) fn start(&mut self, node: u64) {
        self.try_start(node).expect("starts");
    }

    /// Does the same, and returns why it cannot be started.
    pub(crate) fn try_start(&mut self, node: u64) -> io::Result<()> {
        let remains = self
            .killed
            .remove(&node)
            .unwrap_or_else(|| Remains { storage: MemoryStorage::with_crashes(), ballot: Ballot::default() });
        let storage: Arc<dyn Storage> = Arc::new(remains.storage.clone());
        let installation = Installation::take_up(&storage).expect("reads");
        let (log, member, _) = Log::open_member(storage, options()).expect("opens");
        if let Some(installation) = installation {
            installation.complete(&member).expect("begins behind the snapshot");
        }
        let (log, events) = (Arc::new(log), Arc::new(Events::default()));
        let parts = GroupParts {
            node: NodeId(node),
            settings: self.settings,
            log: log.clone(),
            member,
            votes: Box::new(remains.ballot.clone()),
            ballot: lock(&remains.ballot.0).clone(),
            listener: events.clone(),
            heal: None,
        };
        let network = self.network.clone();
        let connect = move |_service| Ok(Wire { network, me: node, links: Arc::default() });
        let group = match Group::start(parts, connect) {
            Ok(group) => group,
            Err(error) => {
                drop(log);
                self.killed.insert(node, remains);
                return Err(error);
            }
        };
        let service = group.service();
        self.network.change(|topology| drop(topology.services.insert(node, service)));
        self.running.insert(node, Running { group, log, events, remains });
        Ok(())
    }

    /// Ends a member without warning: what it has written is left, and what its disk has not synced.
    pub(crate) fn kill(&mut self, node: u64) {
        self.network.change(|topology| drop(topology.services.remove(&node)));
        let running = self.running.remove(&node).expect("runs");
        let ballot = lock(&running.remains.ballot.0).clone();
        let remains =
            Remains { storage: running.remains.storage.fork(), ballot: Ballot(Arc::new(Mutex::new(ballot))) };
        self.killed.insert(node, remains);
    }

    /// Cuts a member off from all others.
    pub(crate) fn cut_off(&self, node: u64) {
        let others: Vec<_> = self.running.keys().copied().collect();
        self.network.change(|topology| topology.cut.extend(others.iter().map(|other| (node, *other))));
    }

    pub(crate) fn heal(&self) {
        self.network.change(|topology| topology.cut.clear());
    }

    /// Waits for a leader other than `not`; returns it and its term.
    pub(crate) fn leader_but(&self, not: u64) -> (u64, Term) {
        eventually("a leader", || {
            self.running.iter().filter(|(node, _)| **node != not).find_map(|(node, running)| {
                let term = running.group.admit().ok()?;
                Some((*node, term))
            })
        })
    }

    pub(crate) fn leader(&self) -> (u64, Term) {
        self.leader_but(0)
    }

    /// Appends a record at a member.
    pub(crate) fn append(&self, node: u64, payload: &[u8]) -> Lsn {
        let appended = self.running[&node].log.append(7, 1, |into| into.extend_from_slice(payload));
        appended.expect("is accepted")
    }

    /// Waits until a record is committed at the member that appended it, in this term.
    pub(crate) fn wait_committed(&self, node: u64, lsn: Lsn, term: Term) {
        let running = &self.running[&node];
        eventually("the record is committed", || {
            assert_eq!(running.group.role(), Role::Leading { term }, "member {node}");
            (running.log.committed() >= lsn).then_some(())
        });
    }

    /// Waits until all members that run have committed the same log; returns its records that all keep.
    pub(crate) fn equal_records(&self) -> Vec<(Lsn, u8, Vec<u8>)> {
        eventually("the logs are equal", || {
            let end = |running: &Running| {
                let status = running.group.status();
                (running.log.committed(), status.last, status.committed)
            };
            let ends: Vec<_> = self.running.values().map(end).collect();
            // What the group knows to be in a log may not be written there yet.
            let is_written = |running: &Running| running.log.appended() == ends[0].0;
            let is_equal = ends.iter().all(|end| *end == ends[0] && end.1 == end.2)
                && self.running.values().all(is_written);
            is_equal.then_some(())
        });
        let floor = self.running.values().map(|running| running.log.floor()).max().expect("members run");
        let logs: Vec<_> = self.running.values().map(|running| records(&running.log, floor)).collect();
        for log in &logs {
            assert_eq!(*log, logs[0]);
        }
        logs[0].clone()
    }
}

/// Reads the committed records from `from` on.
fn records(log: &Log, from: Lsn) -> Vec<(Lsn, u8, Vec<u8>)> {
    let mut tail = log.tail(from).expect("begins");
    let mut read = Vec::new();
    while let Some(batch) = tail.next_committed_batch().expect("reads") {
        read.extend(batch.iter().map(|record| (record.lsn, record.kind, record.payload.to_vec())));
    }
    read
}
