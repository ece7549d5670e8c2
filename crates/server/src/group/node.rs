//! This process as a member of a group: its place, its connections, and the consensus over its log.

use super::consensus::{Confirmation, Consensus, Member as MemberView, Refusal, Role, Status};
use super::leadership::Leadership;
use super::membership::{Membership, Votes, listen, load_tls, own_address};
use super::message::Published;
use super::messages::{self, MemberService, Messages};
use super::node_error::NodeError;
use super::notices::{Events, Notice};
use super::replacing::{self, Replacing};
use super::seat::Seat;
use super::term_listener::{Listener, known, others, roster};
use crate::config::{ClusterTls, Config};
use crate::observe::operator_line::{RepeatedLines, say};
use crate::version;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tidemark_cluster::net::{Build, Identity, Lane, NetSettings, TcpTransport};
use tidemark_cluster::suspicion::SuspicionFile;
use tidemark_cluster::vote_file::VoteFile;
use tidemark_cluster::{
    Consensus as _, Group, GroupId, GroupParts, Heal, Level, Member, Members, NodeId, RandomId, Regained,
    Settings, Term,
};
use tidemark_fault::{Fault, is_planted};
use tidemark_log::{Durability, Log, Member as LogMember};

/// The only group of a cluster.
const GROUP: GroupId = GroupId(0);
/// How often the founder looks whether the others are there.
const FOUNDING_PAUSE: Duration = Duration::from_millis(20);
/// How long a change of the level waits for what was accepted before.
const LEVEL_PATIENCE: Duration = Duration::from_secs(2);

/// This process as a member of a group.
pub(crate) struct GroupNode {
    pub(super) seat: Seat,
    /// What this member states of its build.
    pub(super) build: Build,
    pub(super) group: Group,
    pub(super) transport: TcpTransport,
    pub(super) leadership: Arc<Leadership>,
    messages: Arc<Messages>,
    /// The thread of the messages.
    messenger: Mutex<Option<JoinHandle<()>>>,
    founding: Mutex<Option<Founding>>,
    is_closed: Arc<AtomicBool>,
    /// The directory is to be another member when the server has stopped: it starts again.
    begins_again: AtomicBool,
    dir: PathBuf,
    /// `None` once the member is closed.
    suspicion: Arc<Mutex<Option<SuspicionFile>>>,
    replacing: Replacing,
    /// Whether the member had no vote when it started.
    began_suspect: bool,
}

/// The thread that founds the group.
struct Founding {
    thread: JoinHandle<()>,
    is_over: Arc<AtomicBool>,
}

impl GroupNode {
    /// Takes part in the group. Blocks for a lease if the member has taken part before.
    pub(crate) fn start(
        config: &Config,
        membership: Membership,
        log: &Arc<Log>,
        member: LogMember,
    ) -> Result<GroupNode, NodeError> {
        let Membership { seat, suspicion, .. } = membership;
        let build = version::build();
        let leadership = Arc::new(Leadership::new(log.clock()));
        let (votes, ballot) = VoteFile::open(&config.dir)?;
        let own = own_address(&seat);
        let socket = listen(&own).map_err(|error| NodeError::Listen { address: own, error })?;
        let identity = Identity {
            cluster: seat.cluster,
            group: GROUP,
            node: seat.node,
            directory: seat.directory,
            process: RandomId::draw()?,
        };
        let settings = Settings {
            heartbeat: config.cluster_timing.heartbeat,
            election_min: config.cluster_timing.election_min,
            election_max: config.cluster_timing.election_max,
            durability: config.durability,
            level: build.level,
            ..Settings::LAN
        };
        let tls = load_tls(&config.cluster_tls).map_err(NodeError::Tls)?;
        let net = NetSettings {
            patience: settings.lease() * 2,
            disk_patience: settings.lease() * 4,
            build: build.clone(),
            ..NetSettings::default()
        };
        let events = Arc::new(Events::start(RepeatedLines::new(log.clock()))?);
        let messages = Arc::<Messages>::default();
        let is_suspect = suspicion.suspicion().is_some();
        let suspicion = Arc::new(Mutex::new(Some(suspicion)));
        let replacing = Replacing::new(&config.dir, &suspicion);
        let listener = Arc::new(Listener {
            me: seat.node,
            replacing: replacing.clone(),
            leadership: Arc::clone(&leadership),
            messages: Arc::clone(&messages),
            founders: seat.founders.clone(),
            events: Arc::clone(&events),
            transport: OnceLock::new(),
        });
        let heal = is_suspect.then(|| heal(&suspicion, &events));
        let parts = GroupParts {
            node: seat.node,
            settings,
            log: Arc::clone(log),
            member,
            votes: Box::new(Votes(votes)),
            ballot,
            listener: Arc::clone(&listener) as _,
            heal,
        };
        let roster = roster(seat.node, &seat.founders);
        let (connected, received) = (Arc::clone(&listener), Arc::clone(&messages));
        let group = Group::start(parts, move |consensus| {
            let runtime = tokio::runtime::Handle::current();
            let transport = TcpTransport::new(runtime, identity, net, tls, Arc::clone(&events) as _)
                .map_err(io::Error::other)?;
            transport.set_roster(roster);
            transport.listen(socket, MemberService { consensus, messages: received })?;
            Ok(connected.transport.get_or_init(|| transport).clone())
        });
        let group = group.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => NodeError::Damaged(error),
            _ => NodeError::Start(error),
        })?;
        let transport = listener.transport.get().expect("the group has connected").clone();
        let messenger = messages::start(
            Arc::clone(&messages),
            Arc::clone(&leadership),
            Arc::clone(log),
            transport.clone(),
        )?;
        let node = GroupNode {
            seat,
            build,
            group,
            transport,
            leadership,
            messages,
            messenger: Mutex::new(Some(messenger)),
            founding: Mutex::default(),
            is_closed: Arc::default(),
            begins_again: AtomicBool::new(false),
            dir: config.dir.clone(),
            suspicion,
            replacing,
            began_suspect: is_suspect,
        };
        node.meet_members();
        Ok(node)
    }

    /// Tells the network who the members are, if the group has been founded.
    fn meet_members(&self) {
        let members = self.group.members();
        if !members.is_empty() {
            let known = known(self.seat.node, &members, &self.seat.founders);
            self.transport.set_roster(roster(self.seat.node, &known));
            self.messages.set_peers(others(self.seat.node, &members));
        }
    }

    /// Tells the network who the members are as another one says it: this one may lack the entries that
    /// name them.
    pub(super) fn note_told(&self, told: &[Member]) {
        let own = self.group.members();
        let mut members = known(self.seat.node, &own, &self.seat.founders);
        members.retain(|member| told.iter().all(|other| other.id != member.id));
        members.extend_from_slice(told);
        self.transport.set_roster(roster(self.seat.node, &members));
    }

    /// Has this member vote with what it has, if it may have lost what it acknowledged.
    pub(super) fn accept_loss(&self) {
        self.group.accept_loss();
    }

    /// Notes in the directory that it is to be the only member of a new cluster. The next start makes it that:
    /// that of this process, when the server has stopped.
    pub(super) fn begin_alone(&self) -> Result<(), NodeError> {
        let members = self.group.members();
        let own = members.iter().chain(&self.seat.founders).find(|member| member.id == self.seat.node);
        let own = own.ok_or_else(|| io::Error::other("this member does not know its own addresses"))?;
        // The members of before do not know the name: they are strangers, and it is one to them.
        let seat = Seat {
            cluster: RandomId::draw()?,
            founders: vec![Member { is_voter: true, ..own.clone() }],
            joins: false,
            begins_alone: true,
            ..self.seat.clone()
        };
        seat.write(&self.dir)?;
        self.begins_again.store(true, Ordering::Release);
        Ok(())
    }

    /// Returns whether the server starts again when it has stopped.
    pub(crate) fn begins_again(&self) -> bool {
        self.begins_again.load(Ordering::Acquire)
    }

    /// Returns whether the member is closed; others keep it to see that.
    pub(super) fn is_closed(&self) -> &Arc<AtomicBool> {
        &self.is_closed
    }

    /// Founds the group once all of its first members are there, if that is for this one to do: the one
    /// with the lowest number. From then on the network admits the members' own directories only.
    pub(crate) fn found(self: &Arc<Self>) -> io::Result<()> {
        let founder = self.seat.founders.iter().map(|member| member.id).min();
        // A suspect has taken part before: what it lacks now, the others have.
        let is_new = !self.seat.joins && !self.began_suspect && self.group.members().is_empty();
        if !is_new || founder != Some(self.seat.node) {
            return Ok(());
        }
        let (node, is_over) = (Arc::clone(self), Arc::<AtomicBool>::default());
        let over = Arc::clone(&is_over);
        let thread = std::thread::Builder::new().name("tidemark-found".to_owned()).spawn(move || {
            while !over.load(Ordering::Acquire) {
                if !node.group.members().is_empty() {
                    return;
                }
                if node.group.status().last.index == 0
                    && let Some(members) = node.present_founders()
                {
                    let level = node.level_of(&members);
                    // Another attempt follows if the group has no members then.
                    if let Err(error) = Members::new(members)
                        .map_err(io::Error::other)
                        .and_then(|members| node.group.init(members.at_level(level)))
                    {
                        say(&format!("warning: the cluster is not founded yet: {error}"));
                    }
                }
                std::thread::sleep(FOUNDING_PAUSE);
            }
        })?;
        *self.founding.lock().unwrap_or_else(PoisonError::into_inner) = Some(Founding { thread, is_over });
        Ok(())
    }

    /// Returns the founders with their directories, once all are connected.
    fn present_founders(&self) -> Option<Vec<Member>> {
        let links = self.transport.links();
        let directory_of = |id: NodeId| {
            if id == self.seat.node {
                return Some(self.seat.directory);
            }
            let link = links.iter().find(|link| link.peer == id && link.lane == Lane::Control)?;
            link.directory.filter(|_| link.is_connected)
        };
        let founders = self.seat.founders.iter();
        founders
            .map(|member| Some(Member { directory: Some(directory_of(member.id)?), ..member.clone() }))
            .collect()
    }

    /// Returns what other members have stated of their builds, and the version of the protocol with each.
    pub(super) fn builds(&self) -> BTreeMap<NodeId, (Build, u16)> {
        let links = self.transport.links().into_iter();
        let connected = links.filter(|link| link.lane == Lane::Control && link.is_connected);
        connected.filter_map(|link| Some((link.peer, link.build?))).collect()
    }

    /// Returns the level that all of these members know.
    fn level_of(&self, members: &[Member]) -> Level {
        let builds = self.builds();
        let known = |member: &Member| match member.id {
            id if id == self.seat.node => self.build.level,
            id => builds.get(&id).map_or(Level::FIRST, |(build, _)| build.level),
        };
        members.iter().map(known).min().unwrap_or_default()
    }

    /// Raises the level of the group's records, if this member leads, and all members have stated that they
    /// know more.
    pub(super) fn raise_level(&self) {
        let builds = self.builds();
        let knows = move |id: NodeId| builds.get(&id).map(|(build, _)| build.level);
        // An error passes: a change is under way, or the lead is lost.
        if let Ok(Some(level)) = self.group.raise_level(knows, LEVEL_PATIENCE) {
            say(&format!("all members know records of level {level}: the cluster writes them from now on"));
        }
    }

    /// Returns the name of this member.
    pub(crate) fn me(&self) -> NodeId {
        self.seat.node
    }

    /// Whether this member leads, between consensus and memory.
    pub(crate) fn leadership(&self) -> &Arc<Leadership> {
        &self.leadership
    }

    /// The messages between members.
    pub(crate) fn messages(&self) -> &Arc<Messages> {
        &self.messages
    }

    /// See [`tidemark_cluster::Consensus::staleness`].
    pub(crate) fn staleness(&self) -> Option<Duration> {
        self.group.staleness()
    }

    /// See [`replacing::can_be_missed`].
    pub(crate) fn can_be_missed(&self, password: &str) -> bool {
        replacing::can_be_missed(&self.seat, self.group.members(), password)
    }

    /// Has the next start replace the data of this member, which is damaged. Returns false if it must not: the
    /// operator is told why.
    pub(crate) fn request_replacement(&self, damage: &str) -> bool {
        self.replacing.request(damage)
    }

    /// Returns why the consensus has ended; `None` while it goes on.
    pub(crate) fn failure(&self) -> Option<String> {
        self.group.status().failure
    }

    /// Ends this member's part, and notes that it ended as it should. The log stays open.
    pub(crate) fn close(&self) -> io::Result<()> {
        self.is_closed.store(true, Ordering::Release);
        if let Some(Founding { thread, is_over }) =
            self.founding.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            is_over.store(true, Ordering::Release);
            let _ = thread.join();
        }
        self.messages.stop();
        if let Some(messenger) = self.messenger.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = messenger.join();
        }
        self.group.close();
        self.transport.close();
        match self.suspicion.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(file) => file.stop(),
            None => Ok(()),
        }
    }
}

impl Consensus for GroupNode {
    fn role(&self) -> Role {
        match self.group.role() {
            Role::Leading { term } if !self.leadership.serves(term) => Role::Following { leader: None },
            role => role,
        }
    }

    fn admit(&self) -> Result<Term, Refusal> {
        let admitted = match self.group.role() {
            Role::Leading { term } if is_planted(Fault::LeaselessAnswer) => Ok(term),
            _ => self.group.admit(),
        };
        match admitted {
            Ok(term) if self.leadership.admits(term) => Ok(term),
            Ok(term) if self.leadership.serves(term) => Err(Refusal::Changing),
            Ok(_) => Err(Refusal::NoLeader),
            refused => refused,
        }
    }

    fn has_lease(&self) -> bool {
        match self.group.role() {
            Role::Leading { term } => self.group.has_lease(term) || is_planted(Fault::LeaselessAnswer),
            // The end of a term that is served still has not been counted yet.
            Role::Following { .. } => !self.leadership.is_serving(),
        }
    }

    fn confirm(&self, then: Confirmation) {
        match self.group.role() {
            Role::Leading { term } => self.group.confirm(term, then),
            Role::Following { .. } => then(false),
        }
    }

    fn renew_tls(&self, tls: &ClusterTls) -> Result<(), String> {
        match load_tls(tls)? {
            None => Ok(()),
            Some(tls) => self.transport.renew_tls(tls).map_err(|error| error.to_string()),
        }
    }

    fn durability(&self) -> Durability {
        self.group.durability()
    }

    fn set_durability(&self, durability: Durability) -> Result<(), String> {
        let mut suspicion = self.suspicion.lock().unwrap_or_else(PoisonError::into_inner);
        let suspicion = suspicion.as_mut().ok_or("the member is closed")?;
        let changed = if durability == Durability::Always {
            // Until all is synced that was acknowledged, a power failure may lose some of it.
            self.group.set_durability(durability).and_then(|()| suspicion.set_unsynced(false))
        } else {
            suspicion.set_unsynced(true).and_then(|()| self.group.set_durability(durability))
        };
        changed.map_err(|error| error.to_string())
    }

    fn is_fresh(&self) -> bool {
        matches!(self.group.role(), Role::Following { leader: Some(_) }) && self.leadership.is_fresh()
    }

    fn members(&self) -> Vec<MemberView> {
        let links = self.transport.links();
        let is_reachable = |id: NodeId| {
            id == self.seat.node
                || links
                    .iter()
                    .any(|link| link.peer == id && link.lane == Lane::Heartbeat && link.is_connected)
        };
        let members = self.group.members().into_iter();
        members
            .map(|Member { id, client_address, .. }| MemberView {
                id,
                client_address,
                is_reachable: is_reachable(id),
            })
            .collect()
    }

    fn status(&self) -> Status {
        let status = self.group.status();
        Status {
            term: status.term,
            last: status.last.index,
            committed: status.committed.index,
            matching: status.matching.into_iter().map(|(node, entry)| (node, entry.index)).collect(),
            quorum_age: status.quorum_age,
            unsent_snapshots: status.unsent_snapshots.into_iter().map(|(node, _)| node).collect(),
            refuses_snapshot: status.refused_snapshot.is_some(),
            messages: self.messages.figures(),
        }
    }

    fn request_sync(&self) {
        self.group.request_sync();
    }

    fn publish(&self, message: Published) {
        self.messages.publish(message);
    }
}

/// Returns what ends the suspicion once a leader has caught the member up, or the loss is accepted.
fn heal(suspicion: &Arc<Mutex<Option<SuspicionFile>>>, events: &Arc<Events>) -> Heal {
    let (suspicion, events) = (Arc::clone(suspicion), Arc::clone(events));
    Box::new(move |regained| {
        let mut suspicion = suspicion.lock().unwrap_or_else(PoisonError::into_inner);
        let closed = || io::Error::other("the member is closed");
        suspicion.as_mut().ok_or_else(closed)?.heal()?;
        events.tell(Notice::Member(match regained {
            Regained::LossAccepted => "this member votes, with what it has",
            Regained::CaughtUp => "this member has everything again, and votes",
        }));
        Ok(())
    })
}
