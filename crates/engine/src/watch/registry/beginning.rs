//! Creation of queries, and their fixed size.

use crate::keyspace::Keyspace;
use crate::value::LabelFilter;
use crate::watch::budget::Cost;
use crate::watch::emission::Emissions;
use crate::watch::filter::Filtering;
use crate::watch::index::key_list::Listing;
use crate::watch::index::watched_key;
use crate::watch::listeners::Listeners;
use crate::watch::part::Part;
use crate::watch::reach::Reach;
use crate::watch::read::Read;
use crate::watch::state::{Answered, Filtered, More, State};
use crate::watch::watched_read::{Query, Special};
use crate::wire::reply::Reply;
use crate::wire::shared_bytes::SharedBytes;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32};
use tidemark_log::Lsn;

/// Approximate bytes of a query in the registry and in the index of its key's shard: a reference
/// count, and an entry in each of three tables with free space.
const PLACES_BYTES: usize = 48;

impl Query {
    pub(in crate::watch) fn new(
        id: Lsn,
        (read, part): (Read, Part),
        keyspace: &Keyspace,
        answered: Answered,
        now_us: u64,
    ) -> Self {
        let answer = &answered.answer;
        let filtered = Filtering::new(&read.filter(), read.protocol()).map(|mut filtering| {
            let shown = filtering.apply(answer, now_us).unwrap_or_else(|| {
                let mut reply = Reply::new(read.protocol());
                reply.null();
                reply.take()
            });
            Box::new(Filtered { filtering, shown: SharedBytes::from(&shown[..]) })
        });
        Self::restored(id, (read, part), keyspace, (answered, filtered), (0, id), now_us)
    }

    /// Creates a query after `count` emissions, the last at `floor`; without emissions, `floor` is
    /// the query's own record.
    pub(in crate::watch) fn restored(
        id: Lsn,
        (read, part): (Read, Part),
        keyspace: &Keyspace,
        (answered, filtered): (Answered, Option<Box<Filtered>>),
        (count, floor): (u64, Lsn),
        now_us: u64,
    ) -> Self {
        let (reach, listing) = (read.reach(keyspace), Listing::of(&read));
        let is_plain = filtered.is_none() && listing.is_none();
        let more = (!is_plain).then(|| Box::new(More { filtered, listing, ..More::default() }));
        let (emissions, cost) = (Emissions::new(count, floor), Cost::of_bytes(answered.answer.len()));
        let (answer, listeners) = (SharedBytes::default(), Listeners::NoneSince(now_us));
        let mut state = State { answer, emissions, listeners, more };
        state.keep(answered);
        let wide = (!matches!(reach, Reach::One(_))).then_some(reach);
        let selection = read.selection();
        let is_special = wide.is_some() || part != Part::Everything;
        Self {
            id,
            read,
            special: is_special.then(|| Box::new(Special { wide, part, selection })),
            saved: AtomicU32::new(0),
            noted: AtomicU8::new(0),
            is_removed: AtomicBool::new(false),
            is_dormant: AtomicBool::new(false),
            cost,
            state: Mutex::new(state),
        }
    }

    pub(in crate::watch) fn reach(&self, keyspace: &Keyspace) -> Reach {
        self.wide().map_or_else(|| self.read.reach(keyspace), Reach::clone)
    }

    /// Returns the bytes that do not depend on the query's state.
    pub(in crate::watch) fn fixed_bytes(&self) -> usize {
        let selection = self.selection().map_or(0, LabelFilter::bytes);
        let special = if self.special.is_some() { size_of::<Special>() + selection } else { 0 };
        let places = PLACES_BYTES + watched_key::names(self).count() * watched_key::NAME_BYTES;
        size_of::<Self>() + self.read.bytes() + special + places
    }
}
