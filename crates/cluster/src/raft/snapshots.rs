//! Snapshots of the server, by reference: which one there is, how it gets to another member, and how one
//! that has arrived takes the place of the log.

use std::collections::BTreeMap;
use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use openraft::storage::Snapshot;
use openraft::type_config::TypeConfigExt;
use openraft::type_config::alias::InstantOf;
use tidemark_log::{EntryEnd, EntryId, Lsn, Member as LogMember, Snapshots, Storage};

use super::types::{
    Cfg, SnapshotMeta, StoredMembership, from_log_id, from_membership, to_log_id, to_membership,
};
use crate::beginning::Beginning;
use crate::driver::LogDriver;
use crate::ids::NodeId;
use crate::net::{Lane, Transport};
use crate::snapshot_files::{
    FileName, OutgoingFiles, SendError, SenderSettings, SnapshotReceiver, SnapshotSender, Waiting, probe,
};
use crate::term::{Ballot, Term};
use crate::wire::message::{self, Request};

/// Pause behind an attempt to send a snapshot that has failed, and behind one that was refused.
const PAUSE: Duration = Duration::from_secs(1);
const REFUSED_PAUSE: Duration = Duration::from_secs(30);

/// The runtime of a member, for transfers.
struct OnRuntime<C>(PhantomData<C>);

impl<C: Cfg> Waiting for OnRuntime<C> {
    type Instant = InstantOf<C>;

    fn now() -> InstantOf<C> {
        C::now()
    }

    fn sleep_until(time: InstantOf<C>) -> impl Future<Output = ()> + Send {
        C::sleep_until(time)
    }

    fn run_blocking<R: Send + 'static>(
        work: impl FnOnce() -> R + Send + 'static,
    ) -> impl Future<Output = Option<R>> + Send {
        C::run_blocking(work)
    }
}

/// The snapshot of another member that arrives here, one at a time. Clones share their state.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    receiver: Arc<Mutex<SnapshotReceiver>>,
    /// Counts the requests with files.
    requests: Arc<AtomicU64>,
    /// Why the last request was refused, and the last entry of this log at that time.
    refusal: Arc<Mutex<Option<(String, u64)>>>,
}

impl Arrivals {
    pub(crate) fn new(receiver: SnapshotReceiver) -> Self {
        Self { receiver: Arc::new(Mutex::new(receiver)), requests: Arc::default(), refusal: Arc::default() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, SnapshotReceiver> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many requests with files have come.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Answers a request with files, on a thread that may wait for the disk; `None` if the runtime ends. Returns
    /// the answer, and why the request is refused if it is.
    pub(super) async fn take<C: Cfg>(
        &self,
        driver: &LogDriver,
        frame: Bytes,
    ) -> Option<(Vec<u8>, Option<String>)> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let (arrivals, driver) = (self.clone(), driver.clone());
        C::run_blocking(move || {
            let mut receiver = arrivals.lock();
            let answer = receiver.answer(&frame);
            // What the directory has already of the snapshot must stay until it is installed.
            driver.keep_block_files(receiver.names().iter().map(FileName::as_str));
            let refused = receiver.refusal().map(str::to_owned);
            // A question for the connection says nothing of the snapshot.
            if refused.is_some() || receiver.progress().is_some() {
                let refusal = refused.clone().map(|reason| (reason, driver.last().id.index));
                *arrivals.refusal.lock().unwrap_or_else(PoisonError::into_inner) = refusal;
            }
            (answer, refused)
        })
        .await
    }

    /// Returns why the snapshot that this member needs is refused; `last` is the last entry of its log. If
    /// entries came since the refusal, it needs none.
    pub(super) fn refusal(&self, last: u64) -> Option<String> {
        let refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
        refusal.as_ref().filter(|(_, index)| *index == last).map(|(reason, _)| reason.clone())
    }

    /// Returns whether something has arrived, and no request is being answered.
    pub(crate) fn are_idle(&self) -> bool {
        self.receiver.try_lock().is_ok_and(|receiver| !receiver.names().is_empty())
    }

    /// Removes what has arrived.
    pub(crate) async fn forget(&self, driver: &LogDriver) -> io::Result<()> {
        let (arrivals, files) = (self.clone(), driver.clone());
        let forget = move || {
            arrivals.lock().abandon()?;
            files.keep_block_files(std::iter::empty());
            Ok(())
        };
        driver.inspect(move |_| forget()).await?
    }
}

/// A snapshot of the server, by reference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SnapshotHandle {
    /// The last record that it has; `None` if the directory has no snapshot that can be sent, or for one that
    /// has arrived.
    pub(crate) lsn: Option<Lsn>,
    /// The last record of the last entry that it has whole.
    pub(crate) last: Lsn,
}

/// Finds the newest snapshot that has no entry behind `applied`, and none but whole ones from `first` on:
/// its last record, and its last whole entry.
pub(super) fn find_snapshot(
    member: &LogMember,
    storage: &Arc<dyn Storage>,
    first: u64,
    applied: u64,
) -> io::Result<Option<(Lsn, EntryEnd)>> {
    let lsns = Snapshots::new(Arc::clone(storage)).list().map_err(io::Error::other)?;
    for lsn in lsns.into_iter().rev() {
        match member.entry_before(lsn).map_err(io::Error::other)? {
            Some(end) if end.id.index < first.max(1) => return Ok(None),
            Some(end) if end.id.index <= applied => return Ok(Some((lsn, end))),
            Some(_) => {}
            None => return Ok(None),
        }
    }
    Ok(None)
}

/// Returns what a snapshot's receiver must know of it; `None` if it names no members.
fn to_beginning(meta: &SnapshotMeta, last: Lsn) -> Option<Beginning> {
    let members = &meta.last_membership;
    let named = from_log_id(Some((*members.log_id())?));
    let end = EntryEnd { id: from_log_id(meta.last_log_id), last };
    Some(Beginning { end, members: (named, from_membership(members.membership())) })
}

/// Returns the library's description of a snapshot that has arrived.
pub(super) fn to_snapshot<C: Cfg>(
    beginning: &Beginning,
) -> Option<Snapshot<super::types::TermId, u64, crate::member::Place, SnapshotHandle>> {
    let (named, members) = beginning.members.clone();
    let last_membership = StoredMembership::new(to_log_id(named), to_membership(members)?);
    let meta = SnapshotMeta { last_log_id: to_log_id(beginning.end.id), last_membership };
    Some(Snapshot { meta, snapshot: SnapshotHandle { lsn: None, last: beginning.end.last } })
}

/// Lets the log begin behind a snapshot that has arrived. `install` runs it, when the server is ready.
pub(super) async fn install<C: Cfg>(
    driver: LogDriver,
    arrivals: Arrivals,
    (meta, last): (&SnapshotMeta, Lsn),
    run: impl FnOnce(&mut dyn FnMut()) + Send + 'static,
) -> io::Result<()> {
    let beginning =
        to_beginning(meta, last).ok_or_else(|| io::Error::other("a snapshot names no members"))?;
    // The server may wait for threads, and the files for the disk.
    let installed = C::run_blocking(move || {
        let mut installed = None;
        run(&mut || {
            let (named, ended) = (arrivals.clone(), arrivals.clone());
            let give_names = move || named.lock().give_names().map(drop);
            let end = move || ended.lock().end_installation();
            installed = Some(driver.install(beginning.clone(), give_names, end));
        });
        installed.unwrap_or_else(|| Err(io::Error::other("the server has not installed the snapshot")))
    });
    installed.await.unwrap_or_else(|| Err(io::Error::other("the runtime of this member ends")))
}

/// The snapshots that this member sends, as their leader. Clones share their state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transfers(Arc<Mutex<TransferState>>);

#[derive(Debug, Default)]
struct TransferState {
    /// The entries that receivers need next, by member: the log keeps them meanwhile.
    entries: BTreeMap<u64, u64>,
    /// Why the last attempt failed, and in which term, by member.
    failures: BTreeMap<u64, (u64, String)>,
}

/// A snapshot on its way.
struct Transfer<'a> {
    transfers: &'a Transfers,
    to: u64,
}

impl Transfers {
    fn state(&self) -> MutexGuard<'_, TransferState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, to: u64, last: EntryId) -> Transfer<'_> {
        self.state().entries.insert(to, last.index);
        Transfer { transfers: self, to }
    }

    /// Returns the last entry that none of the receivers needs.
    pub(crate) fn unneeded(&self) -> u64 {
        self.state().entries.values().min().copied().unwrap_or(u64::MAX)
    }

    /// Notes how an attempt of the leader of `term` has ended: why it failed, or `None`.
    pub(super) fn note(&self, to: NodeId, term: u64, failure: Option<String>) {
        let mut state = self.state();
        match failure {
            Some(reason) => drop(state.failures.insert(to.0, (term, reason))),
            None => drop(state.failures.remove(&to.0)),
        }
    }

    /// Returns the members to which the leader of `term` could not send a snapshot the last time, and why.
    pub(super) fn failures(&self, term: Term) -> Vec<(NodeId, String)> {
        let state = self.state();
        let of_term = state.failures.iter().filter(|(_, (failed, _))| *failed == term.0);
        of_term.map(|(to, (_, reason))| (NodeId(*to), reason.clone())).collect()
    }
}

impl Drop for Transfer<'_> {
    fn drop(&mut self) {
        self.transfers.state().entries.remove(&self.to);
    }
}

/// Why a snapshot was not sent.
#[derive(Debug)]
pub(super) struct NotSent {
    pub(super) reason: String,
    /// How long to wait before it is tried again: all files are read for that.
    pub(super) pause: Duration,
    /// It passes, or something else says it: the member is away, or there is no snapshot yet.
    pub(super) is_passing: bool,
}

impl NotSent {
    fn soon(reason: impl ToString) -> Self {
        Self { reason: reason.to_string(), pause: PAUSE, is_passing: false }
    }

    fn passing(reason: impl ToString) -> Self {
        Self { is_passing: true, ..Self::soon(reason) }
    }
}

impl From<SendError> for NotSent {
    fn from(error: SendError) -> Self {
        let is_refused = matches!(error, SendError::Full(_) | SendError::Refused(_) | SendError::Limits(_));
        let is_passing = matches!(error, SendError::Unreachable { .. });
        Self { pause: if is_refused { REFUSED_PAUSE } else { PAUSE }, reason: error.to_string(), is_passing }
    }
}

/// Sends a snapshot to member `to`, which installs it. Returns the newest ballot that the member knows.
pub(super) async fn send<C: Cfg, T: Transport>(
    (driver, transfers, settings): (&LogDriver, &Transfers, SenderSettings),
    (transport, to): (&T, NodeId),
    ballot: Ballot,
    (meta, handle): (SnapshotMeta, SnapshotHandle),
) -> Result<Ballot, NotSent> {
    let lsn = handle.lsn.ok_or_else(|| NotSent::passing("there is no snapshot to send"))?;
    let beginning = to_beginning(&meta, handle.last);
    let beginning = beginning.ok_or_else(|| NotSent::soon("the snapshot names no members"))?;
    let last = beginning.end.id;
    let lost = |_| NotSent::passing("the connection was lost");
    // No file is read for a member that is away.
    transport.send(to, Lane::Snapshot, probe()).await.map_err(lost)?;
    let _transfer = transfers.begin(to.0, last);
    let storage = Arc::clone(driver.storage());
    let opened = C::run_blocking(move || {
        let snapshots = Snapshots::new(Arc::clone(&storage));
        // A receiver has nothing else: it must not get what this disk has damaged.
        let verified = snapshots.open(lsn).and_then(|snapshot| {
            snapshot.verify()?;
            snapshot.verify_blocks(&*storage)
        });
        verified.map_err(|error| error.to_string())?;
        let names = snapshots.files(lsn).map_err(|error| error.to_string())?;
        let names = names.iter().map(|name| FileName::new(name)).collect::<Result<Vec<_>, _>>();
        let names = names.map_err(|error| error.to_string())?;
        OutgoingFiles::open(&storage, &names, beginning.encode()).map_err(|error| error.to_string())
    });
    let opened = opened.await.ok_or_else(|| NotSent::passing("the runtime of this member ends"))?;
    let files = opened.map_err(NotSent::soon)?;
    tracing::info!(%to, %lsn, bytes = files.total_bytes(), "sends a snapshot");
    SnapshotSender::new(settings).send_on::<OnRuntime<C>, T>(files, transport, to).await?;
    let answer = transport.send(to, Lane::Snapshot, Request::Install { ballot, last }.encode()).await;
    message::decode_ballot(&answer.map_err(lost)?)
        .ok_or_else(|| NotSent::soon("the member has not received the snapshot"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_receivers_of_snapshots_need_next_is_known_until_they_have_them() {
        let transfers = Transfers::default();
        assert_eq!(transfers.unneeded(), u64::MAX);
        let id = |index| EntryId { index, term: 1 };
        let first = transfers.begin(2, id(70));
        let second = transfers.begin(3, id(90));
        assert_eq!(transfers.unneeded(), 70);
        drop(first);
        assert_eq!(transfers.unneeded(), 90);
        drop(second);
        assert_eq!(transfers.unneeded(), u64::MAX);
    }

    #[test]
    fn a_snapshot_that_is_not_sent_is_known_until_it_is_and_only_in_that_term() {
        let transfers = Transfers::default();
        transfers.note(NodeId(2), 5, Some("no space".to_owned()));
        transfers.note(NodeId(3), 4, Some("of an earlier term".to_owned()));
        assert_eq!(transfers.failures(Term(5)), [(NodeId(2), "no space".to_owned())]);
        transfers.note(NodeId(2), 5, Some("still no space".to_owned()));
        assert_eq!(transfers.failures(Term(5)), [(NodeId(2), "still no space".to_owned())]);
        transfers.note(NodeId(2), 5, None);
        assert_eq!(transfers.failures(Term(5)), []);
    }
}
