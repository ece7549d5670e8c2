//! Mutable state of a watched read: its latest answer, emissions and listeners.

use crate::persist::record::Cursor;
use crate::watch::emission::Emissions;
use crate::watch::filter::Filtering;
use crate::watch::following::Following;
use crate::watch::index::key_list::Listing;
use crate::watch::index::key_set::KeySet;
use crate::watch::listeners::Listeners;
use crate::wire::shared_bytes::SharedBytes;

/// Mutable state of a query. Emissions are added under the locks of all shards that the query
/// reads.
pub(super) struct State {
    /// Latest answer of the read, before the filter; empty if its rows are followed.
    pub(super) answer: SharedBytes,
    pub(super) emissions: Emissions,
    /// Listeners to notify of emissions. While there are names, `NoneSince` has no meaning.
    pub(super) listeners: Listeners,
    /// State that most queries do not need.
    pub(super) more: Option<Box<More>>,
}

/// Additional state of queries with a filter, a key listing, followed rows, a time or names.
#[derive(Default)]
pub(super) struct More {
    /// The filter at work and its latest output, if the read has a filter.
    pub(super) filtered: Option<Box<Filtered>>,
    /// The rows of the latest answer, if they are followed.
    pub(super) followed: Option<Box<dyn Following>>,
    /// Time as of which the read is answered, in microseconds since 1970, if it depends on one: see
    /// [`crate::watch::ticking`].
    pub(super) as_of_us: Option<u64>,
    /// The listed keys, if the read lists keys.
    pub(super) listing: Option<Box<Listing>>,
    /// The keys of the series that the read selects by labels, if it does: see
    /// [`crate::watch::selecting`].
    pub(super) selected: Option<Box<KeySet>>,
    /// Number of named subscriptions.
    pub(super) names: usize,
    /// Bytes that the registry has counted for this state.
    pub(super) counted: usize,
}

/// An answer, its rows if they can be followed, and the time as of which it was made.
#[derive(Default)]
pub(super) struct Answered {
    pub(super) answer: SharedBytes,
    pub(super) followed: Option<Box<dyn Following>>,
    pub(super) as_of_us: Option<u64>,
}

/// First byte of what is kept of an answer whose rows are followed. No answer begins with it.
pub(super) const FOLLOWED: u8 = 0;

fn kept_of(followed: &dyn Following) -> SharedBytes {
    let mut bytes = vec![FOLLOWED];
    followed.encode(&mut bytes);
    SharedBytes::from(&bytes[..])
}

impl Answered {
    /// Returns what a snapshot keeps of it.
    pub(super) fn kept(&self) -> SharedBytes {
        self.followed.as_deref().map_or_else(|| self.answer.clone(), kept_of)
    }
}

#[derive(Clone)]
pub(super) struct Filtered {
    pub(super) filtering: Filtering,
    pub(super) shown: SharedBytes,
}

impl Filtered {
    /// Decodes the output and state of a filter.
    pub(super) fn decode(mut filtering: Filtering, bytes: &mut Cursor<'_>) -> Option<Box<Self>> {
        let shown = SharedBytes::from(bytes.bytes()?);
        filtering.decode(bytes)?;
        Some(Box::new(Self { filtering, shown }))
    }
}

impl State {
    /// Returns what a new subscriber sees: the last emission's answer, or the query's first. Empty if
    /// its rows are followed.
    pub(super) fn shown(&self) -> &SharedBytes {
        let filtered = self.more.as_ref().and_then(|more| more.filtered.as_ref());
        filtered.map_or(&self.answer, |filtered| &filtered.shown)
    }

    pub(super) fn listing(&mut self) -> Option<&mut Listing> {
        self.more.as_mut()?.listing.as_deref_mut()
    }

    pub(super) fn selected_mut(&mut self) -> Option<&mut KeySet> {
        self.more.as_mut()?.selected.as_deref_mut()
    }

    /// Returns the keys that the read reads without naming them, if they are known.
    pub(super) fn unnamed_keys(&mut self) -> Option<&mut KeySet> {
        let more = self.more.as_mut()?;
        let listed = more.listing.as_mut().map(|listing| &mut listing.keys);
        listed.or(more.selected.as_deref_mut())
    }

    pub(super) fn followed(&self) -> Option<&dyn Following> {
        self.more.as_ref()?.followed.as_deref()
    }

    pub(super) fn followed_mut(&mut self) -> Option<&mut Box<dyn Following>> {
        self.more.as_mut()?.followed.as_mut()
    }

    /// Keeps the latest answer.
    pub(super) fn keep(&mut self, answered: Answered) {
        let Answered { answer, followed, as_of_us } = answered;
        self.answer = if followed.is_some() { SharedBytes::default() } else { answer };
        if followed.is_some() || as_of_us.is_some() || self.more.is_some() {
            let more = self.more.get_or_insert_default();
            (more.followed, more.as_of_us) = (followed, as_of_us);
        }
    }

    /// Returns the time as of which the read is answered, if it depends on one.
    pub(super) fn as_of_us(&self) -> Option<u64> {
        self.more.as_ref()?.as_of_us
    }

    /// Sets the time as of which the read is answered from now on.
    pub(super) fn set_as_of(&mut self, as_of_us: u64) {
        self.more.get_or_insert_default().as_of_us = Some(as_of_us);
    }

    /// Returns what a snapshot keeps of the latest answer: see [`Answered::kept`].
    pub(super) fn kept(&self) -> SharedBytes {
        self.followed().map_or_else(|| self.answer.clone(), kept_of)
    }

    pub(super) fn names(&self) -> usize {
        self.more.as_ref().map_or(0, |more| more.names)
    }
}

impl More {
    pub(super) fn bytes(&self) -> usize {
        let filtered = self
            .filtered
            .as_ref()
            .map_or(0, |it| size_of::<Filtered>() + it.shown.heap_bytes() + it.filtering.bytes());
        let listing = self.listing.as_ref().map_or(0, |listing| size_of::<Listing>() + listing.keys.bytes());
        let selected = self.selected.as_ref().map_or(0, |keys| size_of::<KeySet>() + keys.bytes());
        let followed = self.followed.as_ref().map_or(0, |followed| followed.bytes());
        size_of::<Self>() + filtered + listing + selected + followed
    }
}
