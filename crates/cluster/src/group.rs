//! A member of a group on threads of its own.
//!
//! ```text
//!  raft thread:  consensus, pump, sends and answers; a runtime of tokio; never waits for the disk
//!  writer, sync, reader: see `driver`
//! ```

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, mpsc as blocking};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use tidemark_log::{Durability, Log, Member as LogMember};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{mpsc, oneshot};

use crate::consensus::{ChangeError, Consensus, GroupStatus, Refusal};
use crate::driver::{LogDriver, Threads, VoteStore};
use crate::ids::NodeId;
use crate::level::Level;
use crate::member::{Member, Members};
use crate::net::{Lane, Service, Transport};
use crate::raft::{Heal, Node, NodeParts, Real};
use crate::role::{Role, TermListener};
use crate::settings::Settings;
use crate::snapshot_files::SenderSettings;
use crate::term::Term;
use crate::wire::message::decode_ballot;

/// Longest time for which commands are refused because the lead is handed over: the target lacks few entries
/// then.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// What a member of a group is made of.
pub struct GroupParts {
    /// The member's name.
    pub node: NodeId,
    /// Timing and limits.
    pub settings: Settings,
    /// Its log, opened with [`Log::open_member`].
    pub log: Arc<Log>,
    /// The group's side of the log.
    pub member: LogMember,
    /// Where the ballot is kept.
    pub votes: Box<dyn VoteStore>,
    /// The bytes that `votes` had when it was opened.
    pub ballot: Option<Vec<u8>>,
    /// Is notified of terms and cuts.
    pub listener: Arc<dyn TermListener>,
    /// `Some` if the member may have lost entries that it had acknowledged: it does not vote until a
    /// leader has caught it up. Then this is called, on the log's writer, and makes durable that
    /// the member has everything. If it fails, the member stays without a vote.
    pub heal: Option<Heal>,
}

impl std::fmt::Debug for GroupParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GroupParts").field("node", &self.node).field("log", &self.log).finish_non_exhaustive()
    }
}

/// Answers the frames of other members, from the moment at which the member takes part. Until then
/// connections close.
#[derive(Clone)]
pub struct GroupService(Arc<OnceLock<Node<Real>>>);

impl std::fmt::Debug for GroupService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GroupService")
    }
}

impl Service for GroupService {
    async fn serve(
        &self,
        from: NodeId,
        lane: Lane,
        requests: mpsc::Receiver<Bytes>,
        answers: mpsc::Sender<Vec<u8>>,
    ) {
        if let Some(node) = self.0.get() {
            node.serve(from, lane, requests, answers).await;
        }
    }
}

/// A member of a group. Dropping it closes it.
pub struct Group {
    node: Node<Real>,
    service: GroupService,
    runtime: Handle,
    running: Mutex<Option<Running>>,
    /// Held while the gate is closed.
    changing: Mutex<()>,
}

/// What is there until the member is closed.
struct Running {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
    threads: Threads,
}

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Group").field("status", &self.status()).finish_non_exhaustive()
    }
}

impl Group {
    /// Starts a member. `connect` runs on the thread of the consensus, inside its runtime: it makes
    /// the transport, and starts a listener for the service if there is one. If the member may have
    /// taken part before, this blocks for a lease.
    ///
    /// # Errors
    /// The ballot, the settings or the log are invalid, or a thread cannot be started.
    pub fn start<T: Transport>(
        parts: GroupParts,
        connect: impl FnOnce(GroupService) -> io::Result<T> + Send + 'static,
    ) -> io::Result<Self> {
        let GroupParts { node: me, settings, log, member, votes, ballot, listener, heal } = parts;
        let ballot = match ballot {
            None => None,
            Some(bytes) => Some(decode_ballot(&bytes).ok_or_else(|| {
                io::Error::other(format!("the {} bytes of the saved ballot are none", bytes.len()))
            })?),
        };
        let driver = LogDriver::open(
            me,
            log,
            member,
            votes,
            ballot,
            settings.durability,
            #[cfg(test)]
            crate::faults::Faults::default(),
        )?;
        let mut threads = Threads::start(driver.driver())?;
        let (started, start) = blocking::channel();
        let (stop, stopped) = oneshot::channel();
        let parts = NodeParts {
            me,
            settings,
            driver: driver.clone(),
            listener,
            heal,
            sender: SenderSettings::default(),
            #[cfg(test)]
            faults: crate::faults::Faults::default(),
        };
        let thread = std::thread::Builder::new()
            .name("tidemark-raft".to_owned())
            .spawn(move || run(parts, connect, &started, stopped));
        let begun = match &thread {
            Ok(_) => start
                .recv()
                .unwrap_or_else(|_| Err(io::Error::other("the thread of the consensus has ended"))),
            Err(error) => Err(io::Error::new(error.kind(), format!("starting a thread: {error}"))),
        };
        match (begun, thread) {
            (Ok((node, service, runtime)), Ok(thread)) => {
                let running = Mutex::new(Some(Running { stop, thread, threads }));
                Ok(Self { node, service, runtime, running, changing: Mutex::default() })
            }
            (begun, thread) => {
                driver.close();
                threads.join();
                if let Ok(thread) = thread {
                    drop(thread.join());
                }
                Err(begun.err().unwrap_or_else(|| io::Error::other("the thread of the consensus has ended")))
            }
        }
    }

    /// Returns what answers the frames of other members.
    pub fn service(&self) -> GroupService {
        self.service.clone()
    }

    /// Runs a task on the thread of the consensus and waits for its result.
    fn call<R: Send + 'static>(&self, task: impl Future<Output = R> + Send + 'static) -> io::Result<R> {
        let (done, result) = blocking::channel();
        drop(self.runtime.spawn(async move { drop(done.send(task.await)) }));
        result.recv().map_err(|_| io::Error::other("this member of the group is closed"))
    }
}

impl Group {
    /// Raises the group's level to what all members know, learners too, if this member leads. `knows` is
    /// what another member has stated since it is connected. Returns the new level; `None` if there is
    /// nothing to raise. Blocks, and refuses commands for a moment if there is.
    ///
    /// # Errors
    /// This member lost the lead, or another change is under way: repeat it.
    pub fn raise_level(
        &self,
        knows: impl Fn(NodeId) -> Option<Level> + Send + 'static,
        patience: Duration,
    ) -> Result<Option<Level>, ChangeError> {
        if self.node.reign.role.leading().is_none() || self.node.level_to_raise(&knows).is_none() {
            return Ok(None);
        }
        let raised = Arc::new(OnceLock::new());
        let result = Arc::clone(&raised);
        self.change_gated(|node| async move {
            // Looked at again: no other change is under way now.
            if let Some(level) = node.raise_level(knows, patience).await? {
                let _ = result.set(level);
            }
            Ok(())
        })?;
        Ok(raised.get().copied())
    }

    /// Checks that member `node` lacks so few entries that it can vote, or lead, after a moment. For the leader.
    ///
    /// # Errors
    /// The number of entries that it lacks. It is 0 for one that needs a snapshot and no entry behind it.
    pub fn check_caught_up(&self, node: NodeId) -> Result<(), u64> {
        self.node.check_caught_up(node)
    }

    /// Returns what this member does before it acknowledges an entry. Takes a lock.
    pub fn durability(&self) -> Durability {
        self.node.driver.driver().mode()
    }

    /// Changes what this member does before it acknowledges an entry: with `always` it syncs, otherwise it writes.
    /// Blocks until everything is synced that was acknowledged before. The caller has noted durably that a power
    /// failure loses entries, before it changes to another mode than `always`.
    ///
    /// # Errors
    /// The log has failed.
    pub fn set_durability(&self, durability: Durability) -> io::Result<()> {
        self.node.driver.set_mode(durability)
    }

    /// Has a member vote that may have lost what it acknowledged, with what it has. What it lacks is gone if
    /// no other member has it. Returns before it votes; a member that votes already is not changed.
    pub fn accept_loss(&self) {
        self.node.accept_loss();
    }

    /// Hands the lead over to `to`, because this member cannot write: as
    /// [`transfer`](Consensus::transfer), and where that fails because this log takes nothing more, without
    /// a pause. Then clients lose what was executed here and is not committed, as if this member had
    /// died. Blocks for up to about twice `patience`.
    ///
    /// # Errors
    /// As those of a transfer.
    pub fn give_away(&self, to: NodeId, patience: Duration) -> Result<(), ChangeError> {
        match self.transfer(to, patience) {
            Err(ChangeError::NotPaused(_) | ChangeError::NotCaughtUp { .. }) => {}
            transferred => return transferred,
        }
        let _alone = self.alone()?;
        let node = self.node.clone();
        self.change(async move { node.hand_over_at_once(to, patience).await })
    }

    fn change(
        &self,
        change: impl Future<Output = Result<(), ChangeError>> + Send + 'static,
    ) -> Result<(), ChangeError> {
        self.call(change).unwrap_or(Err(ChangeError::Closed))
    }

    /// Keeps other changes out.
    fn alone(&self) -> Result<MutexGuard<'_, ()>, ChangeError> {
        match self.changing.try_lock() {
            Ok(alone) => Ok(alone),
            Err(TryLockError::Poisoned(alone)) => Ok(alone.into_inner()),
            Err(TryLockError::WouldBlock) => Err(ChangeError::Another),
        }
    }

    /// Hands the lead over while no command runs, behind the answers to those that ran.
    fn transfer_gated(&self, to: NodeId, until: Duration) -> Result<(), ChangeError> {
        let node = self.node.clone();
        let term = self
            .call(async move { node.prepare_transfer(to, until).await })
            .unwrap_or(Err(ChangeError::Closed))?;
        self.node.reign.send_answers();
        let node = self.node.clone();
        self.change(async move { node.hand_over(term, to, until).await })
    }

    /// Makes a change that makes the log refuse records, while no command runs.
    fn change_gated<F: Future<Output = Result<(), ChangeError>> + Send + 'static>(
        &self,
        change: impl FnOnce(Node<Real>) -> F,
    ) -> Result<(), ChangeError> {
        if !matches!(self.role(), Role::Leading { .. }) {
            return Err(ChangeError::NotLeader);
        }
        let _alone = self.alone()?;
        self.node.reign.close_gate().map_err(ChangeError::NotPaused)?;
        let changed = self.change(change(self.node.clone()));
        self.node.reign.open_gate();
        changed
    }
}

type Begun = io::Result<(Node<Real>, GroupService, Handle)>;

fn run<T: Transport>(
    parts: NodeParts,
    connect: impl FnOnce(GroupService) -> io::Result<T>,
    started: &blocking::Sender<Begun>,
    stopped: oneshot::Receiver<()>,
) {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return drop(started.send(Err(error))),
    };
    runtime.block_on(async {
        let service = GroupService(Arc::new(OnceLock::new()));
        let begun = async {
            let transport = connect(service.clone())?;
            let node = Node::<Real>::start(parts, transport.clone()).await?;
            // Ends with the runtime.
            drop(tokio::spawn(node.clone().watch_staleness(transport)));
            Ok(node)
        };
        let begun: io::Result<Node<Real>> = begun.await;
        match begun {
            Err(error) => drop(started.send(Err(error))),
            Ok(node) => {
                drop(service.0.set(node.clone()));
                drop(started.send(Ok((node.clone(), service, Handle::current()))));
                // An error means that the group was dropped.
                drop(stopped.await);
                if !node.shutdown().await {
                    tracing::warn!("the consensus has not ended in time; its tasks end with their thread");
                }
            }
        }
    });
}

impl Consensus for Group {
    fn role(&self) -> Role {
        self.node.reign.role.role(self.node.now(), self.node.settings.lease())
    }

    fn admit(&self) -> Result<Term, Refusal> {
        match self.role() {
            Role::Leading { .. } if self.node.reign.is_paused() => Err(Refusal::Changing),
            Role::Leading { term } if self.has_lease(term) => Ok(term),
            Role::Following { leader: Some(leader) } => Err(Refusal::Moved(leader)),
            Role::Leading { .. } | Role::Following { leader: None } => Err(Refusal::NoLeader),
        }
    }

    fn has_lease(&self, term: Term) -> bool {
        self.node.reign.lease.is_valid(term, self.node.now())
    }

    fn confirm(&self, term: Term, then: Box<dyn FnOnce(bool) + Send>) {
        let node = self.node.clone();
        drop(self.runtime.spawn(async move { then(node.confirm(term).await) }));
    }

    fn staleness(&self) -> Option<Duration> {
        self.node.staleness.age(self.node.now())
    }

    fn members(&self) -> Vec<Member> {
        self.node.members().map_or_else(Vec::new, |members| members.list())
    }

    fn status(&self) -> GroupStatus {
        let status = self.node.status();
        GroupStatus {
            role: self.role(),
            term: status.term,
            last: status.last,
            committed: status.applied,
            matching: status.matching.into_iter().map(|(node, id)| (NodeId(node), id)).collect(),
            quorum_age: status.quorum_age,
            level: status.level,
            is_suspect: status.is_suspect,
            is_named: status.is_named,
            are_members_committed: status.are_members_committed,
            unsent_snapshots: status.unsent_snapshots,
            refused_snapshot: status.refused_snapshot,
            failure: status.failure,
        }
    }

    fn request_sync(&self) {
        self.node.driver.request_sync();
    }

    fn init(&self, members: Members) -> io::Result<()> {
        let node = self.node.clone();
        self.call(async move { node.init(members).await })?
    }

    fn transfer(&self, to: NodeId, patience: Duration) -> Result<(), ChangeError> {
        let node = self.node.clone();
        node.check_transfer(to)?;
        self.change(async move { node.catch_up(to, patience).await })?;
        let _alone = self.alone()?;
        self.node.reign.close_gate().map_err(ChangeError::NotPaused)?;
        let until = self.node.now() + patience.min(PAUSE_MAX);
        let changed = self.transfer_gated(to, until);
        self.node.reign.open_gate();
        changed
    }

    fn join(&self, member: Member, patience: Duration) -> Result<(), ChangeError> {
        let (id, is_voter) = (member.id, member.is_voter);
        self.change_gated(|node| async move { node.add(member, patience).await })?;
        let node = self.node.clone();
        self.change(async move { node.catch_up(id, patience).await })?;
        if !is_voter {
            return Ok(());
        }
        self.change_gated(|node| async move { node.promote(id, patience).await })
    }

    fn remove(&self, remove: NodeId, patience: Duration) -> Result<(), ChangeError> {
        self.change_gated(|node| async move { node.remove(remove, patience).await })
    }

    fn close(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Running { stop, thread, mut threads }) = running else { return };
        self.node.driver.stop_waiting();
        let _ = stop.send(());
        // A panic there has been printed; the member takes no part any more either way.
        drop(thread.join());
        self.node.driver.close();
        threads.join();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.close();
    }
}
