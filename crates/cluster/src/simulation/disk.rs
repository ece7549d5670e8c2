//! Disks of the simulation: the real log on storage in memory, worked off by tasks that take time.
//! The log has no threads, so one seed gives one history.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use openraft::type_config::TypeConfigExt;
use openraft::type_config::alias::InstantOf;
use tidemark_log::{Clock, Durability, Log, ManualClock, MemoryStorage, Options, Retention, Storage};
use tokio::sync::Notify;

use super::mortal::{Fuse, MortalStorage};
use crate::beginning::Installation;
use crate::driver::{Driver, JobQueue, LogDriver, Next, VoteStore, Worker};
use crate::faults::Faults;
use crate::ids::{NodeId, RandomId};
use crate::raft::{Heal, Simulated};
use crate::skewed_runtime::at_speed;
use crate::wire::message::decode_ballot;

/// The saved ballot: what a kill leaves, and what a power failure leaves.
#[derive(Debug, Default)]
struct Ballots {
    written: Option<Vec<u8>>,
    durable: Option<Vec<u8>>,
}

/// What survives a member's process. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Media {
    pub(super) directory: RandomId,
    storage: MemoryStorage,
    ballots: Arc<Mutex<Ballots>>,
    /// The member may have lost what it acknowledged.
    is_suspect: Arc<AtomicBool>,
}

struct SimulatedVotes {
    ballots: Arc<Mutex<Ballots>>,
    syncs: bool,
}

impl VoteStore for SimulatedVotes {
    fn save(&mut self, ballot: &[u8]) -> io::Result<()> {
        let mut ballots = self.ballots.lock().unwrap_or_else(PoisonError::into_inner);
        ballots.written = Some(ballot.to_vec());
        if self.syncs {
            ballots.durable = Some(ballot.to_vec());
        }
        Ok(())
    }
}

/// The clock of a member's log, which follows that of the member.
#[derive(Debug)]
struct LogClock {
    manual: ManualClock,
    speed: u64,
    read: Mutex<InstantOf<Simulated>>,
}

impl LogClock {
    /// Moves the clock to the member's time.
    fn follow(&self) {
        let now = at_speed(self.speed, Simulated::now);
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        self.manual.advance(now - *read);
        *read = now;
    }
}

/// Times of a disk, and of its machine.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) is_alive: AtomicBool,
    pub(super) directory: RandomId,
    /// Ends the process in the middle of its work.
    pub(super) fuse: Arc<Fuse>,
    /// Microseconds that each sync takes beyond its usual time.
    pub(super) slow_us: AtomicU64,
    /// Speed of the member's clock.
    pub(super) speed: u64,
    clock: LogClock,
    rng: Mutex<Rng>,
}

impl Disk {
    /// Makes the disk of a process that begins now.
    pub(super) fn new(directory: RandomId, speed: u64, seed: u64) -> Arc<Self> {
        let manual = ManualClock::new();
        Arc::new(Self {
            is_alive: AtomicBool::new(true),
            directory,
            fuse: Arc::default(),
            slow_us: AtomicU64::new(0),
            speed,
            clock: LogClock { manual, speed, read: Mutex::new(at_speed(speed, Simulated::now)) },
            rng: Mutex::new(Rng::with_seed(seed)),
        })
    }

    /// Ends the process. Returns false if it has ended.
    pub(super) fn end(&self) -> bool {
        self.is_alive.swap(false, Ordering::Relaxed)
    }

    fn time(&self, usual: std::ops::Range<u64>) -> Duration {
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        let spike = if rng.u32(..50) == 0 { rng.u64(5_000..60_000) } else { 0 };
        Duration::from_micros(rng.u64(usual) + spike + self.slow_us.load(Ordering::Relaxed))
    }

    pub(super) fn is_alive(&self) -> bool {
        self.is_alive.load(Ordering::Relaxed)
    }

    /// Moves the clock of the log to the member's time.
    pub(super) fn read_clock(&self) {
        self.clock.follow();
    }
}

/// How a member's log is opened.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    pub(super) disk: Arc<Disk>,
    pub(super) node: NodeId,
    pub(super) seed: u64,
    pub(super) segment_bytes: u64,
    pub(super) keep_snapshots: usize,
    pub(super) durability: Durability,
    pub(super) faults: Faults,
}

/// An open log, and what works for it.
pub(super) struct Opened {
    pub(super) driver: LogDriver,
    pub(super) log: Arc<Log>,
    pub(super) heal: Option<Heal>,
}

impl Media {
    pub(super) fn new(directory: RandomId) -> Self {
        Self {
            directory,
            storage: MemoryStorage::with_crashes(),
            ballots: Arc::default(),
            is_suspect: Arc::default(),
        }
    }

    pub(super) fn is_suspect(&self) -> bool {
        self.is_suspect.load(Ordering::Relaxed)
    }

    /// The operator accepts what the member may have lost.
    pub(super) fn accept_loss(&self) {
        self.is_suspect.store(false, Ordering::Relaxed);
    }

    /// Returns what a process finds that begins when this one has ended; with a power failure, what is not
    /// synced may be lost.
    pub(super) fn after_crash(&self, power: Option<u64>, acknowledges_unsynced: bool) -> Self {
        let ballots = self.ballots.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = if power.is_some() { &ballots.durable } else { &ballots.written };
        let is_suspect = self.is_suspect() || (power.is_some() && acknowledges_unsynced);
        Self {
            directory: self.directory,
            storage: match power {
                Some(seed) => self.storage.crash(seed),
                None => self.storage.fork(),
            },
            ballots: Arc::new(Mutex::new(Ballots { written: kept.clone(), durable: kept.clone() })),
            is_suspect: Arc::new(AtomicBool::new(is_suspect)),
        }
    }

    /// Opens what is there, and begins the tasks that work for the log.
    pub(super) fn open(&self, opening: Opening) -> io::Result<Opened> {
        let Opening { disk, node, seed, segment_bytes, keep_snapshots, durability, faults } = opening;
        let options = Options {
            durability,
            segment_bytes,
            retention: Retention { keep_snapshots, ..Retention::default() },
            seed: Some(seed),
            clock: Clock::from(&disk.clock.manual),
            ..Options::default()
        };
        let storage: Arc<dyn Storage> = Arc::new(MortalStorage::new(self.storage.clone(), disk.fuse.clone()));
        let installation = Installation::take_up(&storage)?;
        let (log, member, _) =
            Log::open_member_without_threads(storage, options).map_err(io::Error::other)?;
        if let Some(installation) = installation {
            installation.complete(&member)?;
        }
        let log = Arc::new(log);
        let ballot = self.ballots.lock().unwrap_or_else(PoisonError::into_inner).written.clone();
        let ballot = ballot.map(|bytes| decode_ballot(&bytes).expect("what was saved"));
        let votes = SimulatedVotes { ballots: self.ballots.clone(), syncs: !faults.ballot_not_synced };
        let driver = LogDriver::open(node, log.clone(), member, Box::new(votes), ballot, durability, faults)?;
        let inner = driver.driver();
        work(
            inner,
            &disk,
            |driver| &driver.writes,
            1..200,
            |driver, job| {
                driver.write(job);
                driver.keep_house();
            },
        );
        work(inner, &disk, |driver| &driver.syncs, 50..1_500, Driver::sync);
        work(inner, &disk, |driver| &driver.reads, 50..500, Driver::read);
        if let Durability::Interval(interval) = durability {
            drop(Simulated::spawn(sync_now_and_then(inner.clone(), disk.clone(), interval)));
        }
        let heal = (self.is_suspect() && !faults.suspect_votes).then(|| {
            let is_suspect = self.is_suspect.clone();
            Box::new(move |_| {
                is_suspect.store(false, Ordering::Relaxed);
                Ok(())
            }) as Heal
        });
        Ok(Opened { driver, log, heal })
    }
}

async fn sync_now_and_then(driver: Arc<Driver>, disk: Arc<Disk>, interval: Duration) {
    while disk.is_alive() {
        Simulated::sleep(interval + disk.time(50..1_500)).await;
        if disk.is_alive() {
            driver.sync_interval();
        }
    }
}

/// Works off a queue until the process ends.
fn work<T: Send + 'static>(
    driver: &Arc<Driver>,
    disk: &Arc<Disk>,
    queue: fn(&Driver) -> &JobQueue<T>,
    usual: std::ops::Range<u64>,
    run: fn(&Driver, T),
) {
    let (driver, disk, pushed) = (driver.clone(), disk.clone(), Arc::new(Notify::new()));
    let waker = pushed.clone();
    queue(&driver).set_waker(Box::new(move || waker.notify_one()));
    drop(Simulated::spawn(async move {
        let _no_more = Worker(queue(&driver));
        loop {
            if queue(&driver).is_idle() {
                pushed.notified().await;
                continue;
            }
            Simulated::sleep(disk.time(usual.clone())).await;
            if !disk.is_alive() {
                return;
            }
            // It stays in the queue until it is done: see `install`.
            match queue(&driver).try_pop() {
                Next::Job(job) => {
                    disk.read_clock();
                    run(&driver, job);
                }
                Next::Nothing => {}
                Next::Closed => return,
            }
        }
    }));
}
