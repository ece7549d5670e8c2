//! One seed: members, clients, faults, and what must hold at the end.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use openraft::async_runtime::AsyncRuntime;
use openraft::type_config::TypeConfigExt;
use openraft_rt_sim::SimRuntime;
use tidemark_log::{Durability, Log, Lsn};

use super::disk::{Disk, Media};
use super::history::{History, entries, operations};
use super::network::{Network, Wire};
use crate::faults::Faults;
use crate::ids::NodeId;
use crate::member::{Member, Members};
use crate::raft::{Node, NodeParts, Simulated};
use crate::role::TermListener;
use crate::settings::Settings;
use crate::term::Term;

/// Time within which writes must go on, and logs become equal, when all faults have ended.
const HEAL: Duration = Duration::from_secs(10);
/// How long a client waits for an acknowledgement.
const PATIENCE: Duration = Duration::from_millis(400);

thread_local! {
    static PANICS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Collects panics of tasks: the runtime catches them.
fn collect_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let default = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let is_collected = PANICS.with(|panics| {
                panics.borrow_mut().as_mut().map(|panics| panics.push(format!("panic: {info}"))).is_some()
            });
            if !is_collected {
                default(info);
            }
        }));
    });
    PANICS.with(|panics| *panics.borrow_mut() = Some(Vec::new()));
}

/// What happened in a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) violations: Vec<String>,
    pub(super) acknowledged: u64,
    pub(super) unknown: u64,
    pub(super) terms: u64,
    pub(super) entries: u64,
    pub(super) crashes: u64,
    pub(super) cuts: u64,
    pub(super) transfers: u64,
}

impl Outcome {
    pub(super) fn add(&mut self, other: &Self) {
        self.acknowledged += other.acknowledged;
        self.unknown += other.unknown;
        self.terms += other.terms;
        self.entries += other.entries;
        self.crashes += other.crashes;
        self.cuts += other.cuts;
        self.transfers += other.transfers;
    }
}

struct Running {
    node: Node<Simulated>,
    log: Arc<Log>,
    disk: Arc<Disk>,
}

struct World {
    settings: Settings,
    segment_bytes: u64,
    faults: Faults,
    count: u64,
    network: Arc<Network>,
    history: History,
    media: Mutex<BTreeMap<u64, Media>>,
    running: Mutex<BTreeMap<u64, Running>>,
    starting: Mutex<BTreeSet<u64>>,
    rng: Mutex<Rng>,
    incarnations: AtomicU64,
    crashes: AtomicU64,
    cuts: AtomicU64,
    transfers: AtomicU64,
    unknown: AtomicU64,
    /// Acknowledged operations with their LSNs.
    acknowledged: Mutex<Vec<(u64, u64)>>,
    is_over: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Watcher {
    world: Arc<World>,
    node: u64,
    incarnation: u64,
}

impl TermListener for Watcher {
    fn begin_term(&self, term: Term, _lsn: Lsn) {
        self.world.history.note_leader(term.0, self.node, self.incarnation);
        for (other, running) in lock(&self.world.running).iter().filter(|(other, _)| **other != self.node) {
            // A deposed leader on a slow disk may begin late; it has no lease.
            let leading = running.node.reign.role.leading();
            let now = running.node.now();
            if let Some(old) =
                leading.filter(|old| *old < term && running.node.reign.lease.is_valid(*old, now))
            {
                let what =
                    format!("term {term} begins at {} while {other} has a lease for term {old}", self.node);
                self.world.history.fail(what);
            }
        }
    }

    fn end_term(&self, _term: Term) {}

    fn end_log(&self, _: Lsn) {}

    fn members(&self, members: &[Member]) {
        assert_eq!(members.len() as u64, self.world.count, "no member joins or leaves");
    }

    fn cut(&self, _lsn: Lsn) {
        self.world.cuts.fetch_add(1, Ordering::Relaxed);
    }
}

impl World {
    fn random<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> T {
        draw(&mut lock(&self.rng))
    }

    async fn start(self: &Arc<Self>, node: u64) {
        if !lock(&self.starting).insert(node) {
            return;
        }
        let incarnation = self.incarnations.fetch_add(1, Ordering::Relaxed);
        let seed = self.random(|rng| rng.u64(..));
        let opened = lock(&self.media)[&node].open(NodeId(node), seed, self.segment_bytes, self.faults);
        match opened {
            Ok((driver, log, disk)) => {
                let parts = NodeParts {
                    me: NodeId(node),
                    settings: self.settings,
                    driver,
                    listener: Arc::new(Watcher { world: self.clone(), node, incarnation }),
                    faults: self.faults,
                };
                let wire = Wire::new(self.network.clone(), node, disk.clone());
                match Node::start(parts, wire).await {
                    Ok(started) => {
                        self.network.connect(node, started.clone(), disk.clone());
                        lock(&self.running).insert(node, Running { node: started, log, disk });
                    }
                    Err(error) => self.history.fail(format!("member {node} does not start: {error}")),
                }
            }
            Err(error) => self.history.fail(format!("member {node} does not open its log: {error}")),
        }
        lock(&self.starting).remove(&node);
    }

    /// Ends a member's process, and starts it again later.
    fn crash(self: &Arc<Self>, node: u64, has_power: bool, pause_ms: u64) {
        let Some(running) = lock(&self.running).remove(&node) else { return };
        running.disk.is_alive.store(false, Ordering::Relaxed);
        self.network.disconnect(node);
        let power = (!has_power).then(|| self.random(|rng| rng.u64(..)));
        if let Some(media) = lock(&self.media).get_mut(&node) {
            media.crash(power);
        }
        self.crashes.fetch_add(1, Ordering::Relaxed);
        let world = self.clone();
        drop(Simulated::spawn(async move {
            running.node.shutdown().await;
            running.node.driver.close();
            drop(running);
            Simulated::sleep(Duration::from_millis(pause_ms)).await;
            world.start(node).await;
        }));
    }

    fn leader(&self) -> Option<u64> {
        let running = lock(&self.running);
        running.iter().find(|(_, running)| running.node.reign.role.leading().is_some()).map(|(node, _)| *node)
    }

    /// Compares the logs of all members that run.
    fn check(&self) {
        let running = lock(&self.running);
        let logs: Vec<_> =
            running.iter().map(|(node, running)| (*node, entries(running.node.driver.member()))).collect();
        for (node, seen) in &logs {
            self.history.note_committed(*node, &running[node].log, seen);
        }
        self.history.match_logs(&logs);
        let has_lease = |running: &Running| {
            let reign = &running.node.reign;
            reign.role.leading().is_some_and(|term| reign.lease.is_valid(term, running.node.now()))
        };
        let leased: Vec<_> =
            running.iter().filter(|(_, running)| has_lease(running)).map(|(node, _)| node).collect();
        if leased.len() > 1 {
            self.history.fail(format!("members {leased:?} have a lease at the same time"));
        }
    }

    /// Appends at whatever member leads, and waits for what becomes of it.
    async fn client(self: Arc<Self>, client: u64, pace_us: u64) {
        let mut number = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            let leading: Vec<_> = lock(&self.running)
                .values()
                .filter_map(|running| {
                    let term = running.node.reign.role.leading()?;
                    Some((term, running.node.clone(), running.log.clone(), running.disk.clone()))
                })
                .collect();
            if !leading.is_empty() {
                let chosen = self.random(|rng| rng.usize(..leading.len()));
                let (term, node, log, disk) = leading[chosen].clone();
                number += 1;
                let operation = (client << 40) | number;
                let size =
                    self.random(|rng| if rng.u32(..20) == 0 { rng.usize(..4000) } else { rng.usize(..60) });
                let appended = log.append(number, 1, |into| {
                    into.extend_from_slice(&operation.to_le_bytes());
                    into.resize(into.len() + size, 7);
                });
                drop(leading);
                if let Ok(lsn) = appended {
                    self.acknowledge(operation, lsn, term, (node, log, disk)).await;
                }
            }
            let pause = self.random(|rng| rng.u64(200..pace_us));
            Simulated::sleep(Duration::from_micros(pause)).await;
        }
    }

    async fn acknowledge(
        &self,
        operation: u64,
        lsn: Lsn,
        term: Term,
        (node, log, disk): (Node<Simulated>, Arc<Log>, Arc<Disk>),
    ) {
        let began = Simulated::now();
        while Simulated::now() - began < PATIENCE && disk.is_alive.load(Ordering::Relaxed) {
            let is_committed = log.committed() >= lsn;
            if node.reign.role.leading() != Some(term) {
                break;
            }
            if is_committed {
                lock(&self.acknowledged).push((operation, lsn.0));
                return;
            }
            Simulated::sleep(Duration::from_micros(300)).await;
        }
        self.unknown.fetch_add(1, Ordering::Relaxed);
    }

    fn heal(&self) {
        lock(&self.network.cut).clear();
        for running in lock(&self.running).values() {
            running.disk.slow_us.store(0, Ordering::Relaxed);
        }
    }

    async fn nemesis(self: &Arc<Self>, rng: &mut Rng) {
        let (count, began) = (self.count, Simulated::now());
        let lasts = Duration::from_millis(rng.u64(2_000..5_000));
        while Simulated::now() - began < lasts {
            let node = rng.u64(1..=count);
            let leader = self.leader();
            let victim = leader.filter(|_| rng.u32(..10) < 6).unwrap_or(node);
            match rng.u32(..13) {
                0..3 => self.crash(victim, rng.bool(), rng.u64(1..500)),
                3 => {
                    let has_power = rng.bool();
                    (1..=count).for_each(|node| self.crash(node, has_power, rng.u64(1..200)));
                }
                4 => {
                    // A majority, the leader among them.
                    for node in (1..=count).filter(|node| Some(*node) == leader || rng.u32(..10) < 6) {
                        self.crash(node, false, 1 + node * 60);
                    }
                }
                5 => lock(&self.network.cut)
                    .extend((1..=count).flat_map(|node| [(node, victim), (victim, node)])),
                6 => lock(&self.network.cut).extend((1..=count).map(|node| (victim, node))),
                7 => lock(&self.network.cut).extend((1..=count).map(|node| (node, victim))),
                8 => {
                    let (one, other): (Vec<u64>, Vec<u64>) = (1..=count).partition(|_| rng.bool());
                    let pairs = one.iter().flat_map(|a| other.iter().flat_map(|b| [(*a, *b), (*b, *a)]));
                    lock(&self.network.cut).extend(pairs);
                }
                9 => {
                    lock(&self.network.cut).insert((rng.u64(1..=count), rng.u64(1..=count)));
                }
                10 => {
                    let slow = rng.u64(1_000..150_000);
                    if let Some(running) = lock(&self.running).get(&victim) {
                        running.disk.slow_us.store(slow, Ordering::Relaxed);
                    }
                }
                11 => {
                    let leading = leader.and_then(|leader| {
                        lock(&self.running).get(&leader).map(|running| running.node.clone())
                    });
                    let patience = Duration::from_millis(rng.u64(1..600));
                    if let Some(leading) = leading {
                        let world = self.clone();
                        drop(Simulated::spawn(async move {
                            if leading.transfer(NodeId(node), patience).await.is_ok() {
                                world.transfers.fetch_add(1, Ordering::Relaxed);
                            }
                        }));
                    }
                }
                _ => self.heal(),
            }
            self.check();
            Simulated::sleep(Duration::from_micros(rng.u64(2_000..350_000))).await;
            if rng.u32(..10) < 4 {
                lock(&self.network.cut).clear();
            }
        }
    }

    /// When all faults have ended, writes go on.
    async fn expect_writes(&self) {
        let (before, began) = (lock(&self.acknowledged).len(), Simulated::now());
        while lock(&self.acknowledged).len() < before + 5 {
            Simulated::sleep(Duration::from_millis(5)).await;
            if Simulated::now() - began > HEAL {
                let members: Vec<_> = lock(&self.running)
                    .iter()
                    .map(|(node, running)| format!("{node}: {:?}", running.node.status()))
                    .collect();
                self.history.fail(format!("no write in {HEAL:?} after all faults: {members:?}"));
                return;
            }
        }
    }

    /// All logs become equal, and have each acknowledged record once, at its LSN.
    async fn expect_equal_logs(&self) {
        let began = Simulated::now();
        loop {
            Simulated::sleep(Duration::from_millis(20)).await;
            let is_equal = {
                let running = lock(&self.running);
                let ends: BTreeSet<_> = running
                    .values()
                    .map(|running| {
                        let end = running.node.driver.member().last_entry();
                        (end.id, end.last, running.log.committed())
                    })
                    .collect();
                let first = ends.first();
                running.len() as u64 == self.count
                    && ends.len() == 1
                    && first.is_some_and(|(id, last, committed)| {
                        last == committed && id.index >= self.history.last_committed()
                    })
            };
            if is_equal {
                break;
            }
            if Simulated::now() - began > HEAL {
                let ends: Vec<_> = lock(&self.running)
                    .iter()
                    .map(|(node, running)| {
                        (*node, running.node.driver.member().last_entry(), running.node.status())
                    })
                    .collect();
                self.history.fail(format!("the logs do not become equal: {ends:?}"));
                return;
            }
        }
        self.check();
        for (node, running) in lock(&self.running).iter() {
            let found = operations(running.node.driver.member());
            let lsns: BTreeMap<u64, u64> = found.iter().copied().collect();
            if lsns.len() != found.len() {
                self.history.fail(format!("member {node} has a record twice"));
            }
            for (operation, lsn) in lock(&self.acknowledged).iter() {
                if lsns.get(operation) != Some(lsn) {
                    let found = lsns.get(operation);
                    self.history.fail(format!(
                        "member {node}: {operation:x} was acknowledged at {lsn}, and is at {found:?}"
                    ));
                    break;
                }
            }
        }
    }
}

fn settings(rng: &mut Rng) -> Settings {
    let times = [(20, 60, 120), (30, 90, 150), (50, 150, 300), (15, 100, 125)];
    let (heartbeat, min, max) = times[rng.usize(..times.len())];
    let ms = Duration::from_millis;
    Settings {
        heartbeat: ms(heartbeat),
        election_min: ms(min),
        election_max: ms(max),
        durability: Durability::Always,
        request_bytes: if rng.bool() { 1 << 20 } else { 2_000 },
        backlog_bytes: if rng.bool() { 1 << 20 } else { 500 },
        ..Settings::LAN
    }
}

/// Runs one seed.
pub(super) fn run_seed(seed: u64, faults: Faults) -> Outcome {
    collect_panics();
    let mut runtime = SimRuntime::with_seed(seed);
    let world = runtime.block_on(async move {
        let mut rng = Rng::with_seed(seed);
        let count = if rng.u32(..3) == 0 { 5 } else { 3 };
        let world = Arc::new(World {
            settings: settings(&mut rng),
            segment_bytes: [8 << 10, 32 << 10, 128 << 10][rng.usize(..3)],
            faults,
            count,
            network: Network::new(rng.u64(..)),
            history: History::default(),
            media: Mutex::new((1..=count).map(|node| (node, Media::new())).collect()),
            running: Mutex::default(),
            starting: Mutex::default(),
            rng: Mutex::new(rng.fork()),
            incarnations: AtomicU64::new(0),
            crashes: AtomicU64::new(0),
            cuts: AtomicU64::new(0),
            transfers: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            acknowledged: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        for node in 1..=count {
            world.start(node).await;
        }
        let member = |id| Member {
            id: NodeId(id),
            peer_address: format!("member-{id}:7000"),
            client_address: format!("member-{id}:6379"),
            directory: None,
            is_voter: true,
        };
        let first = lock(&world.running)[&1].node.clone();
        let members = Members::new((1..=count).map(member).collect()).expect("is valid");
        if let Err(error) = first.init(members).await {
            world.history.fail(format!("the group does not begin: {error}"));
        }
        drop(first);
        let pace = [4_000, 20_000, 40_000][rng.usize(..3)];
        for client in 1..=3 {
            drop(Simulated::spawn(world.clone().client(client, pace)));
        }
        Simulated::sleep(world.settings.election_max * 3).await;
        world.nemesis(&mut rng).await;
        world.heal();
        let began = Simulated::now();
        while (lock(&world.running).len() as u64) < count && Simulated::now() - began < HEAL {
            Simulated::sleep(Duration::from_millis(10)).await;
        }
        world.heal();
        world.expect_writes().await;
        world.is_over.store(true, Ordering::Relaxed);
        Simulated::sleep(PATIENCE + Duration::from_millis(100)).await;
        world.expect_equal_logs().await;
        let members = std::mem::take(&mut *lock(&world.running));
        for (node, running) in members {
            running.disk.is_alive.store(false, Ordering::Relaxed);
            world.network.disconnect(node);
            running.node.shutdown().await;
            running.node.driver.close();
        }
        world
    });
    drop(runtime);
    let mut violations = world.history.violations();
    violations.extend(PANICS.with(|panics| panics.borrow_mut().take().unwrap_or_default()));
    Outcome {
        violations,
        acknowledged: lock(&world.acknowledged).len() as u64,
        unknown: world.unknown.load(Ordering::Relaxed),
        terms: world.history.terms() as u64,
        entries: world.history.last_committed(),
        crashes: world.crashes.load(Ordering::Relaxed),
        cuts: world.cuts.load(Ordering::Relaxed),
        transfers: world.transfers.load(Ordering::Relaxed),
    }
}
