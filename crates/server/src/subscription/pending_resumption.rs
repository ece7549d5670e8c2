//! A request to resume a subscription after an LSN, and the search for its place.

use crate::subscription::cursor::Search;
use crate::subscription::delivery::Delivery;
use crate::subscription::replay_queue::ReplayStart;
use tidemark_engine::SharedBytes;
use tidemark_engine::watch::SharedQuery;
use tidemark_log::Lsn;

/// A subscription to resume.
pub(crate) struct Resumption {
    pub(crate) query: SharedQuery,
    /// LSN that its subscriber has seen.
    pub(crate) lsn: Lsn,
    pub(crate) delivery: Delivery,
    pub(crate) asked: ResumeRequest,
}

/// Origin of the request, which determines the answer.
pub(crate) enum ResumeRequest {
    /// `X.WATCH … | RESUME lsn`: the base of the subscription's sequence numbers, if the client
    /// already has the subscription; and the end of the log at the request.
    Watch(Option<u64>, Lsn),
    /// `X.WATCH … | CHANNEL name RESUME lsn`: the channel.
    Channel(Box<[u8]>),
    /// `EMITRECONNECT` with a generated name: the base of its sequence numbers.
    Reconnect(u64),
    /// `X.WATCH … | AS name`: the name, and the first answer if it is to be sent again.
    NamedWatch(Box<[u8]>, Option<SharedBytes>),
    /// `EMITRECONNECT` with a chosen name.
    NamedReconnect(Box<[u8]>),
    /// `EMITRECONNECT` of DiceDB's protocol: the base of the subscription's sequence numbers, and
    /// the query's number of the last emission that the client has.
    Dice(u64, u64),
}

/// A client's wait for the place where its subscription resumes.
pub(crate) struct PendingResumption {
    pub(crate) resumption: Resumption,
    pub(crate) search: Search,
}

impl PendingResumption {
    /// The query subscribed to.
    pub(crate) fn query(&self) -> &SharedQuery {
        &self.resumption.query
    }
}

impl Resumption {
    /// Where it resumes.
    pub(crate) fn wanted(&self) -> ReplayStart {
        match self.asked {
            ResumeRequest::Dice(_, number) => ReplayStart::After(number, self.lsn),
            _ => ReplayStart::Behind(self.lsn),
        }
    }
}
