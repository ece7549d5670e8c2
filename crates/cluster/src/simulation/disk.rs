//! Disks of the simulation: the real log on storage in memory, worked off by tasks that take time.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use openraft::type_config::TypeConfigExt;
use tidemark_log::{Durability, Log, MemoryStorage, Options};
use tokio::sync::Notify;

use crate::driver::{Driver, JobQueue, LogDriver, Next, VoteStore, Worker};
use crate::faults::Faults;
use crate::ids::NodeId;
use crate::raft::Simulated;
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
    storage: MemoryStorage,
    ballots: Arc<Mutex<Ballots>>,
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

/// Times of a disk.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) is_alive: AtomicBool,
    /// Microseconds that each sync takes beyond its usual time.
    pub(super) slow_us: AtomicU64,
    rng: Mutex<Rng>,
}

impl Disk {
    fn time(&self, usual: std::ops::Range<u64>) -> Duration {
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        let spike = if rng.u32(..50) == 0 { rng.u64(5_000..60_000) } else { 0 };
        Duration::from_micros(rng.u64(usual) + spike + self.slow_us.load(Ordering::Relaxed))
    }

    fn is_alive(&self) -> bool {
        self.is_alive.load(Ordering::Relaxed)
    }
}

impl Media {
    pub(super) fn new() -> Self {
        Self { storage: MemoryStorage::with_crashes(), ballots: Arc::default() }
    }

    /// The process ends; with a power failure, what is not synced may be lost.
    pub(super) fn crash(&mut self, power: Option<u64>) {
        let ballots = self.ballots.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = if power.is_some() { &ballots.durable } else { &ballots.written };
        let kept = Ballots { written: kept.clone(), durable: kept.clone() };
        drop(ballots);
        self.ballots = Arc::new(Mutex::new(kept));
        self.storage = match power {
            Some(seed) => self.storage.crash(seed),
            None => self.storage.fork(),
        };
    }

    /// Opens what is there, and begins the tasks that work for the log.
    pub(super) fn open(
        &self,
        node: NodeId,
        seed: u64,
        segment_bytes: u64,
        faults: Faults,
    ) -> io::Result<(LogDriver, Arc<Log>, Arc<Disk>)> {
        let options =
            Options { durability: Durability::Always, segment_bytes, seed: Some(seed), ..Options::default() };
        let (log, member, _) =
            Log::open_member(Arc::new(self.storage.clone()), options).map_err(io::Error::other)?;
        let log = Arc::new(log);
        let ballot = self.ballots.lock().unwrap_or_else(PoisonError::into_inner).written.clone();
        let ballot = ballot.map(|bytes| decode_ballot(&bytes).expect("what was saved"));
        let votes = SimulatedVotes { ballots: self.ballots.clone(), syncs: !faults.ballot_not_synced };
        let driver =
            LogDriver::open(node, log.clone(), member, Box::new(votes), ballot, Durability::Always, faults)?;
        let disk = Arc::new(Disk {
            is_alive: AtomicBool::new(true),
            slow_us: AtomicU64::new(0),
            rng: Mutex::new(Rng::with_seed(seed)),
        });
        let inner = driver.driver();
        work(inner, &disk, |driver| &driver.writes, 1..200, Driver::write);
        work(inner, &disk, |driver| &driver.syncs, 50..1_500, Driver::sync);
        work(inner, &disk, |driver| &driver.reads, 50..500, Driver::read);
        Ok((driver, log, disk))
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
                        run(&driver, job);
                    }
                }
                Next::Nothing => pushed.notified().await,
                Next::Closed => return,
            }
        }
    }));
}
