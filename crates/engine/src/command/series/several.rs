//! Reading several series: by their labels, or by their keys.

use super::clock::{self, Clock};
use super::errors;
use super::filter;
use super::range::{self, Range, Rows, Source, VALUES_MAX};
use super::reading::{last_of, last_seen, reply_labels, reply_last, reply_range, reply_rows};
use crate::command::parse::{canonical_integer, is, shown};
use crate::context::{Context, Keys, Seen};
use crate::error::CommandError;
use crate::value::{LabelFilter, Labelled, Labels, Object, Unit};
use crate::wire::reply::{Protocol, Reply};
use std::collections::{BTreeMap, BTreeSet};
use tidemark_series::{Aggregation, aggregate, naming};

/// Which labels are answered.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Selected<'a> {
    None,
    All,
    Named(Vec<&'a [u8]>),
}

impl<'a> Selected<'a> {
    /// Parses the option at a position, and returns the position behind it; `None` if it is another.
    fn parse_option(
        &mut self,
        args: &[&'a [u8]],
        at: usize,
        ends: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<usize>, CommandError> {
        let (with_all, selected) = (is(args[at], "WITHLABELS"), is(args[at], "SELECTED_LABELS"));
        if !with_all && !selected {
            return Ok(None);
        }
        if *self != Self::None {
            return Err(errors::BOTH_LABELS);
        }
        if with_all {
            *self = Self::All;
            return Ok(Some(at + 1));
        }
        let names: Vec<&[u8]> = args[at + 1..].iter().copied().take_while(|word| !ends(word)).collect();
        if names.is_empty() {
            return Err(errors::NO_SELECTED);
        }
        let end = at + 1 + names.len();
        *self = Self::Named(names);
        Ok(Some(end))
    }

    /// Returns the labels to be answered, with null for those that are selected and absent.
    fn of(&self, labels: &Labels) -> Answered {
        match self {
            Self::None => Vec::new(),
            Self::All => labels.iter().map(|(name, value)| (name.into(), Some(value.into()))).collect(),
            Self::Named(names) => {
                names.iter().map(|name| ((*name).into(), labels.get(name).map(Box::from))).collect()
            }
        }
    }
}

/// Writes the head of an answer about several series.
fn reply_head(reply: &mut Reply, series: usize) {
    match reply.protocol() {
        Protocol::Resp3 => reply.map(series),
        Protocol::Resp2 => reply.array(series),
    }
}

/// Writes the head of the answer about one series, of which `parts` follow.
fn reply_name(reply: &mut Reply, name: &[u8], parts: usize) {
    match reply.protocol() {
        Protocol::Resp3 => {
            reply.bulk(name);
            reply.array(parts);
        }
        Protocol::Resp2 => {
            reply.array(1 + parts);
            reply.bulk(name);
        }
    }
}

pub(super) fn get(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let filter_at = args.iter().position(|word| is(word, "FILTER")).ok_or_else(|| errors::arity(args))?;
    let (mut selected, mut with_open_bucket) = (Selected::None, false);
    let mut at = 1;
    while at < filter_at {
        let ends = |word: &[u8]| {
            ["FILTER", "LATEST", "WITHLABELS", "SELECTED_LABELS"].iter().any(|end| is(word, end))
        };
        at = match selected.parse_option(args, at, ends)? {
            Some(end) => end,
            None if is(args[at], "LATEST") => {
                with_open_bucket = true;
                at + 1
            }
            None => return Err(errors::unknown_option(args[at])),
        };
    }
    let found = filter::find(&filter::parse(&args[filter_at + 1..])?, ctx.keys);
    reply_head(ctx.reply, found.len());
    for (key, labelled) in found {
        reply_name(ctx.reply, key, 2);
        reply_answered(ctx.reply, &selected.of(labelled.labels()));
        let last = naming(key, || match labelled {
            Labelled::Series(series) => Ok(last_of(ctx.keys, key, series, with_open_bucket)),
            Labelled::Lens(_) => last_seen(ctx.keys, key, &see(ctx.keys, key)?, with_open_bucket)
                .map_err(|error| of(key, error)),
        });
        reply_last(ctx.reply, last?);
    }
    Ok(())
}

/// How series are joined to groups.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grouping<'a> {
    pub(super) label: &'a [u8],
    pub(super) reducer: Aggregation,
    reducer_name: &'a [u8],
}

/// The options of a read of a range of several series.
#[derive(Debug)]
pub(super) struct Options<'a> {
    pub(super) range: Range,
    selected: Selected<'a>,
    pub(super) excludes_empty: bool,
    pub(super) grouping: Option<Grouping<'a>>,
}

/// Words that end the names of selected labels.
const RANGE_WORDS: [&str; 12] = [
    "FILTER",
    "COUNT",
    "AGGREGATION",
    "FILTER_BY_TS",
    "FILTER_BY_VALUE",
    "GROUPBY",
    "WITHLABELS",
    "SELECTED_LABELS",
    "LATEST",
    "ALIGN",
    "EMPTY",
    "EXCLUDEEMPTY",
];

impl<'a> Options<'a> {
    /// Parses the options. Returns as well what `filter` makes of the words of the filters; what is wrong
    /// with them comes before what is wrong with the groups.
    pub(super) fn parse<F>(
        args: &[&'a [u8]],
        clock: Clock,
        filter: impl FnOnce(&[&'a [u8]]) -> Result<F, CommandError>,
    ) -> Result<(Self, F), CommandError> {
        let mut range = Range::between(args[1], args[2], clock)?;
        let (mut selected, mut excludes_empty, mut at) = (Selected::None, false, 3);
        while at < args.len() && !is(args[at], "FILTER") {
            let ends = |word: &[u8]| RANGE_WORDS.iter().any(|end| is(word, end));
            at = if let Some(end) = range.parse_option(args, at)? {
                end
            } else if let Some(end) = selected.parse_option(args, at, ends)? {
                end
            } else if is(args[at], "EXCLUDEEMPTY") {
                excludes_empty = true;
                at + 1
            } else if is(args[at], "GROUPBY") {
                return Err(errors::GROUP_PLACE);
            } else {
                return Err(errors::unknown_option(args[at]));
            };
        }
        range.check()?;
        let words = args.get(at + 1..).ok_or(errors::NO_FILTER)?;
        if words.is_empty() {
            return Err(errors::NO_FILTERS);
        }
        let group_at = words.iter().position(|word| is(word, "GROUPBY")).unwrap_or(words.len());
        let filter = filter(&words[..group_at])?;
        let grouping = match &words[group_at..] {
            [] => None,
            [_, label, reduce, reducer] if is(reduce, "REDUCE") => Some(Grouping {
                label,
                reducer: parse_reducer(reducer).ok_or(errors::REDUCER)?,
                reducer_name: reducer,
            }),
            _ => return Err(errors::arity(args)),
        };
        if grouping.is_some() && excludes_empty {
            return Err(errors::EXCLUDE_OF_GROUPS);
        }
        if grouping.is_some() && range.width() > 1 {
            return Err(errors::GROUP_OF_SEVERAL);
        }
        Ok((Self { range, selected, excludes_empty, grouping }, filter))
    }
}

/// Parses a reducer: an aggregation that does not depend on time.
fn parse_reducer(word: &[u8]) -> Option<Aggregation> {
    range::aggregation(word).ok().filter(|aggregation| !aggregation.depends_on_time())
}

pub(super) fn range(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    read(ctx, args, false)
}

pub(super) fn reverse_range(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    read(ctx, args, true)
}

/// Returns the clock of a read of several series, whose relative times are in one unit.
pub(super) fn milliseconds(ctx: &Context<'_, '_>) -> Clock {
    Clock::new(ctx.keys.now_us(), Unit::Milliseconds)
}

/// Returns what a lens shows that a filter has found.
fn see<'k>(keys: &'k Keys<'_>, key: &[u8]) -> Result<Seen<'k>, CommandError> {
    keys.see(key).and_then(|seen| seen.ok_or(errors::NO_SERIES)).map_err(|error| of(key, error))
}

/// Names the lens in an error, because the client has named labels.
fn of(key: &[u8], error: CommandError) -> CommandError {
    let text = error.to_string();
    let problem = text.strip_prefix("ERR LENS: ").unwrap_or(&text);
    CommandError::Text(format!("ERR LENS: {}: {problem}", shown(key)).into())
}

/// Takes references to what is to be read of a series or lens that a filter has found.
fn source_of(
    keys: &Keys<'_>,
    range: &Range,
    key: &[u8],
    labelled: Labelled<'_>,
) -> Result<Source, CommandError> {
    match labelled {
        Labelled::Series(series) => range.source(keys, key, series),
        Labelled::Lens(_) => {
            range.source_of_seen(keys, key, &see(keys, key)?).map_err(|error| of(key, error))
        }
    }
}

fn unit_of(keys: &Keys<'_>, key: &[u8], labelled: Labelled<'_>) -> Result<Unit, CommandError> {
    match labelled {
        Labelled::Series(series) => Ok(series.definition().unit),
        Labelled::Lens(_) => Ok(see(keys, key)?.unit()),
    }
}

pub(super) fn check_milliseconds(unit: Unit) -> Result<(), CommandError> {
    let is_met = unit == Unit::Milliseconds;
    if is_met { Ok(()) } else { Err(errors::RELATIVE_UNIT) }
}

fn read(ctx: &mut Context<'_, '_>, args: &[&[u8]], reverse: bool) -> Result<(), CommandError> {
    let (options, filter) = Options::parse(args, milliseconds(ctx), filter::parse)?;
    let found = filter::find(&filter, ctx.keys);
    let Options { range, selected, excludes_empty, grouping } = options;
    if clock::is_relative(args) {
        let mut units = found.iter().map(|(key, labelled)| unit_of(ctx.keys, key, *labelled));
        units.try_for_each(|unit| check_milliseconds(unit?))?;
    }
    if let Some(grouping) = grouping {
        let groups = groups_of(ctx.keys, &range, &selected, grouping, found)?;
        return ctx.write_unlocked(move |reply| reply_groups(reply, &range, &groups, reverse));
    }
    let keys = &*ctx.keys;
    let of_found = |(key, labelled): (&[u8], Labelled<'_>)| {
        let source = source_of(keys, &range, key, labelled)?;
        Ok(Member { key: key.into(), labels: selected.of(labelled.labels()), source })
    };
    let members = found.into_iter().map(of_found).collect::<Result<Vec<Member>, CommandError>>()?;
    ctx.write_unlocked(move |reply| reply_members(reply, &range, members, excludes_empty, reverse))
}

/// Labels to be answered: names, and values unless they are absent.
type Answered = Vec<(Box<[u8]>, Option<Box<[u8]>>)>;

/// A series or lens that is to be read.
#[derive(Debug)]
struct Member {
    key: Box<[u8]>,
    labels: Answered,
    source: Source,
}

fn reply_answered(reply: &mut Reply, labels: &Answered) {
    reply_labels(reply, labels.iter().map(|(name, value)| (&**name, value.as_deref())));
}

fn reply_members(
    reply: &mut Reply,
    range: &Range,
    members: Vec<Member>,
    excludes_empty: bool,
    reverse: bool,
) -> Result<(), CommandError> {
    let mut members = members;
    if excludes_empty {
        let first = range.limited_to(1);
        let mut checked = Vec::with_capacity(members.len());
        for member in members {
            if naming(&member.key, || first.rows(&member.source, false))?.len() > 0 {
                checked.push(member);
            }
        }
        members = checked;
    }
    let parts = 2 + usize::from(reply.protocol() == Protocol::Resp3);
    reply_head(reply, members.len());
    for Member { key, labels, source } in &members {
        reply_name(reply, key, parts);
        reply_parts_of_series(reply, labels, range);
        naming(key, || reply_range(reply, range, source, reverse))?;
    }
    Ok(())
}

/// Writes what is answered of a series besides its key and its rows.
fn reply_parts_of_series(reply: &mut Reply, labels: &Answered, range: &Range) {
    reply_answered(reply, labels);
    if reply.protocol() == Protocol::Resp3 {
        reply_words(reply, "aggregators", range.aggregators().iter().map(String::as_bytes));
    }
}

/// Writes what is answered of a series, or of a group of them, besides its name and its rows. `value` is
/// that of the group's label; `members` have their keys and labels. Returns the number of parts.
pub(super) fn reply_parts(
    reply: &mut Reply,
    options: &Options<'_>,
    value: &[u8],
    members: &[(&[u8], &Labels)],
) -> usize {
    let is_detailed = reply.protocol() == Protocol::Resp3;
    if let Some(grouping) = options.grouping {
        Head::of(&options.selected, grouping, value, members).reply_parts(reply);
        return if is_detailed { 3 } else { 1 };
    }
    let (_, labels) = members.first().expect("what is answered has a series");
    reply_parts_of_series(reply, &options.selected.of(labels), &options.range);
    1 + usize::from(is_detailed)
}

/// Writes a map of one name to a list of words.
fn reply_words<'w>(reply: &mut Reply, name: &str, words: impl ExactSizeIterator<Item = &'w [u8]>) {
    reply.map(1);
    reply.bulk(name.as_bytes());
    reply.array(words.len());
    words.for_each(|word| reply.bulk(word));
}

/// What is answered about a group of series.
#[derive(Debug)]
struct Head {
    name: Vec<u8>,
    reducer_name: Vec<u8>,
    keys: Vec<Box<[u8]>>,
    /// Labels in RESP2, with the reducer and the members, which RESP3 has beside them.
    labels: Answered,
    /// Labels in RESP3.
    own_labels: Answered,
}

impl Head {
    fn of(
        selected: &Selected<'_>,
        grouping: Grouping<'_>,
        value: &[u8],
        members: &[(&[u8], &Labels)],
    ) -> Self {
        let reducer_name = grouping.reducer_name.to_ascii_lowercase();
        let label = (grouping.label, value);
        Self {
            name: [grouping.label, b"=", value].concat(),
            keys: members.iter().map(|(key, _)| Box::from(*key)).collect(),
            labels: labels_of_group(selected, label, &reducer_name, 3, members),
            own_labels: labels_of_group(selected, label, &reducer_name, 1, members),
            reducer_name,
        }
    }

    /// Writes all but the name.
    fn reply_parts(&self, reply: &mut Reply) {
        if reply.protocol() == Protocol::Resp3 {
            reply_answered(reply, &self.own_labels);
            reply_words(reply, "reducers", [&self.reducer_name[..]].into_iter());
            reply_words(reply, "sources", self.keys.iter().map(|key| &**key));
        } else {
            reply_answered(reply, &self.labels);
        }
    }
}

/// A group of series that is to be read.
#[derive(Debug)]
struct Grouped {
    head: Head,
    reducer: Aggregation,
    sources: Vec<Source>,
}

/// Joins the series to groups, in the order of the label's values.
fn groups_of(
    keys: &Keys<'_>,
    range: &Range,
    selected: &Selected<'_>,
    grouping: Grouping<'_>,
    found: Vec<(&[u8], Labelled<'_>)>,
) -> Result<Vec<Grouped>, CommandError> {
    let mut groups: BTreeMap<&[u8], Vec<(&[u8], Labelled<'_>)>> = BTreeMap::new();
    for (key, labelled) in found {
        if let Some(value) = labelled.labels().get(grouping.label) {
            groups.entry(value).or_default().push((key, labelled));
        }
    }
    let of_group = |(value, members): (&[u8], Vec<(&[u8], Labelled<'_>)>)| {
        let labels: Vec<(&[u8], &Labels)> =
            members.iter().map(|(key, labelled)| (*key, labelled.labels())).collect();
        Ok(Grouped {
            head: Head::of(selected, grouping, value, &labels),
            reducer: grouping.reducer,
            sources: members
                .iter()
                .map(|(key, labelled)| source_of(keys, range, key, *labelled))
                .collect::<Result<_, CommandError>>()?,
        })
    };
    groups.into_iter().map(of_group).collect()
}

/// Returns the labels of a group. It has three of its own, the label, the reducer and the members, of
/// which the first `all` are all that is answered; and it has those that all members have alike.
fn labels_of_group(
    selected: &Selected<'_>,
    label: (&[u8], &[u8]),
    reducer: &[u8],
    all: usize,
    members: &[(&[u8], &Labels)],
) -> Answered {
    let keys: Vec<&[u8]> = members.iter().map(|(key, _)| *key).collect();
    let joined = keys.join(&b","[..]);
    let own = [label, (b"__reducer__", reducer), (b"__source__", &joined)];
    let find = |name: &[u8]| own.iter().find(|(own, _)| *own == name).map(|(_, value)| *value);
    match selected {
        Selected::None => Vec::new(),
        Selected::All => {
            own[..all].iter().map(|(name, value)| ((*name).into(), Some((*value).into()))).collect()
        }
        Selected::Named(names) => names
            .iter()
            .map(|name| ((*name).into(), find(name).or(shared_label(members, name)).map(Box::from)))
            .collect(),
    }
}

fn reply_groups(
    reply: &mut Reply,
    range: &Range,
    groups: &[Grouped],
    reverse: bool,
) -> Result<(), CommandError> {
    reply_head(reply, groups.len());
    let parts = if reply.protocol() == Protocol::Resp3 { 4 } else { 2 };
    for group in groups {
        let rows = reduced(range, group, reverse)?;
        reply_name(reply, &group.head.name, parts);
        group.head.reply_parts(reply);
        reply_rows(reply, &rows);
    }
    Ok(())
}

/// Returns the value of a label, if all members of a group have the same.
fn shared_label<'s>(members: &[(&[u8], &'s Labels)], name: &[u8]) -> Option<&'s [u8]> {
    let mut values = members.iter().map(|(_, labels)| labels.get(name));
    let first = values.next()??;
    values.all(|value| value == Some(first)).then_some(first)
}

/// Joins the rows of a group's members: at each time, one value of all.
fn reduced(
    range: &Range,
    Grouped { reducer, head, sources }: &Grouped,
    reverse: bool,
) -> Result<Rows, CommandError> {
    let of_member = range.for_one_of_several(None);
    let mut points = Vec::new();
    for (key, source) in head.keys.iter().zip(sources) {
        let rows = naming(key, || of_member.rows(source, false))?;
        if points.len() + rows.len() > VALUES_MAX {
            return Err(errors::TOO_MANY_ROWS);
        }
        points.extend(rows.times.into_iter().zip(rows.values));
    }
    // Stable, so that values of one time stay in the order of their keys.
    points.sort_by_key(|(time, _)| *time);
    let mut rows = Rows { width: 1, times: Vec::new(), values: Vec::new() };
    for at_one_time in points.chunk_by(|before, after| before.0 == after.0) {
        let values: Vec<f64> = at_one_time.iter().map(|(_, value)| *value).collect();
        rows.times.push(at_one_time[0].0);
        rows.values.push(aggregate(*reducer, &values));
    }
    if reverse {
        rows.times.reverse();
        rows.values.reverse();
    }
    rows.times.truncate(range.count());
    rows.values.truncate(range.count());
    Ok(rows)
}

/// Returns the labels of the series that a read of a range of several reads; `None` if it is none.
pub(super) fn selected_of_range(args: &[&[u8]]) -> Option<LabelFilter> {
    // The labels do not depend on the time.
    let (_, filter) = Options::parse(args, Clock::at(0, Unit::Milliseconds), filter::parse).ok()?;
    Some(filter)
}

/// Returns the labels of the series of which a command reads the last points.
pub(super) fn selected_of_get(args: &[&[u8]]) -> Option<LabelFilter> {
    let filter_at = args.iter().position(|word| is(word, "FILTER"))?;
    filter::parse(&args[filter_at + 1..]).ok()
}

/// Returns the labels of the series of which a command reads the keys.
pub(super) fn selected_of_index(args: &[&[u8]]) -> Option<LabelFilter> {
    filter::parse(&args[1..]).ok()
}

/// Returns the labels of the series of which a command reads labels.
pub(super) fn selected_of_labels(args: &[&[u8]]) -> Option<LabelFilter> {
    let at = if is(args[1], "LABELS") { 2 } else { 3 };
    match args.get(at) {
        None => Some(LabelFilter(Vec::new())),
        Some(_) => filter::parse(&args[at + 1..]).ok(),
    }
}

pub(super) fn query_index(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let found = filter::find(&filter::parse(&args[1..])?, ctx.keys);
    ctx.reply.set(found.len());
    found.iter().for_each(|(key, _)| ctx.reply.bulk(key));
    Ok(())
}

pub(super) fn query_labels(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (name, at) = if is(args[1], "LABELS") {
        (None, 2)
    } else if is(args[1], "VALUES") {
        (Some(*args.get(2).ok_or_else(|| errors::arity(args))?), 3)
    } else {
        return Err(errors::SUBTYPE);
    };
    let found = match args.get(at) {
        None => filter::find(&LabelFilter(Vec::new()), ctx.keys),
        Some(word) if !is(word, "FILTER") => return Err(errors::NOT_FILTER),
        Some(_) if args.len() == at + 1 => return Err(errors::FILTER_EMPTY),
        Some(_) => filter::find(&filter::parse(&args[at + 1..])?, ctx.keys),
    };
    let mut answered = BTreeSet::new();
    for (_, labelled) in found {
        match name {
            Some(name) => answered.extend(labelled.labels().values(name)),
            None => answered.extend(labelled.labels().iter().map(|(name, _)| name)),
        }
    }
    ctx.reply.set(answered.len());
    answered.iter().for_each(|text| ctx.reply.bulk(text));
    Ok(())
}

/// Returns about how many points of one of the series a read of several visits.
pub(super) fn effort(object: &Object, args: &[&[u8]]) -> usize {
    let count = canonical_integer(args[1]).and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
    let ends = args.get(count.saturating_add(2)..).and_then(<[_]>::first_chunk::<2>);
    ends.map_or(0, |[from, to]| range::effort(object, from, to))
}
