//! What a subscriber has noted: which read it watches, and every word that it was told about it.

use super::read::Read;

/// The name of a subscription: its query, and the number that its own numbers begin behind.
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

/// A subscription, from the answer that it began with to its end, over however many connections. Each stretch but the first
/// goes on at or before the place where the one before it had got to.
#[derive(Debug, Clone)]
pub(crate) struct Subscription {
    pub(crate) read: Read,
    pub(crate) stretches: Vec<Stretch>,
    /// The server's last word, if it would not go on with it.
    pub(crate) refusal: Option<Refusal>,
}

/// What was told on one connection without a break.
#[derive(Debug, Clone)]
pub(crate) struct Stretch {
    pub(crate) name: Name,
    pub(crate) begin: Begin,
    /// Only the latest emissions were asked for.
    pub(crate) is_squashed: bool,
    pub(crate) told: Vec<Told>,
    pub(crate) end: End,
}

/// How a stretch begins. `seq` is the number of the last emission that the subscriber has by then, if it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Begin {
    /// With the answer, which is that of the state at `lsn`; or without it, because only changes were asked for.
    Answer { lsn: u64, seq: Option<u64>, value: Option<Vec<u8>> },
    /// Behind an LSN.
    Resumed { behind: u64, seq: Option<u64> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    /// `old` is what was replaced, if the subscriber has asked for that.
    Emission { lsn: u64, seq: u64, value: Vec<u8>, old: Option<Vec<u8>> },
    /// Up to here there was nothing else.
    Progress { lsn: u64 },
    /// All that was missed has been sent.
    CaughtUp { lsn: u64 },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// The connection was given up or lost, or the subscription ended, whatever was on its way.
    Broken,
    /// The subscriber was too slow: it was told how far it had got, and up to where emissions are gone.
    Stale { at: u64, floor: Floor },
    /// The server said that there is no more, when the log had got at least to here.
    Complete { head: u64 },
}

/// An attempt to go on that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) behind: u64,
    pub(crate) word: String,
    pub(crate) lsn: u64,
    /// How far the floor can have been when it was told of.
    pub(crate) highest: u64,
}

/// Up to where emissions are gone, as a subscriber was told; and how far that can have been at that time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Floor {
    pub(crate) told: u64,
    pub(crate) highest: u64,
}

impl Stretch {
    /// One of which nothing is known but how it begins.
    pub(crate) fn new(name: Name, begin: Begin) -> Self {
        Self { name, begin, is_squashed: false, told: Vec::new(), end: End::Broken }
    }

    /// Up to which LSN its subscriber knows everything.
    pub(crate) fn reached(&self) -> u64 {
        self.told.iter().map(Told::lsn).fold(self.began_at(), u64::max)
    }

    /// Up to which LSN its subscriber knew everything when it began.
    pub(crate) fn began_at(&self) -> u64 {
        match self.begin {
            Begin::Answer { lsn, .. } | Begin::Resumed { behind: lsn, .. } => lsn,
        }
    }
}

impl Told {
    pub(crate) fn lsn(&self) -> u64 {
        match self {
            Self::Emission { lsn, .. } | Self::Progress { lsn } | Self::CaughtUp { lsn } => *lsn,
        }
    }
}

impl Subscription {
    /// The highest number that was told.
    pub(crate) fn highest(&self) -> u64 {
        let told = self.stretches.iter().flat_map(|stretch| &stretch.told).filter_map(|told| match told {
            Told::Emission { seq, .. } => Some(*seq),
            Told::Progress { .. } | Told::CaughtUp { .. } => None,
        });
        told.max().unwrap_or(0)
    }

    /// Up to which LSN its subscriber has processed everything.
    pub(crate) fn reached(&self) -> u64 {
        self.stretches.iter().map(Stretch::reached).max().unwrap_or(0)
    }
}
