//! This process as a member of a group: its place, its connections, and the consensus over its log.

use super::consensus::{Confirmation, Consensus, Member as MemberView, Refusal, Role, Status};
use super::joining;
use super::leadership::Leadership;
use super::message::Published;
use super::messages::{self, MemberService, Messages};
use super::replacing::{self, Replacing};
use super::seat::{Seat, SeatError};
use crate::config::{ClusterTls, Config, LogStorage};
use crate::observe::operator_line::{RepeatedLines, say};
use crate::version;
use std::collections::BTreeMap;
use std::io;
use std::net::{TcpListener, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tidemark_cluster::RandomId;
use tidemark_cluster::net::{Build, Identity, Lane, NetEvents, NetSettings, Peer, Roster, TcpTransport, Tls};
use tidemark_cluster::suspicion::{BootId, Start, Suspicion, SuspicionFile};
use tidemark_cluster::vote_file::VoteFile;
use tidemark_cluster::{
    Consensus as _, Group, GroupId, GroupParts, Heal, Level, Member, Members, NodeId, Regained, Settings,
    Term, TermListener, VoteStore, found_alone,
};
use tidemark_fault::{Fault, is_planted};
use tidemark_log::{Durability, Log, Lsn, Member as LogMember, Storage};

/// The only group of a cluster.
const GROUP: GroupId = GroupId(0);
/// File of the votes, in the data directory.
const VOTE_FILE: &str = "vote";
/// How often the founder looks whether the others are there.
const FOUNDING_PAUSE: Duration = Duration::from_millis(20);
/// How long a change of the level waits for what was accepted before.
const LEVEL_PATIENCE: Duration = Duration::from_secs(2);
/// Lines about connections that wait to be written.
const NOTICES_MAX: usize = 16;

/// Why this process cannot be a member.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The directory's place is unknown, or is another one.
    #[error(transparent)]
    Seat(#[from] SeatError),
    /// The settings name no member.
    #[error(
        "cluster-node is {node}, and cluster-members has {members}: give each member its own number of the list"
    )]
    Unlisted {
        /// The member that the settings name.
        node: NodeId,
        /// The members.
        members: String,
    },
    /// The member cannot join a cluster.
    #[error("this member cannot join a cluster: {0}")]
    Join(String),
    /// A setting does not fit a member.
    #[error("a member of a cluster cannot have {what}")]
    Setting {
        /// What is set.
        what: &'static str,
    },
    /// The directory has data of a server that was alone, and the member gets that of the others.
    #[error(
        "{dir} has data, and a member that is not alone begins without any: give it an empty directory. Data of a \
         single server begins a cluster of its own, which the others join: start it with only itself in \
         cluster-members, and the others with empty directories and cluster-join",
        dir = dir.display()
    )]
    Occupied {
        /// The directory.
        dir: PathBuf,
    },
    /// What the member has voted is lost.
    #[error(
        "{} is that of a member, and lacks the file `vote`: what the member has voted is unknown; restore the file, \
         or let a new member take its place with an empty directory", dir.display()
    )]
    Votes {
        /// The directory.
        dir: PathBuf,
    },
    /// The address for other members cannot be used.
    #[error("cannot listen for other members on {address}: {error}")]
    Listen {
        /// The address.
        address: String,
        /// The system's error.
        error: io::Error,
    },
    /// The member may have forgotten what it has voted.
    #[error(
        "this member does not take part: {0}. If all other members run and have the log, or a loss is acceptable, \
         start it with --cluster-accept-loss yes"
    )]
    Suspect(Suspicion),
    /// The log, or what says where it begins, is damaged.
    #[error("the data of this member is damaged: {0}")]
    Damaged(io::Error),
    /// Damaged data is not replaced.
    #[error("this member does not take part: {0}")]
    NotReplaced(String),
    /// There is no TLS with these settings.
    #[error("{0}")]
    Tls(String),
    /// A file or a thread of the member failed.
    #[error("cannot take part in the cluster: {0}")]
    Start(io::Error),
}

// Not derived: the message has the error, which would be its source and be printed twice.
impl From<io::Error> for NodeError {
    fn from(error: io::Error) -> NodeError {
        NodeError::Start(error)
    }
}

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

/// The directory as that of a member, before its log is opened and until it takes part.
pub(crate) struct Membership {
    seat: Seat,
    suspicion: SuspicionFile,
    /// The data was just removed: only a leader that has caught the member up gives it its vote.
    is_empty: bool,
}

impl Membership {
    /// Finds out which member this directory is, if it is one or the settings make it one. The directory
    /// exists. Nothing is written before all settings of a member are known to fit.
    pub(crate) fn open(config: &Config, storage: &dyn Storage) -> Result<Option<Membership>, NodeError> {
        let found = Seat::read(&config.dir)?;
        let is_first = found.is_none();
        if is_first && config.cluster_node == 0 {
            if config.cluster_join.is_empty() {
                return Ok(None);
            }
            let reason = "set cluster-node to a number that no member has had";
            return Err(NodeError::Join(reason.to_owned()));
        }
        load_tls(&config.cluster_tls).map_err(NodeError::Tls)?;
        if config.log_storage == LogStorage::Memory {
            return Err(NodeError::Setting {
                what: "its log in memory: it must not forget what it acknowledged",
            });
        }
        let seat = match found {
            None => first_seat(config, NodeId(config.cluster_node), storage)?,
            Some(seat) => {
                if config.cluster_node != 0 {
                    seat.check(&config.dir, NodeId(config.cluster_node))?;
                }
                seat
            }
        };
        // What it acknowledged before is known to have survived, or its loss was accepted.
        let is_new = is_first || seat.begins_alone;
        if is_first {
            // Before the directory is a member's: a member without the file has lost its votes.
            VoteFile::open(&config.dir)?;
            if !seat.begins_alone {
                seat.write(&config.dir)?;
            }
        } else if !config.dir.join(VOTE_FILE).try_exists()? {
            return Err(NodeError::Votes { dir: config.dir.clone() });
        }
        let start = Start {
            boot: BootId::current(),
            acknowledges_unsynced: config.durability != Durability::Always,
            is_new,
        };
        let mut suspicion = SuspicionFile::begin(&config.dir, start)?;
        let damage = replacing::requested(&config.dir)?;
        if let Some(damage) = &damage {
            // The request is durable before this is.
            suspicion.note_damage()?;
            if let Some(worse) = suspicion.suspicion().filter(|found| found.may_have_forgotten_votes()) {
                return Err(NodeError::Suspect(worse));
            }
            replacing::replace(config, &seat, storage, damage).map_err(NodeError::NotReplaced)?;
        }
        Ok(Some(Membership { seat, suspicion, is_empty: damage.is_some() }))
    }

    /// Has the next start of a member replace its data, which is damaged. Returns false if the directory is
    /// none of a member, or the data must not be replaced.
    pub(crate) fn request_replacement(config: &Config, damage: &str) -> Result<bool, NodeError> {
        let vote = config.dir.join(VOTE_FILE).try_exists()?;
        if Seat::read(&config.dir)?.is_none() || !vote {
            return Ok(false);
        }
        let start = Start { boot: BootId::current(), acknowledges_unsynced: true, is_new: false };
        let mut suspicion = SuspicionFile::begin(&config.dir, start)?;
        Ok(replacing::report(replacing::request(&config.dir, &mut suspicion, damage), damage))
    }

    /// Makes the directory the only member of its group, if it is to become that, now that its log is open.
    /// If this is interrupted, the next start does it again.
    pub(crate) fn begin_alone(
        &mut self,
        config: &Config,
        log: &Log,
        member: &LogMember,
    ) -> Result<(), NodeError> {
        if !self.seat.begins_alone {
            return Ok(());
        }
        // The log can be opened: from here on the directory is a member's.
        self.seat.write(&config.dir)?;
        let own = self.seat.founders.iter().find(|founder| founder.id == self.seat.node);
        let own = own.ok_or_else(|| io::Error::other("the file `group` does not name the member itself"))?;
        let own = Member { directory: Some(self.seat.directory), ..own.clone() };
        let (votes, ballot) = VoteFile::open(&config.dir)?;
        found_alone(log, member, &mut Votes(votes), ballot.as_deref(), own, version::build().level)?;
        self.suspicion.end_recovery(false)?;
        self.seat.begins_alone = false;
        self.seat.write(&config.dir)?;
        say(&format!(
            "this directory is member {} of a cluster of its own, with all its data; let others join it",
            self.seat.node
        ));
        Ok(())
    }

    /// Returns what the numbers of this directory's block files begin with: snapshots bring those of other
    /// directories.
    pub(crate) fn part_of_numbers(&self) -> u64 {
        let (part, _) = self.seat.directory.0.split_first_chunk().expect("an id has 16 bytes");
        u64::from_le_bytes(*part)
    }

    /// Notes that the log is open. What could be damage is refused there, not cut.
    ///
    /// # Errors
    /// The member may have forgotten what it has voted, and that is not accepted.
    pub(crate) fn end_recovery(&mut self, config: &Config) -> Result<(), NodeError> {
        self.suspicion.end_recovery(false)?;
        let Some(suspicion) = self.suspicion.suspicion() else { return Ok(()) };
        if config.cluster_accept_loss && !self.is_empty {
            say("warning: this member takes part although it may have lost what it acknowledged");
            return Ok(self.suspicion.heal()?);
        }
        if suspicion.may_have_forgotten_votes() {
            return Err(NodeError::Suspect(suspicion));
        }
        say(&format!(
            "warning: this member may have lost what it acknowledged: {suspicion}. It does not vote until a leader \
             that was elected without it has caught it up. If no leader is elected, because most members are in \
             this state, `tidemark cluster recover` says what could be lost, and accepts that; or restart them with \
             --cluster-accept-loss yes: what they lost is gone"
        ));
        Ok(())
    }
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
        let net =
            NetSettings { patience: settings.lease() * 2, build: build.clone(), ..NetSettings::default() };
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

/// Reads the files for TLS between members, if there are any.
fn load_tls(tls: &ClusterTls) -> Result<Option<Tls>, String> {
    let Some(files) = tls.files()? else { return Ok(None) };
    Tls::load(&files).map(Some).map_err(|error| error.to_string())
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

/// Finds a directory's first place. It must be able to take part there.
fn first_seat(config: &Config, node: NodeId, storage: &dyn Storage) -> Result<Seat, NodeError> {
    let has_data = Log::is_in(storage)?;
    let founders = config.cluster_members.clone();
    let is_alone = config.cluster_join.is_empty() && founders.len() == 1;
    if has_data && !is_alone {
        return Err(NodeError::Occupied { dir: config.dir.clone() });
    }
    let seat = if config.cluster_join.is_empty() {
        if !founders.iter().any(|member| member.id == node) {
            let members = founders.iter().map(|member| member.id.to_string()).collect::<Vec<_>>().join(", ");
            let members =
                if members.is_empty() { "no members".to_owned() } else { format!("the members {members}") };
            return Err(NodeError::Unlisted { node, members });
        }
        // No other member has to know the name yet.
        let cluster = if is_alone { RandomId::draw()? } else { cluster_of(&founders) };
        let directory = RandomId::draw()?;
        Seat { cluster, node, directory, founders, joins: false, begins_alone: has_data }
    } else {
        joining::seat(config, node).map_err(NodeError::Join)?
    };
    let own = own_address(&seat);
    listen(&own).map_err(|error| NodeError::Listen { address: own, error })?;
    Ok(seat)
}

/// Returns the name of the cluster that these members found: the same at each of them.
fn cluster_of(founders: &[Member]) -> RandomId {
    use sha2::{Digest as _, Sha256};
    let mut sorted: Vec<&Member> = founders.iter().collect();
    sorted.sort_by_key(|member| member.id);
    let mut hash = Sha256::new();
    for member in sorted {
        hash.update(format!("{}={}/{}\n", member.id, member.peer_address, member.client_address));
    }
    let hash = hash.finalize();
    let mut id = [0; 16];
    id.copy_from_slice(&hash[..16]);
    RandomId(id)
}

/// Returns the other members.
fn others(me: NodeId, members: &[Member]) -> Vec<NodeId> {
    members.iter().map(|member| member.id).filter(|id| *id != me).collect()
}

/// Returns the members by the newest entry that names them. Until that names this member, which has not got
/// all entries yet, those that it was told of when it joined are members too.
fn known(me: NodeId, members: &[Member], founders: &[Member]) -> Vec<Member> {
    let mut known = members.to_vec();
    if members.iter().all(|member| member.id != me) {
        let is_new = |founder: &&Member| members.iter().all(|member| member.id != founder.id);
        known.extend(founders.iter().filter(is_new).cloned());
    }
    known
}

/// Returns the members that a member admits: all others.
fn roster(me: NodeId, members: &[Member]) -> Roster {
    let others = members.iter().filter(|member| member.id != me);
    let peer = |member: &Member| {
        (member.id, Peer { address: member.peer_address.clone(), directory: member.directory })
    };
    Roster { peers: others.map(peer).collect(), admits_unlisted: false }
}

fn own_address(seat: &Seat) -> String {
    let own = seat.founders.iter().find(|member| member.id == seat.node);
    own.map(|member| member.peer_address.clone()).unwrap_or_default()
}

fn listen(address: &str) -> io::Result<TcpListener> {
    let addresses: Vec<_> = address.to_socket_addrs()?.collect();
    TcpListener::bind(&addresses[..])
}

/// The file of the vote, as the consensus sees it.
struct Votes(VoteFile);

impl VoteStore for Votes {
    fn save(&mut self, ballot: &[u8]) -> io::Result<()> {
        self.0.save(ballot)
    }
}

/// Passes on what the group decides: to memory, and to the network.
struct Listener {
    me: NodeId,
    replacing: Replacing,
    founders: Vec<Member>,
    leadership: Arc<Leadership>,
    messages: Arc<Messages>,
    events: Arc<Events>,
    /// `None` until the member is connected.
    transport: OnceLock<TcpTransport>,
}

impl TermListener for Listener {
    fn begin_term(&self, term: Term, lsn: Lsn) {
        self.messages.begin_term(term);
        self.leadership.begin_term(term, lsn);
    }

    fn end_term(&self, _term: Term) {
        self.messages.end_term();
        self.leadership.end_term();
    }

    fn level(&self, level: Level) {
        if let Some(transport) = self.transport.get() {
            transport.set_level(level);
        }
        self.leadership.note_level(level);
    }

    fn damaged(&self, damage: &str) {
        let (replacing, leadership) = (self.replacing.clone(), Arc::clone(&self.leadership));
        let damage = damage.to_owned();
        // The consensus does not wait for the disk. Without the thread, the scrub finds the damage.
        let thread = std::thread::Builder::new().name("tidemark-damage".to_owned());
        drop(thread.spawn(move || {
            if replacing.request(&damage)
                && let Some(server) = leadership.server()
            {
                server.stop_gracefully();
            }
        }));
    }

    fn progressed(&self) {
        if let Some(server) = self.leadership.server() {
            server.inboxes.iter().for_each(|inbox| inbox.copies_moved());
        }
    }

    fn snapshot_wanted(&self) {
        if let Some(server) = self.leadership.server()
            && server.engine.is_loaded()
        {
            server.snapshots.request(None);
        }
    }

    fn snapshot_unsent(&self, to: NodeId, reason: &str) {
        let line = format!(
            "warning: member {to} lacks what this leader no longer has in its log, and does not get a snapshot: \
             {reason}; it is tried again"
        );
        self.events.tell(Notice::Repeated { kind: format!("a snapshot to {to}"), line });
    }

    fn snapshot_refused(&self, reason: &str) {
        let line = format!(
            "warning: this member needs a snapshot of the leader, and does not take it: {reason}. It stays behind \
             until that is repaired; the leader tries it again by itself"
        );
        self.events.tell(Notice::Repeated { kind: "a snapshot of the leader".to_owned(), line });
    }

    fn end_log(&self, end: Lsn) {
        self.leadership.end_log(end);
    }

    fn cut(&self, lsn: Lsn) {
        self.leadership.cut(lsn);
    }

    fn install(&self, install: &mut dyn FnMut()) {
        say("this member lacks what the others keep of the log: it installs a snapshot of the leader");
        self.leadership.replace_log(install);
    }

    fn close_gate(&self) -> Result<(), String> {
        self.leadership.close_gate()
    }

    fn send_answers(&self) {
        self.leadership.send_answers();
    }

    fn open_gate(&self) {
        self.leadership.open_gate();
    }

    fn members(&self, members: &[Member]) {
        self.messages.set_peers(others(self.me, members));
        if let Some(transport) = self.transport.get() {
            transport.set_roster(roster(self.me, &known(self.me, members, &self.founders)));
        }
    }
}

/// What the operator is told.
enum Notice {
    /// Of what fails again and again, as connections do: rarely.
    Repeated {
        /// What it is about.
        kind: String,
        line: String,
    },
    /// Of the member.
    Member(&'static str),
}

/// Tells the operator what fails, from a thread of its own: standard error may block, and the consensus must
/// not wait for it.
struct Events {
    notices: SyncSender<Notice>,
}

impl Events {
    fn start(mut lines: RepeatedLines) -> io::Result<Events> {
        let (notices, written) = std::sync::mpsc::sync_channel::<Notice>(NOTICES_MAX);
        std::thread::Builder::new().name("tidemark-notices".to_owned()).spawn(move || {
            // Until the connections are closed.
            written.iter().for_each(|notice| match notice {
                Notice::Repeated { kind, line } => lines.write(&kind, &line),
                Notice::Member(notice) => say(notice),
            });
        })?;
        Ok(Events { notices })
    }

    /// Has a line written. Those beyond the queue are left out.
    fn tell(&self, notice: Notice) {
        let _ = self.notices.try_send(notice);
    }
}

impl NetEvents for Events {
    fn heartbeats_closed(&self, _peer: NodeId) {}

    fn connection_failed(&self, peer: Option<NodeId>, error: &str) {
        let line = match peer {
            Some(peer) => format!("warning: the connection with member {peer}: {error}"),
            None => format!("warning: a connection to the port for other members: {error}"),
        };
        self.tell(Notice::Repeated { kind: without_ports(&line), line });
    }
}

/// Returns a line about a connection without the ports in it: each connection of a client has another one.
fn without_ports(line: &str) -> String {
    let mut kind = String::with_capacity(line.len());
    let mut is_port = false;
    for character in line.chars() {
        is_port = character == ':' || (is_port && character.is_ascii_digit());
        if !is_port || character == ':' {
            kind.push(character);
        }
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_about_the_connections_of_one_host_are_of_one_kind() {
        let line = |port: u16, node: u64| {
            without_ports(&format!("warning: a connection from 10.0.0.9:{port}: node {node} is no member"))
        };
        assert_eq!(line(50_000, 4), line(50_002, 4));
        assert_ne!(line(50_000, 4), line(50_000, 5));
        assert_eq!(without_ports("a: 12:34 56"), "a: 12: 56");
    }
}
