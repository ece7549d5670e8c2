//! What changes of a watched read: its latest answer, its emissions, and who is told of them.

use crate::watch::emission::Emissions;
use crate::watch::filter::Filtering;
use crate::watch::index::key_list::Listing;
use crate::watch::listeners::Listeners;
use crate::wire::shared_bytes::SharedBytes;

/// What changes: under the locks of all shards that the query reads, emissions are added; listeners come and go.
pub(super) struct State {
    /// The read's latest answer.
    pub(super) answer: SharedBytes,
    pub(super) emissions: Emissions,
    /// Those who are told of them. Since when there is none means nothing while there are names.
    pub(super) listeners: Listeners,
    /// What most queries have nothing of.
    pub(super) more: Option<Box<More>>,
}

/// What a query needs beside, if its read or its subscribers ask for it.
#[derive(Default)]
pub(super) struct More {
    /// What answers go through, if anything, and what came of them last.
    pub(super) filtered: Option<Box<Filtered>>,
    /// The keys that are answered, if that is what the read does.
    pub(super) listing: Option<Box<Listing>>,
    /// How many named subscriptions there are to it.
    pub(super) names: usize,
    /// What the registry has been told that this takes.
    pub(super) counted: usize,
}

#[derive(Clone)]
pub(super) struct Filtered {
    pub(super) filtering: Filtering,
    pub(super) shown: SharedBytes,
}

impl State {
    /// What subscribers see at first: that of the last emission, or what the query began with.
    pub(super) fn shown(&self) -> &SharedBytes {
        let filtered = self.more.as_ref().and_then(|more| more.filtered.as_ref());
        filtered.map_or(&self.answer, |filtered| &filtered.shown)
    }

    pub(super) fn listing(&mut self) -> Option<&mut Listing> {
        self.more.as_mut()?.listing.as_deref_mut()
    }

    /// How many named subscriptions there are.
    pub(super) fn names(&self) -> usize {
        self.more.as_ref().map_or(0, |more| more.names)
    }
}

impl More {
    /// What it takes.
    pub(super) fn bytes(&self) -> usize {
        let filtered = self
            .filtered
            .as_ref()
            .map_or(0, |it| size_of::<Filtered>() + it.shown.heap_bytes() + it.filtering.bytes());
        let listing = self.listing.as_ref().map_or(0, |listing| size_of::<Listing>() + listing.bytes());
        size_of::<Self>() + filtered + listing
    }
}
