//! Disks of the simulation: the real log on storage in memory, worked off by tasks that take time.
//! The log has no threads, so one seed gives one history.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use openraft::type_config::TypeConfigExt;
use openraft::type_config::alias::InstantOf;
use tidemark_log::{Clock, Durability, Log, ManualClock, MemoryStorage, Options};
use tokio::sync::Notify;

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

/// What survives a member's process.
#[derive(Debug)]
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
    /// Microseconds that each sync takes beyond its usual time.
    pub(super) slow_us: AtomicU64,
    /// Speed of the member's clock.
    pub(super) speed: u64,
    clock: LogClock,
    rng: Mutex<Rng>,
}

impl Disk {
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
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    pub(super) node: NodeId,
    pub(super) seed: u64,
    pub(super) segment_bytes: u64,
    pub(super) durability: Durability,
    pub(super) speed: u64,
    pub(super) faults: Faults,
}

/// An open log, and what works for it.
pub(super) struct Opened {
    pub(super) driver: LogDriver,
    pub(super) log: Arc<Log>,
    pub(super) disk: Arc<Disk>,
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

    /// The process ends; with a power failure, what is not synced may be lost.
    pub(super) fn crash(&mut self, power: Option<u64>, acknowledges_unsynced: bool) {
        let ballots = self.ballots.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = if power.is_some() { &ballots.durable } else { &ballots.written };
        let kept = Ballots { written: kept.clone(), durable: kept.clone() };
        drop(ballots);
        self.ballots = Arc::new(Mutex::new(kept));
        let is_suspect = self.is_suspect() || (power.is_some() && acknowledges_unsynced);
        self.is_suspect = Arc::new(AtomicBool::new(is_suspect));
        self.storage = match power {
            Some(seed) => self.storage.crash(seed),
            None => self.storage.fork(),
        };
    }

    /// Opens what is there, and begins the tasks that work for the log.
    pub(super) fn open(&self, opening: Opening) -> io::Result<Opened> {
        let Opening { node, seed, segment_bytes, durability, speed, faults } = opening;
        let manual = ManualClock::new();
        let options = Options {
            durability,
            segment_bytes,
            seed: Some(seed),
            clock: Clock::from(&manual),
            ..Options::default()
        };
        let (log, member, _) = Log::open_member_without_threads(Arc::new(self.storage.clone()), options)
            .map_err(io::Error::other)?;
        let log = Arc::new(log);
        let ballot = self.ballots.lock().unwrap_or_else(PoisonError::into_inner).written.clone();
        let ballot = ballot.map(|bytes| decode_ballot(&bytes).expect("what was saved"));
        let votes = SimulatedVotes { ballots: self.ballots.clone(), syncs: !faults.ballot_not_synced };
        let driver = LogDriver::open(node, log.clone(), member, Box::new(votes), ballot, durability, faults)?;
        let disk = Arc::new(Disk {
            is_alive: AtomicBool::new(true),
            slow_us: AtomicU64::new(0),
            speed,
            clock: LogClock { manual, speed, read: Mutex::new(at_speed(speed, Simulated::now)) },
            rng: Mutex::new(Rng::with_seed(seed)),
        });
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
            Box::new(move || {
                is_suspect.store(false, Ordering::Relaxed);
                Ok(())
            }) as Heal
        });
        Ok(Opened { driver, log, disk, heal })
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
            match queue(&driver).try_pop() {
                Next::Job(job) => {
                    Simulated::sleep(disk.time(usual.clone())).await;
                    if disk.is_alive() {
                        disk.read_clock();
                        run(&driver, job);
                    }
                }
                Next::Nothing => pushed.notified().await,
                Next::Closed => return,
            }
        }
    }));
}
