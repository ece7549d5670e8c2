//! Collects the points of each series until they are worth a command.

use super::sender::{Batch, Sender};
use super::tally::Tally;
use std::collections::HashMap;
use tidemark_tables::{Labels, Row, Unit};

/// Points of a series that are sent together.
const BATCH_POINTS: usize = 16_384;
/// Points that are held. Beyond them, those of all series are sent.
const HELD_POINTS: usize = 1 << 20;
/// Most series of an import.
const SERIES_MAX: usize = 10_000_000;

/// Points of one series that are not sent yet.
struct Collected {
    labels: Labels,
    /// Unit of the times.
    unit: Unit,
    times: Vec<i64>,
    values: Vec<f64>,
}

/// The points that are held.
pub(super) struct Collector {
    places: HashMap<Box<[u8]>, usize>,
    series: Vec<Collected>,
    /// Series that have points.
    filled: Vec<usize>,
    /// Key and series of the last row: rows of a series tend to follow each other.
    last: Option<(Vec<u8>, usize)>,
    held: usize,
    sender: Sender,
}

impl Collector {
    pub(super) fn new(sender: Sender) -> Self {
        Self { places: HashMap::new(), series: Vec::new(), filled: Vec::new(), last: None, held: 0, sender }
    }

    pub(super) fn check_interrupt(&self) -> anyhow::Result<()> {
        self.sender.check_interrupt()
    }

    /// Adds a point; the inner error says what is wrong with its row.
    pub(super) fn add(&mut self, row: &Row, unit: Unit) -> anyhow::Result<Result<(), &'static str>> {
        let place = match &self.last {
            Some((key, place)) if *key == row.key => *place,
            _ => {
                let Some(place) = self.place(row, unit) else {
                    return Ok(Err("it is of one series more than the 10000000 of an import"));
                };
                self.last = Some((row.key.clone(), place));
                place
            }
        };
        let series = &mut self.series[place];
        if series.labels != row.labels {
            return Ok(Err("its labels differ from those of an earlier row of the series"));
        }
        if series.unit != unit {
            // A file before had another unit.
            self.flush(place)?;
            self.series[place].unit = unit;
        }
        let series = &mut self.series[place];
        if series.times.is_empty() {
            self.filled.push(place);
        }
        series.times.push(row.time);
        series.values.push(row.value);
        self.held += 1;
        if series.times.len() == BATCH_POINTS {
            self.flush(place)?;
        } else if self.held == HELD_POINTS {
            self.flush_all()?;
        }
        Ok(Ok(()))
    }

    fn place(&mut self, row: &Row, unit: Unit) -> Option<usize> {
        if let Some(place) = self.places.get(&*row.key) {
            return Some(*place);
        }
        let place = self.series.len();
        if place == SERIES_MAX {
            return None;
        }
        self.places.insert(row.key.clone().into_boxed_slice(), place);
        self.series.push(Collected {
            labels: row.labels.clone(),
            unit,
            times: Vec::new(),
            values: Vec::new(),
        });
        Some(place)
    }

    /// Takes the points of a series; `None` if there are none.
    fn take(&mut self, place: usize, key: &[u8]) -> Option<Batch> {
        let series = &mut self.series[place];
        if series.times.is_empty() {
            return None;
        }
        let (times, values) = (std::mem::take(&mut series.times), std::mem::take(&mut series.values));
        self.held -= times.len();
        Some(Batch {
            place,
            key: key.to_vec(),
            labels: series.labels.clone(),
            unit: series.unit,
            times,
            values,
        })
    }

    fn flush(&mut self, place: usize) -> anyhow::Result<()> {
        let Some((key, _)) = self.last.clone().filter(|(_, last)| *last == place) else { return Ok(()) };
        if let Some(batch) = self.take(place, &key) {
            self.filled.retain(|filled| *filled != place);
            self.sender.send(vec![batch])?;
        }
        Ok(())
    }

    fn flush_all(&mut self) -> anyhow::Result<()> {
        let mut keys: Vec<Option<&[u8]>> = vec![None; self.series.len()];
        for (key, place) in &self.places {
            keys[*place] = Some(key);
        }
        let filled: Vec<(usize, Vec<u8>)> = std::mem::take(&mut self.filled)
            .into_iter()
            .filter_map(|place| Some((place, keys[place]?.to_vec())))
            .collect();
        let batches = filled.into_iter().filter_map(|(place, key)| self.take(place, &key)).collect();
        self.sender.send(batches)
    }

    /// Sends what is left and waits for all answers.
    pub(super) fn finish(&mut self) -> anyhow::Result<()> {
        self.flush_all()?;
        self.sender.finish()
    }

    pub(super) fn into_tally(self) -> Tally {
        self.sender.into_tally()
    }
}
