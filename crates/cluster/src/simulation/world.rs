//! The members of a simulated group, and what is looked at while they run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use openraft::type_config::TypeConfigExt;
use tidemark_log::{Durability, Log, Lsn};

use super::disk::{Disk, Media, Opened, Opening};
use super::history::{History, entries};
use super::lock::lock;
use super::network::{Network, Peer, Wire};
use crate::faults::Faults;
use crate::ids::{NodeId, RandomId};
use crate::member::Member;
use crate::raft::{Node, NodeParts, Simulated};
use crate::role::TermListener;
use crate::settings::Settings;
use crate::skewed_runtime::{AtSpeed, at_speed};
use crate::term::Term;

/// Registers as a leader has them: the LSN of each client's newest write.
#[derive(Debug, Default)]
pub(super) struct LeaderMemory {
    /// The term for which they were read from the log.
    pub(super) term: Term,
    pub(super) newest: BTreeMap<u64, u64>,
}

/// A member that runs.
#[derive(Clone)]
pub(super) struct Running {
    /// What its memory has, as a leader: the newest write of each client.
    pub(super) memory: Arc<Mutex<LeaderMemory>>,
    pub(super) node: Node<Simulated>,
    pub(super) log: Arc<Log>,
    pub(super) disk: Arc<Disk>,
}

impl Running {
    /// Returns whether the member may answer reads of `term`.
    pub(super) fn has_lease(&self, term: Term) -> bool {
        let now = at_speed(self.disk.speed, || self.node.now());
        self.node.reign.lease.is_valid(term, now)
    }

    pub(super) fn leading(&self) -> Option<Term> {
        self.node.reign.role.leading()
    }
}

/// What happened how often.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) crashes: AtomicU64,
    pub(super) cuts: AtomicU64,
    pub(super) transfers: AtomicU64,
    pub(super) changes: AtomicU64,
    pub(super) healed: AtomicU64,
    pub(super) unknown: AtomicU64,
    pub(super) reads: AtomicU64,
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

pub(super) struct World {
    pub(super) settings: Settings,
    pub(super) segment_bytes: u64,
    /// Largest deviation of a clock's speed, in millionths.
    pub(super) skew: u64,
    pub(super) faults: Faults,
    pub(super) network: Arc<Network>,
    pub(super) history: History,
    pub(super) media: Mutex<BTreeMap<u64, Media>>,
    pub(super) running: Mutex<BTreeMap<u64, Running>>,
    pub(super) starting: Mutex<BTreeSet<u64>>,
    /// Members whose disk was lost; they are to be replaced.
    pub(super) wiped: Mutex<BTreeSet<u64>>,
    pub(super) rng: Mutex<Rng>,
    pub(super) next_node: AtomicU64,
    /// Removals of members that are under way.
    pub(super) removing: AtomicU64,
    pub(super) incarnations: AtomicU64,
    pub(super) counts: Counts,
    /// Acknowledged operations with their LSNs.
    pub(super) acknowledged: Mutex<Vec<(u64, u64)>>,
    pub(super) is_over: AtomicBool,
}

struct Watcher {
    world: Arc<World>,
    node: u64,
    incarnation: u64,
    peer: Arc<Peer>,
}

impl TermListener for Watcher {
    fn begin_term(&self, term: Term, _lsn: Lsn) {
        self.world.history.note_leader(term.0, self.node, self.incarnation);
        for (other, running) in lock(&self.world.running).iter().filter(|(other, _)| **other != self.node) {
            // A deposed leader on a slow disk may begin late; it has no lease.
            if let Some(old) = running.leading().filter(|old| *old < term && running.has_lease(*old)) {
                let what =
                    format!("term {term} begins at {} while {other} has a lease for term {old}", self.node);
                self.world.history.fail(what);
            }
        }
    }

    fn end_term(&self, _term: Term) {}

    fn end_log(&self, _: Lsn) {}

    fn members(&self, members: &[Member]) {
        let directories = members.iter().map(|member| (member.id.0, member.directory));
        *lock(&self.peer.members) = directories.filter_map(|(id, dir)| Some((id, dir?))).collect();
    }

    fn cut(&self, _lsn: Lsn) {
        count(&self.world.counts.cuts);
    }
}

impl World {
    pub(super) fn random<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> T {
        draw(&mut lock(&self.rng))
    }

    /// Makes a directory for a member, and describes the member.
    pub(super) fn provide(&self, node: u64) -> Member {
        let mut directory = [0; 16];
        self.random(|rng| rng.fill(&mut directory));
        let directory = RandomId(directory);
        lock(&self.media).insert(node, Media::new(directory));
        Member {
            id: NodeId(node),
            peer_address: format!("member-{node}:7000"),
            client_address: format!("member-{node}:6379"),
            directory: Some(directory),
            is_voter: true,
        }
    }

    pub(super) async fn start(self: &Arc<Self>, node: u64) {
        if !lock(&self.media).contains_key(&node) || !lock(&self.starting).insert(node) {
            return;
        }
        let speed = crate::skewed_runtime::EVEN + self.random(|rng| rng.u64(..=2 * self.skew)) - self.skew;
        AtSpeed::new(speed, self.start_at(node, speed)).await;
        lock(&self.starting).remove(&node);
    }

    async fn start_at(self: &Arc<Self>, node: u64, speed: u64) {
        let incarnation = self.incarnations.fetch_add(1, Ordering::Relaxed);
        let opening = Opening {
            node: NodeId(node),
            seed: self.random(|rng| rng.u64(..)),
            segment_bytes: self.segment_bytes,
            durability: self.settings.durability,
            speed,
            faults: self.faults,
        };
        let opened = lock(&self.media)[&node].open(opening);
        let Opened { driver, log, disk, heal } = match opened {
            Ok(opened) => opened,
            Err(error) => return self.history.fail(format!("member {node} does not open its log: {error}")),
        };
        let peer = Arc::new(Peer::new(disk.clone(), lock(&self.media)[&node].directory));
        let watcher = Watcher { world: self.clone(), node, incarnation, peer: peer.clone() };
        let heal = heal.map(|heal| {
            let world = self.clone();
            Box::new(move || {
                count(&world.counts.healed);
                heal()
            }) as crate::raft::Heal
        });
        let parts = NodeParts {
            me: NodeId(node),
            settings: self.settings,
            driver,
            listener: Arc::new(watcher),
            heal,
            faults: self.faults,
        };
        let wire = Wire::new(self.network.clone(), node, peer.clone());
        match Node::start(parts, wire).await {
            // It was removed meanwhile.
            Ok(started) if !lock(&self.media).contains_key(&node) => {
                bury(Running { memory: Arc::default(), node: started, log, disk });
            }
            Ok(started) => {
                self.history.note(format_args!("member {node} runs"));
                self.network.connect(node, started.clone(), peer);
                lock(&self.running)
                    .insert(node, Running { memory: Arc::default(), node: started, log, disk });
            }
            Err(error) => self.history.fail(format!("member {node} does not start: {error}")),
        }
    }

    /// Ends a member's process, and starts it again later.
    pub(super) fn crash(self: &Arc<Self>, node: u64, has_power: bool, pause_ms: u64) {
        let power = (!has_power && self.may_lose(node)).then(|| self.random(|rng| rng.u64(..)));
        let Some(running) = self.kill(node) else { return };
        let unsynced = self.settings.durability != Durability::Always;
        if let Some(media) = lock(&self.media).get_mut(&node) {
            media.crash(power, unsynced);
        }
        self.history.note(format_args!("member {node} ends, power failure {}", power.is_some()));
        bury(running);
        let world = self.clone();
        drop(Simulated::spawn(async move {
            Simulated::sleep(Duration::from_millis(pause_ms)).await;
            world.start(node).await;
        }));
    }

    /// A member loses its disk, and starts with an empty one in its place.
    pub(super) fn wipe(self: &Arc<Self>, node: u64) {
        if !self.may_lose_a_disk() {
            return;
        }
        let Some(running) = self.kill(node) else { return };
        drop(self.provide(node));
        lock(&self.wiped).insert(node);
        self.history.note(format_args!("member {node} loses its disk"));
        bury(running);
        let world = self.clone();
        drop(Simulated::spawn(async move {
            Simulated::sleep(Duration::from_millis(50)).await;
            world.start(node).await;
        }));
    }

    /// Ends a member's process.
    pub(super) fn kill(&self, node: u64) -> Option<Running> {
        let running = lock(&self.running).remove(&node)?;
        running.disk.is_alive.store(false, Ordering::Relaxed);
        self.network.disconnect(node);
        count(&self.counts.crashes);
        Some(running)
    }

    /// Returns whether a power failure of this member leaves a majority that has lost nothing. If most
    /// members may have lost entries, the group waits for its operator: see `a_majority_of_suspects`.
    fn may_lose(&self, node: u64) -> bool {
        if self.settings.durability == Durability::Always {
            return true;
        }
        let mut lost = self.lost();
        lost.insert(node);
        lost.len() as u64 <= self.minority()
    }

    fn may_lose_a_disk(&self) -> bool {
        lock(&self.wiped).is_empty() && (self.lost().len() as u64) < self.minority()
    }

    /// Returns the members that may have lost entries.
    fn lost(&self) -> BTreeSet<u64> {
        let media = lock(&self.media);
        let suspects = media.iter().filter(|(_, media)| media.is_suspect()).map(|(node, _)| *node);
        suspects.chain(lock(&self.wiped).iter().copied()).collect()
    }

    /// Returns how many members are fewer than half, by the smallest group that may be in force.
    fn minority(&self) -> u64 {
        let running = lock(&self.running);
        let sizes = running.values().filter_map(|running| running.node.members());
        let sizes = sizes.flat_map(|members| members.voters.into_iter().map(|set| set.len() as u64));
        let removing = self.removing.load(Ordering::Relaxed);
        sizes.min().unwrap_or(0).saturating_sub(1 + removing) / 2
    }

    /// Returns whether a member fewer leaves a majority that has lost nothing.
    pub(super) fn may_remove(&self) -> bool {
        self.lost().is_empty() && self.minority() > 1
    }

    pub(super) fn leader(&self) -> Option<(u64, Running)> {
        let running = lock(&self.running);
        let leader = running.iter().find(|(_, running)| running.leading().is_some());
        leader.map(|(node, running)| (*node, running.clone()))
    }

    /// Returns the numbers of all members that were ever there and not removed.
    pub(super) fn nodes(&self) -> Vec<u64> {
        lock(&self.media).keys().copied().collect()
    }

    /// Compares the logs of all members that run.
    pub(super) fn check(&self) {
        let running = lock(&self.running);
        let wiped = lock(&self.wiped).clone();
        let known = running.iter().filter(|(node, _)| self.faults.admits_new_disks || !wiped.contains(node));
        let logs: Vec<_> =
            known.map(|(node, running)| (*node, entries(running.node.driver.member()))).collect();
        for (node, seen) in &logs {
            self.history.note_committed(*node, &running[node].log, seen);
        }
        self.history.match_logs(&logs);
        let leased: Vec<_> = running
            .iter()
            .filter(|(_, running)| running.leading().is_some_and(|term| running.has_lease(term)))
            .map(|(node, _)| node)
            .collect();
        if leased.len() > 1 {
            self.history.fail(format!("members {leased:?} have a lease at the same time"));
        }
    }
}

/// Ends what is left of a killed process. Nothing waits for that: its disk takes no more jobs.
pub(super) fn bury(running: Running) {
    drop(Simulated::spawn(async move {
        running.node.shutdown().await;
        running.node.driver.close();
    }));
}
