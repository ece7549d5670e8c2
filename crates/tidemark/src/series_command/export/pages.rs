//! Reads the points of a series page by page. The server answers each page quickly, and neither side
//! holds the whole range.

use crate::name::printable;
use crate::series_command::link::Link;
use anyhow::{Context, bail};
use tidemark_server::resp::Value;
use tidemark_tables::Points;

/// Points of a page.
const PAGE_POINTS: usize = 16_384;

/// Buckets of a series, in its unit.
pub(super) struct BucketsOfSeries {
    pub(super) names: String,
    pub(super) length: i64,
    pub(super) align: i64,
    pub(super) is_with_empty: bool,
}

impl BucketsOfSeries {
    /// Returns the beginning of the bucket behind the one that is reported at `time`.
    fn behind(&self, time: i64) -> Option<i64> {
        let (time, length) = (i128::from(time), i128::from(self.length));
        let into = (time - i128::from(self.align)).rem_euclid(length);
        i64::try_from(time - into + length).ok()
    }
}

/// Reads the pages of a range.
pub(super) struct Pages<'s> {
    key: &'s [u8],
    /// Where the next page begins; `None` at the end.
    from: Option<i64>,
    to: i64,
    buckets: Option<&'s BucketsOfSeries>,
}

impl<'s> Pages<'s> {
    pub(super) fn new(key: &'s [u8], from: i64, to: i64, buckets: Option<&'s BucketsOfSeries>) -> Self {
        Self { key, from: Some(from), to, buckets }
    }

    /// Reads the next page; `None` at the end.
    pub(super) fn next(&mut self, link: &mut Link) -> anyhow::Result<Option<Points>> {
        let Some(from) = self.from.filter(|from| *from <= self.to) else { return Ok(None) };
        let (from, to, count) = (from.to_string(), self.to.to_string(), PAGE_POINTS.to_string());
        let mut command: Vec<&[u8]> =
            vec![b"TS.RANGE", self.key, from.as_bytes(), to.as_bytes(), b"COUNT", count.as_bytes()];
        let words = self.buckets.map(|buckets| (buckets.align.to_string(), buckets.length.to_string()));
        let mut columns = 1;
        if let (Some(buckets), Some((align, length))) = (self.buckets, &words) {
            columns = buckets.names.split(',').count();
            command.extend([
                &b"ALIGN"[..],
                align.as_bytes(),
                b"AGGREGATION",
                buckets.names.as_bytes(),
                length.as_bytes(),
            ]);
            if buckets.is_with_empty {
                command.push(b"EMPTY");
            }
        }
        let reply = link.call(&command)?;
        if let Some(error) = reply.as_error() {
            bail!("cannot read {}: {}", printable(self.key), String::from_utf8_lossy(error));
        }
        let page = points(&reply, columns).with_context(|| {
            format!("the server answers a range of {} with something else than points", printable(self.key))
        })?;
        self.from = match page.times.last() {
            Some(last) if page.times.len() == PAGE_POINTS => match self.buckets {
                Some(buckets) => buckets.behind(*last),
                None => last.checked_add(1),
            },
            _ => None,
        };
        Ok(Some(page).filter(|page| !page.times.is_empty()))
    }
}

/// Takes the columns out of a reply.
fn points(reply: &Value, columns: usize) -> Option<Points> {
    let rows = reply.as_elements()?;
    let mut points = Points {
        times: Vec::with_capacity(rows.len()),
        columns: (0..columns).map(|_| Vec::with_capacity(rows.len())).collect(),
    };
    for row in rows {
        let (time, values) = row.as_elements()?.split_first()?;
        if values.len() != columns {
            return None;
        }
        points.times.push(time.as_integer()?);
        for (value, column) in values.iter().zip(&mut points.columns) {
            column.push(number(value)?);
        }
    }
    Some(points)
}

/// Reads a number, which RESP2 has as text.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        Value::Integer(number) => Some(*number as f64),
        other => std::str::from_utf8(other.as_bytes()?).ok()?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_begins_behind_the_last_bucket() {
        let buckets =
            |length, align| BucketsOfSeries { names: "avg".into(), length, align, is_with_empty: false };
        assert_eq!(buckets(10, 0).behind(20), Some(30));
        assert_eq!(buckets(10, 3).behind(13), Some(23));
        // The first bucket begins before 0 and is reported at 0.
        assert_eq!(buckets(10, 3).behind(0), Some(3));
        assert_eq!(buckets(10, 25).behind(0), Some(5));
        assert_eq!(buckets(i64::MAX, 0).behind(i64::MAX), None);
    }

    #[test]
    fn what_is_no_list_of_points_is_refused() {
        let row = |values: Vec<Value>| Value::Array(vec![Value::Array(values)]);
        let good = points(&row(vec![Value::Integer(1), Value::Double(-0.0)]), 1).expect("a point");
        assert_eq!((good.times[0], good.columns[0][0].to_bits()), (1, (-0.0_f64).to_bits()));
        assert!(points(&row(vec![Value::Integer(1), Value::Bulk(b"1E-1".to_vec())]), 1).is_some());
        for reply in [
            row(vec![]),
            row(vec![Value::Integer(1)]),
            row(vec![Value::Double(1.0), Value::Double(1.0)]),
            row(vec![Value::Integer(1), Value::Null]),
            Value::Integer(1),
        ] {
            assert!(points(&reply, 1).is_none(), "{reply:?}");
        }
    }
}
