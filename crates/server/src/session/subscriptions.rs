//! A client's subscriptions.

use super::change_stream::ChangeStream;
use crate::events::publication::Kind;
use crate::net::outbox::Outbox;
use crate::subscription::subscriber::ReadSubscriptions;
use std::collections::BTreeSet;
use std::time::Instant;

/// A client's subscriptions.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    channels: BTreeSet<Box<[u8]>>,
    patterns: BTreeSet<Box<[u8]>>,
    shards: BTreeSet<Box<[u8]>>,
    /// Watched reads.
    pub(crate) reads: ReadSubscriptions,
    /// The change stream, if the client follows the log.
    pub(crate) following: Option<ChangeStream>,
}

impl Subscriptions {
    /// Whether there are any subscriptions.
    pub(crate) fn any(&self) -> bool {
        self.listens() || !self.reads.is_empty() || self.following.is_some()
    }

    /// Whether there are any to channels or patterns.
    pub(crate) fn listens(&self) -> bool {
        !(self.channels.is_empty() && self.patterns.is_empty() && self.shards.is_empty())
    }

    /// Whether there may be emissions or changes that had to wait, and the outbox has room for
    /// them.
    pub(crate) fn may_catch_up(&self, outbox: &Outbox) -> bool {
        self.reads.may_catch_up(outbox)
            || self.following.as_ref().is_some_and(|following| following.may_catch_up(outbox))
    }

    /// Lower bound of the earliest deadline.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        let progress = self.following.as_ref().and_then(ChangeStream::next_time);
        [self.reads.next_time(), progress].into_iter().flatten().min()
    }

    pub(crate) fn of(&self, kind: Kind) -> &BTreeSet<Box<[u8]>> {
        match kind {
            Kind::Channel => &self.channels,
            Kind::Pattern => &self.patterns,
            Kind::Shard => &self.shards,
        }
    }

    pub(crate) fn of_mut(&mut self, kind: Kind) -> &mut BTreeSet<Box<[u8]>> {
        match kind {
            Kind::Channel => &mut self.channels,
            Kind::Pattern => &mut self.patterns,
            Kind::Shard => &mut self.shards,
        }
    }

    /// Number that a confirmation of that kind contains.
    pub(crate) fn count(&self, kind: Kind) -> usize {
        match kind {
            Kind::Channel | Kind::Pattern => self.channels.len() + self.patterns.len(),
            Kind::Shard => self.shards.len(),
        }
    }
}
