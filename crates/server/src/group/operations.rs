//! What operators ask of a member: changes of the leader and of the members, one at a time, and a view of
//! the group.
//!
//! A change may take longer than a client waits, and ends the connections of its client when the lead moves.
//! So it runs on a thread of its own, and the view has its outcome.

use super::joining;
use super::node::GroupNode;
use crate::observe::operator_line::say;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidemark_cluster::net::{Build, Lane};
use tidemark_cluster::{ChangeError, Consensus as _, Level, Member, NodeId, RandomId, Role, Term};

/// How long a transfer waits until its target has everything.
const TRANSFER_PATIENCE: Duration = Duration::from_secs(5);
/// The same when the server stops.
const LEAVE_PATIENCE: Duration = Duration::from_secs(2);
/// How long a change of the members waits for what was accepted before it.
const MEMBERS_PATIENCE: Duration = Duration::from_secs(10);
/// How long the join of a member that lacks little waits until it has everything. One that lacks more asks
/// again: no other change waits for it meanwhile.
const JOIN_PATIENCE: Duration = Duration::from_secs(2);

/// Most characters of a report that are kept.
const REPORT_CHARS_MAX: usize = 500;

/// Time without an answer of most members after which a leader does not count as one.
const LONELY: Duration = Duration::from_secs(2);

/// A change of the group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// Another member is to lead.
    Transfer(NodeId),
    /// A new member takes part, and votes once it has caught up.
    Join(Member),
    /// A member takes no part any more.
    Remove(NodeId),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Transfer(to) => write!(f, "transfer of the lead to member {to}"),
            Change::Join(member) => write!(f, "join of member {} at {}", member.id, member.peer_address),
            Change::Remove(node) => write!(f, "removal of member {node}"),
        }
    }
}

/// What a member knows of its group.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// The cluster's id.
    pub(crate) cluster: RandomId,
    pub(crate) me: NodeId,
    /// Whether commands run here.
    pub(crate) leads: bool,
    pub(crate) leader: Option<NodeId>,
    pub(crate) term: Term,
    /// Index of this member's last entry.
    pub(crate) last: u64,
    /// Term of that entry.
    pub(crate) last_term: Term,
    /// Index of the last entry that this member knows to be committed.
    pub(crate) committed: u64,
    /// Time since a quorum acknowledged this leader.
    pub(crate) quorum_age: Option<Duration>,
    /// The build of this member.
    pub(crate) build: Build,
    /// The level of the group's records.
    pub(crate) level: Level,
    /// This member may have lost what it acknowledged, and does not vote.
    pub(crate) is_suspect: bool,
    /// Why this member does not take the snapshot that it needs.
    pub(crate) refused_snapshot: Option<String>,
    /// Why this member takes no part any more.
    pub(crate) failure: Option<String>,
    /// The change that is under way.
    pub(crate) change: Option<String>,
    /// The last change that ended, and why it was not made.
    pub(crate) last_change: Option<(String, Option<String>)>,
    pub(crate) members: Vec<MemberView>,
    /// The entry that names these members is committed.
    pub(crate) are_members_committed: bool,
}

/// A member, as another one sees it.
#[derive(Debug, Clone)]
pub(crate) struct MemberView {
    pub(crate) member: Member,
    /// Whether this member is connected with it.
    pub(crate) is_reachable: bool,
    /// Why the last connection ended or failed; empty before the first failure.
    pub(crate) error: String,
    /// Index of the last entry that it is known to have; only at the leader.
    pub(crate) has: Option<u64>,
    /// Why it did not get a snapshot that it needs; only at the leader.
    pub(crate) unsent_snapshot: Option<String>,
    /// Why it does not take part, as it has said itself since this member reached it last.
    pub(crate) report: Option<String>,
    /// Its build, if this member is connected with it, and the version of the protocol between the two; of
    /// this member, none.
    pub(crate) build: Option<(Build, Option<u16>)>,
}

#[derive(Debug, Default)]
struct OperationState {
    running: Option<String>,
    last: Option<(String, Option<String>)>,
    /// What members that do not take part say of themselves.
    reports: BTreeMap<NodeId, String>,
}

/// Refuses what only helps where no leader can be elected.
fn check_no_leader(view: &View) -> Result<(), String> {
    match view.leader {
        // It leads nothing: no majority has answered for long.
        Some(leader) if leader == view.me && view.quorum_age.is_none_or(|age| age > LONELY) => Ok(()),
        Some(leader) => Err(format!("ERR member {leader} leads: there is nothing to recover from")),
        None => Ok(()),
    }
}

/// Makes changes, and shows the group.
pub(crate) struct Operations {
    node: Arc<GroupNode>,
    state: Mutex<OperationState>,
    is_leaving: AtomicBool,
}

impl Operations {
    pub(super) fn new(node: Arc<GroupNode>) -> Arc<Operations> {
        Arc::new(Operations { node, state: Mutex::default(), is_leaving: AtomicBool::new(false) })
    }

    fn state(&self) -> MutexGuard<'_, OperationState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a change, which goes on behind this call: [`View::last_change`] says how it ended. The caller
    /// has seen that this member leads. `client` is the address of the client that asks.
    ///
    /// # Errors
    /// Why the change cannot be made now, in words.
    pub(crate) fn begin(self: &Arc<Self>, change: Change, client: String) -> Result<(), String> {
        self.check(&change)?;
        self.start(change.to_string(), move |operations| {
            say(&format!("client {client} asks for the {change}"));
            let group = &operations.node.group;
            let result = match change {
                Change::Transfer(to) => group.transfer(to, TRANSFER_PATIENCE),
                Change::Join(member) => {
                    let id = member.id;
                    match group.join(member, JOIN_PATIENCE) {
                        Err(ChangeError::NotCaughtUp { .. })
                            if group.members().iter().any(|member| member.id == id) =>
                        {
                            say(&format!(
                                "member {id} is taken in: it gets the log, and votes when it has everything"
                            ));
                            Ok(())
                        }
                        joined => joined,
                    }
                }
                Change::Remove(node) => group.remove(node, MEMBERS_PATIENCE),
            };
            result.map_err(|error| error.to_string())
        })
    }

    /// Begins to ask the leader, whose clients reach it at `leader`, to give this member the lead. The
    /// members have one password.
    ///
    /// # Errors
    /// Why it cannot be asked now, in words.
    pub(crate) fn ask_for_lead(self: &Arc<Self>, leader: String, password: String) -> Result<(), String> {
        let me = self.node.seat.node.to_string();
        self.start(format!("request for the lead, to the leader at {leader}"), move |_| {
            let answer = joining::call(&leader, &password, &["CLUSTER", "TRANSFER", &me]);
            let answer = answer.map_err(|error| error.to_string())?;
            answer.as_error().map_or(Ok(()), |error| Err(String::from_utf8_lossy(error).into_owned()))
        })
    }

    /// Has this member vote with what it has, although it may have lost what it acknowledged.
    ///
    /// # Errors
    /// Why that is not to be, in words.
    pub(crate) fn accept_loss(&self, client: &str) -> Result<(), String> {
        let view = self.view();
        check_no_leader(&view)?;
        if !view.is_suspect {
            return Err(format!(
                "ERR member {} votes already: it is not known to have lost anything",
                view.me
            ));
        }
        say(&format!(
            "warning: client {client} accepts what this member may have lost: it votes with what it has"
        ));
        self.node.accept_loss();
        Ok(())
    }

    /// Notes why a member cannot take part at the moment: it says so itself, before it listens to others.
    ///
    /// # Errors
    /// The cluster has no such member with that directory, in words.
    pub(crate) fn report(&self, node: NodeId, directory: RandomId, problem: &str) -> Result<(), String> {
        let members = self.node.group.members();
        let is_it = |member: &&Member| member.id == node && member.directory == Some(directory);
        if !members.iter().any(|member| is_it(&member)) {
            return Err(format!("ERR member {node} with the directory {directory} is not in this cluster"));
        }
        let is_shown = |character: &char| !character.is_control();
        let problem: String = problem.chars().filter(is_shown).take(REPORT_CHARS_MAX).collect();
        let mut state = self.state();
        // No more than there are members.
        state.reports.retain(|node, _| members.iter().any(|member| member.id == *node));
        if state.reports.insert(node, problem.clone()).is_none() {
            drop(state);
            say(&format!("warning: member {node} does not take part: {problem}"));
        }
        Ok(())
    }

    /// Makes this member the only one of a new cluster, with what it has. The server starts again for that,
    /// in this process, behind this call.
    ///
    /// # Errors
    /// Why that is not to be, in words.
    pub(crate) fn begin_alone(self: &Arc<Self>, client: String) -> Result<(), String> {
        let view = self.view();
        check_no_leader(&view)?;
        let voters: Vec<_> = view.members.iter().filter(|member| member.member.is_voter).collect();
        let present = voters.iter().filter(|member| member.is_reachable).count();
        if present * 2 > voters.len() {
            return Err(format!(
                "ERR {present} of {} voting members are reachable, which is a majority: it elects a leader, or, if \
                 members may have lost what they acknowledged, does so after CLUSTER RECOVER VOTE there",
                voters.len()
            ));
        }
        self.start("beginning of a cluster of its own".to_owned(), move |operations| {
            say(&format!(
                "warning: client {client} accepts the loss of the other members: this one begins a cluster of its \
                 own with its {} entries",
                operations.view().last
            ));
            operations.node.begin_alone().map_err(|error| error.to_string())?;
            if let Some(server) = operations.node.leadership.server() {
                server.stop();
            }
            Ok(())
        })
    }

    /// Runs `run` on a thread of its own, and notes how it has ended.
    fn start(
        self: &Arc<Self>,
        name: String,
        run: impl FnOnce(&Operations) -> Result<(), String> + Send + 'static,
    ) -> Result<(), String> {
        {
            let mut state = self.state();
            if let Some(running) = &state.running {
                return Err(format!("TRYAGAIN another change is under way: {running}"));
            }
            state.running = Some(name.clone());
        }
        let operations = Arc::clone(self);
        let thread = std::thread::Builder::new().name("tidemark-change".to_owned());
        let spawned = thread.spawn(move || operations.finish(name, run(&operations))).map(drop);
        spawned.map_err(|error| {
            self.state().running = None;
            format!("ERR cannot start a thread for the change: {error}")
        })
    }

    fn finish(&self, name: String, result: Result<(), String>) {
        match &result {
            Ok(()) => say(&format!("{name}: done")),
            Err(error) => say(&format!("warning: {name}: {error}")),
        }
        let mut state = self.state();
        state.running = None;
        state.last = Some((name, result.err()));
    }

    /// Refuses what cannot be made, with words for the operator.
    fn check(&self, change: &Change) -> Result<(), String> {
        let view = self.view();
        let of = |id: NodeId| view.members.iter().find(|member| member.member.id == id);
        let names = || {
            let names = view.members.iter().map(|member| member.member.id.to_string());
            names.collect::<Vec<_>>().join(", ")
        };
        let unknown = |id: NodeId| format!("ERR {id} is no member; the members are {}", names());
        match change {
            Change::Transfer(to) => match of(*to) {
                None => Err(unknown(*to)),
                Some(_) if *to == view.me => Err(format!("ERR member {to} leads already")),
                Some(target) if !target.member.is_voter => {
                    Err(format!("ERR member {to} does not vote yet; repeat it when it has caught up"))
                }
                Some(target) if !target.is_reachable => Err(format!(
                    "ERR member {to} is not reachable: {}; choose another, or repeat it when it is back",
                    target.error
                )),
                Some(_) => Ok(()),
            },
            Change::Join(member) => match of(member.id) {
                Some(known) if known.member.directory != member.directory => Err(format!(
                    "ERR the cluster has a member {} with another directory; a new member takes a number that \
                     none has had",
                    member.id
                )),
                // It holds the place of no other change while it is caught up, however long that takes.
                Some(known) if !known.member.is_voter => {
                    self.node.group.check_caught_up(member.id).map_err(|lacks| {
                        let reason = known.unsent_snapshot.as_ref();
                        let reason = reason.map(|reason| format!(", and does not get the snapshot of the leader: {reason}"));
                        format!(
                            "TRYAGAIN member {} is taken in; it votes when it has everything. It lacks {lacks} \
                             entries{}",
                            member.id,
                            reason.unwrap_or_default()
                        )
                    })
                }
                _ => Ok(()),
            },
            Change::Remove(node) => {
                if *node == view.me {
                    return Err(format!(
                        "ERR member {node} leads; transfer the lead first: CLUSTER TRANSFER to one of {}",
                        names()
                    ));
                }
                of(*node).ok_or_else(|| unknown(*node))?;
                let left: Vec<_> = view
                    .members
                    .iter()
                    .filter(|member| member.member.is_voter && member.member.id != *node)
                    .collect();
                let present = left.iter().filter(|member| member.is_reachable).count();
                if present * 2 <= left.len() {
                    return Err(format!(
                        "ERR of the {} members that would be left only {present} are reachable, which is no \
                         majority; bring one back first",
                        left.len()
                    ));
                }
                Ok(())
            }
        }
    }

    /// Returns what this member knows of the group. Takes a few locks.
    pub(crate) fn view(&self) -> View {
        let node = &self.node;
        let (status, links) = (node.group.status(), node.transport.links());
        let leader = match status.role {
            Role::Leading { .. } => Some(node.seat.node),
            Role::Following { leader } => leader,
        };
        let builds = node.builds();
        let view_of = |member: Member| {
            let link = links.iter().find(|link| link.peer == member.id && link.lane == Lane::Heartbeat);
            let is_me = member.id == node.seat.node;
            let has = status.matching.iter().find(|(id, _)| *id == member.id).map(|(_, entry)| entry.index);
            let unsent = status.unsent_snapshots.iter().find(|(id, _)| *id == member.id);
            MemberView {
                unsent_snapshot: unsent.map(|(_, reason)| reason.clone()),
                report: None,
                is_reachable: is_me || link.is_some_and(|link| link.is_connected),
                error: link.map(|link| link.last_error.clone()).unwrap_or_default(),
                has: if is_me { Some(status.last.index) } else { has },
                build: if is_me {
                    Some((node.build.clone(), None))
                } else {
                    builds.get(&member.id).map(|(build, protocol)| (build.clone(), Some(*protocol)))
                },
                member,
            }
        };
        let mut members: Vec<MemberView> = node.group.members().into_iter().map(view_of).collect();
        let (change, last_change) = {
            let mut state = self.state();
            for member in &mut members {
                if member.is_reachable {
                    state.reports.remove(&member.member.id);
                }
                member.report = state.reports.get(&member.member.id).cloned();
            }
            (state.running.clone(), state.last.clone())
        };
        View {
            cluster: node.seat.cluster,
            me: node.seat.node,
            leads: matches!(status.role, Role::Leading { term } if node.leadership.serves(term)),
            leader,
            term: status.term,
            last: status.last.index,
            last_term: Term(status.last.term),
            committed: status.committed.index,
            is_suspect: status.is_suspect,
            quorum_age: status.quorum_age,
            build: node.build.clone(),
            level: status.level,
            refused_snapshot: status.refused_snapshot,
            failure: status.failure,
            change,
            last_change,
            are_members_committed: status.are_members_committed,
            members,
        }
    }

    /// If this member leads, hands the lead over and then stops the server, on another thread. Returns
    /// false if it does not lead, or does so already: the caller stops the server.
    pub(crate) fn leave(self: &Arc<Self>) -> bool {
        if !self.view().leads || self.is_leaving.swap(true, Ordering::AcqRel) {
            return false;
        }
        let operations = Arc::clone(self);
        let thread = std::thread::Builder::new().name("tidemark-leave".to_owned());
        thread.spawn(move || operations.hand_over_and_stop()).is_ok()
    }

    fn hand_over_and_stop(&self) {
        let view = self.view();
        let is_candidate = |member: &&MemberView| {
            member.member.id != view.me && member.member.is_voter && member.is_reachable
        };
        let best = view.members.iter().filter(is_candidate).max_by_key(|member| member.has);
        match best.map(|member| member.member.id) {
            None => say("no other member can lead at the moment: this one stops all the same"),
            Some(to) => match self.node.group.transfer(to, LEAVE_PATIENCE) {
                Ok(()) => say(&format!("member {to} leads the cluster, before this one stops")),
                Err(error) => {
                    say(&format!("warning: the lead was not handed over before the stop: {error}"));
                }
            },
        }
        if let Some(server) = self.node.leadership.server() {
            server.stop();
        }
    }
}
