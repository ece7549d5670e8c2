//! The rows of a watched range of the series with some labels, followed from change to change.
//!
//! ```text
//! points of a series have changed                   ─► its rows, or those of its group, are followed
//! it came, left, or more than points of it changed  ─► it, or its group, is read again
//! ```
//!
//! An *entry* is what is answered under one name: a series, or a group of the series with one value of a
//! label. The rows of each are followed as those of a range of one series; of all else there is a digest.

use super::clock::Clock;
use super::followed_keys::FollowedKeys;
use super::range::{Joining, Kept, Shape, Sources};
use super::several::{Options, reply_parts};
use crate::persist::record::{Cursor, put_bytes, put_varint};
use crate::value::{Labels, TimeSeries, Unit};
use crate::watch::difference::{write_changed_series, write_gone_series, write_whole_series};
use crate::watch::following::{Changes, Following, Outcome, SeriesAt};
use crate::wire::reply::{Protocol, Reply};
use std::collections::{BTreeMap, BTreeSet};
use tidemark_series::Aggregation;
use xxhash_rust::xxh3::xxh3_128;

/// See the module's documentation.
struct FollowedSeveral {
    shape: Shape,
    excludes_empty: bool,
    grouping: Option<Grouping>,
    /// By the key of the series, or the group's value of the label.
    entries: BTreeMap<Box<[u8]>, Entry>,
    /// Approximate bytes of the entries.
    bytes: usize,
}

/// How series are joined to groups.
struct Grouping {
    label: Box<[u8]>,
    reducer: Aggregation,
}

#[derive(Default)]
struct Entry {
    /// The keys of a group. Empty for a series: its key is its name.
    keys: BTreeSet<Box<[u8]>>,
    /// Digest of what is answered besides the name and the rows; `None` if nothing was read yet.
    head: Option<u128>,
    kept: Kept,
}

/// What has become of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Touched {
    /// Only points have changed.
    Points,
    /// It came, or more than points of it has changed.
    Anything,
    /// Its last series has left.
    Gone,
}

/// Approximate overhead of a key in a set, or of an entry in a map, besides its value.
const NODE_BYTES: usize = 32;

/// Returns the options of a read of several series, whose arguments begin with the command's name, and the
/// shape of its rows; `None` if they cannot be followed.
fn parse<'a>(args: &[&'a [u8]], clock: Clock) -> Option<(Options<'a>, Shape)> {
    let newest_first = match args.first()? {
        name if name.eq_ignore_ascii_case(b"ts.mrange") => false,
        name if name.eq_ignore_ascii_case(b"ts.mrevrange") => true,
        _ => return None,
    };
    let (options, ()) = Options::parse(args, clock, |_| Ok(())).ok()?;
    let shape = Shape::of(options.range.clone(), args, newest_first, clock)?;
    Some((options, shape))
}

/// Relative times of several series are in milliseconds.
fn clock(as_of_us: u64) -> Clock {
    Clock::new(as_of_us, Unit::Milliseconds)
}

/// Begins to follow a read of the series that it names, or of those with the keys in `selected`, as of a
/// time; `None` if one is a lens, or its options forbid that. O(points in the range).
pub(crate) fn begin_following(
    series: &SeriesAt<'_>,
    args: &[&[u8]],
    as_of_us: u64,
    selected: &[Box<[u8]>],
    protocol: Protocol,
) -> Option<Box<dyn Following>> {
    if let Some(followed) = FollowedKeys::begin(series, args, as_of_us) {
        return Some(Box::new(followed));
    }
    let (options, shape) = parse(args, clock(as_of_us))?;
    let mut followed = FollowedSeveral::new(&options, shape);
    for key in selected {
        if let Some(name) = followed.name_of(key, series(key)?) {
            followed.join(&name, key);
        }
    }
    let names: Vec<Box<[u8]>> = followed.entries.keys().cloned().collect();
    for name in names {
        followed.read(series, &options, &name, protocol);
    }
    Some(Box::new(followed))
}

/// Decodes what a snapshot keeps of what is followed of a read with these arguments; `None` if it is not
/// valid.
pub(crate) fn decode_followed(args: &[&[u8]], bytes: &mut Cursor<'_>) -> Option<Box<dyn Following>> {
    if parse(args, Clock::at(0, Unit::Milliseconds)).is_none() {
        return Some(Box::new(FollowedKeys::decode(args, bytes)?));
    }
    Some(Box::new(FollowedSeveral::decode(args, bytes)?))
}

impl FollowedSeveral {
    fn new(options: &Options<'_>, shape: Shape) -> Self {
        let grouping = options.grouping.map(|it| Grouping { label: it.label.into(), reducer: it.reducer });
        let excludes_empty = options.excludes_empty;
        Self { shape, excludes_empty, grouping, entries: BTreeMap::new(), bytes: 0 }
    }

    fn decode(args: &[&[u8]], bytes: &mut Cursor<'_>) -> Option<Self> {
        let shape = Shape::decode(args, bytes, |clock| Some(parse(args, clock)?.1))?;
        let (options, _) = parse(args, Clock::at(0, Unit::Milliseconds))?;
        let mut followed = Self::new(&options, shape);
        for _ in 0..bytes.varint()? {
            let name = bytes.bytes()?;
            let keys = if followed.grouping.is_some() { bytes.varint()? } else { 0 };
            if followed.grouping.is_none() {
                followed.join(name, name);
            }
            for _ in 0..keys {
                followed.join(name, bytes.bytes()?);
            }
            let entry = followed.entries.get_mut(name)?;
            entry.head = Some(u128::from(bytes.u64()?) | u128::from(bytes.u64()?) << 64);
            entry.kept = Kept::decode(bytes)?;
        }
        bytes.is_empty().then_some(followed)
    }

    /// Returns the name of the entry that a series is answered in; `None` if it is not answered.
    fn name_of(&self, key: &[u8], series: &TimeSeries) -> Option<Box<[u8]>> {
        match &self.grouping {
            None => Some(key.into()),
            Some(grouping) => series.labels().get(&grouping.label).map(Box::from),
        }
    }

    /// Returns the name of the entry that a key was answered in so far. O(groups) with groups.
    fn known_name_of(&self, key: &[u8]) -> Option<Box<[u8]>> {
        if self.grouping.is_none() {
            return self.entries.contains_key(key).then(|| key.into());
        }
        self.entries.iter().find(|(_, entry)| entry.keys.contains(key)).map(|(name, _)| name.clone())
    }

    /// Returns the shape at another time.
    fn shape_at(&self, args: &[&[u8]], as_of_us: u64) -> Shape {
        let (_, to) = parse(args, clock(as_of_us)).expect("what is followed can be followed at any time");
        self.shape.moved(&to)
    }

    /// Adds a key to an entry, which begins with the first.
    fn join(&mut self, name: &[u8], key: &[u8]) {
        if !self.entries.contains_key(name) {
            self.bytes += size_of::<Entry>() + NODE_BYTES + name.len();
            self.entries.insert(name.into(), Entry::default());
        }
        let entry = self.entries.get_mut(name).expect("it is there");
        if self.grouping.is_some() && entry.keys.insert(key.into()) {
            self.bytes += NODE_BYTES + key.len();
        }
    }

    /// Removes a key from its entry. Returns whether the entry has no other.
    fn part(&mut self, name: &[u8], key: &[u8]) -> bool {
        let entry = self.entries.get_mut(name).expect("a key leaves an entry that is there");
        if entry.keys.remove(key) {
            self.bytes -= NODE_BYTES + key.len();
        }
        entry.keys.is_empty()
    }

    /// Whether an entry is answered.
    fn is_shown(&self, entry: &Entry) -> bool {
        !self.excludes_empty || entry.kept.digest().0 > 0
    }

    /// Returns the name under which an entry is answered, encoded.
    fn shown_name(&self, name: &[u8], protocol: Protocol) -> Vec<u8> {
        let mut reply = Reply::new(protocol);
        match &self.grouping {
            None => reply.bulk(name),
            Some(grouping) => reply.bulk(&[&grouping.label, &b"="[..], name].concat()),
        }
        reply.take()
    }

    /// Returns the keys of an entry.
    fn keys_of<'e>(&'e self, name: &'e [u8], entry: &'e Entry) -> impl Iterator<Item = &'e [u8]> {
        let own = self.grouping.is_none().then_some(name);
        own.into_iter().chain(entry.keys.iter().map(|key| &**key))
    }

    /// Returns the points of an entry, each with what a change has replaced.
    fn sources<'p, 's: 'p>(
        &self,
        series: &SeriesAt<'s>,
        name: &[u8],
        entry: &Entry,
        changes: Option<&'p Changes<'p>>,
    ) -> Sources<'p> {
        let of_key = |key: &[u8]| {
            let series = series(key).expect("a key whose rows are followed has a series");
            (series.points(), changes.and_then(|changes| changes.of(key)))
        };
        Sources {
            series: self.keys_of(name, entry).map(of_key).collect(),
            joining: self.grouping.as_ref().map_or(Joining::None, |it| Joining::Reduced(it.reducer)),
        }
    }

    /// Writes what is answered of an entry besides its name and its rows. Returns the number of parts.
    fn write_head(
        &self,
        series: &SeriesAt<'_>,
        options: &Options<'_>,
        (name, entry): (&[u8], &Entry),
        reply: &mut Reply,
    ) -> usize {
        let of_key = |key| {
            let series = series(key).expect("a key whose rows are followed has a series");
            (key, series.labels())
        };
        let members: Vec<(&[u8], &Labels)> = self.keys_of(name, entry).map(of_key).collect();
        reply_parts(reply, options, name, &members)
    }

    /// Reads all of an entry. Returns whether it has changed.
    fn read(
        &mut self,
        series: &SeriesAt<'_>,
        options: &Options<'_>,
        name: &[u8],
        protocol: Protocol,
    ) -> bool {
        let entry = &self.entries[name];
        let mut head = Reply::new(protocol);
        self.write_head(series, options, (name, entry), &mut head);
        let head = Some(xxh3_128(head.bytes()));
        let kept = Kept::begin(&self.shape, &self.sources(series, name, entry, None));
        let is_changed = (head, kept.digest()) != (entry.head, entry.kept.digest());
        let entry = self.entries.get_mut(name).expect("it is there");
        (entry.head, entry.kept) = (head, kept);
        is_changed
    }

    /// Writes all of an entry.
    fn write_whole(&self, series: &SeriesAt<'_>, options: &Options<'_>, name: &[u8], reply: &mut Reply) {
        let entry = &self.entries[name];
        let mut head = Reply::new(reply.protocol());
        let parts = self.write_head(series, options, (name, entry), &mut head);
        write_whole_series(reply, &self.shown_name(name, reply.protocol()), parts + 1);
        reply.encoded(head.bytes());
        self.shape.write_rows(&self.sources(series, name, entry, None), reply);
    }

    /// Finds the entries that changes concern. `None` if the read is an error now, or reads a lens.
    fn touched(
        &mut self,
        series: &SeriesAt<'_>,
        changes: &Changes<'_>,
    ) -> Option<BTreeMap<Box<[u8]>, Touched>> {
        let mut touched = BTreeMap::new();
        for (key, is_selected) in changes.beyond {
            let before = self.known_name_of(key);
            // The rows of a lens are not followed.
            let present = if *is_selected { Some(series(key)?) } else { None };
            let has_unit = |series: &TimeSeries| series.definition().unit == Unit::Milliseconds;
            if self.shape.moves() && !present.is_none_or(has_unit) {
                return None;
            }
            let after = present.and_then(|series| self.name_of(key, series));
            if let Some(name) = before
                && Some(&name) != after.as_ref()
            {
                let is_over = self.part(&name, key);
                touched.insert(name, if is_over { Touched::Gone } else { Touched::Anything });
            }
            if let Some(name) = after {
                self.join(&name, key);
                touched.insert(name, Touched::Anything);
            }
        }
        for key in changes.keys() {
            // The labels are the same as before, or the key is among those beyond points.
            let name = series(key).and_then(|series| self.name_of(key, series));
            let is_known = |entry: &Entry| self.grouping.is_none() || entry.keys.contains(key);
            if let Some(name) = name
                && self.entries.get(&name).is_some_and(is_known)
            {
                touched.entry(name).or_insert(Touched::Points);
            }
        }
        Some(touched)
    }

    /// Follows what has become of an entry. Writes what has changed, if anything has. Returns whether.
    fn settle(
        &mut self,
        name: &[u8],
        was_shown: bool,
        read: Read,
        (series, args, as_of): (&SeriesAt<'_>, &[&[u8]], Clock),
        reply: &mut Reply,
    ) -> bool {
        let is_shown = self.is_shown(&self.entries[name]);
        let shown_name = self.shown_name(name, reply.protocol());
        match (was_shown, is_shown, read) {
            (_, _, Read::Same) | (false, false, _) => return false,
            (true, true, Read::Rows(rows)) => {
                write_changed_series(reply, &shown_name);
                reply.encoded(&rows);
            }
            (_, true, _) => {
                let (options, _) = parse(args, as_of).expect("what is followed can be followed at any time");
                self.write_whole(series, &options, name, reply);
            }
            (true, false, _) => write_gone_series(reply, &shown_name),
        }
        true
    }
}

/// What was found when an entry was read.
enum Read {
    Same,
    /// These rows have changed, encoded.
    Rows(Vec<u8>),
    /// More than rows has changed.
    Whole,
}

/// Writes how many entries have changed, and those.
fn outcome(count: usize, entries: &Reply) -> Outcome {
    if count == 0 {
        return Outcome::Same;
    }
    let mut reply = Reply::new(entries.protocol());
    reply.array(count);
    reply.encoded(entries.bytes());
    Outcome::Changed(reply.take())
}

impl Following for FollowedSeveral {
    fn follow(
        &mut self,
        series: &SeriesAt<'_>,
        args: &[&[u8]],
        changes: &Changes<'_>,
        protocol: Protocol,
    ) -> Outcome {
        // What is not a time does not depend on it.
        let as_of = Clock::at(0, Unit::Milliseconds);
        let Some(touched) = self.touched(series, changes) else { return Outcome::Lost };
        let (mut reply, mut count) = (Reply::new(protocol), 0);
        for (name, touched) in touched {
            let entry = &self.entries[&name];
            let was_shown = entry.head.is_some() && self.is_shown(entry);
            if touched == Touched::Gone {
                self.entries.remove(&name);
                self.bytes -= size_of::<Entry>() + NODE_BYTES + name.len();
                if was_shown {
                    write_gone_series(&mut reply, &self.shown_name(&name, protocol));
                    count += 1;
                }
                continue;
            }
            let read = if touched == Touched::Points {
                let mut kept = std::mem::take(&mut self.entries.get_mut(&name).expect("it is there").kept);
                let sources = self.sources(series, &name, &self.entries[&name], Some(changes));
                let rows = kept.follow(&self.shape, &sources, protocol);
                drop(sources);
                self.entries.get_mut(&name).expect("it is there").kept = kept;
                rows.map_or(Read::Same, Read::Rows)
            } else {
                let (options, _) = parse(args, as_of).expect("what is followed can be followed at any time");
                if self.read(series, &options, &name, protocol) { Read::Whole } else { Read::Same }
            };
            count += usize::from(self.settle(&name, was_shown, read, (series, args, as_of), &mut reply));
        }
        outcome(count, &reply)
    }

    fn passes(&self, series: &SeriesAt<'_>, args: &[&[u8]], as_of_us: u64) -> bool {
        let to = self.shape_at(args, as_of_us);
        self.entries.iter().any(|(name, entry)| {
            let sources = self.sources(series, name, entry, None);
            sources.series.iter().any(|(points, _)| self.shape.passes(&to, points))
        })
    }

    fn slide(&mut self, series: &SeriesAt<'_>, args: &[&[u8]], as_of_us: u64, protocol: Protocol) -> Outcome {
        let to = self.shape_at(args, as_of_us);
        let from = std::mem::replace(&mut self.shape, to);
        let names: Vec<Box<[u8]>> = self.entries.keys().cloned().collect();
        let (mut reply, mut count) = (Reply::new(protocol), 0);
        for name in names {
            let was_shown = self.is_shown(&self.entries[&name]);
            let mut kept = std::mem::take(&mut self.entries.get_mut(&name).expect("it is there").kept);
            let sources = self.sources(series, &name, &self.entries[&name], None);
            let rows = kept.slide(&from, &self.shape, &sources, protocol);
            drop(sources);
            self.entries.get_mut(&name).expect("it is there").kept = kept;
            let read = rows.map_or(Read::Same, Read::Rows);
            let at = (series, args, clock(as_of_us));
            count += usize::from(self.settle(&name, was_shown, read, at, &mut reply));
        }
        outcome(count, &reply)
    }

    fn digest(&self) -> (u64, u128) {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        (self.entries.len() as u64, xxh3_128(&bytes))
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.shape.heap_bytes() + self.bytes
    }

    /// ```text
    /// what `Shape::encode` writes │ entries varint │ of each: length varint of its name │ name
    ///    │ of a group: keys varint │ of each: length varint │ key
    ///    │ digest of the rest u128 │ what `Kept::encode` writes
    /// ```
    fn encode(&self, into: &mut Vec<u8>) {
        self.shape.encode(into);
        put_varint(into, self.entries.len() as u64);
        for (name, entry) in &self.entries {
            put_bytes(into, name);
            if self.grouping.is_some() {
                put_varint(into, entry.keys.len() as u64);
                entry.keys.iter().for_each(|key| put_bytes(into, key));
            }
            into.extend_from_slice(&entry.head.unwrap_or(0).to_le_bytes());
            entry.kept.encode(into);
        }
    }
}
