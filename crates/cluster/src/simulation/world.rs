//! The members of a simulated group, and what is looked at while they run.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use openraft::type_config::TypeConfigExt;
use tidemark_log::{Durability, Log, Lsn};
use tokio::sync::Notify;

use super::disk::{Disk, Media, Opened, Opening};
use super::history::{History, SeenLog};
use super::lock::lock;
use super::memory::Memory;
use super::network::{Network, Peer, Wire};
use crate::faults::Faults;
use crate::ids::{NodeId, RandomId};
use crate::member::Member;
use crate::raft::{Node, NodeParts, Simulated};
use crate::role::TermListener;
use crate::settings::Settings;
use crate::skewed_runtime::{AtSpeed, EVEN, at_speed};
use crate::snapshot_files::SenderSettings;
use crate::term::Term;

/// Pause between two looks whether a process that begins has ended.
const LOOK_PAUSE: Duration = Duration::from_millis(5);

/// A member that runs.
#[derive(Clone)]
pub(super) struct Running {
    pub(super) memory: Arc<Mutex<Memory>>,
    /// What was read of its log to be compared.
    pub(super) seen: Arc<Mutex<SeenLog>>,
    pub(super) node: Node<Simulated>,
    pub(super) log: Arc<Log>,
    /// The log has moved.
    pub(super) moved: Arc<Notify>,
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
    /// Processes that ended within a call of their storage.
    pub(super) torn: AtomicU64,
    /// Snapshots that members have taken.
    pub(super) snapshots: AtomicU64,
    /// Snapshots of other members that took the place of a log.
    pub(super) installed: AtomicU64,
    pub(super) unknown: AtomicU64,
    pub(super) reads: AtomicU64,
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

pub(super) struct World {
    pub(super) settings: Settings,
    pub(super) segment_bytes: u64,
    pub(super) keep_snapshots: usize,
    pub(super) sender: SenderSettings,
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
    /// No faults are made any more.
    pub(super) is_healing: AtomicBool,
    pub(super) is_over: AtomicBool,
}

struct Watcher {
    world: Arc<World>,
    node: u64,
    incarnation: u64,
    disk: Arc<Disk>,
    peer: Arc<Peer>,
    memory: Arc<Mutex<Memory>>,
}

impl TermListener for Watcher {
    fn begin_term(&self, term: Term, _lsn: Lsn) {
        // Its process has ended meanwhile.
        if !self.disk.is_alive() {
            return;
        }
        if let Err(error) = lock(&self.memory).begin_term(term) {
            self.world.history.fail(format!("memory of member {} cannot lead: {error}", self.node));
        }
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

    fn end_log(&self, end: Lsn) {
        lock(&self.memory).end_log(end);
    }

    fn members(&self, members: &[Member]) {
        let directories = members.iter().map(|member| (member.id.0, member.directory));
        *lock(&self.peer.members) = directories.filter_map(|(id, dir)| Some((id, dir?))).collect();
    }

    fn cut(&self, lsn: Lsn) {
        count(&self.world.counts.cuts);
        lock(&self.memory).cut(lsn);
    }

    fn install(&self, install: &mut dyn FnMut()) {
        if self.disk.is_alive() {
            lock(&self.memory).cut(Lsn::ZERO);
            install();
            lock(&self.memory).cut(Lsn::ZERO);
        }
        if self.disk.is_alive() {
            count(&self.world.counts.installed);
            self.world.history.note(format_args!("member {} has installed a snapshot", self.node));
        }
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
        let is_there = lock(&self.media).contains_key(&node) && !lock(&self.running).contains_key(&node);
        if !is_there || !lock(&self.starting).insert(node) {
            return;
        }
        let speed = EVEN + self.random(|rng| rng.u64(..=2 * self.skew)) - self.skew;
        AtSpeed::new(speed, self.start_at(node, speed)).await;
        lock(&self.starting).remove(&node);
    }

    async fn start_at(self: &Arc<Self>, node: u64, speed: u64) {
        let incarnation = self.incarnations.fetch_add(1, Ordering::Relaxed);
        let Some(media) = lock(&self.media).get(&node).cloned() else { return };
        let seed = self.random(|rng| rng.u64(..));
        let disk = Disk::new(media.directory, speed, seed);
        if self.history.terms() > 0 && self.random(|rng| rng.u32(..8) == 0) {
            self.end_within_a_call(node, &disk);
        }
        let opening = Opening {
            disk: disk.clone(),
            node: NodeId(node),
            seed,
            segment_bytes: self.segment_bytes,
            keep_snapshots: self.keep_snapshots,
            durability: self.settings.durability,
            faults: self.faults,
        };
        match self.start_process(node, incarnation, &disk, media.open(opening)).await {
            Ok(running) if lock(&self.media).contains_key(&node) && disk.is_alive() => {
                self.history.note(format_args!("member {node} runs"));
                lock(&self.running).insert(node, running.clone());
                drop(Simulated::spawn(self.clone().take_snapshots(node, running)));
            }
            // It ended, or was removed meanwhile.
            Ok(running) => {
                self.network.disconnect(node);
                disk.end();
                self.bury(running);
            }
            Err(error) if disk.is_alive() => {
                self.history.fail(format!("member {node} does not start: {error}"));
            }
            Err(_) => {}
        }
    }

    async fn start_process(
        self: &Arc<Self>,
        node: u64,
        incarnation: u64,
        disk: &Arc<Disk>,
        opened: io::Result<Opened>,
    ) -> io::Result<Running> {
        let Opened { driver, log, heal } = opened?;
        let memory = Arc::new(Mutex::new(Memory::new(log.clone(), self.faults.keeps_memory_behind_a_cut)));
        drop(lock(&memory).engine(None).map_err(io::Error::other)?);
        let peer = Arc::new(Peer::new(disk.clone()));
        let watcher = Watcher {
            world: self.clone(),
            node,
            incarnation,
            disk: disk.clone(),
            peer: peer.clone(),
            memory: memory.clone(),
        };
        let heal = heal.map(|heal| {
            let world = self.clone();
            Box::new(move |regained| {
                count(&world.counts.healed);
                heal(regained)
            }) as crate::raft::Heal
        });
        let parts = NodeParts {
            me: NodeId(node),
            settings: self.settings,
            driver,
            listener: Arc::new(watcher),
            heal,
            sender: self.sender,
            faults: self.faults,
        };
        let wire = Wire::new(self.network.clone(), node, peer.clone());
        let started = Node::start(parts, wire).await?;
        if disk.is_alive() {
            self.network.connect(node, started.clone(), peer);
        }
        let moved = Arc::new(Notify::new());
        let waker = moved.clone();
        log.set_listener(Box::new(move |_| waker.notify_waiters()));
        Ok(Running { memory, seen: Arc::default(), node: started, log, moved, disk: disk.clone() })
    }

    /// Has a process end within one of the next calls of its storage.
    pub(super) fn end_within_a_call(self: &Arc<Self>, node: u64, disk: &Arc<Disk>) {
        let (calls, has_power, pause_ms) = self.random(|rng| {
            let most = if rng.bool() { 12 } else { 80 };
            (rng.u64(1..most), rng.bool(), rng.u64(1..300))
        });
        let (world, of) = (self.clone(), disk.clone());
        disk.fuse.light(calls, Box::new(move || world.die(node, &of, has_power, pause_ms)));
    }

    /// Ends a process at this very moment, in the middle of whatever it does, and starts it again later.
    fn die(self: &Arc<Self>, node: u64, disk: &Arc<Disk>, has_power: bool, pause_ms: u64) {
        if self.is_healing.load(Ordering::Relaxed) || !disk.is_alive() {
            return;
        }
        // Few may run that know how large the group is now: one loss at a time is never too many.
        let is_first = self.lost().iter().all(|lost| *lost == node);
        let may_lose = self.settings.durability == Durability::Always || (is_first && self.may_lose(node));
        let power = (!has_power && may_lose).then(|| self.random(|rng| rng.u64(..)));
        disk.end();
        count(&self.counts.torn);
        self.lose_memory(node, disk.directory, power);
        let (world, disk) = (self.clone(), disk.clone());
        drop(at_speed(EVEN, || {
            Simulated::spawn(async move {
                let is_its =
                    lock(&world.running).get(&node).is_some_and(|found| Arc::ptr_eq(&found.disk, &disk));
                if is_its && let Some(running) = world.kill(node) {
                    world.bury(running);
                }
                Simulated::sleep(Duration::from_millis(pause_ms)).await;
                while lock(&world.starting).contains(&node) {
                    Simulated::sleep(LOOK_PAUSE).await;
                }
                if !lock(&world.running).contains_key(&node) {
                    world.start(node).await;
                }
            })
        }));
    }

    /// Leaves of a member's disk what a process finds that begins now.
    fn lose_memory(&self, node: u64, directory: RandomId, power: Option<u64>) {
        let unsynced = self.settings.durability != Durability::Always;
        if let Some(media) = lock(&self.media).get_mut(&node).filter(|media| media.directory == directory) {
            *media = media.after_crash(power, unsynced);
        }
        self.history.note(format_args!("member {node} ends, power failure {}", power.is_some()));
    }

    /// Ends a member's process, and starts it again later.
    pub(super) fn crash(self: &Arc<Self>, node: u64, has_power: bool, pause_ms: u64) {
        let power = (!has_power && self.may_lose(node)).then(|| self.random(|rng| rng.u64(..)));
        let Some(running) = self.kill(node) else { return };
        self.lose_memory(node, running.disk.directory, power);
        self.bury(running);
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
        self.bury(running);
        let world = self.clone();
        drop(Simulated::spawn(async move {
            Simulated::sleep(Duration::from_millis(50)).await;
            world.start(node).await;
        }));
    }

    /// Ends a member's process.
    pub(super) fn kill(&self, node: u64) -> Option<Running> {
        let running = lock(&self.running).remove(&node)?;
        running.disk.end();
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
        let running = lock(&self.running).clone();
        let wiped = lock(&self.wiped).clone();
        let known = running.iter().filter(|(node, _)| self.faults.admits_new_disks || !wiped.contains(node));
        known.for_each(|(_, running)| self.note_log(running));
        running.iter().for_each(|(node, running)| self.compare_digest(*node, running));
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

impl World {
    /// Compares what is new in the log of a member.
    pub(super) fn note_log(&self, running: &Running) {
        let seen = &mut *lock(&running.seen);
        let node = running.node.me().0;
        self.history.note_log(node, &running.log, running.node.driver.member(), seen);
    }

    /// Ends what is left of a killed process. Nothing waits for that: its disk takes no more jobs.
    pub(super) fn bury(self: &Arc<Self>, running: Running) {
        let world = self.clone();
        drop(Simulated::spawn(async move {
            if !running.node.shutdown().await {
                world.history.fail(format!("the consensus of member {} does not end", running.node.me()));
            }
            running.node.driver.close();
        }));
    }
}
