//! Replay threads: they produce emissions below retention again, from snapshots and the log.

use crate::shared::Shared;
use crate::subscription::replay_buffer::{End, Put, ReplayWriter};
use crate::subscription::replay_queue::{ReplayJob, ReplayStart};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tidemark_engine::CommandError;
use tidemark_engine::section::{KEYSPACE, WATCHED};
use tidemark_engine::watch::{Emission, Past, PastError, SharedQuery, Waking, count_in_frame};
use tidemark_log::snapshot::FrameEntry;
use tidemark_log::{Log, Lsn, RecordBatch, ReplayError, Snapshot, SnapshotError, Snapshots, Tail};

/// Total time that a subscription may block its thread while other jobs wait.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a blocked thread checks whether to stop.
const LOOK_PAUSE: Duration = Duration::from_millis(20);
/// How long a thread waits for records that are appended but not written.
const WRITE_PAUSE: Duration = Duration::from_millis(1);
/// Most records left to apply when a dormant query is woken: its keys are locked meanwhile.
const NEAR: u64 = 256;
/// How long a dormant query's keys are locked while the replay catches up with the end of the log.
/// Doubled after each attempt that was too short, as on a machine without a free core, up to the
/// limit.
const WAKE_HOLD: Duration = Duration::from_millis(10);
const WAKE_HOLD_MAX: Duration = Duration::from_millis(160);
/// How long a thread waits for a record to be written while the keys are locked.
const HANDOVER_PAUSE: Duration = Duration::from_micros(20);
/// Retry delay after a failed attempt to wake a query.
const WAKE_PAUSE: Duration = Duration::from_millis(100);

/// Starts the threads, which end with [`crate::subscription::replay_queue::ReplayQueue::stop`].
pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<Vec<JoinHandle<()>>> {
    (0..shared.replays.threads())
        .map(|number| {
            let shared = Arc::clone(shared);
            let work = move || {
                while let Some(job) = shared.replays.next() {
                    serve(&shared, job);
                    shared.replays.note_end();
                }
            };
            std::thread::Builder::new().name(format!("tidemark-replay-{number}")).spawn(work)
        })
        .collect()
}

fn serve(shared: &Shared, job: ReplayJob) {
    let ReplayJob { query, wanted, writer } = job;
    let seen = if let ReplayStart::After(number, _) = wanted { Some(number) } else { None };
    let mut replay = Replay {
        shared,
        query: &query,
        wanted,
        writer: &writer,
        seen,
        is_found: false,
        kept_waiting: Duration::ZERO,
        next_wake: shared.clock.now(),
        wake_hold: WAKE_HOLD,
        at_end_since: None,
    };
    let end = match replay.run() {
        Ok(()) | Err(Stop::Left | Stop::GivenUp) => End::Done,
        Err(Stop::Stopping) => End::Stopping,
        Err(why) => {
            if !matches!(why, Stop::OutOfReach | Stop::Past(PastError::Forgotten | PastError::Dormant)) {
                shared.replays.warn(&why);
            }
            End::Stale(replay.floor(&why))
        }
    };
    writer.end(end);
}

/// Why a replay ends.
#[derive(Debug, thiserror::Error)]
enum Stop {
    #[error("the subscriber has gone")]
    Left,
    #[error("other subscribers wait, and this one does not read")]
    GivenUp,
    #[error("the server stops")]
    Stopping,
    #[error("neither a snapshot nor the log reaches back far enough")]
    OutOfReach,
    #[error(transparent)]
    Log(#[from] ReplayError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error("{0}; the limit is watch-backlog-bytes")]
    TooLarge(PastError),
    #[error(transparent)]
    Past(PastError),
    #[error("the log takes no record of the waking: {0}")]
    Unwritable(CommandError),
}

impl From<CommandError> for Stop {
    fn from(error: CommandError) -> Stop {
        Stop::Unwritable(error)
    }
}

impl From<PastError> for Stop {
    fn from(error: PastError) -> Stop {
        match error {
            PastError::TooLarge { .. } => Stop::TooLarge(error),
            error => Stop::Past(error),
        }
    }
}

/// The replay for one subscription.
struct Replay<'a> {
    shared: &'a Shared,
    query: &'a SharedQuery,
    /// Position to replay from. Advances with each delivered emission.
    wanted: ReplayStart,
    writer: &'a ReplayWriter,
    /// Number of the last emission that the subscription has, once known.
    seen: Option<u64>,
    /// The subscription was notified of its place.
    is_found: bool,
    /// How long the subscription has not taken available emissions, in all.
    kept_waiting: Duration,
    /// Earliest time of the next attempt to wake a dormant query.
    next_wake: Instant,
    /// How long the next attempt may lock the query's keys.
    wake_hold: Duration,
    /// Since when the subscription has everything of a query that stays dormant.
    at_end_since: Option<Instant>,
}

impl Replay<'_> {
    fn log(&self) -> &Arc<Log> {
        self.shared.engine.log()
    }

    /// Replays emissions until the query retains the next one.
    fn run(&mut self) -> Result<(), Stop> {
        // Skip the work if the subscriber has left the queue.
        self.check()?;
        let limit = self.shared.settings.current().watch_backlog_bytes;
        let (mut result, mut tried) = (Err(Stop::OutOfReach), None);
        loop {
            // The log may have released what was being read. A later snapshot may suffice after the
            // emissions delivered so far.
            let attempt = (self.bases()?, self.wanted);
            if tried.as_ref() == Some(&attempt) {
                return result;
            }
            for base in attempt.0.clone() {
                result = self.run_from(base, Past::new(self.log(), self.query, limit));
                match &result {
                    // The snapshot is unreadable or was removed: an older one may do.
                    Err(
                        Stop::Snapshot(_)
                        | Stop::Log(ReplayError::Released { .. })
                        | Stop::Past(PastError::Apply(_) | PastError::Unreadable | PastError::Dormant),
                    ) => {}
                    _ => return result,
                }
            }
            tried = Some(attempt);
        }
    }

    /// Snapshots to replay from, newest first, followed by the beginning of the log if it is still
    /// there.
    fn bases(&self) -> Result<Vec<Option<Lsn>>, Stop> {
        let mut bases: Vec<Option<Lsn>> = self.continued()?.into_iter().map(Some).rev().collect();
        // An unreadable snapshot is kept here; the replay skips it when loading fails.
        bases.retain(|lsn| lsn.is_none_or(|lsn| self.is_old_enough(lsn).unwrap_or(true)));
        if self.log().floor() <= Lsn::FIRST {
            bases.push(None);
        }
        Ok(bases)
    }

    /// Whether all wanted emissions come after a snapshot.
    fn is_old_enough(&self, lsn: Lsn) -> Result<bool, Stop> {
        let number = match self.wanted {
            _ if lsn <= self.wanted.lsn() => return Ok(true),
            ReplayStart::Behind(_) => return Ok(false),
            ReplayStart::After(number, _) => number,
        };
        let (snapshot, mut buffer) = (self.snapshots().open(lsn)?, Vec::new());
        for frame in frames(&snapshot, WATCHED) {
            snapshot.read_frame(frame, &mut buffer)?;
            if let Some(count) = count_in_frame(&buffer, self.query.id()).map_err(PastError::from)? {
                return Ok(count <= number);
            }
        }
        Ok(false)
    }

    /// Snapshots that the log continues, oldest first.
    fn continued(&self) -> Result<Vec<Lsn>, SnapshotError> {
        let floor = self.log().floor();
        let mut lsns = self.snapshots().list()?;
        lsns.retain(|lsn| lsn.next() >= floor);
        Ok(lsns)
    }

    fn snapshots(&self) -> Snapshots {
        Snapshots::new(Arc::clone(self.log().storage()))
    }

    fn run_from(&mut self, base: Option<Lsn>, mut past: Past) -> Result<(), Stop> {
        let from = base.map_or(Lsn::FIRST, Lsn::next);
        loop {
            // Opened before the snapshot is read: pins the log after the snapshot.
            let tail = self.log().tail(from)?;
            let loaded = match base {
                Some(lsn) => self.load(&mut past, &self.snapshots().open(lsn)?),
                None => Ok(()),
            };
            match loaded.and_then(|()| self.follow(&mut past, tail)) {
                Err(Stop::Past(PastError::Widened)) => past = self.widened(past, from)?,
                result => return result,
            }
        }
    }

    fn load(&self, past: &mut Past, snapshot: &Snapshot) -> Result<(), Stop> {
        let mut buffer = Vec::new();
        past.load(|load| {
            frames(snapshot, KEYSPACE).try_for_each(|frame| {
                self.check()?;
                snapshot.read_frame(frame, &mut buffer)?;
                load(&buffer).map_err(Stop::from)
            })
        })?;
        for frame in frames(snapshot, WATCHED) {
            snapshot.read_frame(frame, &mut buffer)?;
            past.load_query(snapshot.lsn(), &buffer)?;
        }
        Ok(())
    }

    /// Scans the log for all keys that the read depends on.
    fn widened(&self, past: Past, from: Lsn) -> Result<Past, Stop> {
        let (mut widening, mut tail) = (past.widen(), self.log().tail(from)?);
        while let Some(batch) = tail.next_batch()? {
            self.check()?;
            batch.iter().try_for_each(|record| widening.note(&record))?;
        }
        Ok(widening.finish())
    }

    /// Applies the log until the query retains the next emission.
    fn follow(&mut self, past: &mut Past, mut tail: Tail) -> Result<(), Stop> {
        loop {
            self.check()?;
            let has_more = match tail.next_batch()? {
                Some(batch) => {
                    self.apply(past, batch)?;
                    true
                }
                None => false,
            };
            if tail.position() > self.wanted.lsn() {
                self.found(past.count());
            }
            if self.is_found && self.seen.is_some_and(|seen| self.is_retained_behind(seen)) {
                return Ok(());
            }
            if self.is_found && self.query.is_dormant() && self.is_near_end(&tail) {
                self.wake(past, &mut tail)?;
            }
            if !has_more {
                if self.shared.log_has_failed() {
                    // What is not written by now never will be.
                    return Err(Stop::OutOfReach);
                }
                std::thread::sleep(WRITE_PAUSE);
            }
        }
    }

    fn apply(&mut self, past: &mut Past, batch: &RecordBatch) -> Result<(), Stop> {
        for record in batch {
            if record.lsn > self.wanted.lsn() {
                self.found(past.count());
            }
            if let Some(emission) = past.apply(&record)? {
                self.deliver(&emission)?;
            }
        }
        Ok(())
    }

    /// Delivers an emission that the subscription does not have.
    fn deliver(&mut self, emission: &Emission) -> Result<(), Stop> {
        let Some(seen) = self.seen.filter(|seen| emission.number > *seen) else { return Ok(()) };
        if emission.number > seen + 1 {
            // The snapshot was newer than assumed: fail rather than skip emissions.
            return Err(Stop::OutOfReach);
        }
        self.pass(emission)?;
        self.seen = Some(emission.number);
        self.wanted = ReplayStart::After(emission.number, emission.lsn);
        Ok(())
    }

    /// Whether at most [`NEAR`] records are left to apply.
    fn is_near_end(&self, tail: &Tail) -> bool {
        let applied = Lsn(tail.position().0.saturating_sub(1));
        self.log().records_between(applied, self.log().appended()) <= NEAR
    }

    /// Tries to make writers evaluate a dormant query again. Until that succeeds, this thread
    /// serves it.
    fn wake(&mut self, past: &mut Past, tail: &mut Tail) -> Result<(), Stop> {
        if self.shared.clock.now() < self.next_wake {
            return self.leave_turn();
        }
        let (engine, log, mut made) = (&self.shared.engine, self.log(), Vec::new());
        let clock = &self.shared.clock;
        let hold = self.wake_hold;
        let waking = engine.wake(self.query, past, clock.now_us(), |past, head| {
            let deadline = clock.now() + hold;
            while tail.position() <= head {
                // Requested from the commit thread: a hanging disk must not block this one with its
                // locks.
                log.request_write(head);
                match tail.next_batch()? {
                    Some(batch) => {
                        for record in batch {
                            made.extend(past.apply(&record)?);
                        }
                    }
                    None if clock.now() > deadline => return Ok(false),
                    None => std::thread::sleep(HANDOVER_PAUSE),
                }
            }
            Ok(true)
        });
        self.next_wake = clock.now() + WAKE_PAUSE;
        // Delivered without locks: the subscription may have no room.
        made.iter().try_for_each(|emission| self.deliver(emission))?;
        if matches!(waking, Ok(Waking::NotYet)) {
            self.wake_hold = (2 * hold).min(WAKE_HOLD_MAX);
        }
        match waking {
            Ok(Waking::Awake) => Ok(()),
            Ok(Waking::TooCostly | Waking::Unreadable | Waking::NotYet) | Err(Stop::Unwritable(_)) => {
                self.leave_turn()
            }
            Err(why) => Err(why),
        }
    }

    /// Ends the turn if the subscription has had everything for a while and other jobs wait.
    fn leave_turn(&mut self) -> Result<(), Stop> {
        let clock = &self.shared.clock;
        let since = *self.at_end_since.get_or_insert_with(|| clock.now());
        if clock.elapsed(since) >= PATIENCE && self.shared.replays.is_waited_for() {
            return Err(Stop::GivenUp);
        }
        Ok(())
    }

    /// Reports the subscription's place once, as soon as `count` emissions confirm it.
    fn found(&mut self, count: u64) {
        if !self.is_found && self.seen.is_none_or(|seen| seen <= count) {
            self.is_found = true;
            self.writer.found(*self.seen.get_or_insert(count));
        }
    }

    /// Whether the query retains everything after this emission.
    fn is_retained_behind(&self, number: u64) -> bool {
        self.query.emissions_after(number, 0, &mut Vec::new()).is_ok()
    }

    fn pass(&mut self, emission: &Emission) -> Result<(), Stop> {
        loop {
            match self.writer.put(emission) {
                Put::Done => return Ok(()),
                Put::Left => return Err(Stop::Left),
                Put::Full => {}
            }
            self.check()?;
            if self.kept_waiting >= PATIENCE && self.shared.replays.is_waited_for() {
                return Err(Stop::GivenUp);
            }
            let began = self.shared.clock.now();
            self.writer.wait_for_room(LOOK_PAUSE);
            self.kept_waiting += self.shared.clock.elapsed(began);
        }
    }

    fn check(&self) -> Result<(), Stop> {
        if self.shared.replays.is_stopping() {
            Err(Stop::Stopping)
        } else if self.writer.is_left() {
            Err(Stop::Left)
        } else {
            Ok(())
        }
    }

    /// Oldest LSN after which the subscription could resume.
    fn floor(&self, why: &Stop) -> Lsn {
        let id = self.query.id();
        let retained = match self.query.emissions_after(0, 0, &mut Vec::new()) {
            Ok(()) => id,
            Err(gone) => gone.floor,
        };
        if matches!(why, Stop::TooLarge(_)) {
            return retained;
        }
        // A base that has failed would fail again: consider later snapshots only.
        let wanted = self.wanted.lsn();
        let continued = self.continued().unwrap_or_default();
        let oldest = continued.into_iter().map(|lsn| lsn.max(id)).find(|lsn| *lsn > wanted);
        oldest.map_or(retained, |oldest| oldest.min(retained))
    }
}

fn frames(snapshot: &Snapshot, section: u32) -> impl Iterator<Item = &FrameEntry> {
    snapshot.frames().iter().filter(move |frame| frame.section == section)
}
