//! Drives the log of a member, so that the thread of the consensus never waits for the disk.
//!
//! ```text
//!  consensus ─► jobs in order ─► writer thread: take, append, cut, ballots ─► sync thread ─► acknowledge
//!      ▲  entries that are not written yet: from memory                         │
//!      └──────────────────────── others: recent ones from memory, old ones by the reader thread
//! ```
//!
//! The order of the jobs is the order on the disk: a ballot is durable before anything that follows
//! it is written. Acknowledgements come in the order of the appends.

mod backlog;
mod beginning;
mod queue;
mod threads;
mod votes;

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidemark_log::Member as LogMember;
use tidemark_log::{AppendError, Durability, EntryEnd, EntryError, EntryId, EntryRecords, Log, Lsn};
use tokio::sync::{Notify, oneshot};

use crate::beginning::Beginning;
use crate::entry::Entry;
use crate::ids::NodeId;
use crate::member::Members;
use crate::term::{Ballot, Term};
use crate::wire::message;

use backlog::Backlog;
pub(crate) use queue::{JobQueue, Next, Worker};
pub(crate) use threads::Threads;
pub use votes::VoteStore;

/// Called when a job is done, on the thread that did it.
pub(crate) type Done<T> = Box<dyn FnOnce(io::Result<T>) + Send>;

/// Pause between two attempts to append while there is no space.
const FULL_PAUSE: Duration = Duration::from_millis(20);

/// What the consensus appends.
#[derive(Debug)]
pub(crate) enum NewEntry {
    /// The records that were taken last.
    Taken(EntryRecords),
    /// An entry of the leader, or of this log.
    Received(Entry),
    /// This member begins a term.
    Leader,
    /// This member names the members.
    Members(Members),
}

pub(crate) enum WriteJob {
    Append {
        number: u64,
        id: EntryId,
        records: EntryRecords,
        is_taken: bool,
        is_synced: bool,
        done: Done<()>,
    },
    Cut {
        index: u64,
        done: Done<EntryEnd>,
    },
    Ballot {
        bytes: Vec<u8>,
        done: Done<()>,
    },
    /// What is written is to be synced, whatever the mode.
    Sync(Done<()>),
    Run(Box<dyn FnOnce(&LogMember) + Send>),
}

pub(crate) struct SyncJob {
    /// The entry was acknowledged by a write, but must not overtake one that waits for its sync.
    is_written_enough: bool,
    done: Done<()>,
}

pub(crate) enum ReadJob {
    Entries {
        index: u64,
        bytes: usize,
        done: oneshot::Sender<Result<Vec<(EntryId, EntryRecords)>, EntryError>>,
    },
    Run(Box<dyn FnOnce(&LogMember) + Send>),
}

/// An entry that is in the log for the consensus, and not yet on the disk.
#[derive(Debug)]
struct Unwritten {
    /// Distinguishes it from an entry of the same index that was cut.
    number: u64,
    id: EntryId,
    records: EntryRecords,
}

#[derive(Debug)]
struct DriverState {
    /// The newest entry, written or not.
    last: EntryEnd,
    unwritten: VecDeque<Unwritten>,
    next_number: u64,
    /// The newest entry that is written and not being cut.
    written: EntryEnd,
    /// What the group has committed; may be ahead of what is written here.
    committed: Lsn,
    /// Batches of this member's terms that are not committed.
    backlog: Backlog,
    ballot: Option<Ballot>,
    /// A cut is queued: what is written is unknown until it is done.
    is_cutting: bool,
    /// Where the log may begin; `None` at its first entry.
    beginning: Option<Beginning>,
}

/// The log as the consensus drives it. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct LogDriver(Arc<Driver>);

pub(crate) struct Driver {
    node: NodeId,
    log: Arc<Log>,
    member: LogMember,
    votes: Mutex<Box<dyn VoteStore>>,
    /// What is done before an entry is acknowledged.
    mode: Mutex<Durability>,
    state: Mutex<DriverState>,
    pub(crate) writes: JobQueue<WriteJob>,
    pub(crate) syncs: JobQueue<SyncJob>,
    pub(crate) reads: JobQueue<ReadJob>,
    /// Held while the beginning of the log changes, in its file and in the state.
    changing_beginning: Mutex<()>,
    /// Sync jobs that are not done.
    unsynced: AtomicUsize,
    /// Something was committed, or taken back.
    settled: Notify,
    /// The member stops: nothing waits for space any more.
    is_stopping: AtomicBool,
    #[cfg(test)]
    faults: crate::faults::Faults,
}

impl LogDriver {
    /// Takes over an opened log. Syncs what it has: a killed process may have left written entries
    /// that are not synced, and a ballot must not be given for them.
    pub(crate) fn open(
        node: NodeId,
        log: Arc<Log>,
        member: LogMember,
        votes: Box<dyn VoteStore>,
        ballot: Option<Ballot>,
        durability: Durability,
        #[cfg(test)] faults: crate::faults::Faults,
    ) -> io::Result<Self> {
        member.sync().map_err(|failure| io::Error::other(failure.to_string()))?;
        let last = member.last_entry();
        let beginning = Beginning::read(&**log.storage())?;
        beginning::check(beginning.as_ref(), member.first_entry(), last)?;
        let state = DriverState {
            last,
            unwritten: VecDeque::new(),
            next_number: 0,
            written: last,
            committed: log.committed(),
            backlog: Backlog::default(),
            ballot,
            is_cutting: false,
            beginning,
        };
        Ok(Self(Arc::new(Driver {
            node,
            log,
            member,
            votes: Mutex::new(votes),
            mode: Mutex::new(durability),
            state: Mutex::new(state),
            writes: JobQueue::new(),
            syncs: JobQueue::new(),
            reads: JobQueue::new(),
            changing_beginning: Mutex::default(),
            unsynced: AtomicUsize::new(0),
            settled: Notify::new(),
            is_stopping: AtomicBool::new(false),
            #[cfg(test)]
            faults,
        })))
    }

    pub(crate) fn driver(&self) -> &Arc<Driver> {
        &self.0
    }

    fn state(&self) -> MutexGuard<'_, DriverState> {
        self.0.state()
    }

    pub(crate) fn member(&self) -> &LogMember {
        &self.0.member
    }

    /// Returns what the log says is committed.
    pub(crate) fn committed(&self) -> Lsn {
        self.0.log.committed()
    }

    /// Returns the last record that the log has given out.
    pub(crate) fn appended(&self) -> Lsn {
        self.0.log.appended()
    }

    /// Returns the newest entry, written or not.
    pub(crate) fn last(&self) -> EntryEnd {
        self.state().last
    }

    /// Returns whether all records that were accepted are in an entry.
    pub(crate) fn is_drained(&self) -> bool {
        let last = self.state().last.last;
        self.0.log.appended() <= last
    }

    /// Appends an entry, and returns before it is written. `done` is called when it is as durable
    /// as it must be.
    ///
    /// # Panics
    /// If the entry does not follow the newest one.
    pub(crate) fn append(&self, id: EntryId, new: NewEntry, done: Done<()>) -> io::Result<()> {
        let mut state = self.state();
        let last = state.last;
        assert!(
            id.index == last.id.index + 1 && id.term >= last.id.term,
            "entry {id} is appended behind {}",
            last.id
        );
        let now_us = || self.0.log.clock().now_us();
        let term_lsn = || {
            LogMember::term_lsn_behind(last.last).ok_or_else(|| io::Error::other("the LSNs are exhausted"))
        };
        let is_taken = matches!(new, NewEntry::Taken(_));
        let entry = match new {
            NewEntry::Taken(records) => Entry::Batch(records),
            NewEntry::Received(entry) => entry,
            #[cfg(test)]
            NewEntry::Leader if self.0.faults.term_without_gap => {
                Entry::leader(last.last.next(), now_us(), Term(id.term), self.0.node)
            }
            NewEntry::Leader => Entry::leader(term_lsn()?, now_us(), Term(id.term), self.0.node),
            // The first entry may follow records of a single node that gave out more LSNs than it
            // has written.
            NewEntry::Members(members) if id.index == 1 => Entry::members(term_lsn()?, now_us(), members),
            NewEntry::Members(members) => Entry::members(last.last.next(), now_us(), members),
        };
        let (number, records) = (state.next_number, entry.records().clone());
        state.next_number += 1;
        state.last = EntryEnd { id, last: records.last_lsn() };
        if is_taken {
            state.backlog.add(records.last_lsn(), records.bytes().len());
        }
        state.unwritten.push_back(Unwritten { number, id, records: records.clone() });
        let is_synced = self.0.syncs_first(&entry);
        self.0.writes.push(WriteJob::Append { number, id, records, is_taken, is_synced, done });
        Ok(())
    }

    /// Removes the entries behind `index`. The log's end is unknown until `cut` is awaited, so
    /// nothing may be appended before.
    pub(crate) async fn cut_behind(&self, index: u64) -> io::Result<Option<EntryEnd>> {
        let (done, cut) = oneshot::channel();
        {
            let mut state = self.state();
            if state.last.id.index <= index {
                return Ok(None);
            }
            state.is_cutting = true;
            while state.unwritten.pop_back_if(|entry| entry.id.index > index).is_some() {}
            // What is left of it is another leader's to commit.
            state.backlog = Backlog::default();
            self.0.settled.notify_one();
            let done = Box::new(move |result| drop(done.send(result)));
            self.0.writes.push(WriteJob::Cut { index, done });
        }
        let end = cut.await.map_err(|_| closed())??;
        let mut state = self.state();
        (state.last, state.written, state.is_cutting) = (end, end, false);
        drop(state);
        self.0.advance();
        Ok(Some(end))
    }

    /// Saves a ballot; returns when it is durable.
    pub(crate) async fn save_ballot(&self, ballot: Ballot) -> io::Result<()> {
        let (done, saved) = oneshot::channel();
        self.state().ballot = Some(ballot);
        let done = Box::new(move |result| drop(done.send(result)));
        self.0.writes.push(WriteJob::Ballot { bytes: message::encode_ballot(ballot), done });
        saved.await.map_err(|_| closed())?
    }

    /// Returns the newest ballot and the newest entry, written or not, of one moment.
    pub(crate) fn ballot_and_last(&self) -> (Option<Ballot>, EntryEnd) {
        let state = self.state();
        (state.ballot, state.last)
    }

    /// Returns the newest ballot.
    pub(crate) fn ballot(&self) -> Option<Ballot> {
        self.state().ballot
    }

    /// Runs `job` on the writer, behind all that was pushed before.
    pub(crate) fn run(&self, job: impl FnOnce(&LogMember) + Send + 'static) {
        self.0.writes.push(WriteJob::Run(Box::new(job)));
    }

    /// Has everything synced that is written, in every mode. Returns before it is done.
    pub(crate) fn request_sync(&self) {
        self.0.writes.push(WriteJob::Sync(Box::new(drop)));
    }

    /// Changes what this member does before it acknowledges an entry, from the next one on. Blocks until
    /// everything is synced that was acknowledged before.
    ///
    /// # Errors
    /// It cannot be synced: the log has failed.
    pub(crate) fn set_mode(&self, durability: Durability) -> io::Result<()> {
        *self.0.mode.lock().unwrap_or_else(PoisonError::into_inner) = durability;
        let (done, synced) = std::sync::mpsc::channel();
        // Behind all that the writer has acknowledged in the mode of before. It also has the sync thread look
        // at the new interval.
        self.0.writes.push(WriteJob::Sync(Box::new(move |result| drop(done.send(result)))));
        synced.recv().map_err(|_| closed())?
    }

    /// Takes what appenders have appended. If that is nothing, the next record calls the log's
    /// waker.
    pub(crate) async fn take(&self) -> Option<EntryRecords> {
        let (done, taken) = oneshot::channel();
        self.run(move |member| drop(done.send(member.try_take())));
        taken.await.ok().flatten()
    }

    /// Waits until the batches of this member that are not committed are below `limit` bytes.
    pub(crate) async fn wait_for_commits(&self, limit: usize) {
        while self.state().backlog.bytes() >= limit {
            self.0.settled.notified().await;
        }
    }

    /// Notes that the group has committed everything up to `lsn`. The log is told when that is
    /// written here.
    pub(crate) fn commit(&self, lsn: Lsn) {
        {
            let mut state = self.state();
            state.committed = state.committed.max(lsn);
            let committed = state.committed;
            state.backlog.settle(committed);
        }
        self.0.settled.notify_one();
        self.0.advance();
    }

    /// Reads entries from `index` on, before `end`: at least one if there is one, up to about
    /// `bytes`. Old ones come from the reader thread.
    pub(crate) async fn read(
        &self,
        index: u64,
        end: u64,
        bytes: usize,
    ) -> io::Result<Vec<(EntryId, EntryRecords)>> {
        let mut entries = {
            let state = self.state();
            if index >= end || index > state.last.id.index {
                return Ok(Vec::new());
            }
            match state.unwritten.front() {
                Some(first) if first.id.index <= index => {
                    let skip = (index - first.id.index) as usize;
                    take_bytes(
                        state.unwritten.iter().skip(skip).map(|entry| (entry.id, &entry.records)),
                        bytes,
                    )
                }
                _ => self.0.member.recent_entries(index, bytes),
            }
        };
        if entries.is_empty() {
            let (done, read) = oneshot::channel();
            self.0.reads.push(ReadJob::Entries { index, bytes, done });
            entries = read.await.map_err(|_| closed())?.map_err(|error| {
                let kind = kind_of(&error);
                io::Error::new(kind, format!("reading entry {index}: {error}"))
            })?;
        }
        entries.retain(|(id, _)| id.index < end);
        Ok(entries)
    }

    /// Has an append that waits for space fail: the member stops, and the consensus may wait for what is
    /// queued behind it.
    pub(crate) fn stop_waiting(&self) {
        self.0.is_stopping.store(true, Ordering::Release);
    }

    /// Ends the threads once they have worked off their jobs.
    pub(crate) fn close(&self) {
        self.0.writes.close();
        self.0.reads.close();
    }
}

/// Clones entries up to about `bytes`, at least one.
fn take_bytes<'a>(
    entries: impl Iterator<Item = (EntryId, &'a EntryRecords)>,
    bytes: usize,
) -> Vec<(EntryId, EntryRecords)> {
    let (mut taken, mut size) = (Vec::new(), 0);
    for (id, records) in entries {
        size += records.bytes().len();
        if size > bytes && !taken.is_empty() {
            break;
        }
        taken.push((id, records.clone()));
    }
    taken
}

/// Damage is told from other errors by its kind.
pub(crate) fn kind_of(error: &EntryError) -> io::ErrorKind {
    match error {
        EntryError::Damaged(_) => io::ErrorKind::InvalidData,
        _ => io::ErrorKind::Other,
    }
}

fn closed() -> io::Error {
    io::Error::other("the log of the member is closed")
}

impl Driver {
    fn state(&self) -> MutexGuard<'_, DriverState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the durability mode of this member.
    pub(crate) fn mode(&self) -> Durability {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether an entry must be synced before it is acknowledged, whatever the mode.
    fn syncs_first(&self, entry: &Entry) -> bool {
        // With `always` all are, and no record has to ask for it.
        self.mode() == Durability::Always || entry.is_synced()
    }

    /// Tells the log what is committed and written.
    fn advance(&self) {
        let committed = {
            let state = self.state();
            if state.is_cutting {
                return;
            }
            state.committed.min(state.written.last)
        };
        // What is committed is never cut, so it stays written.
        if committed > self.log.committed() {
            self.member.commit(committed);
        }
    }

    /// Does one job of the writer.
    pub(crate) fn write(&self, job: WriteJob) {
        match job {
            WriteJob::Append { number, id, records, is_taken, is_synced, done } => {
                match self.append(id, &records, is_taken) {
                    Ok(()) => {
                        self.note_written(number, id, &records);
                        self.acknowledge(is_synced, done);
                    }
                    Err(error) => done(Err(io::Error::other(format!("appending entry {id}: {error}")))),
                }
            }
            WriteJob::Cut { index, done } => {
                let cut = self.member.cut_behind(index);
                let cut = cut.map(|()| self.member.last_entry());
                done(cut.map_err(|error| io::Error::other(format!("cutting behind entry {index}: {error}"))));
            }
            WriteJob::Ballot { bytes, done } => {
                let saved = self.votes.lock().unwrap_or_else(PoisonError::into_inner).save(&bytes);
                done(
                    saved.map_err(|error| io::Error::new(error.kind(), format!("saving a ballot: {error}"))),
                );
            }
            WriteJob::Sync(done) => self.request_sync(done, false),
            WriteJob::Run(job) => job(&self.member),
        }
    }

    /// Appends an entry; waits while there is no space.
    fn append(&self, id: EntryId, records: &EntryRecords, is_taken: bool) -> Result<(), AppendError> {
        if is_taken {
            return self.member.write_taken(id, records);
        }
        loop {
            match self.member.append(id, records) {
                Err(AppendError::Full(_) | AppendError::Stalled(_))
                    if !self.writes.is_closed() && !self.is_stopping.load(Ordering::Acquire) =>
                {
                    std::thread::sleep(FULL_PAUSE);
                }
                result => return result,
            }
        }
    }

    fn note_written(&self, number: u64, id: EntryId, records: &EntryRecords) {
        {
            let mut state = self.state();
            // An entry that was cut meanwhile is not there any more.
            if state.unwritten.pop_front_if(|entry| entry.number == number).is_none() {
                return;
            }
            state.written = EntryEnd { id, last: records.last_lsn() };
        }
        self.advance();
    }

    fn acknowledge(&self, is_synced: bool, done: Done<()>) {
        let is_written_enough = !is_synced && self.mode() != Durability::Always;
        #[cfg(test)]
        if self.faults.acknowledge_before_sync {
            self.syncs.push(SyncJob { is_written_enough: false, done: Box::new(|_| {}) });
            return done(Ok(()));
        }
        // Only this thread adds to the number.
        if is_written_enough && self.unsynced.load(Ordering::Acquire) == 0 {
            return done(Ok(()));
        }
        self.request_sync(done, is_written_enough);
    }

    fn request_sync(&self, done: Done<()>, is_written_enough: bool) {
        self.unsynced.fetch_add(1, Ordering::AcqRel);
        self.syncs.push(SyncJob { is_written_enough, done });
    }

    /// Syncs for `first` and all jobs behind it.
    pub(crate) fn sync(&self, first: SyncJob) {
        let mut jobs = vec![first];
        while let Next::Job(job) = self.syncs.try_pop() {
            jobs.push(job);
        }
        let needs_sync = jobs.iter().any(|job| !job.is_written_enough);
        let synced = if needs_sync { self.member.sync().map(drop) } else { Ok(()) };
        let count = jobs.len();
        for job in jobs {
            let result = match &synced {
                Ok(()) => Ok(()),
                Err(failure) => Err(io::Error::other(failure.to_string())),
            };
            (job.done)(result);
        }
        self.unsynced.fetch_sub(count, Ordering::AcqRel);
    }

    /// Does the jobs of the writer in a simulation: the caller is about to wait for one of them.
    #[cfg(test)]
    fn work_without_threads(&self) {
        while self.writes.is_simulated()
            && let Next::Job(job) = self.writes.try_pop()
        {
            self.write(job);
        }
    }

    /// Does what the log's threads would do.
    #[cfg(test)]
    pub(crate) fn keep_house(&self) {
        self.member.keep_house();
    }

    /// Syncs what is written, if it is not durable: with an interval, nothing else does.
    pub(crate) fn sync_interval(&self) {
        if self.log.durable() < self.log.written() {
            // If the log has failed, the next append says so.
            drop(self.member.sync());
        }
    }

    pub(crate) fn read(&self, job: ReadJob) {
        match job {
            ReadJob::Entries { index, bytes, done } => drop(done.send(self.member.entries(index, bytes))),
            ReadJob::Run(job) => job(&self.member),
        }
    }
}
