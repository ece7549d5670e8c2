//! The notes of a subscriber: which read it watches, and everything that it received about it.

use super::read::Read;

/// Name of a subscription: its query, and the number after which its own numbers begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) query: u64,
    pub(crate) base: u64,
}

impl Name {
    pub(crate) fn parse(text: &[u8]) -> Self {
        let parsed = std::str::from_utf8(text).ok().and_then(|text| {
            let (query, base) = text.split_once('-')?;
            Some(Self { query: query.parse().ok()?, base: base.parse().ok()? })
        });
        parsed.unwrap_or_else(|| panic!("the name of a subscription is expected: {}", text.escape_ascii()))
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.query, self.base)
    }
}

/// A subscription, from its first answer to its end, over any number of connections. Each later
/// stretch continues at or before the end of the one before.
#[derive(Debug, Clone)]
pub(crate) struct Subscription {
    pub(crate) read: Read,
    pub(crate) stretches: Vec<Stretch>,
    /// Last answer of the server, if it refused to continue.
    pub(crate) refusal: Option<Refusal>,
}

/// What was received on one connection without a break.
#[derive(Debug, Clone)]
pub(crate) struct Stretch {
    pub(crate) name: Name,
    pub(crate) begin: Begin,
    /// Whether only the latest emissions were requested.
    pub(crate) is_squashed: bool,
    pub(crate) received: Vec<Received>,
    pub(crate) end: End,
}

/// How a stretch begins. `seq` is the number of the last emission that the subscriber has at that
/// point, if the server states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Begin {
    /// With the answer of the state at `lsn`; or without it, because only changes were requested.
    Answer { lsn: u64, seq: Option<u64>, value: Option<Vec<u8>> },
    /// After an LSN.
    Resumed { behind: u64, seq: Option<u64> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Received {
    /// `old` is the replaced value, if the subscriber has requested it.
    Emission { lsn: u64, seq: u64, value: Vec<u8>, old: Option<Vec<u8>> },
    /// There were no other emissions up to here.
    Progress { lsn: u64 },
    /// All missed emissions have been sent.
    CaughtUp { lsn: u64 },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// The connection was closed or lost, or the subscription ended, even with emissions on their
    /// way.
    Broken,
    /// The subscriber was too slow: the server reported its position, and the LSN up to which
    /// emissions are gone.
    Stale { at: u64, floor: Floor },
    /// The server said that nothing is missing, when the log reached at least to here.
    Complete { head: u64 },
}

/// A refused attempt to resume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) behind: u64,
    pub(crate) word: String,
    pub(crate) lsn: u64,
    /// Highest possible floor at the time of the report.
    pub(crate) highest: u64,
}

/// The LSN up to which emissions are gone, as reported to a subscriber; and the highest possible
/// one at that time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Floor {
    pub(crate) received: u64,
    pub(crate) highest: u64,
}

impl Stretch {
    /// Returns a stretch of which only the beginning is known.
    pub(crate) fn new(name: Name, begin: Begin) -> Self {
        Self { name, begin, is_squashed: false, received: Vec::new(), end: End::Broken }
    }

    /// Returns the LSN up to which its subscriber knows everything.
    pub(crate) fn reached(&self) -> u64 {
        self.received.iter().map(Received::lsn).fold(self.began_at(), u64::max)
    }

    /// Returns the LSN up to which its subscriber knew everything at the beginning.
    pub(crate) fn began_at(&self) -> u64 {
        match self.begin {
            Begin::Answer { lsn, .. } | Begin::Resumed { behind: lsn, .. } => lsn,
        }
    }
}

impl Received {
    pub(crate) fn lsn(&self) -> u64 {
        match self {
            Self::Emission { lsn, .. } | Self::Progress { lsn } | Self::CaughtUp { lsn } => *lsn,
        }
    }
}

impl Subscription {
    /// Returns the highest number received.
    pub(crate) fn highest(&self) -> u64 {
        let received =
            self.stretches.iter().flat_map(|stretch| &stretch.received).filter_map(
                |received| match received {
                    Received::Emission { seq, .. } => Some(*seq),
                    Received::Progress { .. } | Received::CaughtUp { .. } => None,
                },
            );
        received.max().unwrap_or(0)
    }

    /// Returns the LSN up to which its subscriber has processed everything.
    pub(crate) fn reached(&self) -> u64 {
        self.stretches.iter().map(Stretch::reached).max().unwrap_or(0)
    }
}
