//! The library's network over a transport of ordered frames, and the answers to peers.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use openraft::OptionalSend;
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{Backoff, RPCOption, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, StreamAppendError, StreamAppendResult,
    TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::storage::Snapshot;
use openraft::type_config::TypeConfigExt;
use openraft::type_config::alias::InstantOf;

use super::snapshots::{self, SnapshotHandle, Transfers};
use super::types::{Cfg, LogEntry, TermId, Vote, from_log_id, from_vote, to_log_id, to_vote};
use crate::acks::Acks;
use crate::driver::LogDriver;
use crate::ids::NodeId;
use crate::member::Place;
use crate::net::{Lane, Transport};
use crate::reign::Reign;
use crate::snapshot_files::SenderSettings;
use crate::wire::message::{AppendAnswer, Request, VoteAnswer, VoteQuestion};

/// Limit on the requests with entries that wait for their answers, for each member.
const IN_FLIGHT_MAX: usize = 64;
/// Pauses between attempts to reach a member. Those of the library would be 200 ms.
const BACKOFF_MS: [u64; 4] = [5, 10, 20, 40];
const BACKOFF_MAX: Duration = Duration::from_millis(50);

/// Makes clients. The library asks for a new one at each vote, so all share the connections of the
/// transport.
pub(crate) struct Clients<C: Cfg, T> {
    pub(crate) transport: T,
    pub(crate) clock: AckClock<C>,
    pub(crate) driver: LogDriver,
    pub(crate) transfers: Transfers,
    pub(crate) sender: SenderSettings,
    pub(crate) reign: Arc<Reign>,
}

/// Notes acknowledgements, by this member's clock.
#[derive(Clone)]
pub(crate) struct AckClock<C: Cfg> {
    /// The zero of the clock.
    pub(crate) began: InstantOf<C>,
    pub(crate) acks: Arc<Acks>,
}

impl<C: Cfg> AckClock<C> {
    /// Notes the answer of `node` to a request of `term` that was sent at `sent`. A member that
    /// knows a newer ballot promises nothing.
    fn note(&self, node: NodeId, term: u64, sent: InstantOf<C>, answer: AppendAnswer) {
        if !matches!(answer, AppendAnswer::Deposed(_)) {
            self.acks.note(node.0, term, sent - self.began);
        }
    }
}

/// Sends to one member on one lane.
pub(crate) struct Client<C: Cfg, T> {
    transport: T,
    clock: AckClock<C>,
    driver: LogDriver,
    transfers: Transfers,
    sender: SenderSettings,
    reign: Arc<Reign>,
    to: NodeId,
    lane: Lane,
}

impl<C: Cfg, T: Transport> Clients<C, T> {
    fn client(&self, to: u64, lane: Lane) -> Client<C, T> {
        Client {
            transport: self.transport.clone(),
            clock: self.clock.clone(),
            driver: self.driver.clone(),
            transfers: self.transfers.clone(),
            sender: self.sender,
            reign: Arc::clone(&self.reign),
            to: NodeId(to),
            lane,
        }
    }
}

impl<C: Cfg, T: Transport> RaftNetworkFactory<C> for Clients<C, T> {
    type Network = Client<C, T>;

    async fn new_client(&mut self, to: u64, _: &Place) -> Client<C, T> {
        self.client(to, Lane::Log)
    }

    async fn new_heartbeat_client(&mut self, to: u64, _: &Place) -> Client<C, T> {
        self.client(to, Lane::Heartbeat)
    }

    async fn new_snapshot_client(&mut self, to: u64, _: &Place) -> Client<C, T> {
        self.client(to, Lane::Snapshot)
    }
}

fn unreachable<C: Cfg>(what: &str) -> Unreachable<C> {
    Unreachable::from_string(what)
}

impl<C: Cfg, T: Transport> Client<C, T> {
    async fn ask<A>(
        &self,
        request: &Request,
        read: impl FnOnce(&[u8]) -> Option<A>,
    ) -> Result<A, RPCError<C>> {
        let answer = self.transport.send(self.to, Lane::Control, request.encode()).await;
        let answer = answer.map_err(|_| unreachable("the connection was lost"))?;
        Ok(read(&answer).ok_or_else(|| unreachable("the answer is no answer"))?)
    }
}

impl<C: Cfg, T: Transport> RaftNetworkV2<C> for Client<C, T> {
    type SnapshotData = SnapshotHandle;

    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<C>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<C>, RPCError<C>> {
        let (term, sent) = (from_vote(&request.vote).term, C::now());
        let answer = self.transport.send(self.to, self.lane, append_request(request).encode()).await;
        let answer = answer.map_err(|_| unreachable("the connection was lost"))?;
        let answer = AppendAnswer::decode(&answer).ok_or_else(|| unreachable("the answer is no answer"))?;
        self.clock.note(self.to, term, sent, answer);
        Ok(match answer {
            AppendAnswer::Matching(_) => AppendEntriesResponse::Success,
            AppendAnswer::Conflict(_) => AppendEntriesResponse::Conflict,
            AppendAnswer::Deposed(ballot) => AppendEntriesResponse::HigherVote(to_vote(ballot)),
        })
    }

    fn stream_append<'s, S>(
        &'s mut self,
        requests: S,
        _: RPCOption,
    ) -> BoxFuture<'s, Result<BoxStream<'s, Result<StreamAppendResult<C>, RPCError<C>>>, RPCError<C>>>
    where
        S: Stream<Item = AppendEntriesRequest<C>> + OptionalSend + Unpin + 'static,
    {
        let (transport, clock, to, lane) = (self.transport.clone(), self.clock.clone(), self.to, self.lane);
        let answers = requests
            .map(move |request| {
                let (clock, term, sent) = (clock.clone(), from_vote(&request.vote).term, C::now());
                let answer = transport.send(to, lane, append_request(request).encode());
                async move {
                    let answer = answer.await.map_err(|_| unreachable("the connection was lost"))?;
                    let answer = AppendAnswer::decode(&answer);
                    let answer = answer.ok_or_else(|| unreachable("the answer is no answer"))?;
                    clock.note(to, term, sent, answer);
                    Ok(append_result(answer))
                }
            })
            .buffered(IN_FLIGHT_MAX);
        Box::pin(async move { Ok(Box::pin(answers) as BoxStream<'s, _>) })
    }

    async fn vote(&mut self, question: VoteRequest<C>, _: RPCOption) -> Result<VoteResponse<C>, RPCError<C>> {
        self.ask(&Request::Vote(vote_question(&question)), vote_response).await
    }

    async fn pre_vote(
        &mut self,
        question: VoteRequest<C>,
        _: RPCOption,
    ) -> Result<VoteResponse<C>, RPCError<C>> {
        self.ask(&Request::PreVote(vote_question(&question)), vote_response).await
    }

    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<C>,
        _: RPCOption,
    ) -> Result<TransferLeaderResponse<C>, RPCError<C>> {
        let request = Request::Transfer {
            from: from_vote(request.from_leader()),
            to: *request.to_node_id(),
            last: from_log_id(request.last_log_id().copied()),
        };
        self.ask(&request, |_| Some(())).await?;
        Ok(Ok(()))
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot<TermId, u64, Place, SnapshotHandle>,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _: RPCOption,
    ) -> Result<SnapshotResponse<C>, StreamingError<C>> {
        let to_member = (&self.transport, self.to);
        let files = (snapshot.meta, snapshot.snapshot);
        let sent = async {
            let from = (&self.driver, &self.transfers, self.sender);
            let sent = snapshots::send::<C, T>(from, to_member, from_vote(&vote), files).await;
            match &sent {
                Ok(_) => self.transfers.note(self.to, from_vote(&vote).term, None),
                Err(error) => {
                    if !error.is_passing {
                        self.transfers.note(self.to, from_vote(&vote).term, Some(error.reason.clone()));
                        self.reign.note_unsent_snapshot(self.to, &error.reason);
                    }
                    C::sleep(error.pause).await;
                }
            }
            sent
        };
        tokio::select! {
            closed = cancel => Err(StreamingError::Closed(closed)),
            sent = sent => match sent {
                Ok(newest) => Ok(SnapshotResponse::new(to_vote(newest))),
                Err(error) => Err(StreamingError::Unreachable(unreachable(&error.reason))),
            },
        }
    }

    fn backoff(&self) -> Option<Backoff> {
        let pauses = BACKOFF_MS.into_iter().map(Duration::from_millis);
        Some(Backoff::new(pauses.chain(std::iter::repeat(BACKOFF_MAX))))
    }
}

fn append_request<C: Cfg>(request: AppendEntriesRequest<C>) -> Request {
    let entry = |entry: LogEntry| entry.into_log().expect("entries of the log have records");
    Request::Append {
        ballot: from_vote(&request.vote),
        previous: from_log_id(request.prev_log_id),
        committed: from_log_id(request.leader_commit),
        entries: request.entries.into_iter().map(entry).collect(),
    }
}

fn append_result<C: Cfg>(answer: AppendAnswer) -> StreamAppendResult<C> {
    match answer {
        AppendAnswer::Matching(id) => Ok(to_log_id(id)),
        // Before the first entry nothing differs: a peer that says so is wrong, and the library
        // asks again.
        AppendAnswer::Conflict(id) => Err(StreamAppendError::Conflict(
            to_log_id(id).unwrap_or_else(|| openraft::LogId::new_term_index(0, 0)),
        )),
        AppendAnswer::Deposed(ballot) => Err(StreamAppendError::HigherVote(to_vote(ballot))),
    }
}

fn vote_question<C: Cfg>(request: &VoteRequest<C>) -> VoteQuestion {
    VoteQuestion {
        ballot: from_vote(&request.vote),
        last: from_log_id(request.last_log_id),
        is_transfer: request.leadership_transfer,
    }
}

pub(super) fn vote_request<C: Cfg>(question: VoteQuestion) -> VoteRequest<C> {
    let mut request = VoteRequest::new(to_vote(question.ballot), to_log_id(question.last));
    request.leadership_transfer = question.is_transfer;
    request
}

fn vote_response<C: Cfg>(bytes: &[u8]) -> Option<VoteResponse<C>> {
    let answer = VoteAnswer::decode(bytes)?;
    Some(VoteResponse::new(to_vote(answer.ballot), to_log_id(answer.last), answer.is_granted))
}

pub(super) fn vote_answer<C: Cfg>(response: &VoteResponse<C>) -> VoteAnswer {
    VoteAnswer {
        ballot: from_vote(&response.vote),
        last: from_log_id(response.last_log_id),
        is_granted: response.vote_granted,
    }
}
