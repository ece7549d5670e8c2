//! `SORT` and `SORT_RO`: sort the elements of a list, set or sorted set, by their own values or by
//! those of other keys.
//!
//! Patterns such as `BY weight:*` and `GET object:*->name` name keys that are only known when the
//! command runs, so it has every shard locked. Elements that compare equal are ordered by their
//! bytes, so what `STORE` writes depends only on values.

use super::parse::{self, is};
use super::{Answer, Command, Group, Handler, KeySpec, Run, flags::*};
use crate::context::{Context, Keys};
use crate::error::CommandError;
use crate::value::{End, Hash, List, Set, SortedSet, Type};
use std::cmp::Ordering;

const fn row(id: u16, name: &'static str, flags: u32, run: Handler) -> Command {
    Command::new(Group::Generic, id, name, -2, flags | MOVABLE_KEYS, KeySpec::OneAndAny, Run::Keys(run))
}

pub(super) const COMMANDS: &[Command] = &[
    row(150, "sort", WRITE | DENYOOM, sort)
        .using(&["RO access", "RO access", "OW update"])
        .using_by_options(|_| &["RO access", "OW update"])
        .visiting_all()
        .in_categories(&["@set", "@sortedset", "@list", "@dangerous"], &["@keyspace"])
        .doc(
            "1.0.0",
            "O(N+M*log(M)) with N the number of elements and M of those returned",
            "key [BY by-pattern] [LIMIT offset count] [GET get-pattern ...] [ASC | DESC] [ALPHA] [STORE destination]",
            "Returns or stores the elements of a list, set or sorted set in order.",
        ),
    row(151, "sort_ro", READONLY, sort_read_only)
        .answering(Answer::Ordered)
        .using(&["RO access", "RO access"])
        .visiting_all()
        .in_categories(&["@set", "@sortedset", "@list", "@dangerous"], &["@keyspace"])
        .doc(
            "7.0.0",
            "O(N+M*log(M)) with N the number of elements and M of those returned",
            "key [BY by-pattern] [LIMIT offset count] [GET get-pattern ...] [ASC | DESC] [ALPHA]",
            "Returns the elements of a list, set or sorted set in order.",
        ),
];

/// Options after the key.
#[derive(Default)]
struct Options<'a> {
    by: Option<&'a [u8]>,
    /// The pattern names no key: elements are not sorted.
    unsorted: bool,
    gets: Vec<&'a [u8]>,
    offset: i64,
    /// `None`: all.
    count: Option<i64>,
    descending: bool,
    alphabetical: bool,
    store: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(mut rest: &[&'a [u8]], may_store: bool) -> Result<Self, CommandError> {
        let mut options = Self::default();
        while let [option, after @ ..] = rest {
            rest = match after {
                _ if is(option, "ASC") || is(option, "DESC") => {
                    options.descending = is(option, "DESC");
                    after
                }
                _ if is(option, "ALPHA") => {
                    options.alphabetical = true;
                    after
                }
                [offset, count, after @ ..] if is(option, "LIMIT") => {
                    options.offset = parse::integer(offset)?;
                    options.count = Some(parse::integer(count)?).filter(|count| *count >= 0);
                    after
                }
                [destination, after @ ..] if is(option, "STORE") && may_store => {
                    options.store = Some(destination);
                    after
                }
                [pattern, after @ ..] if is(option, "BY") => {
                    options.by = Some(pattern);
                    options.unsorted |= !pattern.contains(&b'*');
                    after
                }
                [pattern, after @ ..] if is(option, "GET") => {
                    options.gets.push(pattern);
                    after
                }
                _ => return Err(CommandError::Syntax),
            };
        }
        Ok(options)
    }

    /// Returns the part of `len` elements that `LIMIT` selects.
    fn range(&self, len: usize) -> std::ops::Range<usize> {
        let clamp = |value: i64| usize::try_from(value.max(0)).map_or(len, |value| value.min(len));
        let start = clamp(self.offset);
        let count = self.count.map_or(len, clamp);
        start..(start + count).min(len)
    }
}

fn sort(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let options = Options::parse(&args[2..], true)?;
    let found = sorted(ctx.keys, args[1], options.store.is_some(), &options)?;
    match options.store {
        Some(destination) => store(ctx, destination, &found),
        None => answer(ctx, &found),
    }
    Ok(())
}

fn sort_read_only(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let options = Options::parse(&args[2..], false)?;
    let found = sorted(ctx.keys, args[1], false, &options)?;
    answer(ctx, &found);
    Ok(())
}

fn answer(ctx: &mut Context<'_, '_>, found: &[Option<Vec<u8>>]) {
    ctx.reply.array(found.len());
    found.iter().for_each(|value| ctx.reply.bulk_or_null(value.as_deref()));
}

/// Stores the result as a list. Missing `GET` values become empty elements.
fn store(ctx: &mut Context<'_, '_>, destination: &[u8], found: &[Option<Vec<u8>>]) {
    let mut list = List::default();
    found.iter().for_each(|value| list.push(End::Back, value.as_deref().unwrap_or_default()));
    if !list.is_empty() {
        ctx.keys.put(destination, list);
        ctx.keys.changed(destination, "sortstore");
    } else if ctx.keys.remove(destination) {
        ctx.keys.changed(destination, "del");
    }
    ctx.reply.count(found.len());
}

/// Returns the elements of a key, or their `GET` values, in order and within `LIMIT`.
fn sorted(
    keys: &Keys<'_>,
    key: &[u8],
    storing: bool,
    options: &Options<'_>,
) -> Result<Vec<Option<Vec<u8>>>, CommandError> {
    let mut elements = elements_of(keys, key)?;
    // A set has no order of its own that could be stored.
    let is_ordered = keys.type_of(key) != Some(Type::Set);
    if !options.unsorted {
        put_in_order(keys, &mut elements, options.by, options)?;
    } else if !is_ordered && storing {
        elements.sort_unstable();
        if options.descending {
            elements.reverse();
        }
    } else if is_ordered && options.descending {
        elements.reverse();
    }
    let range = options.range(elements.len());
    let chosen = elements.drain(range);
    if options.gets.is_empty() {
        return Ok(chosen.map(Some).collect());
    }
    let values_of = |element: Vec<u8>| {
        let values = options.gets.iter().map(|pattern| look_up(keys, pattern, &element));
        values.collect::<Vec<_>>()
    };
    Ok(chosen.flat_map(values_of).collect())
}

fn elements_of(keys: &Keys<'_>, key: &[u8]) -> Result<Vec<Vec<u8>>, CommandError> {
    Ok(match keys.type_of(key) {
        None => Vec::new(),
        Some(Type::List) => keys
            .read::<List>(key)?
            .map(|list| list.iter_from(0).map(<[u8]>::to_vec).collect())
            .unwrap_or_default(),
        Some(Type::Set) => keys
            .read::<Set>(key)?
            .map(|set| set.iter().map(|member| member.to_vec()).collect())
            .unwrap_or_default(),
        Some(Type::SortedSet) => keys
            .read::<SortedSet>(key)?
            .map(|set| set.iter().map(|(member, _)| member.to_vec()).collect())
            .unwrap_or_default(),
        Some(_) => return Err(CommandError::WrongType),
    })
}

/// Sort key of an element.
#[derive(PartialEq)]
enum Weight {
    Number(f64),
    Text(Vec<u8>),
    /// The other key does not exist: before all texts.
    Nothing,
}

impl Weight {
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            // No number is NaN, and zeros compare equal.
            (Self::Number(one), Self::Number(other)) => one.partial_cmp(other).unwrap_or(Ordering::Equal),
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            (Self::Nothing, Self::Nothing) => Ordering::Equal,
            (Self::Nothing, _) => Ordering::Less,
            _ => Ordering::Greater,
        }
    }
}

fn put_in_order(
    keys: &Keys<'_>,
    elements: &mut Vec<Vec<u8>>,
    by: Option<&[u8]>,
    options: &Options<'_>,
) -> Result<(), CommandError> {
    let weigh = |element: Vec<u8>| {
        let value = by.map(|pattern| look_up(keys, pattern, &element));
        let weight = match (value, options.alphabetical) {
            (None, true) => Weight::Nothing,
            (None, false) => Weight::Number(number(&element)?),
            (Some(value), true) => value.map_or(Weight::Nothing, Weight::Text),
            (Some(value), false) => Weight::Number(value.map_or(Ok(0.0), |value| number(&value))?),
        };
        Ok((weight, element))
    };
    let mut weighed: Vec<(Weight, Vec<u8>)> =
        std::mem::take(elements).into_iter().map(weigh).collect::<Result<_, CommandError>>()?;
    weighed.sort_unstable_by(|(weight, element), (other_weight, other)| {
        let order = weight.compare(other_weight).then_with(|| element.cmp(other));
        if options.descending { order.reverse() } else { order }
    });
    elements.extend(weighed.into_iter().map(|(_, element)| element));
    Ok(())
}

/// Parses a value as a number. Empty is zero; a number out of range or invalid text is an error. As
/// in Redis, which reads a C string, it ends at a zero byte.
fn number(value: &[u8]) -> Result<f64, CommandError> {
    let value = value.split(|&byte| byte == 0).next().unwrap_or_default();
    if value.is_empty() {
        return Ok(0.0);
    }
    let says_infinite = value.iter().any(|byte| byte.eq_ignore_ascii_case(&b'i'));
    parse::float(value.trim_ascii_start())
        .ok()
        .filter(|number| number.is_finite() || says_infinite)
        .ok_or(CommandError::text("ERR One or more scores can't be converted into double"))
}

/// Returns the value of a pattern for an element. `#` is the element itself, `name:*` the string at
/// that key with the element in place of the asterisk, `name:*->field` a field of the hash there.
fn look_up(keys: &Keys<'_>, pattern: &[u8], element: &[u8]) -> Option<Vec<u8>> {
    if pattern == b"#" {
        return Some(element.to_vec());
    }
    let star = pattern.iter().position(|byte| *byte == b'*')?;
    let (before, after) = (&pattern[..star], &pattern[star + 1..]);
    let arrow = after.windows(2).position(|pair| pair == b"->").filter(|at| at + 2 < after.len());
    let (after, field) = arrow.map_or((after, None), |at| (&after[..at], Some(&after[at + 2..])));
    let key = [before, element, after].concat();
    match field {
        Some(field) => keys.read::<Hash>(&key).ok()??.get(field).map(<[u8]>::to_vec),
        None => keys.string(&key).ok()?.map(|text| text.to_vec()),
    }
}
