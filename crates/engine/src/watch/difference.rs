//! What has changed between two answers of a read of ranges of time, as its emissions carry it.
//!
//! ```text
//! Rows            [[180, 3.5], [60]]        the row at 180 came or changed, the one at 60 left
//! RowsOfSeveral   [[k, "change", rows],     rows of k, as above
//!                  [l, "whole", …, rows],   l came, or more than its rows changed: all of it
//!                  [m, "gone"]]             m left
//! ```
//!
//! A client that applies it to the answer before has the answer after.

use crate::watch::answer::content;
use crate::watch::watchable::Watchable;
use crate::wire::encoded;
use crate::wire::reply::{Protocol, Reply};
use std::cmp::Ordering;
use std::iter::Peekable;

/// A row that came, changed or left: `None` if it left. The row is encoded.
type RowChange<'a> = (i64, Option<&'a [u8]>);

/// Returns what has changed. `None` if one of the answers has no rows, as an error has none, or if the
/// answer after is shorter: then it is emitted itself.
pub(super) fn difference(before: &[u8], after: &[u8], protocol: Protocol, how: Watchable) -> Option<Vec<u8>> {
    let mut reply = Reply::new(protocol);
    match how {
        Watchable::Rows { newest_first } => {
            write_rows(&mut reply, &compare_rows(&rows(before)?, &rows(after)?, newest_first));
        }
        Watchable::RowsOfSeveral { newest_first } => {
            compare_series(&mut reply, &series(before, protocol)?, &series(after, protocol)?, newest_first)?;
        }
        Watchable::Ordered | Watchable::Unordered(_) | Watchable::Iterated(_) => return None,
    }
    let change = reply.take();
    (change.len() <= after.len()).then_some(change)
}

/// Writes rows that have changed, in the order of the answer.
fn write_rows(reply: &mut Reply, changes: &[RowChange<'_>]) {
    reply.array(changes.len());
    for (time, row) in changes {
        match row {
            Some(row) => reply.encoded(row),
            None => write_gone_row(reply, *time),
        }
    }
}

/// Writes a row that has left.
pub(crate) fn write_gone_row(reply: &mut Reply, time: i64) {
    reply.array(1);
    reply.integer(time);
}

/// Writes the head of a series of which rows have changed: the rows follow.
pub(crate) fn write_changed_series(reply: &mut Reply, name: &[u8]) {
    reply.array(3);
    reply.encoded(name);
    reply.bulk(b"change");
}

/// Writes the head of a series of which everything is new: its parts follow.
pub(crate) fn write_whole_series(reply: &mut Reply, name: &[u8], parts: usize) {
    reply.array(2 + parts);
    reply.encoded(name);
    reply.bulk(b"whole");
}

/// Writes a series that has left the answer.
pub(crate) fn write_gone_series(reply: &mut Reply, name: &[u8]) {
    reply.array(2);
    reply.encoded(name);
    reply.bulk(b"gone");
}

/// Returns the rows of an encoded array, with their times.
fn rows(bytes: &[u8]) -> Option<Vec<(i64, &[u8])>> {
    let of_row = |(from, to): (usize, usize)| {
        let row = bytes.get(from..to)?;
        let (start, end) = *encoded::elements(row, 0)?.first()?;
        let time = row.get(start..end)?.strip_prefix(b":")?.strip_suffix(b"\r\n")?;
        Some((crate::command::parse::canonical_integer(time)?, row))
    };
    encoded::elements(bytes, 0)?.into_iter().map(of_row).collect()
}

/// What is answered of one name: the name, and all else.
struct Answered<'a> {
    name: &'a [u8],
    parts: Vec<&'a [u8]>,
}

/// Returns what is answered of each name.
fn series(bytes: &[u8], protocol: Protocol) -> Option<Vec<Answered<'_>>> {
    match protocol {
        Protocol::Resp3 => {
            let elements = slices(bytes)?;
            let (pairs, _) = elements.as_chunks::<2>();
            pairs.iter().map(|[name, value]| Some(Answered { name, parts: slices(value)? })).collect()
        }
        Protocol::Resp2 => slices(bytes)?
            .into_iter()
            .map(|one| {
                let mut parts = slices(one)?;
                if parts.is_empty() {
                    return None;
                }
                Some(Answered { name: parts.remove(0), parts })
            })
            .collect(),
    }
}

/// Returns the elements of an encoded aggregate.
fn slices(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    Some(encoded::elements(bytes, 0)?.into_iter().map(|(from, to)| &bytes[from..to]).collect())
}

/// Calls `each` with what is at the same place of both, which are in order.
fn merge<T>(
    before: impl Iterator<Item = T>,
    after: impl Iterator<Item = T>,
    order: impl Fn(&T, &T) -> Ordering,
    mut each: impl FnMut(Option<T>, Option<T>),
) {
    let (mut before, mut after): (Peekable<_>, Peekable<_>) = (before.peekable(), after.peekable());
    loop {
        let place = match (before.peek(), after.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(one), Some(other)) => order(one, other),
        };
        let one = if place.is_le() { before.next() } else { None };
        let other = if place.is_ge() { after.next() } else { None };
        each(one, other);
    }
}

fn compare_rows<'a>(
    before: &[(i64, &'a [u8])],
    after: &[(i64, &'a [u8])],
    newest_first: bool,
) -> Vec<RowChange<'a>> {
    let order = |one: &&(i64, &[u8]), other: &&(i64, &[u8])| {
        if newest_first { other.0.cmp(&one.0) } else { one.0.cmp(&other.0) }
    };
    let mut changes = Vec::new();
    merge(before.iter(), after.iter(), order, |one, other| match (one, other) {
        (Some((_, one)), Some((time, other))) if one != other => changes.push((*time, Some(*other))),
        (None, Some((time, other))) => changes.push((*time, Some(*other))),
        (Some((time, _)), None) => changes.push((*time, None)),
        _ => {}
    });
    changes
}

fn compare_series(
    reply: &mut Reply,
    before: &[Answered<'_>],
    after: &[Answered<'_>],
    newest_first: bool,
) -> Option<()> {
    let (mut changed, mut count, mut is_malformed) = (Reply::new(reply.protocol()), 0, false);
    let order = |one: &&Answered<'_>, other: &&Answered<'_>| content(one.name).cmp(content(other.name));
    merge(before.iter(), after.iter(), order, |one, other| {
        let is_same = one.zip(other).is_some_and(|(one, other)| one.parts == other.parts);
        if is_same {
            return;
        }
        count += 1;
        match (one, other) {
            (Some(one), Some(other)) => match changed_rows(one, other, newest_first) {
                Ok(Some(rows)) => {
                    write_changed_series(&mut changed, other.name);
                    write_rows(&mut changed, &rows);
                }
                Ok(None) => write_whole(&mut changed, other),
                Err(NoRows) => is_malformed = true,
            },
            (None, Some(other)) => write_whole(&mut changed, other),
            (Some(one), None) => write_gone_series(&mut changed, one.name),
            (None, None) => {}
        }
    });
    if is_malformed {
        return None;
    }
    reply.array(count);
    reply.encoded(changed.bytes());
    Some(())
}

/// What should be rows is something else.
struct NoRows;

/// Returns the rows that have changed; `None` if more than rows has.
fn changed_rows<'a>(
    before: &Answered<'a>,
    after: &Answered<'a>,
    newest_first: bool,
) -> Result<Option<Vec<RowChange<'a>>>, NoRows> {
    let (Some((old, head)), Some((new, new_head))) = (before.parts.split_last(), after.parts.split_last())
    else {
        return Err(NoRows);
    };
    if head != new_head {
        return Ok(None);
    }
    let (old, new) = (rows(old).ok_or(NoRows)?, rows(new).ok_or(NoRows)?);
    Ok(Some(compare_rows(&old, &new, newest_first)))
}

fn write_whole(reply: &mut Reply, answered: &Answered<'_>) {
    write_whole_series(reply, answered.name, answered.parts.len());
    answered.parts.iter().for_each(|part| reply.encoded(part));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(before: &str, after: &str, protocol: Protocol, how: Watchable) -> Option<String> {
        let [before, after] = [before, after].map(|answer| answer.replace(' ', "\r\n"));
        let change = difference(before.as_bytes(), after.as_bytes(), protocol, how)?;
        Some(String::from_utf8(change).expect("text").replace("\r\n", " "))
    }

    #[test]
    fn rows_that_came_changed_and_left_are_in_the_order_of_the_answer() {
        let (before, after) =
            ("*3 *2 :1 ,1 *2 :2 ,2 *2 :3 ,3 ", "*5 *2 :0 ,0 *2 :2 ,9 *2 :3 ,3 *2 :4 ,4 *2 :5 ,5 ");
        let how = Watchable::Rows { newest_first: false };
        assert_eq!(
            change(before, after, Protocol::Resp3, how).as_deref(),
            Some("*5 *2 :0 ,0 *1 :1 *2 :2 ,9 *2 :4 ,4 *2 :5 ,5 "),
        );
        let how = Watchable::Rows { newest_first: true };
        assert_eq!(
            change("*2 *2 :2 ,2 *2 :1 ,1 ", "*3 *2 :3 ,3 *2 :2 ,2 *2 :1 ,1 ", Protocol::Resp3, how)
                .as_deref(),
            Some("*1 *2 :3 ,3 "),
        );
    }

    #[test]
    fn an_answer_without_rows_or_shorter_than_its_change_is_emitted_itself() {
        let how = Watchable::Rows { newest_first: false };
        for (before, after) in
            [("-ERR no ", "*1 *2 :1 ,1 "), ("*1 *2 :1 ,1 ", "-ERR no "), ("*1 *2 :1 ,1 ", "*0 ")]
        {
            assert_eq!(change(before, after, Protocol::Resp3, how), None, "{before} {after}");
        }
        assert_eq!(change("*0 ", "*1 $1 a ", Protocol::Resp3, Watchable::Ordered), None);
    }

    #[test]
    fn series_come_change_and_leave() {
        let how = Watchable::RowsOfSeveral { newest_first: false };
        let same = "*2 *2 :1 ,1 *2 :2 ,2 ";
        let before = format!("%4 $1 a *2 %0 {same}$1 b *2 %0 {same}$1 d *2 %0 {same}$1 e *2 %0 {same}");
        let after = format!(
            "%4 $1 b *2 %0 *2 *2 :1 ,1 *2 :2 ,5 $1 c *2 %0 {same}$1 d *2 %1 $1 l $1 v {same}$1 e *2 %0 {same}"
        );
        assert_eq!(
            change(&before, &after, Protocol::Resp3, how),
            Some(format!(
                "*4 *2 $1 a $4 gone *3 $1 b $6 change *1 *2 :2 ,5 *4 $1 c $5 whole %0 {same}*4 $1 d $5 whole %1 $1 l $1 v {same}"
            ))
            .filter(|change| change.len() <= after.len()),
        );
        let before = format!("*2 *3 $1 a *0 {same}*3 $1 b *0 {same}");
        let after = format!("*2 *3 $1 a *0 {same}*3 $1 b *0 *1 *2 :2 ,2 ");
        assert_eq!(
            change(&before, &after, Protocol::Resp2, how).as_deref(),
            Some("*1 *3 $1 b $6 change *1 *1 :1 "),
        );
    }
}
