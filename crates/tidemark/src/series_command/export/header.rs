//! What is known of a series before its points are read.

use crate::answer::field;
use crate::name::printable;
use crate::series_command::link::Link;
use anyhow::{Context, bail};
use tidemark_lab::client::says_loading;
use tidemark_server::resp::{Value, encode_request};
use tidemark_tables::{SeriesRow, Unit};

/// Series that are asked for at a time.
const AT_ONCE: usize = 256;

/// A series or a lens.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) key: Vec<u8>,
    pub(super) unit: Unit,
    pub(super) labels: Vec<(Vec<u8>, Vec<u8>)>,
    /// Time of the last point, if there is one.
    pub(super) last: Option<i64>,
}

impl Header {
    /// Returns what the rows of the series have in common, for a table with these labels.
    pub(super) fn row(&self, names: &[Vec<u8>]) -> SeriesRow {
        let value = |name: &Vec<u8>| {
            self.labels.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        };
        SeriesRow { key: self.key.clone(), labels: names.iter().map(value).collect() }
    }
}

/// Asks for all of them.
pub(super) fn read(link: &mut Link, keys: &[Vec<u8>]) -> anyhow::Result<Vec<Header>> {
    let mut headers = Vec::with_capacity(keys.len());
    for keys in keys.chunks(AT_ONCE) {
        let mut requests = Vec::new();
        for key in keys {
            encode_request(&mut requests, &[b"TS.INFO", key.as_slice()]);
            encode_request(&mut requests, &[b"TS.GET", key.as_slice()]);
        }
        link.send(&requests)?;
        let mut replies = Vec::with_capacity(keys.len());
        for _ in keys {
            replies.push((link.reply()?, link.reply()?));
        }
        for (key, (info, last)) in keys.iter().zip(replies) {
            headers.push(header(link, key, &info, &last)?);
        }
    }
    Ok(headers)
}

fn header(link: &mut Link, key: &[u8], info: &Value, last: &Value) -> anyhow::Result<Header> {
    if let Some(error) = info.as_error().filter(|error| says_loading(error)) {
        bail!("{}", String::from_utf8_lossy(error));
    }
    // A lens has no TS.INFO.
    let lens = if info.as_error().is_some() { Some(link.call(&[b"LENS.INFO", key])?) } else { None };
    let known = match &lens {
        Some(lens) if lens.as_error().is_none() => lens,
        _ => info,
    };
    for reply in [known, last] {
        if let Some(error) = reply.as_error() {
            bail!("cannot read {}: {}", printable(key), String::from_utf8_lossy(error));
        }
    }
    let unit = match field(known, "unit").and_then(Value::as_bytes) {
        Some(name) => std::str::from_utf8(name).ok().and_then(|name| name.parse().ok()),
        None => Some(Unit::Milliseconds),
    };
    let labels = field(known, "labels").map(pairs).unwrap_or_default();
    let last = last.as_elements().and_then(|point| point.first()).and_then(Value::as_integer);
    let unit =
        unit.with_context(|| format!("{} has a unit that this version does not know", printable(key)))?;
    Ok(Header { key: key.to_vec(), unit, labels, last })
}

/// Reads labels: a map, or pairs in RESP2.
fn pairs(labels: &Value) -> Vec<(Vec<u8>, Vec<u8>)> {
    let pair =
        |(name, value): (&Value, &Value)| Some((name.as_bytes()?.to_vec(), value.as_bytes()?.to_vec()));
    match labels.as_pairs() {
        Some(pairs) => pairs.into_iter().filter_map(pair).collect(),
        None => {
            let pairs = labels.as_elements().unwrap_or_default().iter().filter_map(Value::as_elements);
            pairs.filter_map(|parts| pair((parts.first()?, parts.get(1)?))).collect()
        }
    }
}
