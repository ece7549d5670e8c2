//! A subscription that is to go on behind an LSN, and the search for its place.

use crate::subscription::cursor::Search;
use crate::subscription::delivery::Delivery;
use crate::subscription::replay_queue::ReplayStart;
use tidemark_engine::SharedBytes;
use tidemark_engine::watch::SharedQuery;
use tidemark_log::Lsn;

/// A subscription that is to go on.
pub(crate) struct Resumption {
    pub(crate) query: SharedQuery,
    /// What its subscriber has seen.
    pub(crate) lsn: Lsn,
    pub(crate) delivery: Delivery,
    pub(crate) asked: ResumeRequest,
}

/// Who asks for it, and is answered.
pub(crate) enum ResumeRequest {
    /// `X.WATCH … | RESUME lsn`. The number that the subscription's own begin behind, if the client has it already; and up to where
    /// the log was when the client asked.
    Watch(Option<u64>, Lsn),
    /// `X.WATCH … | CHANNEL name RESUME lsn`, and the channel.
    Channel(Box<[u8]>),
    /// `EMITRECONNECT` with a name that says where the subscription's numbers begin.
    Reconnect(u64),
    /// `X.WATCH … | AS name`, and the first answer, if it is to be given again.
    NamedWatch(Box<[u8]>, Option<SharedBytes>),
    /// `EMITRECONNECT` with such a name.
    NamedReconnect(Box<[u8]>),
    /// `EMITRECONNECT` of DiceDB's protocol: the number that the subscription's own begin behind, and the query's number of the
    /// last emission that the client has.
    Dice(u64, u64),
}

/// A client's wait for the place where its subscription goes on.
pub(crate) struct PendingResumption {
    pub(crate) resumption: Resumption,
    pub(crate) search: Search,
}

impl PendingResumption {
    /// What is subscribed to.
    pub(crate) fn query(&self) -> &SharedQuery {
        &self.resumption.query
    }
}

impl Resumption {
    /// Where it goes on.
    pub(crate) fn wanted(&self) -> ReplayStart {
        match self.asked {
            ResumeRequest::Dice(_, number) => ReplayStart::After(number, self.lsn),
            _ => ReplayStart::Behind(self.lsn),
        }
    }
}
