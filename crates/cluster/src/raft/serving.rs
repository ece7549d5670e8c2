//! Answers what other members ask on the lanes of the consensus.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use openraft::Raft;
use openraft::entry::RaftEntry;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, TransferLeaderRequest};
use openraft::type_config::TypeConfigExt;
use tidemark_log::EntryId;
use tokio::sync::mpsc;

use super::apply::Apply;
use super::network::{vote_answer, vote_request};
use super::node::Node;
use super::snapshots::{Arrivals, to_snapshot};
use super::types::{Cfg, LogEntry, from_log_id, from_vote, to_log_id, to_vote};
use crate::beginning::Beginning;
use crate::driver::LogDriver;
use crate::ids::NodeId;
use crate::net::Lane;
use crate::wire::message::{self, AppendAnswer, INSTALL, Request, VoteAnswer};

/// Requests of a connection that the library has and has not answered.
const APPENDS_MAX: usize = 64;
/// Time behind the end of a silent leader's lease, so that the other members see the end too.
const HINT_MARGIN: Duration = Duration::from_millis(1);
/// Heartbeats between two members that stand for election because a leader's kernel closed its
/// connections: all see that at once, and their votes would split.
const HINT_PAUSE_HEARTBEATS: u32 = 2;

impl<C: Cfg> Node<C> {
    /// Serves one connection of member `from`.
    pub(crate) async fn serve(
        &self,
        from: NodeId,
        lane: Lane,
        requests: mpsc::Receiver<Bytes>,
        answers: mpsc::Sender<Vec<u8>>,
    ) {
        match lane {
            Lane::Log | Lane::Heartbeat => {
                let node = self.clone();
                let heard = move || node.reign.role.note_heard(node.now());
                serve_appends(self.raft.clone(), requests, answers, heard).await;
                if lane == Lane::Heartbeat {
                    let node = self.clone();
                    drop(C::spawn(async move { node.stand_if_silent(from).await }));
                }
            }
            Lane::Control => serve_control(self, requests, answers).await,
            Lane::Snapshot => {
                serve_snapshots(self, requests, answers).await;
            }
            // A server takes its messages before they come here; the connection closes.
            Lane::Message => {}
        }
    }

    /// Stands for election at the end of the lease of `from`, whose connection for heartbeats has
    /// closed, if it is the leader and stays silent: probably its kernel has closed it because the
    /// process died. Saves the random time that members wait otherwise.
    async fn stand_if_silent(&self, from: NodeId) {
        let followed = self.reign.role.followed().filter(|(leader, _)| *leader == from);
        let Some((_, heard)) = followed.filter(|_| !self.standing.is_suspect()) else { return };
        let ends = heard + self.settings.lease() + HINT_MARGIN;
        let pause = self.settings.heartbeat * HINT_PAUSE_HEARTBEATS * self.rank_without(from);
        C::sleep((ends + pause).saturating_sub(self.now())).await;
        // A later message, over a new connection, extended the lease; or there is another leader.
        if self.reign.role.followed() == Some((from, heard)) {
            // It fails when the consensus has ended, and is refused while a lease is valid.
            drop(self.raft.trigger().elect(true).await);
        }
    }

    /// Returns how many voters other than `leader` stand before this member.
    fn rank_without(&self, leader: NodeId) -> u32 {
        let voters = self.members().map(|members| members.list()).unwrap_or_default();
        let is_before = |id: NodeId| id != leader && id < self.me();
        voters.iter().filter(|member| member.is_voter && is_before(member.id)).count() as u32
    }
}

/// Serves a connection with entries or heartbeats. `heard` is called for each request. Ends when the
/// consensus does, or at a frame that is no request. It outlives refusals: a new leader's first request is
/// often refused, and the time of a new connection would be one in which no client gets an answer. Each
/// request says what it follows, so those behind a refused one are judged by themselves.
async fn serve_appends<C: Cfg>(
    raft: Raft<C, Apply>,
    requests: mpsc::Receiver<Bytes>,
    answers: mpsc::Sender<Vec<u8>>,
    heard: impl Fn() + Send + 'static,
) {
    let requests = stream::unfold((requests, heard), |(mut requests, heard)| async move {
        let request = read_append(&requests.recv().await?)?;
        heard();
        Some((request, (requests, heard)))
    });
    // The library gets them in this order: each is handed over at its first poll.
    let answered = requests.map(|request| append(&raft, request)).buffered(APPENDS_MAX);
    let mut answered = std::pin::pin!(answered);
    while let Some(Some(answer)) = answered.next().await {
        if answers.send(answer.encode()).await.is_err() {
            return;
        }
    }
}

/// Has the library take a request. `None` if the consensus has ended.
async fn append<C: Cfg>(raft: &Raft<C, Apply>, request: AppendEntriesRequest<C>) -> Option<AppendAnswer> {
    let previous = request.prev_log_id;
    let last = request.entries.last().map(RaftEntry::log_id).or(previous);
    Some(match raft.append_entries(request).await.ok()? {
        AppendEntriesResponse::Success => AppendAnswer::Matching(from_log_id(last)),
        AppendEntriesResponse::PartialSuccess(id) => AppendAnswer::Matching(from_log_id(id)),
        AppendEntriesResponse::Conflict => AppendAnswer::Conflict(from_log_id(previous)),
        AppendEntriesResponse::HigherVote(vote) => AppendAnswer::Deposed(from_vote(&vote)),
    })
}

fn read_append<C: Cfg>(frame: &[u8]) -> Option<AppendEntriesRequest<C>> {
    let Some(Request::Append { ballot, previous, committed, entries }) = Request::decode(frame) else {
        tracing::warn!(bytes = frame.len(), "a peer sent a frame that is no request with entries");
        return None;
    };
    if !follow_each_other(previous, entries.iter().map(|(id, _)| *id), ballot.term) {
        tracing::warn!(%previous, "a peer sent entries that do not follow each other");
        return None;
    }
    let entries =
        entries.into_iter().map(|(id, entry)| LogEntry::of_log(id, entry)).collect::<Option<_>>()?;
    Some(AppendEntriesRequest {
        vote: to_vote(ballot),
        prev_log_id: to_log_id(previous),
        entries,
        leader_commit: to_log_id(committed),
    })
}

/// Returns whether these entries may stand behind each other in a log: the library takes that for granted.
fn follow_each_other(previous: EntryId, mut entries: impl Iterator<Item = EntryId>, term: u64) -> bool {
    let mut before = previous;
    entries.all(|id| {
        let follows =
            before.index.checked_add(1) == Some(id.index) && (before.term..=term).contains(&id.term);
        before = id;
        follows
    })
}

/// Serves a connection with votes and transfers.
async fn serve_control<C: Cfg>(
    node: &Node<C>,
    mut requests: mpsc::Receiver<Bytes>,
    answers: mpsc::Sender<Vec<u8>>,
) {
    while let Some(frame) = requests.recv().await {
        let Some(answer) = control(node, &frame).await else { return };
        if answers.send(answer).await.is_err() {
            return;
        }
    }
}

/// Answers one frame; `None` if it is no request, or the consensus has ended.
async fn control<C: Cfg>(node: &Node<C>, frame: &[u8]) -> Option<Vec<u8>> {
    let (raft, is_suspect) = (node.raft(), node.standing.is_suspect());
    match Request::decode(frame) {
        Some(Request::Vote(_) | Request::PreVote(_)) if is_suspect => {
            let (ballot, last) = node.driver.ballot_and_last();
            let answer = VoteAnswer { ballot: ballot.unwrap_or_default(), last: last.id, is_granted: false };
            Some(answer.encode())
        }
        // It could not vote for itself. The members elect another leader.
        Some(Request::Transfer { .. }) if is_suspect => Some(Vec::new()),
        Some(Request::Last) => Some(node.last_answer().encode()),
        Some(Request::Vote(question)) => {
            let response = raft.vote(vote_request(question)).await.ok()?;
            Some(vote_answer(&response).encode())
        }
        Some(Request::PreVote(question)) => {
            let response = raft.pre_vote(vote_request(question)).await.ok()?;
            Some(vote_answer(&response).encode())
        }
        Some(Request::Transfer { from, to, last }) => {
            let request = TransferLeaderRequest::new(to_vote(from), to, to_log_id(last));
            raft.handle_transfer_leader(request).await.ok()?.ok()?;
            Some(Vec::new())
        }
        Some(Request::Append { .. } | Request::Install { .. }) | None => {
            tracing::warn!(bytes = frame.len(), "a peer sent a frame that is no request for a vote");
            None
        }
    }
}

/// Serves a connection with files of snapshots, and requests to install them.
async fn serve_snapshots<C: Cfg>(
    node: &Node<C>,
    mut requests: mpsc::Receiver<Bytes>,
    answers: mpsc::Sender<Vec<u8>>,
) {
    let (driver, arrivals) = (&node.driver, &node.arrivals);
    while let Some(frame) = requests.recv().await {
        let answer = if frame.first() == Some(&INSTALL) {
            install_received(&node.raft, (driver, arrivals), &frame).await
        } else {
            let taken = arrivals.take::<C>(driver, frame).await;
            if let Some((_, Some(reason))) = &taken {
                node.reign.note_refused_snapshot(reason);
            }
            taken.map(|(answer, _)| answer)
        };
        let Some(answer) = answer else { return };
        if answers.send(answer).await.is_err() {
            return;
        }
    }
}

/// Answers a request to install what was received: with nothing, if that is not there. `None` if it is no
/// such request, or the consensus has ended.
async fn install_received<C: Cfg>(
    raft: &Raft<C, Apply>,
    (driver, arrivals): (&LogDriver, &Arrivals),
    frame: &[u8],
) -> Option<Vec<u8>> {
    let Some(Request::Install { ballot, last }) = Request::decode(frame).filter(|request| {
        matches!(request, Request::Install { ballot, last } if last.term <= ballot.term && last.index > 0)
    }) else {
        tracing::warn!(bytes = frame.len(), "a peer sent a frame that is no request to install a snapshot");
        return None;
    };
    let received = arrivals.clone();
    let received = C::run_blocking(move || received.lock().received().map(<[u8]>::to_vec)).await?;
    let beginning = received.and_then(|meta| Beginning::decode(&meta)).filter(|found| found.end.id == last);
    let Some(snapshot) = beginning.as_ref().and_then(to_snapshot::<C>) else { return Some(Vec::new()) };
    let response = raft.install_full_snapshot(to_vote(ballot), snapshot).await.ok()?;
    let newest = from_vote(&response.vote);
    if newest == ballot {
        // It is installed, or this member has more.
        arrivals.forget(driver).await.ok()?;
    }
    Some(message::encode_ballot(newest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_a_request_follow_each_other() {
        let id = |(index, term)| EntryId { index, term };
        let follow = |previous, entries: &[(u64, u64)]| {
            follow_each_other(id(previous), entries.iter().copied().map(id), 5)
        };
        assert!(
            follow((3, 2), &[]) && follow((3, 2), &[(4, 2), (5, 4), (6, 5)]) && follow((0, 0), &[(1, 5)])
        );
        for entries in [&[(5, 2)][..], &[(3, 2)], &[(4, 1)], &[(4, 6)], &[(4, 3), (6, 3)], &[(4, 3), (5, 2)]]
        {
            assert!(!follow((3, 2), entries), "{entries:?}");
        }
        assert!(!follow((u64::MAX, 2), &[(0, 2)]));
    }
}
