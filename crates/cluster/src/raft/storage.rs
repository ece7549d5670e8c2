//! The log and the ballot as the library's storage.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::{Stream, stream};
use openraft::base::BoxStream;
use openraft::storage::{IOFlushed, LogState, RaftLogStorage};
use openraft::type_config::TypeConfigExt;
use openraft::{EntryPayload, OptionalSend, RaftLogReader};
use tidemark_log::{EntryId, EntryRecords, Lsn};
use tokio::sync::Notify;

use super::apply::Applied;
use super::types::{Cfg, LogEntry, LogId, Vote, from_log_id, from_membership, from_vote, to_log_id, to_vote};
use crate::beginning::Beginning;
use crate::driver::{LogDriver, NewEntry};
use crate::entry::Entry;
use crate::reign::Reign;

/// The batch of this member that the log saw last: the pump proposes the next one behind it.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    last: AtomicU64,
    changed: Notify,
}

impl Seen {
    /// Forgets the last batch, before another is proposed.
    pub(crate) fn clear(&self) {
        self.last.store(0, Ordering::Release);
    }

    fn note(&self, last: Lsn) {
        self.last.store(last.0, Ordering::Release);
        self.changed.notify_one();
    }

    pub(crate) fn is(&self, last: Lsn) -> bool {
        self.last.load(Ordering::Acquire) == last.0
    }

    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// The storage of one member. Clones are its readers.
#[derive(Clone)]
pub(crate) struct Storage {
    driver: LogDriver,
    reign: Arc<Reign>,
    seen: Arc<Seen>,
    applied: Arc<Mutex<Applied>>,
    request_bytes: usize,
}

impl Storage {
    pub(crate) fn new(
        driver: LogDriver,
        reign: Arc<Reign>,
        seen: Arc<Seen>,
        applied: Arc<Mutex<Applied>>,
        request_bytes: usize,
    ) -> Self {
        Self { driver, reign, seen, applied, request_bytes }
    }

    /// Lets the log begin behind the entry `last`, which this member does not need.
    async fn release(&self, last: EntryId) -> io::Result<()> {
        let end = self.driver.inspect(move |member| member.entry(last.index)).await?;
        let end = end.map_err(io::Error::other)?.filter(|end| end.id == last);
        let members = {
            let mut applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
            applied.forget_before(last);
            applied.members_at(last)
        };
        let named = from_log_id(*members.log_id());
        match end {
            Some(end) if named.index > 0 => {
                let members = (named, from_membership(members.membership()));
                self.driver.release(Beginning { end, members }).await
            }
            // A snapshot has taken the place of the log meanwhile.
            _ => Ok(()),
        }
    }

    /// Reads entries of the library's indices `start..end`, at least one if there is one.
    async fn read(&self, start: u64, end: u64) -> io::Result<Vec<LogEntry>> {
        let read = self.driver.read(start.saturating_add(1), end.saturating_add(1), self.request_bytes).await;
        let read = read.inspect_err(|error| {
            if error.kind() == io::ErrorKind::InvalidData {
                self.reign.note_damage(&error.to_string());
            }
        })?;
        read.into_iter()
            .map(|(id, records)| {
                let entry = Entry::of_records(records).map_err(io::Error::other)?;
                LogEntry::of_log(id, entry)
                    .ok_or_else(|| io::Error::other(format!("entry {id} has invalid members")))
            })
            .collect()
    }
}

fn bounds(range: &impl RangeBounds<u64>) -> (u64, u64) {
    let start = match range.start_bound() {
        Bound::Included(start) => *start,
        Bound::Excluded(before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(last) => last.saturating_add(1),
        Bound::Excluded(end) => *end,
        Bound::Unbounded => u64::MAX,
    };
    (start, end)
}

impl<C: Cfg> RaftLogReader<C> for Storage {
    async fn try_get_log_entries<RB>(&mut self, range: RB) -> Result<Vec<LogEntry>, io::Error>
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        let (mut start, end) = bounds(&range);
        let mut entries = Vec::new();
        while start < end {
            let read = self.read(start, end).await?;
            let Some(last) = read.last() else { break };
            start = last.log_id.index + 1;
            entries.extend(read);
        }
        Ok(entries)
    }

    async fn entries_stream<RB>(
        &mut self,
        range: RB,
    ) -> impl Stream<Item = Result<LogEntry, io::Error>> + OptionalSend
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        // Not all at once: behind a start they are the whole log.
        let (start, end) = bounds(&range);
        let storage = self.clone();
        let chunks = stream::try_unfold(start, move |start| {
            let storage = storage.clone();
            async move {
                let read = if start < end { storage.read(start, end).await? } else { Vec::new() };
                let Some(last) = read.last() else { return Ok::<_, io::Error>(None) };
                let next = last.log_id.index + 1;
                Ok(Some((stream::iter(read.into_iter().map(Ok)), next)))
            }
        });
        let entries: BoxStream<'static, Result<LogEntry, io::Error>> =
            Box::pin(futures_util::TryStreamExt::try_flatten(chunks));
        entries
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Ok(self.driver.ballot().map(to_vote))
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<LogEntry>, io::Error> {
        self.read(start, end).await
    }
}

impl<C: Cfg> RaftLogStorage<C> for Storage {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<C>, io::Error> {
        let begins = self.driver.beginning().map(|beginning| beginning.end.id);
        let last_purged_log_id = begins.and_then(to_log_id);
        Ok(LogState { last_purged_log_id, last_log_id: to_log_id(self.driver.last().id) })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        let ballot = from_vote(vote);
        // A term ends here first: no other member knows of the ballot yet.
        self.reign.note_ballot(ballot);
        self.driver.save_ballot(ballot).await
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<C>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = LogEntry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut entries = entries.into_iter().peekable();
        if entries.peek().is_none() {
            callback.io_completed(Ok(()));
            return Ok(());
        }
        let mut callback = Some(callback);
        while let Some(entry) = entries.next() {
            let id = from_log_id(Some(entry.log_id));
            let new = new_entry(entry);
            let taken = match &new {
                NewEntry::Taken(records) => Some(records.last_lsn()),
                NewEntry::Received(_) | NewEntry::Leader | NewEntry::Members(_) => None,
            };
            // Acknowledgements keep their order, so that of the last entry is that of all.
            let callback = if entries.peek().is_none() { callback.take() } else { None };
            self.driver.append(
                id,
                new,
                Box::new(move |result| {
                    if let Some(callback) = callback {
                        callback.io_completed(result);
                    }
                }),
            )?;
            if let Some(last) = taken {
                #[cfg(test)]
                if self.reign.faults.commit_before_quorum {
                    self.driver.commit(last);
                }
                self.seen.note(last);
            }
        }
        Ok(())
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        if let Some(end) = self.driver.cut_behind(from_log_id(last).index).await? {
            self.reign.note_cut(end.last);
        }
        Ok(())
    }

    async fn purge(&mut self, last: LogId) -> Result<(), io::Error> {
        let last = from_log_id(Some(last));
        let begins = self.driver.beginning().map_or(0, |beginning| beginning.end.id.index);
        // Behind an installed snapshot, the log begins there already.
        if last.index > begins {
            let storage = self.clone();
            // The consensus does not wait for the disk, and reads nothing before it.
            drop(C::spawn(async move {
                if let Err(error) = storage.release(last).await {
                    tracing::warn!(%error, "entries that snapshots cover are not released");
                }
            }));
        }
        Ok(())
    }
}

fn new_entry(entry: LogEntry) -> NewEntry {
    let received = |entry: fn(EntryRecords) -> Entry, records| NewEntry::Received(entry(records));
    match (entry.payload, entry.records) {
        (EntryPayload::Blank, None) => NewEntry::Leader,
        (EntryPayload::Blank, Some(records)) => received(Entry::Leader, records),
        (EntryPayload::Membership(membership), None) => NewEntry::Members(from_membership(&membership)),
        (EntryPayload::Membership(membership), Some(records)) => {
            NewEntry::Received(Entry::Members(Box::new(from_membership(&membership)), records))
        }
        (EntryPayload::Normal(batch), _) if batch.is_taken => NewEntry::Taken(batch.records),
        (EntryPayload::Normal(batch), _) => received(Entry::Batch, batch.records),
    }
}
