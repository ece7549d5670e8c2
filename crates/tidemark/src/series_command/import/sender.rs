//! Sends batches: several wait for their answers at a time, but one of each series, so points of a series arrive in their
//! order.

use super::tally::Tally;
use crate::answer::field;
use crate::series_command::link::Link;
use anyhow::bail;
use std::collections::VecDeque;
use tidemark_lab::client::says_loading;
use tidemark_server::resp::{Value, encode_request};
use tidemark_tables::{Labels, Unit};

/// Commands that wait for their answers.
const WAITING_MAX: usize = 64;
/// Series that are asked for at a time.
const ASKED_AT_ONCE: usize = 256;
/// Points of a refused batch that are sent at a time, each in a command of its own.
const SINGLE_AT_ONCE: usize = 1024;
/// Longest reason that is kept. Bytes.
const REASON_BYTES: usize = 200;

/// Points of a series, in the order in which they came.
pub(super) struct Batch {
    /// Number of the series.
    pub(super) place: usize,
    pub(super) key: Vec<u8>,
    pub(super) labels: Labels,
    /// Unit of the times.
    pub(super) unit: Unit,
    pub(super) times: Vec<i64>,
    pub(super) values: Vec<f64>,
}

/// What is known of a series on the server.
enum Known {
    /// It has this unit, or will have it once it is created.
    Unit(Unit),
    /// It takes no points, for this reason.
    Refused(String),
}

/// Sends batches and counts what becomes of their points.
pub(super) struct Sender {
    link: Link,
    policy: &'static str,
    known: Vec<Option<Known>>,
    waiting: VecDeque<Batch>,
    /// Batches that were refused: their points are sent one by one.
    refused: Vec<Batch>,
    /// Bytes of the current request.
    request: Vec<u8>,
    tally: Tally,
}

impl Sender {
    pub(super) fn new(link: Link, policy: &'static str) -> Self {
        Self {
            link,
            policy,
            known: Vec::new(),
            waiting: VecDeque::new(),
            refused: Vec::new(),
            request: Vec::new(),
            tally: Tally::default(),
        }
    }

    pub(super) fn check_interrupt(&self) -> anyhow::Result<()> {
        self.link.check_interrupt()
    }

    pub(super) fn into_tally(self) -> Tally {
        self.tally
    }

    /// Sends batches, each of another series.
    pub(super) fn send(&mut self, batches: Vec<Batch>) -> anyhow::Result<()> {
        self.ask_for_new(&batches)?;
        for batch in batches {
            let Some(batch) = self.in_unit_of_series(batch) else { continue };
            for batch in rising(batch) {
                while self.is_waiting(batch.place) {
                    self.settle_one()?;
                }
                self.request.clear();
                self.encode(&batch, &batch.times, &batch.values);
                self.link.send(&self.request)?;
                self.waiting.push_back(batch);
                if self.waiting.len() >= WAITING_MAX {
                    self.settle_one()?;
                }
            }
        }
        Ok(())
    }

    /// Waits for all answers.
    pub(super) fn finish(&mut self) -> anyhow::Result<()> {
        while !self.waiting.is_empty() || !self.refused.is_empty() {
            self.settle_one()?;
        }
        Ok(())
    }

    /// Finds out whether series exist that were not seen before, and their units.
    fn ask_for_new(&mut self, batches: &[Batch]) -> anyhow::Result<()> {
        let is_new = |batch: &&Batch| !matches!(self.known.get(batch.place), Some(Some(_)));
        let new: Vec<&Batch> = batches.iter().filter(is_new).collect();
        if new.is_empty() {
            return Ok(());
        }
        // Answers come in the order of the requests.
        self.finish()?;
        for new in new.chunks(ASKED_AT_ONCE) {
            self.request.clear();
            for batch in new {
                encode_request(&mut self.request, &[b"TS.INFO", batch.key.as_slice()]);
            }
            self.link.send(&self.request)?;
            for batch in new {
                let known = known(&self.link.reply()?, batch.unit)?;
                if self.known.len() <= batch.place {
                    self.known.resize_with(batch.place + 1, || None);
                }
                self.known[batch.place] = Some(known);
                self.tally.series();
            }
        }
        Ok(())
    }

    /// Converts times into the unit of the series. Points whose times are no whole number of it are refused.
    fn in_unit_of_series(&mut self, mut batch: Batch) -> Option<Batch> {
        let unit = match self.known.get(batch.place) {
            Some(Some(Known::Refused(reason))) => {
                self.tally.refuse(reason, batch.times.len() as u64);
                return None;
            }
            Some(Some(Known::Unit(unit))) => *unit,
            _ => batch.unit,
        };
        if unit != batch.unit {
            let points = batch.times.iter().zip(&batch.values);
            let (times, values): (Vec<_>, Vec<_>) =
                points.filter_map(|(time, value)| Some((batch.unit.convert(*time, unit)?, *value))).unzip();
            let refused = batch.times.len() - times.len();
            if refused > 0 {
                let reason = format!(
                    "the time is no whole number of {unit}, the unit of the series, or too late for it"
                );
                self.tally.refuse(&reason, refused as u64);
            }
            (batch.unit, batch.times, batch.values) = (unit, times, values);
        }
        (!batch.times.is_empty()).then_some(batch)
    }

    fn is_waiting(&self, place: usize) -> bool {
        self.waiting.iter().chain(&self.refused).any(|batch| batch.place == place)
    }

    /// Appends the command for points of a batch.
    fn encode(&mut self, batch: &Batch, times: &[i64], values: &[f64]) {
        let times: Vec<u8> = times.iter().flat_map(|time| time.to_le_bytes()).collect();
        let values: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut command: Vec<&[u8]> = vec![b"TS.APPEND", &batch.key, &times, &values];
        command.extend([&b"ON_DUPLICATE"[..], self.policy.as_bytes(), b"UNIT", batch.unit.name().as_bytes()]);
        let mut labels = batch.labels.iter().peekable();
        if labels.peek().is_some() {
            command.push(b"LABELS");
            command.extend(labels.flat_map(|(name, value)| [name, value]));
        }
        encode_request(&mut self.request, &command);
    }

    /// Takes the next answer, or sends what was refused once no answer is awaited.
    fn settle_one(&mut self) -> anyhow::Result<()> {
        let Some(batch) = self.waiting.pop_front() else {
            for batch in std::mem::take(&mut self.refused) {
                self.send_one_by_one(&batch)?;
            }
            return Ok(());
        };
        let reply = self.link.reply()?;
        match self.count(&reply, batch.times.len())? {
            None => {}
            Some(reason) if batch.times.len() == 1 => self.tally.refuse(&reason, 1),
            Some(_) => self.refused.push(batch),
        }
        Ok(())
    }

    /// A batch is taken as a whole or not at all; its points are not.
    fn send_one_by_one(&mut self, batch: &Batch) -> anyhow::Result<()> {
        for at in (0..batch.times.len()).step_by(SINGLE_AT_ONCE) {
            let points = at..batch.times.len().min(at + SINGLE_AT_ONCE);
            self.request.clear();
            for point in points.clone() {
                self.encode(batch, &batch.times[point..=point], &batch.values[point..=point]);
            }
            self.link.send(&self.request)?;
            for _ in points {
                let reply = self.link.reply()?;
                if let Some(reason) = self.count(&reply, 1)? {
                    self.tally.refuse(&reason, 1);
                }
            }
        }
        Ok(())
    }

    /// Counts the points that were taken. Returns why the batch was refused; fails on an error that is not about its points.
    fn count(&mut self, reply: &Value, points: usize) -> anyhow::Result<Option<String>> {
        if let Some(error) = reply.as_error() {
            if !error.starts_with(b"ERR TSDB") && !error.starts_with(b"WRONGTYPE") {
                bail!("the server answers TS.APPEND with {}", String::from_utf8_lossy(error));
            }
            return Ok(Some(reason(error)));
        }
        let Some(taken) = reply.as_integer().and_then(|taken| u64::try_from(taken).ok()) else {
            bail!("the server answers TS.APPEND with something else than a number");
        };
        self.tally.take(taken);
        self.tally.ignore((points as u64).saturating_sub(taken));
        Ok(None)
    }
}

/// Reads what `TS.INFO` says; `unit` is that of a series that does not exist.
fn known(info: &Value, unit: Unit) -> anyhow::Result<Known> {
    let Some(error) = info.as_error() else {
        let known = field(info, "unit").and_then(Value::as_bytes);
        let known =
            known.map_or(Some(Unit::Milliseconds), |name| std::str::from_utf8(name).ok()?.parse().ok());
        let unknown = || Known::Refused("the series has a unit that this version does not know".to_owned());
        return Ok(known.map_or_else(unknown, Known::Unit));
    };
    if error == b"ERR TSDB: the key does not exist" {
        return Ok(Known::Unit(unit));
    }
    if says_loading(error) || !(error.starts_with(b"ERR TSDB") || error.starts_with(b"WRONGTYPE")) {
        bail!("the server answers TS.INFO with {}", String::from_utf8_lossy(error));
    }
    Ok(Known::Refused(reason(error)))
}

/// Returns an error without its code and without the place of the point.
fn reason(error: &[u8]) -> String {
    let text = String::from_utf8_lossy(error);
    let text = text.strip_prefix("ERR TSDB: ").unwrap_or(&text);
    // `point 3 at 120: …`
    let text = match text.strip_prefix("point ").and_then(|rest| rest.split_once(": ")) {
        Some((_, why)) => why,
        None => text,
    };
    text.chars().take(REASON_BYTES).collect()
}

/// Splits a batch into some whose times rise. Points with the same time keep their order: each is in a later batch than the
/// one before.
fn rising(batch: Batch) -> Vec<Batch> {
    if batch.times.is_sorted_by(|one, next| one < next) {
        return vec![batch];
    }
    let mut order: Vec<usize> = (0..batch.times.len()).collect();
    order.sort_by_key(|at| batch.times[*at]);
    let mut parts: Vec<(Vec<i64>, Vec<f64>)> = Vec::new();
    let (mut before, mut part) = (None, 0);
    for at in order {
        let time = batch.times[at];
        part = if before == Some(time) { part + 1 } else { 0 };
        before = Some(time);
        if parts.len() == part {
            parts.push((Vec::new(), Vec::new()));
        }
        parts[part].0.push(time);
        parts[part].1.push(batch.values[at]);
    }
    parts
        .into_iter()
        .map(|(times, values)| Batch {
            place: batch.place,
            key: batch.key.clone(),
            labels: batch.labels.clone(),
            unit: batch.unit,
            times,
            values,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn batch(points: &[(i64, f64)]) -> Batch {
        let (times, values) = points.iter().copied().unzip();
        Batch {
            place: 0,
            key: b"k".to_vec(),
            labels: Labels::default(),
            unit: Unit::Milliseconds,
            times,
            values,
        }
    }

    proptest! {
        #[test]
        fn points_of_a_time_keep_their_order(times in proptest::collection::vec(0..20_i64, 0..60)) {
            let points: Vec<_> = times.iter().enumerate().map(|(at, time)| (*time, at as f64)).collect();
            let parts = rising(batch(&points));
            let mut seen = std::collections::BTreeMap::<i64, Vec<f64>>::new();
            for part in &parts {
                prop_assert!(part.times.is_sorted_by(|one, next| one < next));
                for (time, value) in part.times.iter().zip(&part.values) {
                    seen.entry(*time).or_default().push(*value);
                }
            }
            let mut expected = std::collections::BTreeMap::<i64, Vec<f64>>::new();
            for (time, value) in points {
                expected.entry(time).or_default().push(value);
            }
            prop_assert_eq!(seen, expected);
        }
    }

    #[test]
    fn a_reason_names_no_point() {
        let error = b"ERR TSDB: point 3 at 120: Timestamp is older than retention";
        assert_eq!(reason(error), "Timestamp is older than retention");
        assert_eq!(reason(b"ERR TSDB: the key is not a TSDB key"), "the key is not a TSDB key");
        assert_eq!(reason(b"WRONGTYPE wrong"), "WRONGTYPE wrong");
    }
}
