//! A subscription that is to go on behind an LSN, and the search for its place.

use crate::backlogs::Wanted;
use crate::cursor::Search;
use crate::delivery::Delivery;
use tidemark_engine::SharedBytes;
use tidemark_engine::query::SharedQuery;
use tidemark_log::Lsn;

/// A subscription that is to go on.
pub(crate) struct Returning {
    pub(crate) query: SharedQuery,
    /// What its subscriber has seen.
    pub(crate) lsn: Lsn,
    pub(crate) delivery: Delivery,
    pub(crate) asked: Asked,
}

/// Who asks for it, and is answered.
pub(crate) enum Asked {
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
pub(crate) struct Sought {
    pub(crate) returning: Returning,
    pub(crate) search: Search,
}

impl Sought {
    /// What is subscribed to.
    pub(crate) fn query(&self) -> &SharedQuery {
        &self.returning.query
    }
}

impl Returning {
    /// Where it goes on.
    pub(crate) fn wanted(&self) -> Wanted {
        match self.asked {
            Asked::Dice(_, number) => Wanted::After(number, self.lsn),
            _ => Wanted::Behind(self.lsn),
        }
    }
}
