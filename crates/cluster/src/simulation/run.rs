//! One seed: members, clients, faults, and what must hold at the end.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use fastrand::Rng;
use openraft::async_runtime::AsyncRuntime;
use openraft::type_config::TypeConfigExt;
use tidemark_log::Durability;

use super::clients::{CLIENTS, PATIENCE};
use super::history::{History, SeenLog};
use super::lock::lock;
use super::network::Network;
use super::world::{Counts, World};
use crate::faults::Faults;
use crate::member::Members;
use crate::raft::Simulated;
use crate::settings::Settings;
use crate::skewed_runtime::SkewedRuntime;
use crate::snapshot_files::SenderSettings;

/// Time within which writes must go on, and logs become equal, when all faults have ended.
pub(super) const HEAL: Duration = Duration::from_secs(10);

/// Pause between two comparisons of all logs.
const COMPARE_PAUSE: Duration = Duration::from_millis(100);

/// Largest deviation of a clock's speed, in millionths. Between two members it is twice as much: a
/// little less than a lease tolerates.
const SKEW_MAX: u64 = 30_000;

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
    /// Of the whole history.
    pub(super) digest: u64,
    pub(super) acknowledged: u64,
    pub(super) reads: u64,
    pub(super) unknown: u64,
    pub(super) terms: u64,
    pub(super) entries: u64,
    pub(super) crashes: u64,
    pub(super) cuts: u64,
    pub(super) transfers: u64,
    pub(super) changes: u64,
    /// Members that may have lost entries and got them back.
    pub(super) healed: u64,
    /// Processes that ended within a call of their storage.
    pub(super) torn: u64,
    pub(super) snapshots: u64,
    /// Snapshots that took the place of a member's log.
    pub(super) installed: u64,
}

impl Outcome {
    pub(super) fn add(&mut self, other: &Self) {
        self.acknowledged += other.acknowledged;
        self.reads += other.reads;
        self.unknown += other.unknown;
        self.terms += other.terms;
        self.entries += other.entries;
        self.crashes += other.crashes;
        self.cuts += other.cuts;
        self.transfers += other.transfers;
        self.changes += other.changes;
        self.healed += other.healed;
        self.torn += other.torn;
        self.snapshots += other.snapshots;
        self.installed += other.installed;
    }
}

impl World {
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

    /// Returns whether all members run, with equal logs, of which everything is committed.
    fn has_equal_logs(&self) -> bool {
        let running = lock(&self.running);
        let ends: BTreeSet<_> = running
            .values()
            .map(|running| {
                let end = running.node.driver.member().last_entry();
                (end.id, end.last, running.log.committed())
            })
            .collect();
        let first = ends.first();
        let is_suspect = running.values().any(|running| running.node.status().is_suspect);
        running.len() == self.nodes().len()
            && !is_suspect
            && ends.len() == 1
            && first.is_some_and(|(id, last, committed)| {
                last == committed && id.index >= self.history.last_committed()
            })
    }

    /// All logs become equal, and have each acknowledged record once, at its LSN.
    async fn expect_equal_logs(&self) {
        let began = Simulated::now();
        while !self.has_equal_logs() {
            Simulated::sleep(Duration::from_millis(20)).await;
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
        let running = lock(&self.running).clone();
        for running in running.values() {
            // All of it once more, from the disk.
            *lock(&running.seen) = SeenLog::default();
        }
        self.check();
        let committed = self.history.operations();
        let distinct: BTreeSet<u64> = committed.values().copied().collect();
        if distinct.len() != committed.len() {
            self.history.fail("an operation is there twice".to_owned());
        }
        for (operation, lsn) in lock(&self.acknowledged).iter() {
            let found = committed.get(lsn);
            if found != Some(operation) {
                self.history
                    .fail(format!("{operation:x} was acknowledged at {lsn}, and there is {found:x?}"));
                break;
            }
        }
        for (node, running) in running {
            self.compare_state(node, &running);
        }
    }

    /// Compares what the members have, again and again.
    async fn compare(self: Arc<Self>) {
        while !self.is_over.load(Ordering::Relaxed) {
            Simulated::sleep(COMPARE_PAUSE).await;
            self.check();
        }
    }

    /// Waits until all members run.
    async fn wait_for_all(&self) {
        let began = Simulated::now();
        while lock(&self.running).len() < self.nodes().len() && Simulated::now() - began < HEAL {
            Simulated::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Starts members `1..=count`, and makes them a group.
    pub(super) async fn begin(self: &Arc<Self>, count: u64) {
        let members = (1..=count).map(|node| self.provide(node)).collect();
        for node in 1..=count {
            self.start(node).await;
        }
        let first = lock(&self.running)[&1].node.clone();
        if let Err(error) = first.init(Members::new(members).expect("is valid")).await {
            self.history.fail(format!("the group does not begin: {error}"));
        }
    }

    /// Ends all processes.
    pub(super) fn end(self: &Arc<Self>) {
        let members = std::mem::take(&mut *lock(&self.running));
        for (node, running) in members {
            running.disk.end();
            self.network.disconnect(node);
            self.bury(running);
        }
    }

    async fn run(self: Arc<Self>, mut rng: Rng) {
        let count = if rng.u32(..3) == 0 { 5 } else { 3 };
        self.begin(count).await;
        let pace = [4_000, 20_000, 40_000][rng.usize(..3)];
        for client in 1..=CLIENTS {
            drop(Simulated::spawn(self.clone().client(client, pace)));
        }
        drop(Simulated::spawn(self.clone().compare()));
        Simulated::sleep(self.settings.election_max * 3).await;
        self.nemesis(&mut rng).await;
        self.is_healing.store(true, Ordering::Relaxed);
        self.network.breaks.store(0, Ordering::Relaxed);
        self.heal();
        self.wait_for_all().await;
        self.heal();
        self.finish_changes().await;
        self.wait_for_all().await;
        self.expect_writes().await;
        self.is_over.store(true, Ordering::Relaxed);
        Simulated::sleep(PATIENCE + Duration::from_millis(100)).await;
        self.expect_equal_logs().await;
        self.end();
    }
}

/// Makes a world without members.
pub(super) fn world(rng: &mut Rng, durability: Durability, faults: Faults, prints: bool) -> Arc<World> {
    let times = [(20, 60, 120), (30, 90, 150), (50, 150, 300), (15, 80, 125)];
    let (heartbeat, min, max) = times[rng.usize(..times.len())];
    let ms = Duration::from_millis;
    let settings = Settings {
        heartbeat: ms(heartbeat),
        election_min: ms(min),
        election_max: ms(max),
        durability,
        request_bytes: if rng.bool() { 1 << 20 } else { 2_000 },
        backlog_bytes: if rng.bool() { 1 << 20 } else { 500 },
        kept_bytes: [0, 20_000, 1 << 20][rng.usize(..3)],
        ..Settings::LAN
    };
    Arc::new(World {
        settings,
        segment_bytes: [8 << 10, 32 << 10, 128 << 10][rng.usize(..3)],
        keep_snapshots: rng.usize(1..3),
        sender: SenderSettings {
            chunk_bytes: [200, 2_000, 1 << 20][rng.usize(..3)],
            ..SenderSettings::default()
        },
        skew: if rng.bool() { SKEW_MAX } else { 0 },
        faults,
        network: Network::new(rng.u64(..), [0, 300, 3_000][rng.usize(..3)], faults.admits_new_disks),
        history: History::new(prints),
        media: Mutex::default(),
        running: Mutex::default(),
        starting: Mutex::default(),
        wiped: Mutex::default(),
        rng: Mutex::new(rng.fork()),
        next_node: AtomicU64::new(100),
        removing: AtomicU64::new(0),
        incarnations: AtomicU64::new(0),
        counts: Counts::default(),
        acknowledged: Mutex::default(),
        is_healing: AtomicBool::new(false),
        is_over: AtomicBool::new(false),
    })
}

/// Runs a simulation; returns the panics of its tasks.
pub(super) fn simulate<F: Future<Output = ()>>(seed: u64, run: impl FnOnce() -> F) -> Vec<String> {
    collect_panics();
    let mut runtime = SkewedRuntime::with_seed(seed);
    let ran = catch_unwind(AssertUnwindSafe(|| runtime.block_on(async { run().await })));
    drop(runtime);
    let panics = PANICS.with(|panics| panics.borrow_mut().take().unwrap_or_default());
    if let Err(panic) = ran {
        println!("seed {seed}: {panics:#?}");
        resume_unwind(panic);
    }
    panics
}

/// Runs one seed; prints what happens if asked to.
pub(super) fn run_seed(seed: u64, faults: Faults, prints: bool) -> Outcome {
    let mut rng = Rng::with_seed(seed);
    let durability =
        if rng.u32(..3) == 0 { Durability::Interval(Duration::from_millis(30)) } else { Durability::Always };
    let world = world(&mut rng, durability, faults, prints);
    let panics = simulate(seed, || world.clone().run(rng));
    let mut violations = world.history.violations();
    violations.extend(panics);
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let counts = &world.counts;
    Outcome {
        violations,
        digest: world.history.digest(),
        acknowledged: lock(&world.acknowledged).len() as u64,
        reads: get(&counts.reads),
        unknown: get(&counts.unknown),
        terms: world.history.terms() as u64,
        entries: world.history.last_committed(),
        crashes: get(&counts.crashes),
        cuts: get(&counts.cuts),
        transfers: get(&counts.transfers),
        changes: get(&counts.changes),
        healed: get(&counts.healed),
        torn: get(&counts.torn),
        snapshots: get(&counts.snapshots),
        installed: get(&counts.installed),
    }
}
